"""Nine depots, nine towns, real roads: why "within three minutes of the best" is the right question.

    python examples/freeway_cities.py [--seed N] [--budget N]

Travel hours between the paper's eighteen cities over the US Department of Transportation's freeway network
(as carried by the MIT-licensed package scgraph 2.15.0; `src/surepick/problems/data/README.md` has the
provenance). Real roads share segments, so many transport plans take almost exactly the same time: asked for
the best plan, any method with a guarantee needs hundreds of millions of trips, or for ever where plans tie.
Asked for a plan within epsilon of the best, it ends after a few thousand.
"""

import argparse

import surepick as sp
from surepick.simulation import Gaussian

THREE_MINUTES = 0.05  # hours


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=1_000_000)
    options = parser.parse_args(arguments)

    case = sp.problems.transport_instance(options.seed, distances="freeway")
    values = case.problem.values(case.means)
    near = int((values <= values.min() + THREE_MINUTES).sum())
    print(f"{case.problem.n_plans} plans; {near} of them within three minutes of the best.")
    print(f"the exact question: {sp.limit(case.problem, case.means, tolerance=1e-3).explanation}.")
    truth = Gaussian(case.means)
    results = {}
    for epsilon in (0.0, THREE_MINUTES):
        policy = sp.CombGapE(delta=0.05, epsilon=epsilon)
        outcome = sp.simulate(case.problem, truth, policy=policy, seed=options.seed, budget=options.budget)
        answer = (
            "none" if outcome.plan is None else f"{values[outcome.plan] - values.min():.4f} h from the best"
        )
        print(f"epsilon {epsilon:g} h: {outcome.state}, {outcome.n_measured:,} trips, answer {answer}.")
        results[epsilon] = outcome
    return values, results


if __name__ == "__main__":
    main()
