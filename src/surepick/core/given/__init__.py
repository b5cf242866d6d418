"""What people hand in, checked and put in order: numbers by arm, plans, probes and new arms."""
