"""Rehearsal: one loop that runs any policy in any environment, and what comes of it.

It imports core and kernels, and knows neither policies nor sessions.
"""
