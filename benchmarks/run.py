"""All benchmarks in turn, as one command; what each prints is shown, and kept with --keep.

python benchmarks/run.py             # `make bench`: about an hour and a half on an idle machine of two cores
python benchmarks/run.py --quick     # `make bench-quick`: at most ten minutes, smaller samples
python benchmarks/run.py --only rounds store

A benchmark that fails does not stop the others; it is named at the end, and the exit code says so.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent

# By name: the arguments of the quick form.
QUICK = {
    "rounds": [],
    "design": ["--repeats", "1"],
    "finish": [],
    "hops": [],
    "guarantees": ["--runs", "100", "--budget", "20000"],
    "bet_gap_e": ["--scale", "0.05", "--only", "limit", "time"],
    "bet_gap_e_soundness": ["--runs", "20"],
    "obet": ["--scale", "0.05", "--only", "enumerable"],
    "polytopes": ["sizes"],
    "probes": ["--runs", "2", "--peers", "0", "--only", "pairs"],
    "answers": ["guesses", "--scale", "0.02"],
    "misuse": ["--runs", "5"],
    "problems": [],
    "cold": ["--repeats", "1", "--policies", "BetGapE", "CombGapE"],
    "store": ["--sizes", "100", "--seconds", "1"],
    "web": ["--viewers", "20", "--workers", "4", "--seconds", "4", "--measurements", "5000"],
}
# The arguments of the full form; studies of thousands of runs are commands of their own, named in each file.
FULL = {
    "polytopes": ["costs"],
    "probes": ["--runs", "20", "--peers", "2"],
    "answers": ["--scale", "0.2"],
    "misuse": ["--runs", "100"],
}
KEPT = {"bet_gap_e", "bet_gap_e_soundness", "obet", "store", "web"}  # those with a page under results/


def run(name, arguments, kept):
    """The exit code of one benchmark; its output goes to the screen, and to the file if there is one."""
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # one thread each, so that ratios compare like with like
    with contextlib.ExitStack() as stack:
        page = stack.enter_context(kept.open("w", encoding="utf-8")) if kept else None
        child = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=alone))
        for line in child.stdout:
            print(line, end="", flush=True)
            if page:
                page.write(line)
    return child.returncode


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller samples: at most ten minutes in all")
    parser.add_argument("--only", nargs="+", choices=QUICK, default=list(QUICK), help="these alone")
    parser.add_argument("--keep", action="store_true", help="write the pages under benchmarks/results")
    given = parser.parse_args()
    if given.quick and given.keep:
        parser.error("quick figures are too rough to keep; leave one of --quick and --keep out")
    failed = []
    for name in given.only:
        print(f"== benchmarks/{name}.py", flush=True)
        began = time.perf_counter()
        kept = HERE / "results" / f"{name}.md" if given.keep and name in KEPT else None
        if run(name, QUICK[name] if given.quick else FULL.get(name, []), kept):
            failed.append(name)
        print(f"== {name}: {time.perf_counter() - began:.0f} s\n", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
