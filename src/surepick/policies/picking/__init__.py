"""Policies for a budget that promise nothing: the best guess at its end.

`pick` is ours; the others are peers. `pooled` and `phases` are the runs that they share.
"""
