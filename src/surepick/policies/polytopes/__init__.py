"""Vertices of polytopes and their edges, the rivals of a leader, and proofs over all plans.

`edges` has the vertices; `rivals` those that a leader is compared with. `prover` searches for a tree of boxes
that rules out every plan at once (`covering`, with `box_cuts`, `tightening` and `boundary`).
`core/proofs.py` checks what a tree proves.
"""
