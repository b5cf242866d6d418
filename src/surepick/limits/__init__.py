"""The limit: how few measurements any method needs on an instance, on average. It needs the true means.

`limit` is the one function: lists and probes are in its module, plans behind an oracle in `oracle`, polytopes
in `polytope` and, within epsilon, `near_best`. Each finds a `Bracket` of the characteristic time T*, and
`value` makes measurements of it.

May import `policies.polytopes`, `design`, `core` and `errors`.
"""
