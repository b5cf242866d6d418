"""The errors surepick raises: each says what was wrong, what was received and what to do."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Words of other libraries, and of every day, for what surepick calls otherwise.
OTHER_WORDS = {
    "alpha": "delta",
    "arm_names": "arms",
    "bounds": "low and high",
    "costs": "cost",
    "direction": "goal",
    "maximize": "goal",
    "minimize": "goal",
    "n_jobs": "workers",
    "n_trials": "budget",
    "noise_scale": "noise",
    "probes": "measure",
    "random_state": "seed",
    "sigma": "noise",
}


class SurepickError(Exception):
    """Every error that surepick raises on purpose is one of these.

    `field` names the argument or setting that it is about, where it is about one: forms show it there.
    """

    def __init__(self, *args: object, field: str | None = None) -> None:
        super().__init__(*args)
        self.field = field


class ProblemError(SurepickError, ValueError):
    """A problem cannot be built from what was given."""


class ParameterError(SurepickError, ValueError):
    """An argument of a policy, environment or function is outside what it allows."""


class FileError(SurepickError, ValueError):
    """A file could not be read or does not say what it should."""


class NoiseWarning(UserWarning):
    """Recorded values contradict the assumption of the guarantee, so that it does not apply."""


class StoreError(SurepickError):
    """A store cannot be opened, read or written; nothing that was acknowledged before is lost."""


class NameTakenError(StoreError):
    """The store has a session of this name already."""


class ConflictError(StoreError):
    """Another process appended first, or an event's key is in the log: read the new events and try again."""


class DeletedError(StoreError):
    """The session was deleted while it was open; a new one of the same name is another session."""


class DamageError(StoreError):
    """What the store holds is not what was written; `surepick verify --all` says what can still be read."""


class SessionError(SurepickError):
    """A session cannot do what was asked of it; what it has recorded is unchanged."""


class MeasureError(SessionError):
    """A function or a command did not give a measurement; its request was released."""


class MissingFunctionError(ParameterError):
    """Plans are known by a Python function that is not kept, and it was not given again."""


class MissingExtraError(SurepickError, ImportError):
    """A feature needs an optional dependency that is not installed."""


class PluginError(SurepickError):
    """A policy or a kind of problem that is not surepick's own cannot be used, or breaks its rules."""


def name_taken(name: str, place: str) -> NameTakenError:
    """Return the error for a session that would have the name of another one in this store.

    >>> error = name_taken("trips", "memory")
    >>> print(error, error.field)
    there is already a session named 'trips' in memory; load it, or choose another name name
    """
    return NameTakenError(
        f"there is already a session named {name!r} in {place}; load it, or choose another name", field="name"
    )


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Return the error for an optional package that is not there.

    >>> print(missing_extra("ot", "problems"))
    this needs the package 'ot', which is not installed; run: pip install 'surepick[problems]'
    """
    return MissingExtraError(
        f"this needs the package {package!r}, which is not installed; run: pip install 'surepick[{extra}]'"
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint for a name that is not known: the closest one, or the known ones.

    >>> suggestion("bostn", ["boston", "albany"])
    "did you mean 'boston'?"
    """
    names = list(known)
    if not names:
        return "there are none"
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(repr(n) for n in names[:12])
    return f"known: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def unexpected(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error for an argument that a function does not have, with the word to use instead.

    >>> print(unexpected("decide", "n_trials", ["delta", "budget"]))
    decide() got an unexpected keyword argument 'n_trials'; use budget
    """
    names = [one for one in known if one != "self"]
    word = OTHER_WORDS.get(name, "")
    hint = f"use {word}" if word and word.split()[0] in names else suggestion(name, names)
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}; {hint}")


def hinted(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function say which argument was meant by one that it does not have, and that `goal` is missing.

    >>> @hinted
    ... def decide(*, delta=0.05): ...
    >>> decide(alpha=0.01)
    Traceback (most recent call last):
    TypeError: decide() got an unexpected keyword argument 'alpha'; use delta
    """
    parameters = inspect.signature(function).parameters
    needs_goal = "goal" in parameters and parameters["goal"].default is inspect.Parameter.empty
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: P.args, **given: P.kwargs) -> R:
        if not given.keys() <= parameters.keys():
            raise unexpected(called, next(name for name in given if name not in parameters), parameters)
        if needs_goal and "goal" not in given:
            raise TypeError(f'{called}() needs goal="smallest" or goal="largest"')
        return function(*args, **given)

    return checked
