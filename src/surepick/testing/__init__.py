"""The contracts that every policy and every store keeps, as suites for pytest.

This package's own policies and stores pass the very same ones. A policy of yours passes by

    from surepick.testing import PolicyContract

    class TestMine(PolicyContract):
        policies = [Mine(delta=0.1), Mine(delta=0.1, eager=True)]

and a store by a subclass of `StoreContract` (or `LastingStoreContract`) with a fixture `store`. Needs pytest.
This room may import every other one but the edges.
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
pytest.register_assert_rewrite("surepick.testing.policies", "surepick.testing.stores")

from surepick.testing.policies import PolicyContract, StepByStep, Tape, decisions  # noqa: E402
from surepick.testing.stores import LastingStoreContract, StoreContract  # noqa: E402

__all__ = [
    "LastingStoreContract",
    "PolicyContract",
    "StepByStep",
    "StoreContract",
    "Tape",
    "decisions",
]
