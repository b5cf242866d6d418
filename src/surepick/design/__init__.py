"""How to divide measurements between arms so that the hardest comparison is as easy as possible.

`allocation` takes listed comparisons, `pairs` all pairs of plans, `width` the measure of Peace; `rounding`
makes whole numbers of shares. Arrays in, arrays out; imports `core` and `errors` alone.
"""
