"""Measure in Python: `decide`, the executors that call functions, and the loop of ask and tell."""
