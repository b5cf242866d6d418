"""Policies that watch gaps: tell the leader from its closest rival until a radius allows a stop.

`radius` says how sure a gap is, `rounds` is the compiled loop, `run` drives it.
"""
