"""The data model: problems, plans, evidence, policies and guarantees, as values that all packages share.

Nothing here measures or opens a file. May import `errors` and nothing else of ours.
"""
