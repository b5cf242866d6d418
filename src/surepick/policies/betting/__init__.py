"""Policies that bet: every plan's claim to be best has a wealth, and a plan is ruled out when the bets
against it win.

    bet_gap_e    BetGapE, plans in a list; `challenge` is Challenge, against the plan of today
      batch_run    a run of batches: decide, absorb, standing, state, final batch, arriving plans, prior data
      batch_design which probes a batch uses, how often, and how long it is
      question     what a run asks: `best` (the best plan), `within` (one within epsilon), `challenge`,
                   `best_vertex` and `within_polytope` (the same of all plans of a polytope)
      run_state    the state of a run as plain values
    obet         OBet, plans behind an oracle: wealth, ruling_out, [row_sums]
      play_run     where plans are played: prior_bets

The theorem and its factors are in `surepick.inference`, what polytopes need in `surepick.policies.polytopes`.
OBet, whose files in brackets are compiled, has `block_run`, `last_call`, [`bets`] and [`division`].
"""
