"""Looking ahead before anything is measured: the limit of any method, forecasts, advice and comparisons.

`limit` is the limit, a `limit_value`, of whatever is chosen from and measured: lists, polytopes
(`polytope_limit`, `vertex_edges`, `epsilon_limit`), plans behind an oracle (`unlisted_limit`,
`rival_program`, `play_limit`), probes (`probe_limit`). `forecast`, `advice` and `comparison` try policies
out, `rehearsal` how.

May import `simulation`, `policies`, `problems`, `design`, `core` and `errors`.
"""
