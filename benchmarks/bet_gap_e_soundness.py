"""How often BetGapE is wrong on families made to catch it, and how often the cheat that must be caught is.

python benchmarks/bet_gap_e_soundness.py > benchmarks/results/bet_gap_e_soundness.md   # half an hour
python benchmarks/bet_gap_e_soundness.py --runs 200

A family is refuted when so many errors would have a probability below 1e-6 at error rate delta. The cheat
chooses its bets after it has seen the block; it is refuted as soon as the test has any power.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from hard_families import FAMILIES, Peeking, count_errors, is_refuted
from surepick.planning.comparison import binomial_interval
from surepick.policies.betting.bet_gap_e import BetGapE

SEED = 8_200_000
CONTROL = "two arms, gap .02, delta .05"


def row(name, policy_class, label, runs):
    family = FAMILIES[name]
    wrong, answered = count_errors(family, policy_class, runs, SEED)
    low, high = binomial_interval(wrong, runs)
    verdict = "refuted" if is_refuted(wrong, runs, family.delta) else "holds"
    rate = f"{wrong / runs:.4f} ({low:.4f} to {high:.4f})"
    print(
        f"| {name} | {label} | {family.delta} | {wrong} of {runs} | {rate} | {answered} | {verdict} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    print(f"# Error rates of BetGapE\n\n`python benchmarks/bet_gap_e_soundness.py --runs {runs}`\n")
    print("| family | bets | delta | wrong | error rate (95% interval) | answered in budget | promise |")
    print("|---|---|---|---|---|---|---|")
    for name in FAMILIES:
        row(name, BetGapE, "before the block", runs)
    row(CONTROL, Peeking, "after the block (control)", runs)


if __name__ == "__main__":
    main()
