"""Why amounts matter: (100, 0, .1) against (0, 100, .2)

The example of the paper's Section 3. Two plans use two arms a hundred times each and a third hardly at all.
The naive rule measures the least measured arm on which they differ, and so spends a third of all
measurements on the arm that decides nothing: its uncertainty enters the difference with a factor of 0.1,
that of the others with 100. CombGapE's own rule measures what shrinks the uncertainty of the *difference*
most.
"""

import numpy as np
from drawing import CHOSEN, OTHER, panels

import surepick as sp
from surepick.simulation import Gaussian

PLANS = [[100, 0, 0.1], [0, 100, 0.2]]
MEANS = [0.95, 0.9, 0.9]


def main():
    problem = sp.Problem(PLANS, plan_names=["first", "second"], noise=0.2, goal="largest")
    runs = {
        rule: [
            sp.simulate(
                problem,
                Gaussian(MEANS, 0.2),
                policy=sp.CombGapE(delta=0.05, arm_rule=rule),
                seed=seed,
            )
            for seed in range(20)
        ]
        for rule in ("gap", "naive")
    }
    mean = {rule: np.mean([one.counts for one in outcomes], axis=0) for rule, outcomes in runs.items()}
    for rule, counts in mean.items():
        shares = ", ".join(f"{x:.0f}" for x in counts)
        print(f"{rule:>5}: {counts.sum():.0f} measurements on average, of the three arms {shares}")
    wasted = mean["naive"].sum() / mean["gap"].sum() - 1
    idle = mean["naive"][2] / mean["naive"].sum()
    print(f"the naive rule takes {wasted:.0%} more, and spends {idle:.0%} of all on the third arm")
    assert all(one.plan == 0 for outcomes in runs.values() for one in outcomes)

    figure, axis = panels(1)
    places = np.arange(3)
    axis.bar(places - 0.2, mean["gap"], 0.38, color=CHOSEN, label='CombGapE, arm_rule="gap"')
    axis.bar(places + 0.2, mean["naive"], 0.38, color=OTHER, label='arm_rule="naive"')
    axis.set_xticks(places, [f"arm {s + 1}: {PLANS[0][s]:g} against {PLANS[1][s]:g}" for s in places])
    axis.set_ylabel("measurements, mean of 20 runs")
    axis.set_ylim(0, 1.25 * mean["naive"].max())
    axis.legend(frameon=False, loc="upper left", ncols=2)
    return figure


if __name__ == "__main__":
    main().savefig("why_amounts_matter.png")
