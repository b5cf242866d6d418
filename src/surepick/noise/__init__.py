"""Checks of the noise: what the guarantee assumes about measurements, and A/A tests."""
