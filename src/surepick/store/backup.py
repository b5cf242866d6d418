"""Copy a SQLite store while others use it, and check the copy.

`cp` is not enough: the last values are in the write-ahead log beside the file, and a file that is written to
while it is copied may be torn. SQLite's backup interface copies one moment of the store.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from surepick.errors import StoreError
from surepick.store.doctor import Diagnosis, examine
from surepick.store.drivers import driver_for


def back_up(url: str, target: Path) -> Diagnosis:
    """Copy the SQLite store at this address into a new file, and return what a check of the copy found."""
    driver = driver_for(url, read_only=True)
    if driver.dialect != "sqlite":
        raise StoreError(f"{driver.place} is backed up by its own tools; run pg_dump", field="store")
    if not driver.exists():
        raise StoreError(f"there is no store at {driver.place}; check the path", field="store")
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StoreError(
            f"{target} cannot be made ({error.strerror}); name a new file", field="file"
        ) from None
    try:
        with closing(driver.connect()) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, complete by itself
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, driver.errors):
            raise driver.explain(error) from error
        raise
    return examine(str(target))
