"""Vertices of polytopes and their edges, the rivals of a leader, and proofs over all plans.

`edges` has the vertices, by a small `simplex`; `rivals` those that a leader is compared with. `covering`
searches for a tree of boxes that rules out every plan at once; `core/polytopes/proofs.py` checks it.
"""
