"""How to allocate measurements so that the hardest comparison is as easy as possible.

    minimax          shares of cost between probes, by their `information`: arms, mixed readings, plans
    play_allocation  the same between plans behind an oracle, by column generation
    allocation       rows on single arms to a certified bracket, listed or all pairs of plans
    counts           whole counts of a batch: covers, rounding; `grid` rounds what decides

Arrays in, arrays out; nothing here bears on a guarantee.
"""
