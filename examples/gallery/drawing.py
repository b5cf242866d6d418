"""Figures that the gallery's examples share."""

import numpy as np
from matplotlib import pyplot as plt

INK, CHOSEN, OTHER, IDEAL = "#333333", "#00796b", "#b0bec5", "#d84315"


def panels(*widths, height=3.4):
    """A figure with panels side by side, of these relative widths."""
    figure, axes = plt.subplots(
        1,
        len(widths),
        figsize=(9.0, height),
        gridspec_kw={"width_ratios": widths},
        layout="constrained",
        squeeze=False,
    )
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=9, colors=INK)
        axis.title.set_fontsize(11)
    return figure, *axes[0]


def effort(axis, problem, outcome, limit=None, most=12):
    """Bars: how often each arm or probe was measured; marks: the best possible shares."""
    order = np.argsort(-outcome.counts, kind="stable")[:most][::-1]
    axis.barh([problem.probe_names[s] for s in order], outcome.counts[order], color=CHOSEN, height=0.6)
    if limit is not None and limit.is_finite:
        ideal = limit.shares[order] * outcome.n_measured
        axis.plot(
            ideal, np.arange(len(order)), "|", color=IDEAL, ms=14, mew=2.5, label="best possible shares"
        )
        axis.legend(frameon=False, fontsize=8, loc="lower right")
    axis.set_title(f"{outcome.n_measured:,} measurements")


def values(axis, problem, outcome, means, most=10, names=None):
    """Bars: what every plan is worth in truth, the answer in colour."""
    worth = problem.values(means)
    order = np.argsort(worth if problem.minimize else -worth, kind="stable")[:most][::-1]
    colours = [CHOSEN if k == outcome.plan else OTHER for k in order]
    labels = problem.plan_names if names is None else names
    axis.barh([labels[k] for k in order], worth[order], color=colours, height=0.6)
    low, high = worth[order].min(), worth[order].max()
    axis.set_xlim(low - 0.6 * (high - low), high + 0.05 * (high - low))
    axis.set_title("true values, the answer in colour")


def network(axis, places, edges, chosen, labels=None, widths=None):
    """A network: the chosen edges in colour, each with its label."""
    for e, (a, b) in enumerate(edges):
        (x0, y0), (x1, y1) = places[a], places[b]
        colour = CHOSEN if e in chosen else OTHER
        width = 2.0 if widths is None else 1.0 + 7.0 * widths[e]
        axis.plot([x0, x1], [y0, y1], color=colour, lw=width, zorder=1, solid_capstyle="round")
        if labels is not None:
            axis.annotate(
                labels[e],
                ((x0 + x1) / 2, (y0 + y1) / 2),
                fontsize=8,
                color=INK,
                ha="center",
                va="center",
                bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": "none", "alpha": 0.85},
            )
    for name, (x, y) in places.items():
        axis.plot(x, y, "o", ms=27, color="white", mec=INK, zorder=2)
        axis.annotate(name, (x, y), ha="center", va="center", fontsize=8, zorder=3, color=INK)
    axis.margins(0.12)
    axis.set_axis_off()
