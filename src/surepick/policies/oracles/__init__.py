"""Betting where plans are too many to list, and an oracle finds the best one for given weights.

`oracle_best` is the question, `plan_wealth` the wealth against any plan, `branch_search` rules out whole
branches of plans, and `plan_probes` is a run whose measurements are whole plans.
"""
