"""What tests of every package share: the usual small problem, and that a refusal names its field."""

from contextlib import contextmanager

import pytest

import surepick as sp
from surepick.errors import SurepickError


def largest(plans, **settings):
    """Return the problem of the plan with the largest total, with noise of scale 1 unless it is given."""
    return sp.Problem(plans, **{"noise": 1, "goal": "largest", **settings})


@contextmanager
def refuses(field, error=SurepickError):
    """Expect an error of this class about this field."""
    with pytest.raises(error) as caught:
        yield
    assert caught.value.field == field
