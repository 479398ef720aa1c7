r"""Small constrained decision problems in which every expectation is exact, by linear algebra.

A `CMDP` has a few states and actions; a policy is a table of logits ``theta[S, A]`` with a softmax over actions. There
are two ways of counting: the paper's discounted sum over an infinite future (`discounted`), and the undiscounted sum
over an episode of T steps (`episodic`), which is what the tasks use. Both give an `Evaluation`: the returns, how often
each state is visited, and the advantages. From then on there is one code for both. A discounted problem has one table
of visits and advantages, an episodic one has one for each step, and this "stage" is the leading axis K:

.. math:: J(\pi') \approx J(\pi) + \sum_{k,s} w_k(s) \sum_a \pi'(a|s) A_k(s, a), \qquad
    w = \frac{d^\pi}{1 - \gamma} \;\; \text{or} \;\; w_t = d_t.

Everything is a pure function of pytrees, written for one problem; `jax.vmap` makes it hundreds.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from pcpo.core import LocalModel, Surrogates

Scalar = Float[Array, ""]
Logits = Float[Array, "S A"]


class CMDP(NamedTuple):
    """A constrained Markov decision process with one cost."""

    transitions: Float[Array, "S A S"]
    """``T(s' | s, a)``."""
    reward: Float[Array, "S A"]
    cost: Float[Array, "S A"]
    start: Float[Array, " S"]
    """``mu``."""


class Evaluation(NamedTuple):
    """All that is exactly known of one policy. Stages K: 1 for a discounted problem, T for an episodic one."""

    theta: Logits
    J_R: Scalar
    J_C: Scalar
    visits: Float[Array, "K S"]
    """Expected number of visits, discounted: ``d^pi / (1 - gamma)``, or the distribution of s_t for each t < T."""
    A_R: Float[Array, "K S A"]
    A_C: Float[Array, "K S A"]

    @property
    def policy(self) -> Float[Array, "S A"]:
        """``pi(a | s)``."""
        return jax.nn.softmax(self.theta)

    @property
    def occupancy(self) -> Float[Array, " S"]:
        """``d^pi``: the visits of all stages, normalised."""
        return jnp.sum(self.visits, axis=0) / jnp.sum(self.visits)


class Comparison(NamedTuple):
    """What really happened between two policies, in the words of the theorems."""

    reward_change: Scalar
    """``J_R' - J_R``."""
    cost_change: Scalar
    """``J_C' - J_C``."""
    reward_surrogate: Scalar
    """Change of the reward surrogate in units of J_R: ``E[A_R] / (1 - gamma)`` over old states and new actions."""
    cost_surrogate: Scalar
    kl: Scalar
    """Mean over old states of ``KL(pi' || pi)``, new against old: the divergence of the paper's theorems."""
    kl_old_new: Scalar
    """Mean over old states of ``KL(pi || pi')``, old against new: that of `pcpo.core.Surrogates`."""
    epsilon_R: Scalar
    """``max_s |E_{a ~ pi'} A_R(s, a)|`` (over all stages)."""
    epsilon_C: Scalar
    half_range_R: Scalar
    """``(max_s - min_s) / 2`` of the same, the largest over all stages."""
    half_range_C: Scalar


def random_cmdp(
    key: Key[Array, ""],
    states: int,
    actions: int,
    alignment: ArrayLike = 0.0,
    sharpness: ArrayLike = 2.0,
) -> CMDP:
    """A CMDP with normal rewards and costs, and transitions that are a softmax of normal numbers.

    Args:
        key: Consumed.
        states: Number of states.
        actions: Number of actions.
        alignment: Correlation between reward and cost; 1 makes them equal.
        sharpness: Scale of the logits of the next state: near 0 all are alike, at 10 nearly every move is certain.
    """
    # One draw for everything: to compile a generator takes far longer than to run it.
    shapes = ((states, actions, states), (states, actions), (states, actions), (states,))
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    parts = jnp.split(jax.random.normal(key, (int(ends[-1]),)), ends[:-1])
    moves, reward, other, start = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    rho = jnp.asarray(alignment, float)
    return CMDP(
        transitions=jax.nn.softmax(jnp.asarray(sharpness, float) * moves),
        reward=reward,
        cost=rho * reward + jnp.sqrt(1.0 - rho**2) * other,
        start=jax.nn.softmax(start),
    )


def discounted(cmdp: CMDP, theta: Logits, gamma: ArrayLike) -> Evaluation:
    r"""Evaluates a policy for the discounted sum over an infinite future.

    .. math:: V = (I - \gamma P_\pi)^{-1} r_\pi, \quad A = r + \gamma T V - V, \quad
        w = (I - \gamma P_\pi')^{-1} \mu = d^\pi / (1 - \gamma), \quad J = w \cdot r_\pi

    PCPO (Yang et al., 2020), section "Preliminaries".
    """
    policy = jax.nn.softmax(theta)
    gamma = jnp.asarray(gamma, theta.dtype)
    step = _state_to_state(cmdp, policy)
    futures = jnp.linalg.inv(jnp.eye(step.shape[0], dtype=theta.dtype) - gamma * step)
    visits = cmdp.start @ futures

    def returns(earned: Float[Array, "S A"]) -> tuple[Scalar, Float[Array, "S A"]]:
        per_state = jnp.sum(policy * earned, axis=-1)
        V = futures @ per_state
        return visits @ per_state, earned + gamma * (cmdp.transitions @ V) - V[:, None]

    J_R, A_R = returns(cmdp.reward)
    J_C, A_C = returns(cmdp.cost)
    return Evaluation(theta, J_R, J_C, visits[None], A_R[None], A_C[None])


def episodic(cmdp: CMDP, theta: Logits, horizon: int) -> Evaluation:
    r"""Evaluates a policy for the undiscounted sum over T steps; the policy is stationary, the advantages are not.

    .. math:: V_T = 0, \quad A_t = r + T V_{t+1} - V_t, \quad V_t = \sum_a \pi (r + T V_{t+1}), \quad
        d_{t+1} = P_\pi' d_t, \quad J = \mu \cdot V_0
    """
    policy = jax.nn.softmax(theta)
    step = _state_to_state(cmdp, policy)

    def returns(earned: Float[Array, "S A"]) -> tuple[Scalar, Float[Array, "T S A"]]:
        def back(V: Float[Array, " S"], _: None) -> tuple[Float[Array, " S"], Float[Array, "S A"]]:
            Q = earned + cmdp.transitions @ V
            now = jnp.sum(policy * Q, axis=-1)
            return now, Q - now[:, None]

        V, A = jax.lax.scan(back, jnp.zeros_like(cmdp.start), None, length=horizon, reverse=True)
        return cmdp.start @ V, A

    def forward(d: Float[Array, " S"], _: None) -> tuple[Float[Array, " S"], Float[Array, " S"]]:
        return step.T @ d, d

    J_R, A_R = returns(cmdp.reward)
    J_C, A_C = returns(cmdp.cost)
    visits = jax.lax.scan(forward, cmdp.start, None, length=horizon)[1]
    return Evaluation(theta, J_R, J_C, visits, A_R, A_C)


def policy_gradients(at: Evaluation) -> tuple[Logits, Logits]:
    r"""The gradients of J_R and J_C: g, and a in the units of b.

    .. math:: \frac{\partial J}{\partial \theta_{sa}} = \sum_k w_k(s)\, \pi(a|s)\, A_k(s, a)
    """
    return at.policy * _weighted(at, at.A_R), at.policy * _weighted(at, at.A_C)


def natural_gradients(at: Evaluation) -> tuple[Logits, Logits]:
    r"""``H^-1 g`` and ``H^-1 a`` in closed form, for the undamped H: mean advantages, times the number of steps.

    .. math:: (H^{-1} \nabla J)_{sa} = \sum_k w_k(s)\, A_k(s, a) / d^\pi(s)

    Nothing in the library needs it: it is an oracle. (H does not see a constant added to the logits of a state;
    this is the solution in which policy-weighted logits sum to zero.)
    """
    occupancy = at.occupancy[:, None]
    return _weighted(at, at.A_R) / occupancy, _weighted(at, at.A_C) / occupancy


def fisher_product(at: Evaluation, v: Logits, damping: ArrayLike = 0.0) -> Logits:
    r"""``H v`` for the Hessian of the mean KL divergence at the policy itself; damping I is added.

    .. math:: (Hv)_{s\cdot} = d^\pi(s)\, \bigl(\operatorname{diag}(\pi_s) - \pi_s \pi_s'\bigr)\, v_{s\cdot}
    """
    policy = at.policy
    centred = v - jnp.sum(policy * v, axis=-1, keepdims=True)
    return at.occupancy[:, None] * policy * centred + damping * v


def surrogates(at: Evaluation, d: Logits) -> Surrogates:
    """Exact changes of both surrogates and the mean ``KL(pi_theta || pi_theta+d)``; all zero at d = 0."""
    change = _policy_change(at.theta, d)
    return Surrogates(
        reward=jnp.sum(change * _weighted(at, at.A_R)),
        costs=jnp.sum(change * _weighted(at, at.A_C))[None],
        kl=mean_kl(at.theta, at.theta + d, at.occupancy),
    )


def local_model(at: Evaluation, limit: ArrayLike, damping: ArrayLike = 1e-8) -> LocalModel:
    """The exact picture of one update: what a rule sees of the problem.

    Args:
        at: The current policy, evaluated.
        limit: h, so that ``b = J_C - h``.
        damping: Added to H times I. H is singular along constants added to the logits of one state; neither gradient
            has such a component, so that a tiny damping is enough.
    """
    g, a = policy_gradients(at)
    return LocalModel(
        g=g,
        a=a[None],
        b=(at.J_C - limit)[None],
        fvp=Partial(_damped_fisher, at, jnp.asarray(damping, at.theta.dtype)),
        evaluate=Partial(surrogates, at),
    )


def compare(old: Evaluation, new: Evaluation) -> Comparison:
    """All quantities of the theorems for two policies of one problem, evaluated in the same way."""
    change = _policy_change(old.theta, new.theta - old.theta)
    expected_R, expected_C = (jnp.sum(change[None] * A, axis=-1) for A in (old.A_R, old.A_C))
    return Comparison(
        reward_change=new.J_R - old.J_R,
        cost_change=new.J_C - old.J_C,
        reward_surrogate=jnp.sum(old.visits * expected_R),
        cost_surrogate=jnp.sum(old.visits * expected_C),
        kl=mean_kl(new.theta, old.theta, old.occupancy),
        kl_old_new=mean_kl(old.theta, new.theta, old.occupancy),
        epsilon_R=jnp.max(jnp.abs(expected_R)),
        epsilon_C=jnp.max(jnp.abs(expected_C)),
        half_range_R=_half_range(expected_R),
        half_range_C=_half_range(expected_C),
    )


def mean_kl(p: Logits, q: Logits, weights: Float[Array, " S"]) -> Scalar:
    r""":math:`\sum_s w(s) \sum_a p(a|s) \log (p(a|s) / q(a|s))` for policies given by their logits."""
    log_p, log_q = jax.nn.log_softmax(p), jax.nn.log_softmax(q)
    return weights @ jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1)


def _damped_fisher(at: Evaluation, damping: Array, v: Logits) -> Logits:
    return fisher_product(at, v, damping)


def _state_to_state(cmdp: CMDP, policy: Float[Array, "S A"]) -> Float[Array, "S S"]:
    return jnp.einsum("sa,sat->st", policy, cmdp.transitions)


def _weighted(at: Evaluation, A: Float[Array, "K S A"]) -> Float[Array, "S A"]:
    """Advantages, summed over stages with the visits as weights."""
    return jnp.sum(at.visits[:, :, None] * A, axis=0)


def _policy_change(theta: Logits, d: Logits) -> Float[Array, "S A"]:
    """``pi' - pi``, by its relative size, so that small steps keep their digits.

    E_pi[A] is zero, so a mean over pi' - pi is a mean over pi', without the rounding error of that zero.
    """
    log_ratio = jax.nn.log_softmax(theta + d) - jax.nn.log_softmax(theta)
    return jax.nn.softmax(theta) * jnp.expm1(log_ratio)


def _half_range(expected: Float[Array, "K S"]) -> Scalar:
    return 0.5 * jnp.max(jnp.max(expected, axis=-1) - jnp.min(expected, axis=-1))
