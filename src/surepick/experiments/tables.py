"""The table of a study as Markdown, which is also what the terminal shows, as JSON and as a figure."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.core.wording import how_many
from surepick.experiments.study import Family, Result, refusal
from surepick.experiments.summary import GROUP, Summary, brief
from surepick.limits.value import LIMIT_FORMULA
from surepick.sessions import codec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTHING = "-"


def _ratio(cell: Summary) -> str:
    found = cell.relative
    return NOTHING if found is None else f"{found.mean} ± {brief(found.deviation)}"


def _wrong(cell: Summary) -> str:
    """Return wrong answers of all answers, the interval of their rate, and how many runs were cut off."""
    if not cell.answers:
        return f"no answer in {cell.runs}"
    low, high = cell.wrong_interval
    cut = f", {cell.cut_off} cut off" if cell.cut_off else ""
    return f"{cell.wrong} of {cell.answers} ({brief(100 * low)}-{brief(100 * high)}%){cut}"


def _part(name: str, part: str) -> Callable[[Summary], str]:
    """Return a column: a part (mean, median, ...) of a distribution (relative, multiple, measurements)."""
    return lambda cell: NOTHING if (found := getattr(cell, name)) is None else str(getattr(found, part))


def _wrong_leads(cell: Summary) -> str:
    """Return the share of wrong leaders and its standard error, in %."""
    rate = cell.wrong_leads / cell.runs
    return f"{100 * rate:.1f} ±{100 * math.sqrt(rate * (1.0 - rate) / cell.runs):.1f}"


COLUMNS: Mapping[str, Callable[[Summary], str]] = {
    "ratio": _ratio,
    "median": _part("relative", "median"),
    "q90": _part("relative", "high"),
    "largest": _part("relative", "largest"),
    "mean x limit": _part("multiple", "mean"),
    "x limit": _part("multiple", "median"),
    "measurements": _part("measurements", "mean"),
    "wrong": _wrong,
    "CPU s": lambda cell: f"{cell.cpu_seconds:.3f}",
    "proof": lambda cell: "yes" if cell.proved else "no",
    "wrong leads": _wrong_leads,
    "loss": lambda cell: brief(cell.loss),
}


def family_table(result: Result, family: Family) -> tuple[list[str], list[list[str]]]:
    """Return the header and a line per method, with a column for each budget.

    With one budget and without a reference the fewest measurements come first.
    """
    study = result.study
    lines = []
    budgets = list(study.budgets)
    header = [f"{column} {budget}".strip() for column in study.columns for budget in budgets]
    for method in result.study.methods:
        cells = {at: result.cells.get((family.name, method.name, at)) for at in budgets}
        if not any(cells.values()):
            continue
        line = [method.name]
        for column in study.columns:
            if column == "paper":
                printed = family.printed.get(method.name, ())
                line.append(" ± ".join(brief(x) if x >= 1000 else f"{x:g}" for x in printed) or NOTHING)
            else:
                show = COLUMNS[column]
                line += [NOTHING if cell is None else show(cell) for cell in cells.values()]
        first = cells[budgets[0]]
        multiple = first.multiple if first else None
        lines.append((multiple.mean.number if multiple else math.inf, line))
    if study.reference is None and len(budgets) == 1:
        lines.sort(key=lambda found: found[0])
    return ["method", *header], [line for _, line in lines]


def markdown(result: Result) -> str:
    """Return a table for each family and the notes."""
    parts = [f"# {result.study.title}"]
    question = ""
    for family in result.study.families:
        header, lines = family_table(result, family)
        if not lines:
            continue
        if family.question != question:
            question = family.question
            parts.append(f"## {question}")
        cells = [cell for (name, _, _), cell in result.cells.items() if name == family.name]
        runs, instances = (max(getattr(cell, part) for cell in cells) for part in ("runs", "instances"))
        size = f"{how_many(runs, 'run')}, {how_many(instances, 'instance')}"
        parts += [f"### {family.label[0].upper()}{family.label[1:]} ({size})", aligned(header, lines)]
    return "\n\n".join([*parts, "## Notes", "\n".join(f"- {note}" for note in notes(result))]) + "\n"


def aligned(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns are aligned, so that it also reads well as plain text."""
    widths = [max(len(line[k]) for line in (header, *lines)) for k in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    rows = []
    for first, *others in (header, rule, *lines):
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        rows.append(f"| {' | '.join([first.ljust(widths[0]), *cells])} |")
    return "\n".join(rows)


def notes(result: Result) -> list[str]:
    """Return what a reader of the table has to know: settings, columns, methods, then anomalies."""
    study = result.study
    found = [f"delta = {study.delta:g}. All methods of a family meet the same instances and noise."]
    if len(study.budgets) == 1:
        found += [
            "wrong: answers that are not the best plan, with the exact 95% interval of their rate.",
            f"limit: {LIMIT_FORMULA}; no method with a guarantee needs less on average.",
            "≥: a run that its budget cut off counts with the measurements it used.",
        ]
    found += [" ".join(paragraph.split()) for paragraph in study.notes.split("\n\n")]
    found += [
        f"{method.name} is not on {family.label}: {why}"
        for method in result.study.methods
        for family in result.study.families
        if method.questions is None and (why := refusal(method, family))
    ]
    return [*found, *_anomalies(result), f"Versions: {', '.join(result.versions)}."]


def _anomalies(result: Result) -> Iterator[str]:
    """Yield what is missing or failed, which methods err too often, and how means of 30 runs differ."""
    if result.n_missing:
        total = result.n_done + result.n_missing
        yield f"Unfinished: {result.n_done:,} of {total:,} runs. The same command resumes."
    printed = {family.name: family.printed for family in result.study.families}
    for (family, method, _), cell in result.cells.items():
        if len(result.study.budgets) == 1 and cell.wrong_interval[0] > result.study.delta:
            yield f"{method} is wrong more often than delta on {family}: {cell.wrong} of {cell.answers}."
        if method in printed[family] and cell.relative and cell.relative.group_means:
            low, high = (brief(mean) for mean in cell.relative.group_means)
            yield f"{method} on {family}: means of {GROUP} runs lie between {low} and {high}."
    if result.failures:
        yield f"{how_many(len(result.failures), 'case')} failed: {result.failures[0]}"


def as_json(result: Result) -> dict[str, Any]:
    """Return the result as JSON values: every number in full, one record for each family, method, budget."""
    printed = {family.name: family.printed for family in result.study.families}
    table = [
        {"family": family, "method": method, "budget": budget, "paper": printed[family].get(method)}
        | codec.finite_or_none(dataclasses.asdict(cell))
        for (family, method, budget), cell in result.cells.items()
    ]
    return {
        "study": result.study.name,
        "title": result.study.title,
        "settings": dataclasses.asdict(result.settings),
        "table": table,
        "notes": notes(result),
        "n_missing": result.n_missing,
        "failures": list(result.failures),
    }


def write_outputs(result: Result, folder: str | Path) -> list[Path]:
    """Write table.md, summary.json and, with matplotlib, the figure; return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "table.md", folder / "summary.json"]
    paths[0].write_text(markdown(result), encoding="utf-8")
    paths[1].write_text(json.dumps(as_json(result), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if find_spec("matplotlib") is None or not result.cells or len(result.study.budgets) > 1:
        return paths
    from surepick.plots.style import styled

    with styled() as plt:
        figure = draw(result, plt)
        figure.savefig(folder / f"{result.study.name}.svg", metadata={"Date": None})
        plt.close(figure)
    return [*paths, folder / f"{result.study.name}.svg"]


def draw(result: Result, plt: Any) -> Figure:
    """Return a figure with a panel per family: each method from its median to its 90% quantile."""
    from surepick.plots.style import BLUE, GREY, INK, ORANGE, PAPER

    families = [f for f in result.study.families if any(name == f.name for name, *_ in result.cells)]
    n_columns = min(3, len(families))
    n_rows = -(-len(families) // n_columns)
    size = (1.5 + 3.3 * n_columns, n_rows * (1.2 + 0.22 * len(result.study.methods)))
    figure, panels = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    reference, (budget,) = result.study.reference, result.study.budgets
    for axes, family in zip(panels.flat, families, strict=False):
        labels: list[str] = []
        for method in result.study.methods:
            cell = result.cells.get((family.name, method.name, budget))
            numbers = cell and (cell.relative if reference else cell.multiple or cell.measurements)
            if not cell or not numbers:
                continue
            place = len(labels)
            colour = BLUE if cell.proved else ORANGE
            labels.append(method.name)
            axes.plot([numbers.median.number, numbers.high.number], [place] * 2, color=colour, alpha=0.6)
            marker = ">" if numbers.mean.at_least else "o"
            fill = colour if cell.proved else PAPER
            how = {"color": colour, "markersize": 5, "markerfacecolor": fill}
            axes.plot([numbers.mean.number], [place], marker, **how)
            if method.name in family.printed:
                printed = family.printed[method.name][0]
                axes.plot([printed], [place], "D", color=INK, markersize=4, markerfacecolor=PAPER)
        axes.axvline(1.0, color=GREY, linewidth=1, linestyle="--", zorder=0)
        axes.set(xscale="log", ylim=(len(labels) - 0.5, -0.5), title=family.label)
        axes.set_xlabel(f"measurements / {f'{reference}’s' if reference else 'limit'}", fontsize=8)
        axes.set_yticks(range(len(labels)), labels, fontsize=7)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.minorticks_off()
        axes.tick_params(axis="x", labelsize=6)
        axes.grid(axis="x")
    for axes in panels.flat[len(families) :]:
        axes.set_visible(False)
    key = "dot: mean, filled if proved, triangle: at least; line: median to 90% quantile; diamond: the paper"
    figure.supxlabel(key, fontsize=8)
    return figure  # type: ignore[no-any-return]
