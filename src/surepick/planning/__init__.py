"""Looking ahead before anything is measured: the limit of any method, forecasts, advice and comparisons.

May import `simulation`, `policies`, `problems`, `design`, `core` and `errors`.
"""
