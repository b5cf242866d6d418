"""Functions that measure in other processes; they import little, so that those begin quickly."""

import os
import time
from pathlib import Path

HOURS = {"road": 4.0, "rail": 9.0, "depot": 1.0}
ALREADY = "SUREPICK_TEST_ALREADY"  # names a file that is there once something has been measured


def measure(arm):
    return HOURS[arm]


def seeded(arm, seed):
    """Notes its seed."""
    with Path(os.environ[ALREADY]).open("a") as seeds:
        seeds.write(f"{seed}\n")
    return HOURS[arm] + (seed * 0.618) % 1.0


def measure_or_die(arm):
    """Ends its process the first time that it is called."""
    if _is_first():
        os._exit(3)
    return HOURS[arm]


def measure_or_hang(arm):
    """Takes very long the first time that it is called."""
    if _is_first():
        time.sleep(600)
    return HOURS[arm]


def _is_first():
    try:
        Path(os.environ[ALREADY]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
