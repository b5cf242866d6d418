"""Every policy, by its stable name."""
