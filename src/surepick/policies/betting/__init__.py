"""Policies that bet: every plan's claim to be best has a wealth, and a plan is ruled out when the bets
against it win.

    bet_gap_e    BetGapE, for all plan sets; `challenge` is Challenge, against the plan of today
      batch_run    a run of batches: decide, absorb, standing, state, final batch, arriving plans, prior data
      batch        the measurements of one batch
      batch_design which probes a batch uses, how often, and how long it is
      question     what a run asks: `best` (the best plan), `within` (one within epsilon), `challenge`,
                   `best_vertex` and `within_polytope` (the same of all plans of a polytope)
      scale_bound  a run that bounds unknown noise first, where bets need a scale
      run_state    the state of a run as plain values
    sign_race    SignRace, rounds in which plans win or lose, whatever the noise

The theorem and its factors are in `surepick.inference`, what polytopes need in `surepick.policies.polytopes`,
plans behind an oracle in `surepick.policies.oracles`.
"""
