"""How far a call walks through the code: what a reader or a debugger has to follow.

    python benchmarks/hops.py            # a line for each of simulate, ask, tell and load
    python benchmarks/hops.py --walk tell   # every call of one of them, indented by its depth

Counted over the frames of surepick alone, warm, on a SQLite file: different functions, the files they stand
in, how often one calls into another file, the calls in all, and the deepest stack. Small is not the aim as
such; what a step adds without serving anything is.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import surepick as sp
from surepick.simulation import Gaussian

SOURCE = str(Path(sp.__file__).parent) + os.sep


class Walk(NamedTuple):
    """The calls of a walk in their order: depth among frames of ours, and the code."""

    calls: list[tuple[int, CodeType]]

    def line(self) -> str:
        """Functions, files, switches from file to file, calls, deepest stack."""
        functions = {code for _, code in self.calls}
        files = [code.co_filename for _, code in self.calls]
        switches = sum(one != other for one, other in itertools.pairwise(files))
        deepest = max(depth for depth, _ in self.calls)
        return f"{len(functions)} | {len(set(files))} | {switches} | {len(self.calls)} | {deepest}"


def walk(work: Callable[[], Any]) -> Walk:
    """Run this and take down every call of a function of surepick, in threads that it starts too.

    Of a generator the calls between its first and its second `yield` count.
    """
    calls: list[tuple[int, CodeType]] = []
    thread = threading.local()

    def note(frame: FrameType, event: str, _: object) -> None:
        if not (frame.f_code.co_filename.startswith(SOURCE) and frame.f_code.co_filename.endswith(".py")):
            return
        if event == "call":
            thread.depth = getattr(thread, "depth", 0) + 1
            calls.append((thread.depth, frame.f_code))
        elif event == "return":
            thread.depth = getattr(thread, "depth", 0) - 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        steps = work()
        if isinstance(steps, Iterator):
            next(steps)
            calls.clear()
            next(steps)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Walk(calls)


def walks(folder: str) -> dict[str, Walk]:
    """The walks, each after one of its kind, so that nothing is done for the first time."""
    problem = sp.Problem(
        [[1, 1, 0], [0, 1, 1], [1, 0, 1]], arms=["road", "rail", "ship"], noise=1, goal="largest"
    )
    means = {"road": 1.0, "rail": 2.0, "ship": 2.2}
    environment = Gaussian(list(means.values()))

    def simulated() -> object:
        return sp.simulate(problem, environment, policy=sp.BetGapE(delta=0.05), seed=1)

    simulated()
    found = {"simulate": walk(simulated)}
    url = f"sqlite:///{folder}/hops.db"
    session = sp.Session.create(url, "hops", problem, policy=sp.BetGapE(delta=1e-9))
    for _ in range(60):
        (request,) = session.ask()
        session.tell(request, means[request.arm])
    session.ask(4, worker="a")
    found["ask(4)"] = walk(lambda: session.ask(4, worker="b"))
    (request,) = session.ask(1, worker="a")
    value = means[request.arm]
    found["tell"] = walk(lambda: session.tell(request, value))
    sp.Session.load(url, "hops")
    found["load"] = walk(lambda: sp.Session.load(url, "hops"))
    return found


def main() -> None:
    """Print the figures, or one walk."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--walk", metavar="NAME", help="show every call of this one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = walks(folder)
    if given.walk:
        for depth, code in found[given.walk].calls:
            print(f"{'  ' * depth}{code.co_qualname}  {code.co_filename.removeprefix(SOURCE)}")
        return
    print("| walk | functions | files | switches | calls | deepest |\n|---|---|---|---|---|---|")
    for name, taken in found.items():
        print(f"| {name} | {taken.line()} |")


if __name__ == "__main__":
    main()
