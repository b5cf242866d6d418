"""Sessions: real measurements made into complete batches, kept in a store.

`session` is the public page; `commands` turns what people ask into `events`, whose check both the writer and
`verify` run. `state` is what a log means, with a stream of values per probe (`streams`) and the policy's run
(`run`, `evidence`); `journal` keeps it up to date; `leases` says who measures what; `setup` and `codec` turn
problems and policies into JSON; `certify` makes certificates.
It may import core, policies, problems, simulation and store.
"""
