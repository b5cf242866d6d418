"""How often src breaks rules that it is on its way to keep; the counts in `lint_baseline.json` may only fall.

The rules: no unused arguments (ARG), no private members of others (SLF), at most five parameters (PLR0913).
`python tests/nets/lint_baseline.py --write` writes lower counts, and refuses higher ones. They are for all of
src together, so that moving a file changes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("lint_baseline.json")
RULES = ("ARG", "SLF", "PLR0913")


def found() -> list[dict[str, object]]:
    """Every place in src that breaks one of the rules, as ruff reports it."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    options = f"--select {','.join(RULES)} --output-format json --exit-zero"
    command = [ruff, "check", *options.split(), "src"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    places: list[dict[str, object]] = json.loads(done.stdout)
    return places


def counts(places: list[dict[str, object]]) -> dict[str, int]:
    return dict(sorted(Counter(str(place["code"]) for place in places).items()))


def kept() -> dict[str, int]:
    baseline: dict[str, int] = json.loads(KEPT.read_text(encoding="utf-8"))
    return baseline


def more_than(baseline: dict[str, int], now: dict[str, int]) -> dict[str, str]:
    """The rules that are broken more often than the baseline allows."""
    return {
        rule: f"{baseline.get(rule, 0)} allowed, {count} found"
        for rule, count in now.items()
        if count > baseline.get(rule, 0)
    }


if __name__ == "__main__":
    now = counts(found())
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(f"{__doc__}\nnow: {now}")
    if KEPT.exists() and (risen := more_than(kept(), now)):
        raise SystemExit(f"the baseline only shrinks: {risen}")
    KEPT.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
