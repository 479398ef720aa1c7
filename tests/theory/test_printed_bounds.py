"""The bounds as the paper prints them: their numbers, where they hold, and where they do not."""

from collections.abc import Callable

import jax
import numpy as np
import pytest

from pcpo.core import bounds
from pcpo.experiments.bounds import measurements, updates
from tests.theory.examples import exact_steps, kl
from tests.theory.steps import Steps, steps

# Three actions in one state; what pays is also what costs.
POLICY, REWARD, COST = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, -1.0]), np.array([1.0, 0.0, -1.1])
GAMMA = 0.5


def printed(done: Steps) -> tuple[np.ndarray, np.ndarray]:
    """By how much the printed bounds are kept, reward and cost; negative where they are false."""
    it = done.happened
    radius = jax.vmap(bounds.kl_after_projection)(done.delta, done.b, done.scales.s)
    lower = jax.vmap(bounds.printed_reward_bound)(radius, it.epsilon_R, done.gamma)
    upper = jax.vmap(bounds.printed_cost_bound)(done.J_C - done.b, radius, it.epsilon_C, done.gamma)
    return np.asarray(it.reward_change - lower), np.asarray(upper - (done.J_C + it.cost_change))


def cosine(s: updates.Scales) -> np.ndarray:
    return np.asarray(jax.vmap(lambda one: one.cosine)(s))


def past_the_curve(done: Steps) -> np.ndarray:
    """Where the reward falls to first order: beta c > 1 - c^2."""
    c = cosine(done.scales)
    return (done.b > 0) & (done.beta * c > 1 - c**2)


def test_numbers_worked_by_hand() -> None:
    """kl = 0.02 + 0.3^2 / (2 2.25) = 0.04; sqrt(0.08) 0.5 3 / 0.25 = 1.69706."""
    np.testing.assert_allclose(bounds.alpha_kl(2.25), 1 / 4.5, rtol=1e-15)
    np.testing.assert_allclose(bounds.kl_after_projection(0.02, 0.3, 2.25), 0.04, rtol=1e-14)
    np.testing.assert_allclose(bounds.kl_after_projection(0.02, -0.3, 2.25), 0.02, rtol=1e-14)
    np.testing.assert_allclose(bounds.divergence_penalty(0.04, 3.0, 0.5), 1.69705627484771, rtol=1e-13)
    np.testing.assert_allclose(bounds.path_penalty(0.04, 3.0, 0.5), 1.2, rtol=1e-13)
    np.testing.assert_allclose(bounds.printed_reward_bound(0.04, 3.0, 0.5), -1.69705627484771, rtol=1e-13)
    np.testing.assert_allclose(bounds.printed_cost_bound(5.0, 0.04, 3.0, 0.5), 6.69705627484771, rtol=1e-13)
    # sqrt(2 * 4 * 0.02) = 0.4, times 3 (T - 1) = 9; 3 * 4 * sqrt(3 * 7 / 3 * 0.02) = 12 sqrt(0.14)
    np.testing.assert_allclose(bounds.episodic_path_penalty(0.02, 3.0, 4), 3.6, rtol=1e-13)
    np.testing.assert_allclose(bounds.episodic_penalty(0.02, 3.0, 4), 12 * np.sqrt(0.14), rtol=1e-13)


def check_predicted_kl() -> None:
    """delta + (b^2 - (eta r)^2) alpha where the projection is active, delta where it is not; the lemmas follow."""
    done = steps("kl")
    s = done.scales
    eta = np.sqrt(2 * done.delta / s.q)
    active = eta * s.r + done.b > 0
    alpha = np.asarray(jax.vmap(bounds.alpha_kl)(s.s))
    expected = done.delta + np.where(active, (done.b**2 - (eta * s.r) ** 2) * alpha, 0.0)
    assert 150 < active.sum() < 450
    np.testing.assert_allclose(done.predicted_kl, expected, rtol=1e-4)  # H is damped by 1e-8
    allowed = np.asarray(jax.vmap(bounds.kl_after_projection)(done.delta, done.b, s.s))
    assert np.all(done.predicted_kl <= allowed * (1 + 1e-4))
    exact = active & (done.b > 0) & (np.abs(cosine(s)) < 0.02)  # where r is small the bound is an equation
    assert exact.sum() > 1
    np.testing.assert_allclose(done.predicted_kl[exact], allowed[exact], rtol=2e-3)


def test_predicted_kl_after_a_projection() -> None:
    check_predicted_kl()


def test_realised_kl_may_be_larger_than_the_lemmas_say() -> None:
    done = steps("kl")
    allowed = np.asarray(jax.vmap(bounds.kl_after_projection)(done.delta, done.b, done.scales.s))
    ratio = done.happened.kl / allowed
    assert np.sum(ratio > 1) > 60
    assert ratio.max() > 3


@pytest.mark.parametrize("kind", ["kl", "l2"])
def test_the_reward_bound_of_infeasible_case_is_false_on_random_problems(kind: str) -> None:
    """With PCPO's actual steps; every failure lies where the reward falls to first order, and most at small steps."""
    done = steps(kind)
    reward, _ = printed(done)
    false = reward < -1e-9
    violated, past = done.b > 0, past_the_curve(done)
    assert violated.sum() > 280
    assert np.sum(false & violated) >= 10
    if kind == "kl":  # the curve is that of the KL projection
        assert not np.any(false & ~past)
        small = done.delta < 1e-3
        assert np.mean(false[past & small]) > 2 * np.mean(false[past & ~small])


def test_the_reward_bound_of_feasible_case_was_never_false() -> None:
    """From b <= 0 dropping the surrogate is allowed: a KL projection leaves it positive."""
    done = steps("kl")
    feasible = done.b <= 0
    assert feasible.sum() > 280
    assert np.all(printed(done)[0][feasible] > 0)
    assert np.all(done.happened.reward_surrogate[feasible] > 0)


def test_the_cost_bounds_fail_only_where_the_future_counts_little() -> None:
    """A step from a linear model misses the constraint by its curvature, which no term of the printed bound covers."""
    done = steps("kl")
    _, cost = printed(done)
    false = cost < -1e-9
    assert 1 <= np.sum(false) <= 6
    assert done.gamma[false].max() < 0.4
    missed = done.happened.cost_surrogate + done.b
    assert np.all(missed[false] > 0)


def test_first_order_change_of_the_reward() -> None:
    """sqrt(2 delta q) (1 - c^2 - beta c) for an active projection, as delta goes to zero."""
    keys = jax.random.split(jax.random.key(17), 40)
    cases = jax.jit(jax.vmap(lambda key: updates.draw_case(key, states=4, actions=3)))(keys)
    done = jax.jit(jax.vmap(lambda case: updates.update(case, 1e-9)))(cases)
    c, beta = cosine(done.scales), np.asarray(cases.beta)
    reach = np.sqrt(2e-9 * np.asarray(done.scales.q))
    expected = np.where(c + beta > 0, 1 - c**2 - beta * c, 1.0)
    np.testing.assert_allclose(np.asarray(done.happened.reward_change) / reach, expected, atol=2e-3)
    assert 10 < np.sum(c + beta > 0) < 40
    assert np.any(expected < 0)


VIOLATIONS = tuple(float(x) for x in 10.0 ** np.arange(-6.0, -0.9, 0.5))


def check_counter_example() -> dict[str, np.ndarray]:
    """Reward and cost nearly align: the printed bound is false at every small step, the correct ones hold."""
    it = measurements.counter_example(VIOLATIONS)
    np.testing.assert_allclose(it["violation"], VIOLATIONS, rtol=1e-9)
    assert np.all(it["cosine"] > 0.99)
    assert np.all(it["reward_change"] < 2 * it["printed_bound"])  # not by a hair: false by a factor, at b = 0.1 too
    assert np.all(it["reward_change"] >= it["correct_bound"] - 1e-15)
    assert np.all(it["reward_change"] >= it["sharper_bound"] - 1e-15)
    return it


def test_the_counter_example() -> None:
    """Loss of first order in b, 0.9105 b, while the printed bound allows one of second order, 1.529 b^2."""
    it = check_counter_example()
    b = np.asarray(VIOLATIONS)
    small = b < 1e-3
    np.testing.assert_allclose(it["reward_change"][small] / b[small], -0.91054, rtol=1e-3)
    np.testing.assert_allclose(it["printed_bound"][small] / b[small] ** 2, -1.52905, rtol=1e-3)
    np.testing.assert_allclose(it["correct_bound"][small] / it["reward_change"][small], 1.0, rtol=2e-3)


@pytest.mark.parametrize("b", [1e-4, 1e-3, 1e-2, 0.1])
def test_it_is_false_for_exact_steps_too(b: float) -> None:
    """No approximation is to blame: both steps over all policies, with the divergence itself, on a one-state problem.

    With one state J' - J = E[A] / (1 - gamma) is the surrogate and nothing else. H is that of a full table of logits,
    so a'H^-1 a is the variance of the cost over (1 - gamma)^2.
    """
    variance = POLICY @ (COST - POLICY @ COST) ** 2
    alpha = float(bounds.alpha_kl(variance / (1 - GAMMA) ** 2))
    delta = b**2 * alpha
    _, new = exact_steps(POLICY, REWARD, COST, delta, b=(1 - GAMMA) * b)
    advantage, cost = new @ (REWARD - POLICY @ REWARD), new @ (COST - POLICY @ COST)
    radius = float(bounds.kl_after_projection(delta, b, variance / (1 - GAMMA) ** 2))
    change, epsilon = advantage / (1 - GAMMA), abs(advantage)
    np.testing.assert_allclose(cost / (1 - GAMMA), -b, rtol=1e-9)  # the constraint is met exactly
    assert kl(new, POLICY) < radius  # and the divergence is not to blame either
    assert change < 5 * float(bounds.printed_reward_bound(radius, epsilon, GAMMA))
    assert change >= float(bounds.reward_lower_bound(advantage, kl(new, POLICY), epsilon, GAMMA))


def test_lemma_feasible_needs_small_steps() -> None:
    """KL(pi' || pi) <= delta after an exact projection from b = 0: the proof swaps the arguments on the way."""
    rng = np.random.default_rng(0)
    ratios, gains = [], []
    for _ in range(100):
        policy, reward, cost = rng.dirichlet(np.ones(3)), rng.normal(size=3), rng.normal(size=3)
        delta = 10 ** rng.uniform(-4, 0)
        try:
            half, new = exact_steps(policy, reward, cost, delta)
        except ValueError:  # delta is more than the best action alone would spend
            continue
        if not np.array_equal(half, new):
            ratios.append((kl(new, policy) / delta, delta))
            gains.append(new @ (reward - policy @ reward))
    assert len(ratios) > 30
    assert min(gains) > 0  # x E[A_R] >= KL(pi' || pi) + KL(pi || pi'): the surrogate may be dropped
    largest, at = max(ratios)
    assert largest > 1.5
    assert at > 0.1
    assert all(ratio < 1.001 for ratio, delta in ratios if delta < 1e-2)


def test_faults_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    after, lower = bounds.kl_after_projection, bounds.reward_lower_bound

    def half_of_alpha(delta, violation, a_w):
        return after(delta, violation, 2.0 * a_w)

    def repaired(kl, epsilon, gamma):
        """A printed bound that held would have to fail the test that says it is false."""
        return -1e3 * bounds.path_penalty(kl, epsilon, gamma) - 1.0

    def without_surrogate(surrogate, *rest):
        return lower(0.0 * surrogate, *rest)

    plants: tuple[tuple[str, Callable, Callable], ...] = (
        ("kl_after_projection", half_of_alpha, check_predicted_kl),
        ("printed_reward_bound", repaired, check_counter_example),
        ("reward_lower_bound", without_surrogate, check_counter_example),
    )
    for name, fault, check in plants:
        check()
        with monkeypatch.context() as patch:
            patch.setattr(bounds, name, fault)
            with pytest.raises(AssertionError):
                check()
