"""Linear bandits: what is measured are vectors, mixes of arms; plans are other vectors, or the same.

`readings` has both in one set of coordinates, `run` the stop that the methods share.
"""
