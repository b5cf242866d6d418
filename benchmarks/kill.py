"""Kill workers with SIGKILL again and again, and check that nothing acknowledged is lost or counted twice.

    python benchmarks/kill.py [--kills 200] [--processes 8] [--threads 2] [--store postgresql://...]

Processes with threads ask, tell, and note each value in a journal once `tell` has returned. One of them after
the other is killed at a random moment and replaced. In the end the session holds each value of the journal
exactly once, its log verifies, and the file is well. Exits with 1 if not.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

import surepick as sp
from surepick.sessions.session import Session
from surepick.store.doctor import examine

NAME = "kill"
SPAWN = multiprocessing.get_context("spawn")


def work(url: str, journal: str, number: int, n_threads: int) -> None:
    """Measure until killed, in several threads that share a session."""
    session = Session.load(url, NAME)
    acknowledged = os.open(journal, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def measure(thread: int) -> None:
        rng = np.random.default_rng([number, thread])
        while True:
            for request in session.ask():
                value = float(rng.standard_normal())
                receipt = session.tell(request, value)
                os.write(acknowledged, f"{request.probe} {value!r} {receipt}\n".encode())

    threads = [threading.Thread(target=measure, args=(i,)) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--store", default=None, help="an empty database [a new SQLite file]")
    parser.add_argument("--folder", type=Path, default=Path(), help="on the disk to be tried")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        sys.exit(0 if trial(given, Path(folder).resolve()) else 1)


def trial(given: argparse.Namespace, folder: Path) -> bool:
    """Run it, print what was found, and return whether all is well."""
    url, journal = given.store or f"sqlite:///{folder}/store.db", folder / "journal"
    journal.touch()  # a worker may be killed before it has acknowledged a value
    problem = sp.Problem(np.eye(12), noise=1, goal="largest")
    Session.create(url, NAME, problem, policy=sp.BetGapE(delta=1e-12))
    chance, started = random.Random(0), 0
    workers = []
    began = time.monotonic()
    for kill in range(given.kills + 1):
        while len(workers) < given.processes:
            arguments = (url, str(journal), started, given.threads)
            workers.append(SPAWN.Process(target=work, args=arguments, daemon=True))
            workers[-1].start()
            started += 1
        time.sleep(chance.uniform(0.0, 1.0) if kill else 5.0)  # at first all of them get to work
        victims = workers if kill == given.kills else [workers.pop(chance.randrange(len(workers)))]
        for victim in victims:
            victim.kill()
            victim.join()
    return report(url, journal, given, time.monotonic() - began)


def report(url: str, journal: Path, given: argparse.Namespace, seconds: float) -> bool:
    session = Session.load(url, NAME)
    kept = Counter((m.probe, m.value) for m in session.measurements())
    lines = [line.split() for line in journal.read_text().splitlines()]
    acknowledged = Counter((int(arm), float(value)) for arm, value, _ in lines)
    lost = sum((acknowledged - kept).values())
    doubled = sum(n - 1 for n in kept.values())
    unacknowledged = sum((kept - acknowledged).values())  # recorded, and killed before it could be noted
    holds, well = session.verify().holds, url.startswith("postgres") or examine(url).is_well
    print(
        f"{given.kills} kills of {given.processes} processes x {given.threads} threads in {seconds:.0f} s: "
        f"{sum(acknowledged.values()):,} values acknowledged, {lost} lost, {doubled} doubled, "
        f"{unacknowledged} recorded without having been noted; verify {'holds' if holds else 'FAILS'}, "
        f"the store is {'well' if well else 'DAMAGED'}"
    )
    return lost == 0 and doubled == 0 and holds and well


if __name__ == "__main__":
    main()
