"""Policies that watch gaps: tell the leader from its closest rival until a radius allows a stop.

CombGapE, CLUCB, LinGapE (`probe_ridge` where vectors are measured), GenLUCB, and Uniform, the floor.
`state`, `rounds` and `arms` are the compiled loop, `radius` says how sure a gap is, `run` drives it.
"""
