"""Policies that bet: every plan's claim to be best has a wealth, and a plan is ruled out when it is ruined.

Each policy with the files that it is made of; those in brackets are compiled:

    bet_gap_e    BetGapE, plans in a list: tuning, arriving (new plans), [books] (state), [blocks] (steps)
      all_leads    within epsilon and few plans: every plan is a possible lead
      probe_run    where probes are measured: block_estimates, purses, covers, [probe_kernels]
        parted_run   of unknown noise: by_parts, noise_seen
    obet         OBet, plans behind an oracle: wealth, ruling_out, [row_sums]
      play_run     where plans are played: prior_bets
    poly_bet     PolyBet, all plans of a polytope
      poly_run     the best one: edges, [edge_bets]
      average_run  one within epsilon: average_blocks, average_test (last call), rivals, series, prover,
                     [covering], [tightening], [box_cuts], [boundary]
    challenge    Challenge, against the plan of today

They share `block_run` (a block is fixed, measured whole and settled), `last_call` (the last block as a test),
`by_variance` (noise of bounded variance), [`bets`] (what a bet is about and brings) and [`division`] (of a
block between the arms). `good_plans` is for the limit within epsilon (`planning`).
"""
