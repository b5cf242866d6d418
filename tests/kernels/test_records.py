from typing import NamedTuple

import numpy as np
import pytest

from surepick.kernels.compiled import compiled, compiled_inner
from surepick.kernels.records import RecordArray, make_record, make_records


class Now:
    lead: int
    stopped: bool
    score: float


class Arm:
    count: int
    total: float


class State(NamedTuple):
    arms: RecordArray
    now: Now


@compiled_inner
def note(state, arm, x):
    state.arms[arm].count += 1
    state.arms[arm].total += x
    state.now.lead = arm


@compiled
def play(state, xs):
    for i in range(len(xs)):
        note(state, i % 2, xs[i])
    state.now.score += 0.5
    state.now.stopped = state.now.score > 1.0
    return state.now.lead


def test_compiled_code_writes_records_in_place():
    state = State(make_records(Arm, 2), make_record(Now, lead=-1, score=1.0))
    assert (state.now.lead, state.now.stopped) == (-1, False)
    assert play(state, np.array([1.0, 2.0, 4.0])) == 0
    assert state.arms["count"].tolist() == [2, 1]
    assert state.arms["total"].tolist() == [5.0, 2.0]
    assert (state.now.lead, state.now.stopped, state.now.score) == (0, True, 1.5)


def test_a_record_has_no_other_fields():
    with pytest.raises(ValueError, match="led"):
        make_record(Now, led=1)
