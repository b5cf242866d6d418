"""How loops are compiled, with Numba where it is there, and how compiled loops draw measurements (feeds)."""
