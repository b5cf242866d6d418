"""Statistical inference from batches: estimates of gaps, bets on them, and what the bets are worth.

    factors      what a bet on a gap pays: an e-value for each kind of noise
    contrasts    gaps between plans, estimated from one batch, and the variance of the estimates
    noise        what is known of the noise: its size, or an estimate from replicates
    bounded      readings between known bounds: a factor that learns their variance
    steps        bet sizes as decisions record them: whole numbers
    wealth       uninvested cash, accounts, their components, and the largest wealth so far

Every guarantee of the betting policies follows from one theorem. Let F be all that is known before a batch.
Fixed by F, and otherwise free: counts, leader, contrasts, bet sizes, mixture weights, stakes.

*Wealth.* An account a has rows h. Row (a, h) has wealth W_a(h) >= 0 and a null hypothesis N_a(h), a set of
truths. There is one uninvested cash C. It starts at 1, all wealth at 0. Allowed are (i) a batch, which
multiplies W_a(h) by a factor f >= 0 with E[f | F] <= 1 under every truth in N_a(h); (ii) a stake, which
moves y of the cash to the rows; (iii) forgetting, which lowers wealth or cash.

*Selector.* Every truth t has a set Bad(t) of accounts, and in each of them one row k(a) with t in N_a(k(a)).
The parts of a stake y that reach the rows k(a) of Bad(t) sum to at most y, for every t.

*Answers.* An answer may be given when, for every truth t under which it is wrong, its accounts are in Bad(t)
and C + sum of W_a(k(a)) over its accounts has reached 1/delta at some time.

*Theorem.* The probability that a wrong answer is ever given is at most delta. Proof: under t the sum S of C
and W_a(k(a)) over Bad(t) starts at 1 and never rises on average, so that P(sup S >= 1/delta) <= delta
(Ville).
"""
