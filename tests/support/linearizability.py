"""Whether what concurrent users saw could have happened one after the other: a search for such an order.

After Wing and Gong (1993), with states that were tried before remembered (Lowe 2017): an operation may come
next if no other one that is still to come had ended before it began.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call: when it began and ended, by one clock for all, what it was, and what came of it."""

    began: int  # nanoseconds
    ended: int
    what: str
    arguments: tuple[Any, ...]
    result: Any


Model = Callable[[Any, Call], Any]  # the state after this call, or None if its result is impossible there


def is_linearizable(calls, model, state):
    """Whether there is an order of these calls, true to time, in which the model gives all results."""
    calls = sorted(calls)
    tried: set[tuple[int, Any]] = set()
    stack = [(0, state)]  # which calls have happened, as bits, and the state after them
    everything = (1 << len(calls)) - 1
    while stack:
        done, state = stack.pop()
        if done == everything:
            return True
        if (done, state) in tried:
            continue
        tried.add((done, state))
        left = [i for i in range(len(calls)) if not done >> i & 1]
        first_end = min(calls[i].ended for i in left)
        for i in reversed(left):
            if calls[i].began <= first_end:
                after = model(state, calls[i])
                if after is not None:
                    stack.append((done | 1 << i, after))
    return False


class SessionState(NamedTuple):
    """What a session is to those who use it."""

    delta: float
    told: frozenset[tuple[str, float, str]] = frozenset()  # token, value, worker
    recorded: frozenset[tuple[str, float]] = frozenset()  # key, value
    late: frozenset[str] = frozenset()  # arms that have late values


def session_model(state, call):
    """The state after this call, or None if a session in this state would have answered otherwise."""
    possible = _EFFECTS[call.what](state, *call.arguments)
    return next((after for result, after in possible if result == call.result), None)


def _may_be_taken(state, token):
    """Whether a late value of this arm may have the place of this request.

    A late value stands at the end of its stream: at the next place, unless that is asked for by then. When a
    batch is complete, and more is asked for, is the policy's affair, which this model does not know.
    """
    arm, place = token.split(".")
    return place != "0" and arm in state.late


def _tell(state, token, value, worker):
    kept = next((told for told in state.told if told[0] == token), None)
    if kept is not None and kept[2] == worker:
        return [("repeated" if kept[1] == value else "refused", state)]
    recorded = ("recorded", state._replace(told=state.told | {(token, value, worker)}))
    [(answer, after)] = _record(state, f"late:{token}:{worker}", value)
    extra = (answer, after)
    if answer == "kept":  # an extra measurement, whatever its value
        extra = ("extra", after._replace(late=after.late | {token.split(".")[0]}))
    if kept is not None:
        return [extra]
    return [recorded, extra] if _may_be_taken(state, token) else [recorded]


def _record(state, key, value):
    kept = next((recorded for recorded in state.recorded if recorded[0] == key), None)
    if kept is None:
        return [("kept", state._replace(recorded=state.recorded | {(key, value)}))]
    return [("repeated" if kept[1] == value else "refused", state)]


def _release(state, token):
    if any(told[0] == token for told in state.told):
        return [("refused", state)]
    return [("done", state), ("refused", state)] if _may_be_taken(state, token) else [("done", state)]


def _extend(state, delta):
    return [("refused", state) if delta >= state.delta else ("done", state._replace(delta=delta))]


def _look(state):
    return [((len(state.told), len(state.recorded), state.delta), state)]


_EFFECTS: dict[str, Callable[..., list[tuple[Any, SessionState]]]] = {
    "tell": _tell,
    "record": _record,
    "release": _release,
    "extend": _extend,
    "look": _look,
}
