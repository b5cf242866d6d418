"""Policies that bet: every plan's claim to be best has a wealth, and a plan is ruled out when the bets
against it win.

    bet_gap_e    BetGapE, for all plan sets; `challenge`, `tied` and `limited` ask other questions of lists
      batch_run    a run of batches: decide, absorb, standing, state, final batch, arriving plans, prior data
      learned_scale_run  the same where bets on all plans at once learn an unknown scale
      batch        the measurements of one batch; `run_state` is the state of a run as plain values
      batch_design which probes a batch uses, how often, and how long it is
      estimates    what measurements say of gaps: all so far, and those of one batch
      question     what a run asks. Of a list (`list_question`): `best` (the best plan, or one of many within
                   epsilon) and `within` (one of few). Of a polytope: `best_vertex` and `within_polytope`
    sign_race    SignRace, rounds in which plans win or lose, whatever the noise

The theorem and its factors are in `surepick.inference`, what polytopes need in `surepick.policies.polytopes`,
plans behind an oracle in `surepick.policies.oracles`.
"""
