"""Policies that draw: worlds from a posterior vote for a plan; GenTS-Explore and TS-Explore, baselines."""
