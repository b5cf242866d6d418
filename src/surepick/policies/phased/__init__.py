"""Policies in phases: a design, all of its measurements, an elimination; RAGE and Peace."""
