"""Sessions: the messy world of real measurements made into complete rounds, kept in a store.

`session` is the front door; `requests` and `settings` hold what goes in and out, `leasing` decides who
measures what, `telling` takes measurements in; `tapes`, `policy_run` and `ledger` are the fold of the log,
which `replica` keeps up to date; `rules` has what a session can write, and `certificate`, `noise_check` and
`verify` say what may be believed; `codec`, `snapshot` and `history` turn it into JSON. It may import core,
policies, problems, simulation and store.
"""
