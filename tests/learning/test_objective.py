"""Eq. 5 and 6 against a slow oracle, values and gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from spinegraph.learning.objective import Views, contrast, objective


@st.composite
def batches(draw):
    """Anchors and positives (b, d) and negatives (s, d) of both kinds, float64."""
    b, s, d = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([0.1, 1.0, 5.0]))
    return [[rng.normal(size=(rows, d)) * size for rows in (b, b, s)] for _ in range(2)]


def tensors(arrays):
    return [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]


@given(batches(), st.floats(0, 5))
def test_the_skip_gram_term_is_that_of_equation_5(batch, weight):
    found = contrast(*tensors(batch[0]), weight).item()
    assert found == pytest.approx(reference.contrast(*batch[0], weight), rel=1e-9)


@given(batches(), st.floats(0, 1), st.floats(0, 1), st.floats(0, 5))
def test_the_objective_is_that_of_equation_6(batch, share, part, weight):
    lambda1, lambda2 = share * part, share * (1 - part)
    found = objective(
        Views(*tensors(batch[0])), Views(*tensors(batch[1])), lambda1=lambda1, lambda2=lambda2, weight=weight
    ).item()
    assert found == pytest.approx(reference.objective(*batch, lambda1, lambda2, weight), rel=1e-9)


@given(batches())
def test_every_vector_gets_the_gradient_of_the_oracle(batch):
    made, auxiliary = tensors(batch[0]), tensors(batch[1])
    objective(Views(*made), Views(*auxiliary), lambda1=0.4, lambda2=0.3, weight=1.5).backward()
    for given_arrays, found in zip(batch, (made, auxiliary), strict=True):
        for array, tensor in zip(given_arrays, found, strict=True):
            expected = reference.slope(lambda: reference.objective(*batch, 0.4, 0.3, 1.5), array)
            np.testing.assert_allclose(tensor.grad.numpy(), expected, atol=1e-7)


def test_negatives_are_pushed_away_from_anchors():
    anchors, positives, negatives = (torch.full((rows, 2), 0.5, requires_grad=True) for rows in (3, 3, 2))
    contrast(anchors, positives, negatives, weight=1.0).backward()
    assert (negatives.grad > 0).all()  # a step against the gradient lowers the product with the anchors
    assert (positives.grad < 0).all()
    without = torch.full((2, 2), 0.5, requires_grad=True)
    contrast(anchors, positives, without, weight=0.0).backward()
    assert (without.grad == 0).all()


@pytest.mark.parametrize("score", [-200.0, 200.0])
def test_far_scores_keep_a_finite_loss_and_a_gradient_where_they_are_wrong(score):
    anchor = torch.ones(1, 1, requires_grad=True)
    other = torch.full((1, 1), score)
    loss = contrast(anchor, other, -other, weight=0.0)
    loss.backward()
    assert loss.item() == pytest.approx(max(-score, 0), abs=1e-6)
    assert anchor.grad.item() == pytest.approx(200.0 if score < 0 else 0.0)


def test_a_batch_counts_by_its_mean():
    rng = np.random.default_rng(0)
    anchors, positives, negatives = (torch.from_numpy(rng.normal(size=(n, 3))) for n in (4, 4, 5))
    once = contrast(anchors, positives, negatives, 1.0)
    twice = contrast(anchors.repeat(2, 1), positives.repeat(2, 1), negatives.repeat(3, 1), 1.0)
    assert once.item() == pytest.approx(twice.item())
