"""All benchmarks in turn, as one command, from one version.

python benchmarks/run.py             # `make bench`: about 20 minutes of one idle core
python benchmarks/run.py --quick     # `make bench-quick`: at most ten minutes, smaller samples
python benchmarks/run.py --only rounds store

What a benchmark prints is shown and, with `--out FOLDER`, kept there as a page of its own beside a summary:
which versions, which commands, how long they took and how they ended. `make bench` keeps its pages in
results/bench. Comparisons of policies are studies of `surepick reproduce`, not benchmarks.

A benchmark that fails or takes longer than `--limit` does not stop the others: it is ended with all that it
started and named at the end, and the exit code is 1.
"""

import argparse
import contextlib
import datetime as dt
import importlib.metadata
import os
import platform
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import surepick

HERE = Path(__file__).parent
CLEAR_UP = 10.0  # seconds


@dataclass(frozen=True)
class Benchmark:
    """A script of this folder with the arguments of the quick and of the full form."""

    script: str
    quick: str = ""
    full: str = ""


BENCHMARKS = {
    "rounds": Benchmark("rounds"),
    "design": Benchmark("design", "--repeats 1 --largest 1000", "--repeats 3"),
    "hops": Benchmark("hops"),
    "problems": Benchmark("problems"),
    "paper_errors": Benchmark("paper_errors", "factor-4 sum counts argmax reversed best-arm plus-d"),
    "soundness": Benchmark("soundness", "--runs 10 --only polytopes", "--runs 100"),
    "matrix": Benchmark("matrix", "--runs 2 --only list", "--runs 50"),
    "probe_soundness": Benchmark("probe_soundness", "--runs 5", "--runs 100"),
    "answers": Benchmark("answers", "guesses --scale 0.02", "--scale 0.05"),
    "misuse": Benchmark("misuse", "--runs 5", "--runs 50"),
    "cold": Benchmark("cold", "--repeats 1 --policies BetGapE CombGapE", "--repeats 2"),
    "store": Benchmark("store", "--sizes 100 --seconds 1", "--sizes 100,10000 --seconds 2"),
    "web": Benchmark("web", "--viewers 20 --workers 4 --seconds 4 --measurements 5000"),
}


@dataclass(frozen=True)
class Ended:
    """How a benchmark ended: well if `trouble` is empty; the processors' seconds are of all its processes."""

    command: str
    seconds: float
    cpu_seconds: float
    trouble: str = ""


def run(benchmark, arguments, limit, page):
    """One benchmark, for at most `limit` seconds; its output goes to the screen and to the page."""
    command = [sys.executable, str(HERE / f"{benchmark.script}.py"), *arguments.split()]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # one thread each, so that ratios compare like with like
    began, used, late = time.perf_counter(), cpu_of_children(), threading.Event()
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=alone,
        start_new_session=True,
    )
    alarm = threading.Timer(limit, lambda: (late.set(), end(child)))
    alarm.start()
    try:
        for line in child.stdout:
            print(line, end="", flush=True)
            page.write(line)
        code = child.wait()
    finally:
        alarm.cancel()
        end(child)  # also where this command itself is interrupted
    trouble = f"ended after {limit / 60:g} minutes" if late.is_set() else f"exit code {code}" if code else ""
    words = f"python benchmarks/{benchmark.script}.py {arguments}".strip()
    return Ended(words, time.perf_counter() - began, cpu_of_children() - used, trouble)


def end(child):
    """Ask a benchmark to clear up; end what is left of it after a while, its servers and workers included."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.wait(CLEAR_UP)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def versions():
    """Of what these are the figures."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True, check=False
    )
    commit = told.stdout.strip() if told.returncode == 0 else "not in a checkout"
    others = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "numba"))
    when = f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC"
    return (
        f"surepick {surepick.__version__} (commit {commit}), Python {platform.python_version()}, {others}; "
        f"{os.cpu_count()} cores, {platform.machine()}; begun {when}"
    )


def summary(of_what, ended):
    """The table of one run, as Markdown."""
    lines = [
        "# One run of all benchmarks",
        "",
        of_what,
        "",
        "| benchmark | command | seconds | CPU s | ended |",
    ]
    lines += ["|---|---|---:|---:|---|"]
    for name, one in ended.items():
        how = one.trouble or "well"
        lines.append(f"| {name} | `{one.command}` | {one.seconds:.0f} | {one.cpu_seconds:.0f} | {how} |")
    total, cpu = sum(one.seconds for one in ended.values()), sum(one.cpu_seconds for one in ended.values())
    return "\n".join([*lines, f"| all | | {total:.0f} | {cpu:.0f} | |"]) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller samples: at most ten minutes in all")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="these alone")
    parser.add_argument("--out", type=Path, help="keep what is printed in this folder, with a summary")
    parser.add_argument("--limit", type=float, help="minutes each of them may take; 30, with --quick 10")
    given = parser.parse_args()
    limit = 60 * (given.limit or (10 if given.quick else 30))
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
    ended, of_what = {}, versions()
    for name in given.only:
        benchmark = BENCHMARKS[name]
        print(f"== {name}", flush=True)
        with (given.out / f"{name}.md" if given.out else Path(os.devnull)).open(
            "w", encoding="utf-8"
        ) as page:
            ended[name] = run(benchmark, benchmark.quick if given.quick else benchmark.full, limit, page)
        print(f"== {name}: {ended[name].trouble or 'well'}, {ended[name].seconds:.0f} s\n", flush=True)
        if given.out:
            (given.out / "README.md").write_text(summary(of_what, ended), encoding="utf-8")
    print(summary(of_what, ended))
    if failed := [name for name, one in ended.items() if one.trouble]:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # ends the benchmark that is running, too
    main()
