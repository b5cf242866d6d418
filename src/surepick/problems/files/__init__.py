"""Problem files: what TOML, JSON, CSV, MPS and LP files say, and the starters of `surepick init`."""
