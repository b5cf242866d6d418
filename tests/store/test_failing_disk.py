"""A failed fsync: nothing is acknowledged that a power cut would undo, also not by the retry.

The disk is `failing_disk.c`, loaded between SQLite and the kernel; its image is what a power cut leaves.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surepick.store import open_store
from surepick.store.doctor import examine

SUPPORT = Path(__file__).parent.parent / "support"
# Leases before the failure are the hole: they were not synchronised, and the failure forgets them.
SCRIPT = """
import os, sys
from pathlib import Path
from surepick.errors import StoreError
from surepick.store import Draft, open_store, sqlite

url, flag, fence = sys.argv[1], Path(os.environ["DISK_FAILS"]), sys.argv[2] == "fence"
if not fence:
    sqlite.Sqlite._move_log = lambda self, connection: None
store = open_store(url)
log = store.create("trips", [Draft("noted", "{}", 1.5, "first")])
store.close()
bystander = open_store(url)  # so that no connection is the last, which would move the log by itself
bystander.names()
for i in range(3):
    log.claim([f"{i}.{k}" for k in range(5)], worker="w", until=9.0, now=0.0)
    flag.touch()
    for _ in range(2):
        try:
            log.append([Draft("noted", "{}", 1.5, str(i))], expected=log.head())
            sys.exit("a failed fsync was acknowledged")
        except StoreError:
            pass
    flag.unlink()
    if log.find(str(i)) is None:
        log.append([Draft("noted", "{}", 1.5, str(i))], expected=log.head())
    log.append([Draft("noted", "{}", 1.5, f"{i}, later")], expected=log.head())
os._exit(0)
"""


def after_a_power_cut(tmp_path, fence):
    """The keys of the events that are left of a store whose disk failed three times, as far as they hold."""
    if shutil.which("cc") is None or not sys.platform.startswith("linux"):
        pytest.skip("the failing disk needs Linux and a C compiler")
    library, files, images = tmp_path / "disk.so", tmp_path / "files", tmp_path / "images"
    build = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SUPPORT / "failing_disk.c"), "-ldl"]
    subprocess.run(build, check=True, capture_output=True)
    files.mkdir()
    images.mkdir()
    disk = {"DISK_FILES": str(files), "DISK_IMAGES": str(images), "DISK_FAILS": str(tmp_path / "fails")}
    command = [sys.executable, "-c", SCRIPT, str(files / "store.db"), fence]
    environment = {**os.environ, **disk, "LD_PRELOAD": str(library)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    left = str(images / "store.db")
    assert examine(left).is_well
    return [str(event.key) for event in open_store(left).log("trips").read()]


ACKNOWLEDGED = ["first", *(key for i in range(3) for key in (str(i), f"{i}, later"))]


def test_what_the_retry_after_a_failed_fsync_acknowledged_survives_a_power_cut(tmp_path):
    assert after_a_power_cut(tmp_path, "fence") == ACKNOWLEDGED


def test_without_moving_the_log_first_the_same_retry_would_lose_it(tmp_path):
    assert len(after_a_power_cut(tmp_path, "no fence")) < len(ACKNOWLEDGED)
