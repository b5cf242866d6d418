"""Sessions whose measurements are not what the guarantee assumes: how often is an answer wrong in silence?

python benchmarks/misuse.py > benchmarks/results/misuse.md     # 400 sessions a row
python benchmarks/misuse.py --runs 40                          # a first look

Two arms with a gap of .1 (BetGapE, delta .05), measured by a worker who breaks an assumption. *quiet* is the
share of sessions that end confident with the wrong plan and without a warning. *long* are sessions of 100
measurements or more. The first two rows are honest: all of their warnings are false.
"""

import argparse
import itertools

import numpy as np

import surepick as sp

GAP, BUDGET, LONG = 0.1, 20_000, 100


def white(rng, scale=1.0):
    while True:
        yield from (scale * rng.standard_normal(256)).tolist()


def autoregressive(rng, rho):
    """AR(1) with a standard deviation of 1."""
    x = rng.standard_normal()
    for e in white(rng):
        yield x
        x = rho * x + np.sqrt(1 - rho**2) * e


def wandering(rng, step=0.05):
    """Noise around a level that takes a small random step at every measurement."""
    level = 0.0
    for e, s in zip(white(rng), white(rng), strict=True):
        yield level + e
        level += step * s


def later_louder(rng, first=12, times=4.0):
    """Noise that is louder after the first values."""
    yield from itertools.islice(white(rng), first)
    yield from white(rng, times)


MISUSES = {  # name: (noise of an arm, whether its scale is stated)
    "none: honest": (white, True),
    "none: honest, unknown noise": (white, False),
    "noise x 1.5": (lambda rng: white(rng, 1.5), True),
    "noise x 2": (lambda rng: white(rng, 2.0), True),
    "AR(1), rho .5": (lambda rng: autoregressive(rng, 0.5), True),
    "AR(1), rho .9": (lambda rng: autoregressive(rng, 0.9), True),
    "levels that wander": (wandering, True),
    "unknown noise, x 4 after 12": (later_louder, False),
    "lows of the worse arm released": (white, True),
}


def run(name, seed):
    """One session to its end: its measurements, whether it is wrong, and whether it warns."""
    noise, stated = MISUSES[name]
    problem = sp.Problem(np.eye(2), noise=1.0 if stated else None, goal="largest")
    session = sp.Session.create("memory://", "s", problem, policy=sp.BetGapE(), budget=BUDGET)
    streams = [noise(child) for child in np.random.default_rng(seed).spawn(2)]
    low = None  # a low value of the worse arm, whose request is released
    while requests := session.ask():
        request = requests[0]
        values = []
        arm = problem.arm_names.index(request.arm)
        while len(values) < max(1, request.wanted) and (low is None or arm == 0):
            value = (GAP, 0.0)[arm] + next(streams[arm])
            if "released" in name and arm == 1 and value < -1.645:
                low = value
            else:
                values.append(value)
        if values:
            session.tell(request, values, sure=True)
        else:
            low = None
            session.release(request, "not plausible")
    outcome = session.outcome
    return outcome.n_measured, outcome.plan == 1, bool(session.certificate().doubts)


def row(name, ended):
    cells = []
    for some in (ended, [one for one in ended if one[0] >= LONG]):
        n = max(len(some), 1)
        wrong, warned = (sum(one[k] for one in some) for k in (1, 2))
        quiet = sum(is_wrong and not warns for _, is_wrong, warns in some)
        cells += [str(len(some)), f"{wrong / n:.3f}", f"{quiet / n:.3f}", f"{warned / n:.3f}"]
    return f"| {name} | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20_000)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    given = parser.parse_args()
    print("# Misuses: how often is an answer wrong in silence?\n")
    how = f"--runs {given.runs} --seed {given.seed}"
    print(f"`python benchmarks/misuse.py {how}`; BetGapE on two arms with a gap of .1.\n")
    parts = ("wrong", "quiet", "warned")
    head = ["sessions", *parts, "long", *(f"{part}, long" for part in parts)]
    print(f"| measurements | {' | '.join(head)} |\n{'|---' * (len(head) + 1)}|")
    for name in MISUSES:
        if given.only in name:
            print(row(name, [run(name, given.seed + r) for r in range(given.runs)]), flush=True)


if __name__ == "__main__":
    main()
