"""Estimates of unknown noise, from replicates."""

import numpy as np
import pytest

import surepick as sp
from surepick.inference.contrasts import arm_probes
from surepick.inference.noise import NoiseEstimate


def test_scales_of_arms_are_learned():
    scale, rng = np.array([0.5, 1.0, 3.0]), np.random.default_rng(1)
    noise = NoiseEstimate(arm_probes(sp.Problem(np.eye(3), noise=None, goal="largest")))
    for _ in range(400):
        noise.add(np.full(3, 4), scale[:, None] / 2 * rng.standard_normal((3, 8)))
    assert noise.probes().noise_scale == pytest.approx(scale, rel=0.05)


def test_covariances_of_one_use_are_learned():
    rng, truth = np.random.default_rng(2), np.array([[4.0, 3.0], [3.0, 9.0]])
    problem = sp.Problem(np.eye(2), measure={"both": ["arm 0", "arm 1"]}, noise=None, goal="largest")
    noise = NoiseEstimate(problem.probes)
    for _ in range(500):
        noise.add(np.array([1]), np.linalg.cholesky(truth) @ rng.standard_normal((2, 6)))
    np.testing.assert_allclose(noise.probes().covariances[0], truth, rtol=0.1)


def test_a_probe_without_measurements_has_the_noise_that_all_have_in_common():
    noise = NoiseEstimate(arm_probes(sp.Problem(np.eye(2), noise=None, goal="largest")))
    noise.add(np.array([1, 0]), np.array([[5.0, -5.0, 5.0, -5.0], [0.0] * 4]))
    scale = noise.probes().noise_scale
    assert scale[1] == pytest.approx(np.sqrt(100 / 3), rel=0.03)  # sizes are recorded in steps
    assert scale[0] == pytest.approx(scale[1])


def test_noise_without_any_variation_stays_a_number():
    noise = NoiseEstimate(arm_probes(sp.Problem(np.eye(2), noise=None, goal="largest")))
    noise.add(np.ones(2, dtype=np.int64), np.zeros((2, 4)))
    assert (noise.probes().noise_scale > 0).all()
