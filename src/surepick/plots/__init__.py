"""Figures of views."""
