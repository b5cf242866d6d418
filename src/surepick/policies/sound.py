"""What policies share that have no setting but delta, and a proof for sub-Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.policy import check_delta
from surepick.core.promise import SUB_GAUSSIAN, promise


@dataclass(frozen=True)
class SoundPolicy:
    """The best plan, wrong with probability at most delta, whatever the sub-Gaussian noise."""

    delta: float = 0.05

    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_delta(self.delta)

    @property
    def guarantee(self) -> str:
        """The promise and its assumption."""
        return promise(self.delta, 0.0, SUB_GAUSSIAN)
