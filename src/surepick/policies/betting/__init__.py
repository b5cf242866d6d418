"""Policies that bet: every plan's claim to be best has a wealth, and a plan is ruled out when it is ruined.

`bet_gap_e` for plans in a list, `obet` behind an oracle; `block_run` is what they share, `books` and `blocks`
are the compiled state and steps of BetGapE, `wealth` and `ruling_out` are OBet's, `bets` and `division` both.
"""
