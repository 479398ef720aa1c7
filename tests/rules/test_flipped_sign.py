"""The sign that public copies of the authors' optimizer have, worked by hand beside the paper's."""

import jax.numpy as jnp
import numpy as np
import pytest

from pcpo import rules
from pcpo.core import LocalModel, Status


def stepped(b, projection, flipped_sign):
    """g = (1, 0), a = (1, 1), H = I and delta = 1/2, so that the reward step is (1, 0) and raises the cost by 1."""
    model = LocalModel(jnp.array([1.0, 0.0]), jnp.array([[1.0, 1.0]]), jnp.array([b]), lambda v: v)
    rule = rules.pcpo(0.5, projection, flipped_sign=flipped_sign)
    step, _, info = rule.update(model, rule.init(1))
    return step, Status(int(info.status)), info.predicted_costs


@pytest.mark.parametrize("projection", ["kl", "l2"])
@pytest.mark.parametrize(
    ("b", "paper", "flipped"),
    [
        (0.2, [0.4, -0.6], [1.0, 0.0]),  # (0.2 + 1) / 2 = 0.6 of a; (0.2 - 1) / 2 < 0: nothing
        (2.0, [-0.5, -1.5], [0.5, -0.5]),  # (2 + 1) / 2 = 1.5; (2 - 1) / 2 = 0.5, which ends at twice what was added
    ],
)
def test_the_flipped_sign_leaves_what_the_reward_step_adds_twice_over(projection, b, paper, flipped):
    step, status, costs = stepped(b, projection, flipped_sign=False)
    np.testing.assert_allclose(step, paper, atol=1e-12)
    np.testing.assert_allclose(costs + b, 0.0, atol=1e-12)
    assert status is Status.PROJECTED

    step, status, costs = stepped(b, projection, flipped_sign=True)
    np.testing.assert_allclose(step, flipped, atol=1e-12)
    np.testing.assert_allclose(costs + b, 2.0 if b > 1.0 else b + 1.0, atol=1e-12)
    assert status is (Status.PROJECTED if b > 1.0 else Status.OK)


def test_there_is_no_flipped_adaptive_projection():
    with pytest.raises(ValueError, match="pass 'kl' or 'l2'"):
        rules.pcpo(0.5, "adaptive", flipped_sign=True)
