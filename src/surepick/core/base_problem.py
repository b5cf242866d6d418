"""The base of all kinds of problems: arms that can be measured, settings, and which way is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError, replace
from html import escape
from typing import Any, ClassVar, Self

import numpy as np

from surepick.core.about import About, plausible_range
from surepick.core.arrays import BoolArray, FloatArray, brief, first_true, read_only
from surepick.core.given.numbers import (
    LARGEST,
    ROUNDING,
    Goal,
    Known,
    Numbers,
    PerArm,
    half_widths,
    index_of,
    is_smallest,
    mean_bounds,
    per_arm,
    scale_and_bounds,
    vector,
)
from surepick.core.given.probes import Limits
from surepick.core.plays import AskedPlays
from surepick.core.probes import VALUE, Probes
from surepick.errors import ProblemError

SUB_GAUSSIAN_NOISE, BOUNDED_VARIANCE = NOISE_KINDS = "sub-Gaussian", "bounded variance"


class BaseProblem:
    """Arms with names, noise and costs: the part of a problem that does not depend on how plans are known.

    Immutable: constructors set the fields, and methods `with_...` return changed copies. A `Problem` lists
    its plans, an `OracleProblem` asks a function for them; `is_listed` says which, and type checkers
    understand it.
    """

    goal: Goal
    about: About = About()  # title, unit and the like; decides nothing
    is_listed: ClassVar[bool]  # whether plans are in a list; said by each kind
    has_batches: ClassVar[bool] = True  # whether methods plan batches, so that these may have a price

    # What is measured: each arm by itself, unless there are probes, or whole plans that no list has.
    arm_names: tuple[str, ...]
    probes: Probes | None = None
    plays: bool = False  # whether whole plans are measured (`core.plays`)
    asked_plays: AskedPlays = AskedPlays()  # those that a session has asked for so far; they decide nothing

    # Noise and costs of each arm; with probes noise and bounds are of each reading, costs of each probe.
    noise_scale: FloatArray | None  # None: unknown
    noise_kind: str = SUB_GAUSSIAN_NOISE  # or BOUNDED_VARIANCE: of what the noise scale is a bound
    bounds: FloatArray | None  # (n_arms, 2) low and high of one measurement
    costs: FloatArray
    setup_cost: float = 0.0  # the price of starting a batch of measurements, whatever is in it

    # What is known or guessed of the means of arms.
    mean_bounds: FloatArray | None = None  # (n_arms, 2) lowest and highest mean; equal: known exactly
    guess: FloatArray | None = None  # (n_arms,) expected means; they guide and never count as evidence
    spread: FloatArray | None = None  # (n_arms,) how far off the guess may be, where that was said

    @property
    def minimize(self) -> bool:
        """Whether the best plan has the smallest value."""
        return self.goal == "smallest"

    @property
    def sign(self) -> float:
        """The factor that makes larger values better: -1 where the problem minimises, else 1."""
        return -1.0 if self.minimize else 1.0

    @property
    def n_arms(self) -> int:
        """The number of quantities whose means make up the values of plans."""
        return len(self.arm_names)

    @property
    def is_known(self) -> BoolArray:
        """Return, by arm, whether its mean is known exactly: such arms are never measured."""
        if self.mean_bounds is None:
            return np.zeros(self.n_arms, dtype=bool)
        return np.asarray(self.mean_bounds[:, 0] == self.mean_bounds[:, 1])

    @property
    def known_means(self) -> FloatArray:
        """Return the means that are known exactly, (n_arms,); 0 for all other arms."""
        if self.mean_bounds is None:
            return np.zeros(self.n_arms)
        return np.where(self.is_known, self.mean_bounds[:, 0], 0.0)

    @property
    def arms_alone(self) -> bool:
        """Whether each arm is measured by itself: there are no probes, and no plan is played."""
        return self.probes is None and not self.plays

    @property
    def n_probes(self) -> int:
        """How many ways to measure there are: one for each arm, unless the problem has probes of its own.

        Where plans are played, those that have been asked for.
        """
        return len(self.probe_names)

    @property
    def probe_names(self) -> tuple[str, ...]:
        """Their names; those of the arms, where each is measured by itself."""
        return self.asked_plays.names if self.plays else self.counted_names

    @property
    def counted_names(self) -> tuple[str, ...]:
        """The names of what measurements are counted by: arms, which are what plays read too, or probes."""
        return self.arm_names if self.probes is None else self.probes.names

    @property
    def probe_word(self) -> str:
        """The word for what is measured: "arm" where each arm is measured by itself, else "probe"."""
        return "arm" if self.arms_alone else "probe"

    def probe(self, name: str) -> int:
        """Return the index of the probe with this name: the arm's, where each is measured by itself."""
        return index_of(self.probe_word, name, self.probe_names)

    @property
    def n_readings(self) -> int:
        """Numbers that can be read: one for each arm, or those of every probe together."""
        return self.n_arms if self.probes is None else self.probes.n_readings

    def readings_of(self, probe: int) -> Sequence[int]:
        """Return which readings are those of this probe; an arm measured by itself has its own one."""
        if self.plays:
            return self.asked_plays.arms[probe]
        if self.probes is None:
            return range(probe, probe + 1)
        return range(int(self.probes.start[probe]), int(self.probes.start[probe + 1]))

    def readings_counted(self, place: int) -> Sequence[int]:
        """Which of all readings one count of a request gives; counts of whole plans are by arm."""
        return range(place, place + 1) if self.plays else self.readings_of(place)

    def reads(self, probe: int) -> tuple[str, ...]:
        """Return the names of the readings that one use of this probe gives, in their order."""
        if self.plays:
            return tuple([self.arm_names[arm] for arm in self.asked_plays.arms[probe]])
        return (VALUE,) if self.probes is None else self.probes.reading_names[probe]

    @property
    def reading_names(self) -> tuple[str, ...]:
        """Every reading by a name of its own, for people: the arm, the probe, or "probe: reading"."""
        if self.probes is None:
            return self.arm_names
        pairs = zip(self.probes.names, self.probes.reading_names, strict=True)
        return tuple(probe if own == VALUE else f"{probe}: {own}" for probe, names in pairs for own in names)

    def reading_in_words(self, reading: int) -> str:
        """Return which reading it is, to say what is wrong with it: "arm 3 ('copper')", or the probe's."""
        if self.probes is None:
            return f"arm {reading} ({self.arm_names[reading]!r})"
        return self.probes.reading_name(reading)

    @property
    def knows_noise(self) -> bool:
        """Whether the noise scale is a bound on the noise: neither to be learned, nor a guess."""
        return self.noise_scale is not None and not (self.probes is not None and self.probes.unknown)

    def as_means(self, means: Numbers) -> FloatArray:
        """Return these means, in the order of the arms or by their names, as one finite number per arm."""
        return vector("means", means, self.arm_names)

    def refuse_contrary(self, means: FloatArray, field: str) -> None:
        """Refuse true means that contradict what the problem says is known of them."""
        if self.mean_bounds is None:
            return
        low, high = self.mean_bounds.T
        slack = ROUNDING * np.abs(means)
        s = first_true((means < low - slack) | (means > high + slack))
        if s is not None:
            raise ProblemError(
                f"arm {self.arm_names[s]!r} has the mean {means[s]:g} here, and the problem knows it to be "
                + (f"{low[s]:g}" if low[s] == high[s] else f"between {low[s]:g} and {high[s]:g}"),
                field=field,
            )

    def arm(self, name: str) -> int:
        """Return the index of the arm with this name."""
        return index_of("arm", name, self.arm_names)

    def with_settings(
        self,
        *,
        known: Known | None = None,
        guess: Numbers | None = None,
        spread: Numbers | None = None,
        noise_kind: str = SUB_GAUSSIAN_NOISE,
        setup_cost: float | None = None,
    ) -> Self:
        """Return the same problem with these settings as well; they mean what they do in `Problem`.

        - known: a number is the mean itself: the arm is never measured, and counts in the values of plans.
          Two numbers are bounds of the mean. Both hold surely: the guarantee assumes them.
        - guess, spread: with both, sessions and forecasts begin with the guess as prior data, and values far
          from it are asked about before they are recorded, unless a plausible range is given.

        >>> import surepick as sp
        >>> problem = sp.Problem([[1, 0, 1], [0, 1, 0]], arms=["road", "rail", "toll"], goal="largest")
        >>> problem.with_settings(known={"toll": 3, "rail": (0, 20)}).relevant.tolist()
        [True, True, False]
        """
        other = self._with()
        other._apply_known(known)
        other._apply_guess(guess, spread)
        other._apply_noise_kind(noise_kind)
        if setup_cost is not None:
            other._apply_setup_cost(setup_cost)
        return other

    # Each of these is called by a constructor, or on a copy.

    def _apply_known(self, known: Known | None) -> None:
        """Check and set what is known of the means of some arms; that of others stays as it is."""
        if known is None or (isinstance(known, Mapping) and not known):
            return
        means = mean_bounds(known, self.arm_names)
        if self.mean_bounds is not None:
            means = np.where(np.isin(self.arm_names, list(known))[:, None], means, self.mean_bounds)
        if self.bounds is not None and self.arms_alone:
            s = first_true((means[:, 0] > self.bounds[:, 1]) | (means[:, 1] < self.bounds[:, 0]))
            if s is not None:
                raise ProblemError(
                    f"the known mean of arm {self.arm_names[s]!r}, {means[s].tolist()}, lies outside the "
                    f"limits of its readings, {self.bounds[s].tolist()}",
                    field="known",
                )
        self._set(mean_bounds=means)

    def _apply_guess(self, guess: Numbers | None, spread: Numbers | None) -> None:
        """Check and set the guess of the means and how far off it may be, and which values are plausible."""
        if guess is None:
            if spread is not None:
                raise ProblemError("spread is how far off a guess may be; give guess too", field="spread")
            return
        means = vector("guess", guess, self.arm_names)
        self._set(guess=means)
        if spread is None:
            return
        width = half_widths(spread, self.arm_names)
        self._set(spread=width)
        if self.about.plausible is None and self.probes is None:
            plausible = plausible_range(means, width, self.noise_scale)
            self._set(about=replace(self.about, plausible=plausible))

    def _apply_noise_kind(self, noise_kind: str) -> None:
        """Check and set what the noise scale bounds: the tails of the noise, or its deviation alone."""
        if noise_kind == SUB_GAUSSIAN_NOISE:
            return
        if noise_kind not in NOISE_KINDS:
            raise ProblemError(
                f"noise_kind is {SUB_GAUSSIAN_NOISE!r} or {BOUNDED_VARIANCE!r}, got {noise_kind!r}",
                field="noise_kind",
            )
        if not self.knows_noise or self.bounds is not None:
            raise ProblemError(
                "noise of bounded variance needs noise, at least the standard deviation of one "
                "measurement, and no low and high",
                field="noise",
            )
        self._set(noise_kind=noise_kind)

    def _apply_setup_cost(self, setup_cost: float) -> None:
        """Check and set the price of starting a batch."""
        is_number = isinstance(setup_cost, int | float) and not isinstance(setup_cost, bool)
        if not is_number or not 0 <= setup_cost <= LARGEST or (setup_cost and not self.has_batches):
            raise ProblemError(
                "setup_cost is the price of starting a batch of measurements of listed plans or a "
                f"Polytope, 0 or more, got {setup_cost!r}",
                field="setup_cost",
            )
        self._set(setup_cost=float(setup_cost))

    def with_noise(self, noise_scale: FloatArray | None, bounds: FloatArray | None = None) -> Self:
        """Return the same problem with this noise scale and these bounds, neither of them checked."""
        if self.probes is not None and noise_scale is not self.noise_scale:
            raise ProblemError(
                "the noise of probes is a part of them; build the problem with other probes", field="measure"
            )
        return self._with(noise_scale=noise_scale, bounds=bounds)

    def spent(self, evidence_cost: float, n_batches: int) -> float:
        """Return the total cost: of the measurements, and of setting up n_batches batches."""
        return evidence_cost + self.setup_cost * n_batches

    def with_about(self, **changes: Any) -> Self:
        """Return the problem with another title, unit, plausible range or listing; no decision changes."""
        return self._with(about=replace(self.about, **changes))

    @property
    def _noise_words(self) -> str:
        """The noise scale, or that it is not known."""
        return brief(self.noise_scale) if self.knows_noise and self.noise_scale is not None else "unknown"

    @property
    def completeness(self) -> str:
        """How many plans there are, and whether some may be missing, for people."""
        raise NotImplementedError

    @property
    def relevant(self) -> BoolArray:
        """Which arms have unknown means that may matter, (n_arms,)."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return how the problem was understood, as a table for notebooks."""
        rows = {
            "plans": self.completeness,
            "goal": self.goal,
            "arms": f"{self.n_arms:,}, of which {int(self.relevant.sum()):,} matter",
            "measured by": "single arms" if self.arms_alone else "plans" if self.plays else "probes",
            "noise": self._noise_words,
        }
        cells = "".join(f"<tr><td>{name}</td><td>{escape(words)}</td></tr>" for name, words in rows.items())
        return f"<table><caption>{escape(self.about.title or 'Problem')}</caption>{cells}</table>"

    def _with(self, **changes: object) -> Self:
        """Return a copy with these fields changed."""
        other = object.__new__(type(self))
        other._set(**(vars(self) | changes))
        return other

    def _set(self, **fields: object) -> None:
        """Set fields; for constructors and copies."""
        self.__dict__.pop("relevant", None)  # which arms are relevant follows from the other fields
        fields.pop("relevant", None)
        self.__dict__.update({name: read_only(value) for name, value in fields.items()})

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self._set(**state)  # pickle and copy rebuild arrays as writeable ones


def arm_fields(arms: tuple[str, ...], goal: Goal, limits: Limits, cost: PerArm | None) -> dict[str, Any]:
    """Return the fields that every problem has, checked: goal, names, noise, limits and costs of its arms."""
    is_smallest(goal)  # refuses other words
    scale, bounds = scale_and_bounds(*limits, arms)
    costs = per_arm("cost", 1.0 if cost is None else cost, arms)
    return {"goal": goal, "arm_names": arms, "noise_scale": scale, "bounds": bounds, "costs": costs}
