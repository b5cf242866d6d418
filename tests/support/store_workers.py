"""What the store tests run in processes of their own, started and killed by `crowd`."""

import contextlib
import multiprocessing
import os
import time
from multiprocessing.process import BaseProcess
from typing import Any

from store_contract import append_held, note
from surepick.errors import ConflictError, NameTakenError
from surepick.store import open_store

_FORK = multiprocessing.get_context("fork")  # no imports again: all of a crowd start at the same moment


def crowd(count, task, *arguments):
    """Processes that run task(i, *arguments), for i below count."""
    workers: list[BaseProcess] = [_FORK.Process(target=task, args=(i, *arguments)) for i in range(count)]
    for worker in workers:
        worker.start()
    return workers


def all_succeed(workers, timeout=120.0):
    """Wait for the processes; whether each of them ended without an error."""
    for worker in workers:
        worker.join(timeout)
    return all(worker.exitcode == 0 for worker in workers)


def storm(i, url):
    """Open a store that may not exist yet, make or find the session, and append ten events."""
    store = open_store(url)
    with contextlib.suppress(NameTakenError):
        store.create("trips", [note()])
    for j in range(10):
        append_held(store.log("trips"), note(key=f"{i}-{j}"))


def append_one(i, url):
    """Append an event."""
    append_held(open_store(url).log("trips"), note(key=str(i)))


def append_until_killed(i, url, journal, attempt):
    """Append events for ever and write each key to a journal once it is acknowledged."""
    log = open_store(url).log("trips")
    acknowledged = os.open(journal, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for j in range(10**9):
        key = f"{attempt}-{i}-{j}"
        while True:
            try:
                drafts = [note(key=key), note(key=key + "-twin")]
                log.append(drafts, expected=log.head(), release=[key])
                break
            except ConflictError:
                continue
        os.write(acknowledged, f"{key}\n".encode())


def hold(i, url, ready):
    """Keep the writer's lock until killed."""
    log = open_store(url).log("trips")
    with log.transaction(after=log.head()):
        ready.touch()
        time.sleep(60)


def query(store, text):
    """What a statement gives on the store's own connection."""
    rows: list[tuple[Any, ...]] = store._database.query(text)
    return rows


def change(store, text):
    """Change the store behind its back."""
    store._database.run([(text, {})])


def wait_for(condition):
    """Return once the condition holds; fail after half a minute."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise TimeoutError("the other process did not get there")
