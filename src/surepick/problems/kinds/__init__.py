"""A file for every kind of problem: its builder, its family and how its best plan is found."""
