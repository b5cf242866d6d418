"""Files that people hand in: spreadsheets, TOML and JSON that describe a problem."""
