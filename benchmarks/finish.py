"""Seconds for each method to finish one knapsack and one transport instance of the paper.

    python benchmarks/finish.py [method ...]

CPU time of this process; loops are compiled before, on a smaller budget. A run that its budget cut off is
marked with >=: its seconds are those of the budget. A method that is not for these problems has no time.
"""

import sys
import time
from dataclasses import replace

from surepick.experiments import Case, run_case
from surepick.experiments.paper import KNAPSACK, TRANSPORT, Settings, cases_of, methods_named

BUDGETS = {"steps": 10**7, "draws": 10**5, "phases": 10**15}
INSTANCES = ((KNAPSACK, "d = 9", 2), (TRANSPORT, "d = 81", 1))


def timed(case: Case) -> tuple[float, str, int]:
    run_case(replace(case, budget=1000))
    began = time.process_time()
    row = run_case(case)
    return time.process_time() - began, ">= " if row.cut_off else "", row.n_measurements


def told(seconds: float, mark: str, n_measured: int) -> str:
    return f"{mark}{seconds:.3f} s, {n_measured:.3g} measured"


def main() -> None:
    methods = methods_named(sys.argv[1:] or None)
    print(f"{'method':<20}" + "".join(f"{e.name + ', ' + column:>34}" for e, column, _ in INSTANCES))
    for method in methods:
        cells = []
        for experiment, column, seed in INSTANCES:
            settings = Settings(runs=1, seed=seed, policies=(method.name,), budget=BUDGETS[method.pace])
            cases = cases_of(experiment, settings).get((column, method.name))
            cells.append(told(*timed(cases[0])) if cases else "-")
        print(f"{method.label:<20}" + "".join(f"{cell:>34}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
