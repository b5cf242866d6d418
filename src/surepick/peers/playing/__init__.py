"""Methods for semi-bandits, where whole plans are played and every arm of a play is read."""
