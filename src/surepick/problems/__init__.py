"""Builders: from a person's data to a `Problem`."""
