"""Methods of the literature open with paper, assumption, proof status, deviations and cost of a round."""

import ast
import importlib
import inspect

import pytest

from surepick.policies import POLICIES

# They have pages, or no paper.
OUR_OWN = {"BetGapE", "Challenge", "Limited", "Pick", "SignRace", "Tied", "Uniform"}


@pytest.mark.parametrize("name", sorted(set(POLICIES) - OUR_OWN))
def test_a_method_opens_with_what_a_reader_must_know(name):
    module = importlib.import_module(POLICIES[name].__module__)
    opening = ast.get_docstring(ast.parse(inspect.getsource(module))) or ""
    words = " ".join(opening.split()).lower()
    assert "paper" in words
    for part in ("assumption", "proof status", "deviations", "cost of a"):
        assert part in words, f"{module.__name__} does not say its {part}"
