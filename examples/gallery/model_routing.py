"""Which model for which workload, within a budget: scikit-learn's data and classifiers

Four workloads (the data sets iris, wine, breast cancer and digits that scikit-learn ships), five classifiers
as options, a price for each, and a limit on the sum of the four prices: 323 assignments are within it. One
reading says whether one classifier was right on one example, 0 or 1. The readings were recorded once, by
`record` below (five-fold cross-validation, scikit-learn 1.9.1), as the number of examples for every pattern
of right and wrong; here they are drawn with replacement. Reading all five classifiers on the same example is
much cheaper than reading one at a time: an easy example is easy for all.

Six sets of classifiers were tried, and this one is among the cheaper to decide. A smaller epsilon costs more:
half of it takes about twice as many readings.
"""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
from drawing import effort, panels, values

import surepick as sp
from surepick.simulation import Replay

TABLE = Path(__file__).parent / "data" / "model_routing.csv"
PRICES = {"stump": 1, "bayes": 2, "tree": 4, "neighbours": 8, "forest": 16}
BUDGET, EPSILON = 24, 0.08  # of the sum of four accuracies: 0.02 for each workload


def record():
    """Write the table of patterns; this alone needs scikit-learn."""
    from sklearn import datasets, ensemble, naive_bayes, neighbors, tree
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    models = [
        tree.DecisionTreeClassifier(max_depth=1, random_state=0),
        naive_bayes.GaussianNB(),
        tree.DecisionTreeClassifier(random_state=0),
        neighbors.KNeighborsClassifier(),
        ensemble.RandomForestClassifier(random_state=0),
    ]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with TABLE.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["workload", *PRICES, "examples"])
        for workload in ("iris", "wine", "breast_cancer", "digits"):
            x, y = getattr(datasets, f"load_{workload}")(return_X_y=True)
            right = [(cross_val_predict(model, x, y, cv=folds) == y).astype(int).tolist() for model in models]
            patterns = Counter(zip(*right, strict=True))
            writer.writerows([workload, *pattern, n] for pattern, n in sorted(patterns.items(), reverse=True))


def recorded():
    """Return the 0/1 readings of each workload, a row per example and a column per classifier."""
    found = {}
    for row in csv.DictReader(TABLE.read_text().splitlines()):
        pattern = [float(row[model]) for model in PRICES]
        found.setdefault(row["workload"], []).extend([pattern] * int(row["examples"]))
    return {workload: np.array(rows) for workload, rows in found.items()}


class Examples:
    """Examples drawn at random: a use of a workload reads every classifier on one of them."""

    def __init__(self, tables):
        self.tables, self.n_readings = list(tables.values()), sum(t.shape[1] for t in tables.values())
        self.means = np.concatenate([table.mean(axis=0) for table in self.tables])

    def uses(self, workload, n, rng):
        table = self.tables[workload]
        return table[rng.integers(len(table), size=n)]

    def measure(self, counts, rng):
        return np.concatenate([self.uses(k, int(n), rng).sum(axis=0) for k, n in enumerate(counts)])


def main():
    tables = recorded()
    one = sp.problems.assign(dict.fromkeys(tables, PRICES), BUDGET, goal="largest", low=0, high=1)
    whole = {name: [f"{name}: {model}" for model in PRICES] for name in tables}
    together = sp.Problem(
        one.plans, arms=one.arm_names, plan_names=one.plan_names, goal="largest", low=0, high=1, measure=whole
    )
    columns = {arm: tables[name][:, k] for name, arms in whole.items() for k, arm in enumerate(arms)}
    policy = sp.BetGapE(delta=0.05, epsilon=EPSILON)
    single = sp.simulate(one, Replay(columns), policy=policy, seed=0)
    paired = sp.simulate(together, Examples(tables), policy=policy, seed=0)
    print(f"{one.n_plans} plans over {one.n_arms} arms")
    print(f"one at a time: {single.plan_name}, {single.n_measured:,} readings")
    print(f"all five on one example: {paired.plan_name}, {paired.n_measured:,} examples")
    everything = sum(table.size for table in tables.values())
    print(f"every classifier on every example would be {everything:,} readings")

    figure, left, right = panels(1.3, 1, height=3.8)
    values(left, one, single, np.array([columns[arm].mean() for arm in one.arm_names]), most=6)
    effort(right, together, paired)
    return figure


if __name__ == "__main__":
    main().savefig("model_routing.png")
