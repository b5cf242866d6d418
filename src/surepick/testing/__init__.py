"""The contract that every policy keeps, as a suite for pytest.

The policies of this package pass the very same one. A policy of yours passes by

    from surepick.testing import PolicyContract

    class TestMine(PolicyContract):
        policies = [Mine(delta=0.1), Mine(delta=0.1, eager=True)]

It needs pytest.
"""

from __future__ import annotations

from surepick.errors import missing_extra

try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    raise missing_extra("pytest", "testing") from None

# Failing assertions should show their values, as in your own test files.
pytest.register_assert_rewrite("surepick.testing.policies")

from surepick.testing.policies import PolicyContract, StepByStep, Tape, decisions  # noqa: E402

__all__ = [
    "PolicyContract",
    "StepByStep",
    "Tape",
    "decisions",
]
