"""Measurements and logs as files: CSV, Excel and JSON."""
