"""Policies that watch gaps: tell the lead from its closest rival until a radius allows a stop.

`state`, `rounds` and `arms` are the compiled loop, `radius` says how sure a gap is, `run` drives it.
"""
