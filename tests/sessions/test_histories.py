"""The session layer in simulated histories: seeded schedules, faults at every statement, all operations.

`make soak` runs tens of thousands of them. A failure names its seed and the command that shows it again.
"""

from collections import Counter
from contextlib import contextmanager

import pytest

from planted_mistakes import MISTAKES
from session_histories import History, replay_command, run_history
from simulated_store import DiedError

N_HISTORIES, PART = 150, 50  # and 60 more, of which it is known what happens in them
ENOUGH = 150  # histories in which a planted mistake must come to light


@pytest.mark.parametrize("first", range(0, N_HISTORIES, PART))
def test_in_simulated_histories_nothing_acknowledged_is_lost(first):
    for seed in range(first, first + PART):
        run_history(seed)


def test_the_histories_hold_what_they_are_meant_to_hold():
    seen: Counter[str] = Counter()
    for seed in range(5095, 5155):
        history = run_history(seed)
        done = history.done
        seen += history.seen
        seen += Counter({kind: done.tried[kind] for kind in ("closed", "extended")})
        seen["recorded"] += len(done.recorded)
        seen += Counter(late=len(done.late), certificates=len(done.certificates), told=len(done.told))
        seen += Counter(removed=len(done.removed), called=done.n_called, released=done.n_released)
    wanted = "death", "no answer", "power cut", "late", "certificates", "told", "removed"
    rarer = "called", "deleted", "after it was deleted", "begun again", "handed on", "added an arm"
    removals = "removed by number", "used and removed"
    readings = "readings: recorded", "readings: repeated", "readings: extra", "lost", "extra"
    written = "closed", "extended", "recorded", "released"
    for what in (*wanted, *rarer, *removals, *readings, *written):
        assert seen[what] > 0, what


def test_a_history_happens_again_exactly():
    for seed in (1, 2, 3):
        first, second = [], []
        run_history(seed, told=first.append)
        run_history(seed, told=second.append)
        assert first == second


def test_a_failure_names_its_seed_and_the_command(monkeypatch):
    monkeypatch.setattr(History, "check", lambda self, store: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        run_history(7)
    assert replay_command(7) in caught.value.__notes__[0]


@contextmanager
def patched(mistake):
    with pytest.MonkeyPatch.context() as patch:
        mistake(patch)
        yield


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__.replace("_", " "))
def test_a_planted_mistake_comes_to_light(mistake):
    with patched(mistake):
        for seed in range(9000, 9000 + ENOUGH):
            try:
                run_history(seed)
            except (Exception, DiedError):
                return
    pytest.fail(f"{ENOUGH} histories do not notice it")
