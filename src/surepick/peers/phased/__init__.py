"""Policies in phases: a design, all of its measurements, an elimination.

RAGE and Peace for any plans, NaiveGapElim for sets of arms, ExactExpGap on a matroid, XYAdaptive and RAGE
(`probe_phases`) where vectors are measured. `run` is what they share, `greedy_uses` a compiled loop.
"""
