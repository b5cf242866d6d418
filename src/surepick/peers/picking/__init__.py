"""Published policies for a budget: the best guess at its end, without a guarantee."""
