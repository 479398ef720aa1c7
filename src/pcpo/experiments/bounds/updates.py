"""One update on a random tabular problem, and all bounds compared with what it did."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from pcpo import rules
from pcpo.core import bounds
from pcpo.experiments import tabular
from pcpo.experiments.tabular import CMDP, Comparison, Evaluation, Logits

Scalar = Float[Array, ""]

PENALTIES = ("printed", "path", "path_half_range")
"""From loose to tight: the paper's, `path_penalty`, and the latter with half the range in place of epsilon."""


class Case(NamedTuple):
    """A random problem, a random policy, and how much the constraint is violated."""

    cmdp: CMDP
    theta: Logits
    gamma: Scalar
    beta: Scalar
    """b in units of what the trust region can reach; negative for a satisfied constraint."""


class Scales(NamedTuple):
    """The three numbers that describe a problem to first order."""

    q: Scalar
    """``g . H^-1 g``."""
    r: Scalar
    """``a . H^-1 g``."""
    s: Scalar
    """``a . H^-1 a``."""

    @property
    def cosine(self) -> Scalar:
        """c: cosine between the natural gradients of reward and cost, in the metric of H."""
        return self.r / jnp.sqrt(self.q * self.s)


class Update(NamedTuple):
    """One step and what came of it."""

    scales: Scales
    b: Scalar
    delta: Scalar
    predicted_kl: Scalar
    happened: Comparison


class Judged(NamedTuple):
    """The bounds of one update. Slack is what is left between a bound and the truth; negative means false."""

    printed_reward: Scalar
    printed_cost: Scalar
    reward_error: Scalar
    """``|J_R' - J_R - surrogate|``: what the penalties bound."""
    cost_error: Scalar
    reward_penalties: Float[Array, " 3"]
    """In the order of `PENALTIES`, at the realised divergences."""
    cost_penalties: Float[Array, " 3"]


def draw_case(key: Key[Array, ""], states: int = 6, actions: int = 3) -> Case:
    """Draws a case. Nothing is rejected and nothing depends on an outcome.

    Correlation of reward and cost uniform in [-1, 1]; sharpness of transitions log-uniform in [0.3, 10]; effective
    horizon 1 / (1 - gamma) log-uniform in [1.02, 50]; logits standard normal. Half the cases satisfy the constraint,
    beta uniform in [-1.2, 0], one in eleven of them exactly; half violate it, beta uniform in (0, 3].
    """
    cmdp_key, theta_key, numbers_key = jax.random.split(key, 3)
    side, slack, violation, correlation, sharpness, effective = jax.random.uniform(numbers_key, (6,))
    return Case(
        cmdp=tabular.random_cmdp(
            cmdp_key,
            states,
            actions,
            alignment=2.0 * correlation - 1.0,
            sharpness=_log_uniform(sharpness, 0.3, 10.0),
        ),
        theta=jax.random.normal(theta_key, (states, actions)),
        gamma=1.0 - 1.0 / _log_uniform(effective, 1.02, 50.0),
        beta=jnp.where(side < 0.5, -jnp.maximum(0.0, 1.32 * slack - 0.12), 3.0 * (1.0 - violation)),
    )


def _log_uniform(uniform: Scalar, low: float, high: float) -> Scalar:
    """From a number uniform in [0, 1) to one whose logarithm is uniform between two."""
    return low * (high / low) ** uniform


def scales(at: Evaluation) -> Scales:
    """q, r and s from gradients and natural gradients in closed form."""
    (g, a), (v, w) = tabular.policy_gradients(at), tabular.natural_gradients(at)
    return Scales(jnp.sum(g * v), jnp.sum(a * v), jnp.sum(a * w))


def update(case: Case, delta: ArrayLike, projection: str = "kl", horizon: int | None = None) -> Update:
    """PCPO's step on a case, and what it did.

    Args:
        case: The problem; its gamma is not used if there is a horizon.
        delta: KL radius.
        projection: ``"kl"`` or ``"l2"``.
        horizon: None for the discounted problem, T for the undiscounted episodic one.
    """
    delta = jnp.asarray(delta, case.theta.dtype)
    before = evaluate(case, case.theta, horizon)
    numbers = scales(before)
    b = case.beta * jnp.sqrt(2.0 * delta * numbers.s)
    model = tabular.local_model(before, limit=before.J_C - b)
    rule = rules.pcpo(delta, projection, cg_iterations=4 * case.theta.size)
    step, _, info = rule.update(model, rule.init(1))
    after = evaluate(case, case.theta + step, horizon)
    return Update(numbers, b, delta, info.predicted_kl, tabular.compare(before, after))


def evaluate(case: Case, theta: Logits, horizon: int | None = None) -> Evaluation:
    """Evaluates a policy on the problem of a case, discounted or over a horizon."""
    if horizon is None:
        return tabular.discounted(case.cmdp, theta, case.gamma)
    return tabular.episodic(case.cmdp, theta, horizon)


def judge(done: Update, gamma: Scalar) -> Judged:
    """Compares all bounds of the discounted problem with what happened."""
    it = done.happened
    kl = bounds.kl_after_projection(done.delta, done.b, done.scales.s)
    # With J_C - b for h, and J_C taken off both sides, so that no digits are lost to the size of J_C.
    printed_cost = bounds.printed_cost_bound(-done.b, kl, it.epsilon_C, gamma)

    def penalties(epsilon: Scalar, half_range: Scalar) -> Float[Array, " 3"]:
        return jnp.stack(
            [
                bounds.divergence_penalty(it.kl, epsilon, gamma),
                bounds.path_penalty(it.kl_old_new, epsilon, gamma),
                bounds.path_penalty(it.kl_old_new, half_range, gamma),
            ]
        )

    return Judged(
        printed_reward=it.reward_change - bounds.printed_reward_bound(kl, it.epsilon_R, gamma),
        printed_cost=printed_cost - it.cost_change,
        reward_error=jnp.abs(it.reward_change - it.reward_surrogate),
        cost_error=jnp.abs(it.cost_change - it.cost_surrogate),
        reward_penalties=penalties(it.epsilon_R, it.half_range_R),
        cost_penalties=penalties(it.epsilon_C, it.half_range_C),
    )


def judge_episodic(done: Update, horizon: int) -> Judged:
    """As `judge`, for the undiscounted problem. The paper has no bound for it: nothing printed, slack is infinite."""
    it = done.happened

    def penalties(epsilon: Scalar, half_range: Scalar) -> Float[Array, " 3"]:
        return jnp.stack(
            [
                bounds.episodic_penalty(it.kl, epsilon, horizon),
                bounds.episodic_path_penalty(it.kl_old_new, epsilon, horizon),
                bounds.episodic_path_penalty(it.kl_old_new, half_range, horizon),
            ]
        )

    infinite = jnp.full_like(done.b, jnp.inf)
    return Judged(
        printed_reward=infinite,
        printed_cost=infinite,
        reward_error=jnp.abs(it.reward_change - it.reward_surrogate),
        cost_error=jnp.abs(it.cost_change - it.cost_surrogate),
        reward_penalties=penalties(it.epsilon_R, it.half_range_R),
        cost_penalties=penalties(it.epsilon_C, it.half_range_C),
    )


def aligned_case(beta: ArrayLike = 1.0) -> Case:
    """The counter-example: two states, two actions, and a cost that is nearly the reward.

    Whoever works fast is busy more often, earns more and wears the machine more: cost equals reward but for one
    entry, 2.2 in place of 2. The policy tosses a fair coin, gamma is 0.9. With beta = 1 and violation b the radius is
    delta = b^2 alpha_KL: half of the printed divergence comes from either step.
    """
    moves = jnp.array([[[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]]], dtype=float)
    reward = jnp.array([[0.0, 1.0], [1.0, 2.0]], dtype=float)
    return Case(
        cmdp=CMDP(moves, reward, reward.at[1, 1].set(2.2), jnp.array([1.0, 0.0], dtype=float)),
        theta=jnp.zeros((2, 2), float),
        gamma=jnp.asarray(0.9, float),
        beta=jnp.asarray(beta, float),
    )
