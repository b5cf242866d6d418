"""The gallery: every example is run; its page shows the text, the figure, what it printed, and the code."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

EXAMPLES = Path(__file__).parents[2] / "examples"
# In the order in which the page lists them: the paper's own first, then one for every kind of problem.
ORDER = [
    "shortest_path",
    "optimal_transport",
    "why_amounts_matter",
    "knapsack",
    "spanning_tree",
    "matching",
    "best_two",
    "production",
    "production_ranges",
    "portfolio",
    "too_many_to_list",
    "all_plans",
    "freeway_tie",
    "street_grid",
    "sioux_falls",
    "upper_west_side",
    "afiro",
    "constrained_mixture",
    "transductive",
    "blends",
    "same_seed",
    "model_routing",
    "throughput",
    "programs",
]
INTRODUCTION = """\
# Gallery

Every example is a short program in `examples/gallery/`, run when these pages were built: what you see is what
it printed and drew. The first three are the paper's own.
"""
REAL_DATA = """\
## On real data

Longer programs in `examples/`, run by the tests:

- `freeway_cities.py`: 81 road distances over the US freeway network. Near-ties: 4e8 measurements for the best
  plan, 12,289 for one within three minutes.
- `nyc_flights.py`: 195,615 flights out of New York in 2013, replayed; the noise scale comes from January.
- `cable_network.py`: 18 cities, 82 links; the least of 1e15 spanning trees, none listed.
"""


def pages() -> Iterator[tuple[str, str | bytes]]:
    """The list of examples, and for each its page and its figure."""
    _prepare()
    cards = []
    for name in ORDER:
        source = (EXAMPLES / "gallery" / f"{name}.py").read_text(encoding="utf-8")
        title, text, code = _parts(source)
        printed, figure = _run(name)
        yield f"gallery/{name}.svg", figure
        yield f"gallery/{name}.md", _page(name, title, text, printed, code)
        cards.append(f"## [{title}]({name}.md)\n\n[![{title}]({name}.svg)]({name}.md)\n")
    yield "gallery/index.md", "\n".join([INTRODUCTION, *cards, REAL_DATA])


def pictures() -> Iterator[tuple[str, str | bytes]]:
    """The figures of the page that explains CombGapE."""
    _prepare()
    for name, figure in importlib.import_module("comb_gap_e").main().items():
        yield f"explain/comb-gap-e-{name}.svg", _svg(figure)


def _prepare() -> None:
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "surepick"  # the same figure gives the same file
    for folder in ("gallery", "pictures"):
        if str(EXAMPLES / folder) not in sys.path:
            sys.path.insert(0, str(EXAMPLES / folder))


def _parts(source: str) -> tuple[str, str, str]:
    """Title, text and code of an example."""
    document = ast.parse(source)
    title, _, text = (ast.get_docstring(document) or "").partition("\n")
    code = source.split('"""', 2)[2].strip()
    return title, text.strip(), code


def _run(name: str) -> tuple[str, bytes]:
    """What the example prints, and its figure."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        figure = importlib.import_module(name).main()
    return printed.getvalue().rstrip(), _svg(figure)


def _svg(figure: Any) -> bytes:
    from matplotlib import pyplot as plt

    image = io.BytesIO()
    figure.savefig(image, format="svg", metadata={"Date": None})
    plt.close(figure)
    return image.getvalue()


def _page(name: str, title: str, text: str, printed: str, code: str) -> str:
    return f"""\
# {title}

{text}

![{title}]({name}.svg)

It prints:

```text
{printed}
```

`examples/gallery/{name}.py`

```python
{code}
```
"""
