"""Measure one thing, choose another: RAGE's transductive instance

Fiez, Jain, Jamieson and Ratliff (NeurIPS 2019) measure along some vectors and choose among others. Their
instance: the 2d unit vectors can be measured, here with d = 10. To choose from are the first d of them, and d
more that are each turned by 0.1 towards one of the last d. The mean of the first unit vector is 1, all others
are 0, so that the first choice is worth 1 and its turned one cos 0.1 = 0.995. `RAGE` is their method with the
constants of their program.
"""

import numpy as np
from drawing import CHOSEN, effort, panels

import surepick as sp
from surepick.experiments.instances import transductive
from surepick.policies import RAGE

RUNS = 5


def main():
    problem, means = transductive(10, 0.1)
    first, second = sorted(problem.values(means))[:-3:-1]
    print(f"{problem.n_plans} choices, {problem.n_probes} probes; the best: {first:.4f}, then {second:.4f}")
    found = {
        policy.name: [sp.simulate(problem, means, policy=policy, seed=seed) for seed in range(RUNS)]
        for policy in (sp.BetGapE(delta=0.05), RAGE(delta=0.05, variant="authors"))
    }
    spent = {name: float(np.mean([one.n_measured for one in own])) for name, own in found.items()}
    limit = sp.limit(problem, means, delta=0.05)
    for name, own in found.items():
        right = sum(one.correct is True for one in own)
        print(f"{name}: {spent[name]:,.0f} measurements on average, right in {right} of {RUNS} runs")
    print(f"no method with this delta needs fewer than {limit.measurements:,.0f} on average")

    figure, left, right = panels(1, 1.4)
    left.barh(list(spent)[::-1], list(spent.values())[::-1], color=CHOSEN, height=0.6)
    left.set_title(f"measurements, mean of {RUNS} runs", fontsize=10)
    effort(right, problem, found["BetGapE"][0], limit)
    return figure


if __name__ == "__main__":
    main().savefig("transductive.png")
