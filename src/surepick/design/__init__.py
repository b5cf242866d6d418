"""How to divide measurements between arms so that the hardest comparison is as easy as possible.

`allocation` takes listed comparisons (`interior_point` solves for the few that bind), `pairs` all pairs of
plans, `width` the measure of Peace; `probe_allocation` divides between probes, by their `information`, and
`play_allocation` between plays that nobody has listed; `rounding` makes whole numbers of shares. Arrays in,
arrays out; imports `core` and `errors` alone.
"""
