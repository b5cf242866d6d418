"""Sessions: the messy world of real measurements made into complete rounds, kept in a store.

`session` is the front door, `reading` the part of it that looks; `requests` and `settings` hold what goes in
and out, `leasing` decides who measures what, `telling` takes measurements in, `voiding` takes them back,
`extending` and `ending` say how it goes on and ends; `tapes`,
`policy_run` and `ledger` are the fold of the log, which `replica` keeps up to date; `rules` has what it
can write, and `certificate`, `noise_check` and `verify` say what may be believed; `codec`, `snapshot` and
`history` turn it into JSON, `measurement_files` and `log_file` into files. It may import core, policies,
problems, simulation and store.
"""
