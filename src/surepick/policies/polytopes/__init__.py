"""Vertices of polytopes and their edges, the rivals of a leader, and proofs over all plans.

`edges` has the vertices, by a small compiled `simplex`; `rivals` those that a leader is compared with;
`series` has the bets of a plan within epsilon. `covering` searches for a tree of boxes that rules out every
plan at once (with `box_cuts` and `boundary`); `core/proofs.py` checks what a tree proves.
"""
