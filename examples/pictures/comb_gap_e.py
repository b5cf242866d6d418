"""The figures of "CombGapE in pictures": one run of docs/tiny.py, watched.

python examples/pictures/comb_gap_e.py FOLDER
"""

import runpy
import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TINY = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "tiny.py"))
PLANS = np.array([[2.0, 0, 1, 0], [0, 2, 1, 0], [1, 1, 0, 1], [0, 0, 1, 2]])
NAMES = ["north", "south", "middle", "coast"]
MEANS = np.array([1.1, 0.8, 0.5, 0.3])
SCALE, DELTA = 1.0, 0.05
INK, LEAD, RIVAL, IDLE = "#333333", "#00796b", "#d84315", "#b0bec5"


def watch(how_far, seed=0):
    """Every round of one run: counts, lead, rival, the gaps to the lead, their radii, the most ahead."""
    rng, rounds = np.random.default_rng(seed), []
    counts, sums = np.ones(4, dtype=int), rng.normal(MEANS, SCALE)
    scale = np.full(4, SCALE)
    while True:
        evidence = TINY["Evidence"](counts, sums)
        lead, rival, most = TINY["closest_rival"](PLANS, evidence, scale, DELTA, how_far)
        values = PLANS @ evidence.means
        doubt = [
            0 if k == lead else how_far(PLANS[k] - PLANS[lead], counts, 4, scale, DELTA) for k in range(4)
        ]
        rounds.append((counts.copy(), lead, rival, values - values[lead], np.array(doubt), most))
        if most <= 0:
            return rounds
        arm = TINY["most_useful_arm"](PLANS[lead] - PLANS[rival], counts, scale)
        counts[arm] += 1
        sums[arm] += rng.normal(MEANS[arm], SCALE)


def race(rounds):
    """How far every plan may be ahead of the lead, at three moments."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True, sharex=True, layout="constrained")
    for axis, place in zip(axes, (len(rounds) // 12, len(rounds) // 3, len(rounds) - 1), strict=True):
        counts, lead, rival, gaps, doubt, _ = rounds[place]
        for k in range(4):
            colour = LEAD if k == lead else RIVAL if k == rival else IDLE
            axis.plot(
                [gaps[k] - doubt[k], gaps[k] + doubt[k]], [k, k], color=colour, lw=5, solid_capstyle="butt"
            )
            axis.plot(gaps[k], k, "o", color=INK, ms=5)
        axis.axvline(0, color=INK, lw=0.8)
        axis.set_title(f"after {counts.sum()} measurements", fontsize=10)
        axis.set_yticks(range(4), NAMES)
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[1].set_xlabel("estimated value minus that of the lead (green), with its radius; the rival in red")
    return figure


def counts_over_time(rounds):
    """How often each arm was measured so far."""
    figure, axis = plt.subplots(figsize=(9, 2.8), layout="constrained")
    counts = np.array([one[0] for one in rounds])
    for s, colour in enumerate((LEAD, RIVAL, "#5c6bc0", IDLE)):
        axis.plot(counts.sum(axis=1), counts[:, s], color=colour, lw=2, label=f"arm {s}")
    axis.set_xlabel("measurements")
    axis.set_ylabel("of this arm")
    axis.legend(frameon=False, ncols=4, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def stop(sound, published):
    """How far the rival may be ahead, for both radii: the run ends at zero."""
    figure, axis = plt.subplots(figsize=(9, 2.8), layout="constrained")
    for rounds, colour, name in ((sound, LEAD, "normal mixture (sound)"), (published, RIVAL, "published")):
        n = [one[0].sum() for one in rounds]
        axis.plot(n, [one[5] for one in rounds], color=colour, lw=1.5, label=f"{name}: stops after {n[-1]}")
    axis.axhline(0, color=INK, lw=0.8)
    axis.set_ylim(-0.3, 6)
    axis.set_xlabel("measurements")
    axis.set_ylabel("the rival may be\nahead by")
    axis.legend(frameon=False, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """The figures by name."""
    sound, published = watch(TINY["radius"]), watch(TINY["published_radius"])
    return {"race": race(sound), "counts": counts_over_time(sound), "stop": stop(sound, published)}


if __name__ == "__main__":
    for name, figure in main().items():
        figure.savefig(Path(sys.argv[1] if len(sys.argv) > 1 else ".") / f"comb-gap-e-{name}.svg")
