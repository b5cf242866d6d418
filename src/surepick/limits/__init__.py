"""The limit: how few measurements any method needs on an instance, on average. It needs the true means.

`limit` is the one function, with lists and probes in its module, and `unlisted` has oracles and polytopes.
Each finds a `Bracket` of the characteristic time T*, and `value` makes measurements of it.

May import `policies.polytopes`, `design`, `core` and `errors`.
"""
