"""What the compiled loops of all rooms share: how they are compiled and kept, records, plans and feeds.

Imports `core` alone; `compiled.py` alone imports Numba.
"""
