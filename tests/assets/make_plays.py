"""Wrote `plays_v0_1.json`, once: a finished and an open session of plays, and how the open one went on.

It is never written again, like the other files here: the script shows what is in it, and refuses to.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from stored_plays import FILE, Clock, begun, decisions, go_on, log_to_json

if __name__ == "__main__":
    if FILE.exists():
        raise SystemExit(f"{FILE.name} is there, and it stands for files that people have")
    finished, left = begun("finished", Clock()), begun("open", Clock())
    go_on(finished)
    go_on(left, 9)
    kept = {
        "finished": log_to_json(finished),
        "certificate": finished.certificate().to_json(),
        "open": log_to_json(left),
    }
    n_before = len(decisions(left))
    go_on(left)
    kept["continued"] = decisions(left)[n_before:]
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
