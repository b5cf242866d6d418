"""The nouns: problems, plans, evidence, policies and promises, as values that everything else is about.

Nothing here measures, and `tables` alone opens a file. May import `errors` and nothing else of ours.
"""
