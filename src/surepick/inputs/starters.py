"""Starter files: a commented problem of every kind that runs, and two with probes, to be changed."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from surepick.errors import FileError, suggestion
from surepick.inputs.keys import KEYS, SCHEMA_FILE, schema

EXAMPLES = ("drives", "plays")  # starters beside those that are named like a kind: probes, and plays


def write_starter(kind: str, folder: str | Path = ".", *, force: bool = False) -> list[Path]:
    """Write the starter of this kind, KIND.toml first, its attachments and the schema into a folder.

    >>> import tempfile
    >>> [path.name for path in write_starter("paths", tempfile.mkdtemp())]
    ['paths.toml', 'paths-edges.csv', 'surepick.schema.json']
    """
    names = (*KEYS, *EXAMPLES)
    if kind not in names:
        raise FileError(f"there is no kind named {kind!r}; {suggestion(kind, names)}", field="kind")
    target, parts = Path(folder), _parts(kind)
    first = next(iter(parts))
    parts[first] = f"#:schema ./{SCHEMA_FILE}\n{parts[first]}"  # editors then know the keys
    there = [target / name for name in parts if (target / name).exists()]
    if there and not force:
        raise FileError(f"{str(there[0])!r} is already there; move it away, or replace it with --force")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in parts.items():
            (target / name).write_text(text, encoding="utf-8")
        (target / SCHEMA_FILE).write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot write to {str(target)!r}: {error.strerror}") from None
    return [target / name for name in (*parts, SCHEMA_FILE)]


def _parts(kind: str) -> dict[str, str]:
    """Return the files of a starter, by name, the problem file first."""
    folder = files("surepick.inputs") / "starters"
    parts = [p for p in folder.iterdir() if p.name == f"{kind}.toml" or p.name.startswith(f"{kind}-")]
    parts.sort(key=lambda part: (not part.name.endswith(".toml"), part.name))
    return {part.name: part.read_text(encoding="utf-8") for part in parts}
