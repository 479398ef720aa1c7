"""The bounds that hold for any two policies: never missed, attained where they claim to be sharp, and no more."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from pcpo.core import bounds
from pcpo.experiments import tabular
from pcpo.experiments.tabular import Comparison, Evaluation, discounted, episodic
from tests.theory.examples import chain, chain_policies, fork, fork_policies
from tests.theory.steps import COUNT, HORIZON, KINDS, Steps, steps

ROUNDING = 1e-12
"""In units of the largest return, which are tens."""


def check_discounted(gamma: np.ndarray, J_C: np.ndarray, it: Comparison) -> None:
    """Every discounted bound, reward and cost: both divergences, both penalties, both meanings of epsilon."""
    pairs = (
        (bounds.divergence_penalty, it.kl),
        (bounds.divergence_penalty, it.kl_old_new),
        (bounds.path_penalty, it.kl_old_new),
    )
    for penalty, kl in pairs:
        lower = jax.vmap(partial(bounds.reward_lower_bound, penalty=penalty))
        upper = jax.vmap(partial(bounds.cost_upper_bound, penalty=penalty))
        for epsilon_R, epsilon_C in ((it.epsilon_R, it.epsilon_C), (it.half_range_R, it.half_range_C)):
            below = lower((1 - gamma) * it.reward_surrogate, kl, epsilon_R, gamma)
            above = upper(J_C, (1 - gamma) * it.cost_surrogate, kl, epsilon_C, gamma)
            assert np.all(it.reward_change >= below - ROUNDING)
            assert np.all(J_C + it.cost_change <= above + ROUNDING)


def check_episodic(horizon: int, it: Comparison) -> None:
    """Every episodic bound, on both sides."""
    for epsilons in ((it.epsilon_R, it.epsilon_C), (it.half_range_R, it.half_range_C)):
        penalties: list[tuple[Callable, Any]] = [
            (bounds.episodic_penalty, it.kl),
            (bounds.episodic_penalty, it.kl_old_new),
            (bounds.episodic_path_penalty, it.kl_old_new),
        ]
        for penalty, kl in penalties:
            for epsilon, change, surrogate in zip(
                epsilons, (it.reward_change, it.cost_change), (it.reward_surrogate, it.cost_surrogate), strict=True
            ):
                allowed = jax.vmap(partial(penalty, horizon=horizon))(kl, epsilon)
                assert np.all(np.abs(change - surrogate) <= allowed + ROUNDING)


def check_fork() -> None:
    """The sharp example, in which every bound is an equation up to the known ratio."""
    for gamma in (0.1, 0.5, 0.9, 0.99):
        # With a negative y the reward falls and the cost rises, as far as the bounds allow.
        it = on_fork(partial(discounted, gamma=gamma), y=-1e-6)
        check_discounted(np.array([gamma]), np.zeros(1), jax.tree.map(lambda x: np.asarray(x)[None], it))
    for horizon in (2, 5, 50):
        it = on_fork(partial(episodic, horizon=horizon))
        check_episodic(horizon, jax.tree.map(lambda x: np.asarray(x)[None], it))


def on_fork(evaluate: Callable[..., Evaluation], x: float = 1e-2, y: float = 1e-6) -> Comparison:
    old, new = fork_policies(x, y)
    compared = jax.jit(lambda old, new: tabular.compare(evaluate(fork(), old), evaluate(fork(), new)))
    return compared(old, new)


@pytest.mark.parametrize("kind", KINDS)
def test_discounted_bounds_hold_everywhere(kind: str) -> None:
    done = steps(kind)
    check_discounted(done.gamma, done.J_C, done.happened)


@pytest.mark.parametrize("kind", KINDS)
def test_episodic_bounds_hold_everywhere(kind: str) -> None:
    check_episodic(HORIZON, steps(kind, HORIZON).happened)


def test_the_problems_are_what_they_are_meant_to_be() -> None:
    """Both signs of b, b = 0 exactly, active and inactive, small and large steps; nothing left out."""
    done: Steps = steps("kl")
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(done))
    assert len(done.gamma) == COUNT
    assert np.sum(done.b > 0) > 200
    assert np.sum(done.b <= 0) > 200
    assert np.sum(done.b == 0) > 10
    assert np.sum(done.happened.cost_surrogate + done.b > 1e-3 * np.abs(done.b)) > 10  # curvature matters
    assert done.delta.min() < 2e-4
    assert done.delta.max() > 0.5
    assert done.gamma.min() < 0.1
    assert done.gamma.max() > 0.97
    assert done.happened.kl.max() > 1.0


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9, 0.99])
def test_path_penalty_is_attained_for_every_discount(gamma: float) -> None:
    """From the start a coin leads to one of two states for ever; there is no other choice.

    With P(state 1) = 1/2 + x the distributions differ by 2x from t = 1 on, expected advantages are +-2y, so that
    J' - J = sum_{t>=1} gamma^t 2y 2x = 4xy gamma/(1-gamma), and E_pi[A'] = 0. The divergence is 2x^2 at the start,
    of weight 1-gamma: kl = 2x^2 (1-gamma), to leading order in x and with y far below x. The path penalty is
    sqrt(4x^2 (1-gamma)) gamma 2y/(1-gamma)^{3/2} = 4xy gamma/(1-gamma): the same.
    """
    x, y = 1e-2, 1e-6
    it = on_fork(lambda cmdp, theta: discounted(cmdp, theta, gamma), x, y)
    np.testing.assert_allclose(it.reward_change, 4 * x * y * gamma / (1 - gamma), rtol=1e-9)
    np.testing.assert_allclose(it.reward_surrogate, 0.0, atol=1e-15)
    path = bounds.path_penalty(it.kl_old_new, it.epsilon_R, gamma)
    np.testing.assert_allclose(path / it.reward_change, 1.0, rtol=2e-4)  # 1 + O(x^2)
    printed = bounds.divergence_penalty(it.kl, it.epsilon_R, gamma)
    np.testing.assert_allclose(printed / it.reward_change, (1 - gamma) ** -0.5, rtol=2e-4)


@pytest.mark.parametrize("horizon", [2, 3, 12, 100])
def test_episodic_path_penalty_is_attained_for_every_horizon(horizon: int) -> None:
    """As above: J' - J = (T-1) 4xy, mean divergence 2x^2/T, penalty 2y (T-1) sqrt(2T 2x^2/T) = (T-1) 4xy."""
    x, y = 1e-2, 1e-6
    it = on_fork(lambda cmdp, theta: episodic(cmdp, theta, horizon), x, y)
    np.testing.assert_allclose(it.reward_change, 4 * x * y * (horizon - 1), rtol=1e-9)
    path = bounds.episodic_path_penalty(it.kl_old_new, it.epsilon_R, horizon)
    np.testing.assert_allclose(path / it.reward_change, 1.0, rtol=2e-4)
    step_by_step = bounds.episodic_penalty(it.kl_old_new, it.epsilon_R, horizon)
    expected = np.sqrt(horizon * (2 * horizon - 1) / (6 * (horizon - 1)))  # 1 for T = 2, sqrt(T/3) for large T
    np.testing.assert_allclose(step_by_step / path, expected, rtol=1e-9)


def test_the_direction_of_the_divergence_matters() -> None:
    """The path penalty is false for new against old: the paper's divergence cannot have the sharper constant.

    "On" lasts as long as a fair coin says, and for ever under the new policy. |d' - d|_1 = gamma/(1 - gamma/2); the
    divergence new against old is log 2 while on, so kl = log 2 (1-gamma)/(1-gamma/2), and what the error would have
    to stay under is smaller than it by sqrt(2 log 2 (1 - gamma/2)): 0.873 at gamma = 0.9, and 0.833 in the limit.
    """
    gamma, y = 0.9, 1e-6
    old, new = chain_policies(y)
    it = jax.jit(lambda old, new: tabular.compare(discounted(chain(), old, gamma), discounted(chain(), new, gamma)))(
        old, new
    )
    error = it.reward_change - it.reward_surrogate
    np.testing.assert_allclose(error, 2 * y * gamma / (1 - gamma / 2) / (1 - gamma), rtol=1e-6)
    np.testing.assert_allclose(it.kl, np.log(2) * (1 - gamma) / (1 - gamma / 2), rtol=1e-6)
    wrong = bounds.path_penalty(it.kl, it.epsilon_R, gamma)
    np.testing.assert_allclose(wrong / error, np.sqrt(2 * np.log(2) * (1 - gamma / 2)), rtol=1e-6)
    assert wrong < 0.88 * error
    assert bounds.path_penalty(it.kl_old_new, it.epsilon_R, gamma) > error
    assert bounds.divergence_penalty(it.kl, it.epsilon_R, gamma) > error


def test_episodic_path_penalty_is_never_the_larger_one() -> None:
    for horizon in range(1, 200):
        path, step_by_step = (
            float(penalty(0.01, 1.0, horizon)) for penalty in (bounds.episodic_path_penalty, bounds.episodic_penalty)
        )
        assert path <= step_by_step * (1 + 1e-12)
    np.testing.assert_allclose(
        bounds.episodic_path_penalty(0.01, 1.0, 2), bounds.episodic_penalty(0.01, 1.0, 2), rtol=1e-12
    )


def test_faults_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants a little too small, an exponent too small, a dropped surrogate, A_R where A_C is meant."""
    divergence, path, over_horizon = bounds.divergence_penalty, bounds.path_penalty, bounds.episodic_path_penalty
    lower = bounds.reward_lower_bound

    def dropped(surrogate, kl, epsilon, gamma, penalty):  # as the paper does
        return lower(0.0, kl, epsilon, gamma, penalty)

    def check_steps() -> None:
        done = steps("kl")
        check_discounted(done.gamma, done.J_C, done.happened)

    plants: tuple[tuple[str, Callable, Callable], ...] = (
        ("divergence_penalty", lambda kl, epsilon, gamma: divergence(kl, epsilon, gamma) * (1 - gamma), check_fork),
        ("path_penalty", lambda kl, epsilon, gamma: 0.99 * path(kl, epsilon, gamma), check_fork),
        ("episodic_path_penalty", lambda kl, epsilon, horizon: 0.99 * over_horizon(kl, epsilon, horizon), check_fork),
        ("episodic_penalty", lambda kl, epsilon, horizon: over_horizon(kl, 0.99 * epsilon, horizon), check_fork),
        ("reward_lower_bound", dropped, check_steps),
    )
    check_fork()
    check_steps()
    for name, fault, check in plants:
        with monkeypatch.context() as patch:
            patch.setattr(bounds, name, fault)
            with pytest.raises(AssertionError):
                check()

    done = steps("random")  # Eq. feasible_cost_frist
    misprinted = done.happened._replace(cost_surrogate=done.happened.reward_surrogate)
    with pytest.raises(AssertionError):
        check_discounted(done.gamma, done.J_C, misprinted)
