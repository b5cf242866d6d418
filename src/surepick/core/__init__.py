"""The data model: problems, plans, evidence, policies and guarantees, as values that all packages share.

- What there is to choose from: `problem` (plans in a list), `oracle_problem` (plans behind a function),
  `polytopes` (all amounts that keep linear rows). `base_problem` is what they share, `plan_sets` asks any of
  them for a best plan, `about` holds what only people need.
- What is measured: arms one by one, `probes` (mixes of arms), or `plays` (whole plans).
- What is known: `evidence` and estimates from it, `prior_data`, and `answers` (facts about a plan).
- What decides: a `policy` and its `run`, with a `guarantee`.
- `given` reads and checks what people hand in; `arrays` and `wording` are small tools.

Nothing here measures or opens a file. May import `errors` and nothing else of ours.
"""
