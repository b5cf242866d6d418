"""Plans that form a polytope: the problem, its standard form with bases and edges, proofs by arithmetic."""
