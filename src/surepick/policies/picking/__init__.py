"""Policies for a budget that promise nothing: the best guess at its end."""
