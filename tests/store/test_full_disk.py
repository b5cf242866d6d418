"""A disk that is really full: a clear error, nothing recorded is lost, and it goes on once there is room."""

import os
import subprocess

import pytest

import surepick as sp
from session_tools import Tapes, problem, run_to_end, same_run, tell_until_refused
from surepick.sessions.session import Session
from surepick.store.doctor import examine

SIZE = 12_000_000  # bytes: the write-ahead log alone may take four million
POLICY = sp.CombGapE(delta=1e-6)


@pytest.fixture
def tiny_disk(tmp_path):
    """A small file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a file system can be mounted by root only, where the kernel permits it ({error})")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_up(folder, leave):
    """A file that takes all the room but for some bytes."""
    room = os.statvfs(folder)
    filler = folder / "filler"
    filler.write_bytes(bytes(room.f_bavail * room.f_bsize - leave))
    return filler


@pytest.mark.parametrize("leave", [60_000, 300_000, 1_000_000])
def test_a_session_survives_a_full_disk(tiny_disk, leave, monkeypatch):
    monkeypatch.setattr(
        "surepick.sessions.journal.SNAPSHOT_EVERY", 20
    )  # a cache that cannot be kept is no error
    url, tapes = f"sqlite:///{tiny_disk}/store.db", Tapes()
    session = Session.create(url, "mine", problem(), policy=POLICY, seed=3)
    filler = fill_up(tiny_disk, leave)
    told, _, error = tell_until_refused(session, tapes)
    assert "the disk is full" in error
    assert told
    again, _, error = tell_until_refused(session, tapes)  # still full: the same error again, no other
    assert "the disk is full" in error
    kept = {measurement.token for measurement in session.measurements()}
    assert set(told + again) <= kept
    filler.unlink()
    if leave == 1_000_000:
        session = Session.load(url, "mine")  # as another process would; else the step that failed is repeated
    assert same_run(run_to_end(session, tapes), sp.simulate(problem(), Tapes(), policy=POLICY, seed=3))
    assert [m.value for m in session.measurements()] == [
        tapes.value(str(m.token)) for m in session.measurements()
    ]
    assert session.verify(session.certificate().to_json()).holds
    session.store.close()
    assert examine(str(tiny_disk / "store.db")).is_well
