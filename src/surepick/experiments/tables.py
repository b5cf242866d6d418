"""The table of a study as Markdown, which is also what the terminal shows, and as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from surepick.core.wording import how_many
from surepick.experiments.cases import Row
from surepick.experiments.study import Family, Method, Result, refusal
from surepick.experiments.summary import GROUP, Summary, brief, trial
from surepick.limits.value import LIMIT_FORMULA
from surepick.sessions import codec

NOTHING = "-"


@dataclasses.dataclass(frozen=True)
class Line:
    """One method on one family: its summaries by budget, with those of all methods for comparison."""

    result: Result
    family: Family
    method: Method

    def at(self, budget: str, method: str | None = None) -> Summary | None:
        """Return the summary at this budget, of this or of another method."""
        return self.result.cells.get((self.family.name, method or self.method.name, budget))

    @property
    def only(self) -> Summary:
        """The summary of a study with one budget."""
        found = self.at(next(iter(self.result.study.budgets)))
        assert found is not None
        return found


def _ratio(line: Line) -> str:
    found = line.only.relative
    return NOTHING if found is None else f"{found.mean} ± {brief(found.deviation)}"


def _paper(line: Line) -> str:
    value = line.family.printed.get(line.method.name)
    if value is None:
        return NOTHING
    return " ± ".join(brief(number) if number >= 1000 else f"{number:g}" for number in value)


def _wrong(line: Line) -> str:
    """Return wrong answers of all answers, the interval of their rate, and how many runs were cut off."""
    found = line.only
    if not found.answers:
        return f"no answer in {found.runs}"
    low, high = found.wrong_interval
    cut = f", {found.cut_off} cut off" if found.cut_off else ""
    return f"{found.wrong} of {found.answers} ({brief(100 * low)}-{brief(100 * high)}%){cut}"


def _of(name: str, part: str) -> Callable[[Line], str]:
    """Return a column: a part (mean, median, ...) of a spread (relative, multiple, measurements)."""

    def column(line: Line) -> str:
        found = getattr(line.only, name)
        return NOTHING if found is None else str(getattr(found, part))

    return column


def _wrong_leads(line: Line, budget: str) -> str:
    found = line.at(budget)
    if found is None:
        return NOTHING
    rate, error = found.lead_rate
    text = f"{100 * rate:.1f} ±{100 * error:.1f}"
    return f"**{text}**" if is_lowest(line, budget) else text


def is_lowest(line: Line, budget: str) -> bool:
    """Return whether no other method has fewer wrong leaders at this budget, beyond two standard errors."""
    mine = line.at(budget)
    others = [
        cell.lead_rate
        for (family, _, at), cell in line.result.cells.items()
        if (family, at) == (line.family.name, budget)
    ]
    best = min(others)
    return mine is not None and mine.lead_rate[0] - best[0] <= 2 * math.hypot(mine.lead_rate[1], best[1])


def _loss(line: Line, budget: str) -> str:
    found, base = line.at(budget), line.at(budget, line.result.study.reference)
    if found is None or base is None or not base.loss > 0:
        return NOTHING
    return f"{found.loss / base.loss:.2f}"


Column: TypeAlias = Callable[[Line], str]
COLUMNS: Mapping[str, Column] = {
    "ratio": _ratio,
    "paper": _paper,
    "median": _of("relative", "median"),
    "q90": _of("relative", "high"),
    "largest": _of("relative", "largest"),
    "mean x limit": _of("multiple", "mean"),
    "x limit": _of("multiple", "median"),
    "median x limit": _of("multiple", "median"),
    "measurements": _of("measurements", "mean"),
    "wrong": _wrong,
    "CPU s": lambda line: f"{line.only.cpu_seconds:.3f}",
    "proof": lambda line: "yes" if line.only.proved else "no",
}
BUDGET_COLUMNS: Mapping[str, Callable[[Line, str], str]] = {"wrong leads": _wrong_leads, "loss": _loss}


def family_table(result: Result, family: Family) -> tuple[list[str], list[list[str]]]:
    """Return the header and a line per method; without a reference, the fewest measurements first."""
    study = result.study
    header, columns = ["method"], list[Column]()
    for name in study.columns:
        if name in COLUMNS:
            header.append(name)
            columns.append(COLUMNS[name])
            continue
        for budget in study.budgets:
            header.append(f"{name.split()[0]} {budget}")
            columns.append(lambda line, of=BUDGET_COLUMNS[name], at=budget: of(line, at))  # type: ignore[misc]
    lines = [Line(result, family, method) for method in result.methods]
    lines = [line for line in lines if any(line.at(budget) for budget in study.budgets)]
    if study.reference is None:
        lines.sort(key=lambda line: line.only.multiple.mean.number if line.only.multiple else math.inf)
    return header, [[line.method.label, *(column(line) for column in columns)] for line in lines]


def markdown(result: Result) -> str:
    """Return a table for each family and the notes."""
    parts, question = [f"# {result.study.title}"], ""
    for family in result.families:
        header, lines = family_table(result, family)
        if not lines:
            continue
        if family.question != question:
            question = family.question
            parts.append(f"## {question}")
        rows = [row for (name, *_), some in result.rows.items() if name == family.name for row in some]
        runs = max(len(some) for (name, *_), some in result.rows.items() if name == family.name)
        size = f"{how_many(runs, 'run')}, {how_many(len({trial(row)[0] for row in rows}), 'instance')}"
        parts += [f"### {family.label[0].upper()}{family.label[1:]} ({size})", aligned(header, lines)]
    return "\n\n".join([*parts, "## Notes", "\n".join(f"- {note}" for note in notes(result))]) + "\n"


def aligned(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns are aligned, so that it also reads well as plain text."""
    widths = [max(len(line[k]) for line in (header, *lines)) for k in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def text(cells: Sequence[str]) -> str:
        padded = [
            cells[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)),
        ]
        return f"| {' | '.join(padded)} |"

    return "\n".join(text(cells) for cells in (header, rule, *lines))


def notes(result: Result) -> list[str]:
    """Return what a reader of the table has to know: settings, columns, methods, then anomalies."""
    study, every = result.study, [row for rows in result.rows.values() for row in rows]
    found = [f"delta = {result.settings.delta:g}. All methods of a family meet the same instances and noise."]
    if "wrong" in study.columns:
        found += [
            "wrong: answers that are not the best plan, with the exact 95% interval of their rate.",
            f"limit: {LIMIT_FORMULA}; no method with a guarantee needs less on average.",
            "≥: a run that its budget cut off counts with the measurements it used.",
        ]
    present = {method for _, method, _ in result.cells}
    found += [*study.notes, *(m.note for m in result.methods if m.note and m.name in present)]
    found += [
        f"{method.label} is not on {family.label}: {why}"
        for method in result.methods
        for family in result.families
        if method.guest and (why := refusal(method, family))
    ]
    versions = {f"{name} {version}" for row in every for name, version in row.versions.items()}
    return [*found, *_surprises(result, every), f"Versions: {', '.join(sorted(versions))}."]


def _surprises(result: Result, every: Sequence[Row]) -> Iterator[str]:
    """Yield what is missing or failed, which methods err too often, and how means of 30 runs differ."""
    if result.n_missing:
        total = len(every) + result.n_missing
        yield f"Unfinished: {len(every):,} of {total:,} runs. The same command resumes."
    labels = {method.name: method.label for method in result.methods}
    printed = {family.name: family.printed for family in result.families}
    for (family, method, _), cell in result.cells.items():
        if "wrong" in result.study.columns and cell.wrong_interval[0] > result.settings.delta:
            count = f"{cell.wrong} of {cell.answers}"
            yield f"{labels[method]} is wrong more often than delta on {family}: {count}."
        if method in printed[family] and cell.relative and cell.relative.group_means:
            low, high = (brief(mean) for mean in cell.relative.group_means)
            yield f"{labels[method]} on {family}: means of {GROUP} runs lie between {low} and {high}."
    builds: dict[str, str] = {}
    for row in every:
        if builds.setdefault(codec.dumps(dict(row.case.problem)), row.instance) != row.instance:
            yield "An instance differs between rows: start again in an empty folder."
            break
    if result.failures:
        yield f"{how_many(len(result.failures), 'case')} failed: {result.failures[0]}"


def records(result: Result) -> list[dict[str, Any]]:
    """Return every number in full, one record for each family, method and budget."""
    printed = {family.name: family.printed for family in result.families}
    return [
        {
            "family": family,
            "method": method,
            "budget": budget,
            **_finite(dataclasses.asdict(cell)),
            "paper": printed[family].get(method),
        }
        for (family, method, budget), cell in result.cells.items()
    ]


def _finite(value: Any) -> Any:
    """Return the value with None in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(result: Result) -> dict[str, Any]:
    """Return the result as JSON values, without the rows."""
    return {
        "study": result.study.name,
        "title": result.study.title,
        "settings": dataclasses.asdict(result.settings),
        "table": records(result),
        "notes": notes(result),
        "n_missing": result.n_missing,
        "failures": list(result.failures),
    }


def write_outputs(result: Result, folder: str | Path) -> list[Path]:
    """Write table.md, summary.json and, with matplotlib, the figure; return their paths."""
    from surepick.experiments.figures import write_figure

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "table.md": markdown(result),
        "summary.json": json.dumps(as_json(result), indent=2, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [*(folder / name for name in texts), *write_figure(result, folder)]
