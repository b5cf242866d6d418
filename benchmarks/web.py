"""The dashboard under load: viewers of one session while workers tell, and the first page of a long session.

    python benchmarks/web.py [--viewers 200] [--workers 8] [--seconds 20] [--measurements 100000]

Bounded, and on loopback only. The server is `surepick serve` in a process of its own. Part one: so many open
event streams of one session while workers in processes of their own tell through Python, each as fast as it
can. Every tell that was acknowledged must be in the log, the server's memory must stay flat once all viewers
are in, and viewers must hear of new measurements soon. Part two: how long the first page takes, a few seconds
after the server has started and again, for a session of 10^5 measurements and 1,000 plans.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import surepick as sp
from surepick.policies import Uniform
from surepick.sessions.session import Session

NAME = "bench"
TOKEN = "benchmarks-only-token"
N_PLANS, N_ARMS = 1000, 40
SPAWN = multiprocessing.get_context("spawn")


def problem(n_plans: int, n_arms: int) -> sp.Problem:
    plans = np.random.default_rng(0).integers(0, 3, (n_plans, n_arms)).astype(float)
    return sp.Problem(plans, noise=1, goal="largest")


@contextmanager
def serving(store: str) -> Iterator[tuple[str, int]]:
    """A dashboard in a process of its own: its address and its process number."""
    words = [sys.executable, "-m", "surepick", "serve", "--store", store, "--port", "0"]
    environment = {**os.environ, "SUREPICK_TOKEN": TOKEN}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://[\d.:]+", line)
    assert found, f"the server said {line!r}"
    try:
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def memory(pid: int) -> float:
    """Resident memory in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024


def cpu(pid: int) -> float:
    """Seconds of computing so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tell(store: str, worker: int, seconds: float, results) -> None:
    """Ask and tell for so long; what was acknowledged, and how long each pair took."""
    session = Session.load(store, NAME)
    rng, recorded, taken = np.random.default_rng(worker), [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        for request in session.ask(worker=f"worker {worker}"):
            session.tell(request, float(rng.standard_normal()))
            recorded.append(request.token)
        taken.append(time.perf_counter() - began)
    results.put((recorded, taken))


class Viewer:
    """One open stream: when it heard that the log had so many events, and how many bytes that took."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, int]] = []
        self.n_bytes = 0

    async def follow(self, host: str, port: int) -> None:
        reader, writer = await asyncio.open_connection(host, port, limit=2**22)
        head = f"Host: {host}:{port}\r\nAuthorization: Bearer {TOKEN}"
        writer.write(f"GET /api/sessions/{NAME}/stream HTTP/1.1\r\n{head}\r\n\r\n".encode())
        try:
            while line := await reader.readline():
                self.n_bytes += len(line)
                if line.startswith(b"data:"):
                    view = json.loads(line[5:])
                    if "head" in view:  # not a message about trouble
                        self.heard.append((time.time(), view["head"]["position"]))
        finally:
            writer.close()

    def delays(self, times: dict[int, float]) -> list[float]:
        """Seconds from each event to the message that brought it, for events after the first message."""
        found, position = [], self.heard[0][1] if self.heard else 0
        for when, upto in self.heard[1:]:
            found += [when - times[p] for p in range(position + 1, upto + 1)]
            position = upto
        return found


async def follow_all(url: str, pid: int, n_viewers: int, store: str, n_workers: int, seconds: float) -> dict:
    """Viewers and workers at once; the figures of both."""
    host, port = url.removeprefix("http://").split(":")
    viewers = [Viewer() for _ in range(n_viewers)]
    tasks = [asyncio.create_task(viewer.follow(host, int(port))) for viewer in viewers]
    while not all(viewer.heard for viewer in viewers):
        await asyncio.sleep(0.1)
        for task in tasks:
            if task.done():
                task.result()  # raises what ended it
    results = SPAWN.Queue()
    workers = [SPAWN.Process(target=tell, args=(store, i, seconds, results)) for i in range(n_workers)]
    for worker in workers:
        worker.start()
    samples, computing, began = [], cpu(pid), time.monotonic()
    while any(worker.is_alive() for worker in workers) and results.qsize() < n_workers:
        await asyncio.sleep(1.0)
        samples.append(memory(pid))
    computing = (cpu(pid) - computing) / (time.monotonic() - began)
    gathered = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    await asyncio.sleep(3.0)  # for the last update
    n_open = sum(not task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"viewers": viewers, "pairs": gathered, "memory": samples, "cpu": computing, "n_open": n_open}


def crowd(folder: Path, n_viewers: int, n_workers: int, seconds: float) -> None:
    store = f"sqlite:///{folder}/crowd.db"
    Session.create(store, NAME, problem(60, 20), policy=Uniform(delta=1e-12))
    with serving(store) as (url, pid):
        found = asyncio.run(follow_all(url, pid, n_viewers, store, n_workers, seconds))
    session = Session.load(store, NAME)
    events = list(session.events())
    recorded = {measurement.token for measurement in session.measurements()}
    acknowledged = [token for tokens, _ in found["pairs"] for token in tokens]
    pairs = np.concatenate([taken for _, taken in found["pairs"]])
    times = {event.position: event.time for event in events}
    delays = np.concatenate([viewer.delays(times) for viewer in found["viewers"]])
    lost = [token for token in acknowledged if token not in recorded]
    last = min(viewer.heard[-1][1] for viewer in found["viewers"])
    samples = found["memory"]
    third = max(1, len(samples) // 3)
    growth = np.mean(samples[-third:]) - np.mean(samples[third : 2 * third] or samples[:1])
    n_bytes = sum(viewer.n_bytes for viewer in found["viewers"])
    delay, p99 = np.median(delays), np.percentile(delays, 99)
    lines = {
        "recorded and acknowledged": f"{len(acknowledged)}, {len(acknowledged) / seconds:.0f} a second",
        "lost": f"{len(lost)}",
        "ask and tell": f"median {np.median(pairs):.4f} s, p99 {np.percentile(pairs, 99):.3f} s",
        "viewers still connected": f"{found['n_open']} of {n_viewers}",
        "all heard of event": f"{last} of {len(events)}",
        "from event to viewer": f"median {delay:.2f} s, p99 {p99:.2f} s",
        "sent": f"{n_bytes / 2**20:.0f} MiB, {n_bytes / n_viewers / seconds / 1024:.1f} KiB/s each",
        "memory of the server": f"{samples[0]:.0f} to {samples[-1]:.0f} MiB, last third {growth:+.1f} MiB",
        "computing by the server": f"{found['cpu']:.2f} cores",
    }
    print(f"{n_viewers} viewers of one session while {n_workers} workers tell for {seconds:g} s")
    for name, text in lines.items():
        print(f"  {name:<26}{text}")
    assert not lost, f"lost: {lost[:5]}"
    assert found["n_open"] == n_viewers
    assert last == len(events)


def fill(store: str, size: int) -> None:
    """A session with this many measurements of plans that differ little, so that it does not end."""
    session = Session.create(store, NAME, problem(N_PLANS, N_ARMS), policy=sp.BetGapE(delta=1e-12))
    rng = np.random.default_rng(1)
    while session.state().n_values < size:
        for request in session.ask(1, worker="filler"):
            session.tell(request, (0.0 + rng.standard_normal(max(1, request.wanted))).tolist())
    session.store.close()


def first_page(folder: Path, size: int) -> None:
    store = f"sqlite:///{folder}/long.db"
    fill(store, size)
    session = Session.load(store, NAME)
    n_told, n_events = session.state().n_values, session.journal.head.position
    print(f"first page of {n_told} measurements, {N_PLANS} plans, {n_events} events")
    with serving(store) as (url, _):
        for label, path in (
            ("first", f"/s/{NAME}"),
            ("again", f"/s/{NAME}"),
            ("once more", f"/s/{NAME}"),
            ("home", "/"),
            ("view", f"/api/sessions/{NAME}"),
            ("log", f"/api/sessions/{NAME}/events?after={n_events // 2}"),
        ):
            began = time.perf_counter()
            n_bytes = fetch(url + path)
            print(f"  {label:<26}{1e3 * (time.perf_counter() - began):6.0f} ms, {n_bytes / 1024:.0f} KiB")


def fetch(url: str) -> int:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {TOKEN}", "accept": "text/html"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return len(answer.read())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--measurements", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=None, help="where the stores are")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        crowd(Path(folder), given.viewers, given.workers, given.seconds)
        first_page(Path(folder), given.measurements)


if __name__ == "__main__":
    main()
