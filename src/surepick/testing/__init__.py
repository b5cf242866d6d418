"""The contract that every policy keeps, as a suite for pytest, which it needs.

The policies of this package pass the very same one. A policy of yours passes by

    from surepick.testing import PolicyContract

    class TestMine(PolicyContract):
        policies = [Mine(delta=0.1), Mine(delta=0.1, eager=True)]
"""

from __future__ import annotations

from surepick.errors import missing_extra

try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    raise missing_extra("pytest", "testing") from None

pytest.register_assert_rewrite("surepick.testing.policies")  # so that failing assertions show their values

from surepick.testing.policies import PolicyContract, Tape, decisions  # noqa: E402

__all__ = ["PolicyContract", "Tape", "decisions"]
