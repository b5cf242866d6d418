"""One of several single arms: ranking and selection, and best-arm identification.

`candidates` is the run that they share, `stopping` the test by which most of the others stop.
"""
