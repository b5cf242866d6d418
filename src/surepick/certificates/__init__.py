"""Certificates: their fields, their text, the rivals they list, and signatures."""
