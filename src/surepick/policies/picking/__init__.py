"""Pick: the best guess at the end of a budget, without a guarantee; peers share its `pooled` run."""
