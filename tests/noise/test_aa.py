"""One thing measured as two: an honest set-up passes, and each kind of dishonesty is found."""

import numpy as np
import pytest

from surepick.noise.aa import against_itself, turns

N = 40


def measured(seed, effect="", size=1.5, *, known=True):
    rng, labels = np.random.default_rng(seed), turns(N, seed)
    uses = []
    for at, label in enumerate(labels):
        value = float(rng.normal(5.0, 1.0))
        value += size * (effect == "order" and at % 2 == 1)
        value += size * at / len(labels) * 2 * (effect == "drift")
        value += size * (effect == "label" and label == "A")
        uses.append({"value": 5.0 + (value - 5.0) * (size if effect == "spread" else 1.0)})
    return against_itself(labels, uses, {"value": 1.0 if known else None})


def test_an_honest_set_up_is_doubted_about_once_in_a_hundred():
    doubted = sum(not measured(seed).is_honest for seed in range(600))
    assert doubted <= 17  # 6 expected; more has a probability of 1e-4


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("effect", ["order", "drift", "label"])
def test_what_depends_on_the_turn_is_found(effect, known):
    found = measured(1, effect, known=known)
    assert effect in {doubt.kind for doubt in found.doubts}


def test_noise_that_is_larger_than_its_scale_is_found():
    assert "spread" in {doubt.kind for doubt in measured(2, "spread").doubts}


def test_the_labels_are_balanced_within_pairs_and_drawn_from_the_seed():
    labels = turns(50, 7)
    assert all({*labels[i : i + 2]} == {"A", "B"} for i in range(0, 100, 2))
    assert labels == turns(50, 7) != turns(50, 8)
