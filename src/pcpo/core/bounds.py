r"""Worst-case bounds on one update: as the paper prints them, and as they hold. One formula per function.

Symbols: :math:`\gamma` the discount, T the horizon of an undiscounted episode; :math:`b^+ = \max(0, J_C - h)`;
:math:`\delta` the KL radius; :math:`d^\pi` the (normalised) distribution of the states of the old policy; ``surrogate``
the realised :math:`E_{s \sim d^\pi, a \sim \pi'} A^\pi(s, a)`; and

.. math:: \epsilon = \max_s \bigl|E_{a \sim \pi'} A^\pi(s, a)\bigr|,

the largest expected advantage of the new policy over **all** states. Half the range over the states,
:math:`\tfrac12 (\max_s - \min_s)`, is never larger and may stand in its place everywhere: differences of state
distributions sum to zero, so that a constant added to the advantages changes nothing.

``kl`` is a realised divergence under the old states, and its direction matters. The paper speaks of
:math:`E_{s \sim d^\pi} KL(\pi' \| \pi)[s]`, new against old. `pcpo.core.Surrogates.kl` is old against new,
:math:`E_{s \sim d^\pi} KL(\pi \| \pi')[s]`; this one adds up along a trajectory, and the two ``path`` penalties, which
are the sharper ones, hold for it alone. The other penalties hold for either.

A maximum over all states cannot be had from samples. These are certificates for tabular problems; what training
reports from a batch is an estimate and is called one. Derivations, counter-examples and numbers: docs/theory/bounds.md.
"""

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

Scalar = Float[Array, ""]
Penalty: TypeAlias = Callable[[ArrayLike, ArrayLike, ArrayLike], Scalar]
"""``(kl, epsilon, gamma) -> penalty``: `divergence_penalty` or `path_penalty`."""


def divergence_penalty(kl: ArrayLike, epsilon: ArrayLike, gamma: ArrayLike) -> Scalar:
    r"""The price of judging a new policy by the states of the old one.

    .. math:: \sqrt{2\,kl}\;\gamma\,\epsilon / (1-\gamma)^2

    CPO (Achiam et al., 2017), Corollary 1, with Pinsker's and Jensen's inequalities; the term that all discounted
    bounds of the paper share. ``kl`` may have either direction.
    """
    return jnp.sqrt(2.0 * jnp.asarray(kl)) * gamma * epsilon / (1.0 - jnp.asarray(gamma)) ** 2


def path_penalty(kl: ArrayLike, epsilon: ArrayLike, gamma: ArrayLike) -> Scalar:
    r"""The same price, sharper by :math:`\sqrt{1-\gamma}`: :math:`\sqrt{2\,kl}\;\gamma\,\epsilon / (1-\gamma)^{3/2}`.

    ``kl`` must be old against new. Divergences of that direction add up along a trajectory (the chain rule), where
    distances add up only as an upper bound, so Pinsker's inequality is applied once to the trajectory instead of
    at every step. There are problems that attain it for every discount. Not in the paper.
    """
    return jnp.sqrt(2.0 * jnp.asarray(kl)) * gamma * epsilon / (1.0 - jnp.asarray(gamma)) ** 1.5


def episodic_penalty(kl: ArrayLike, epsilon: ArrayLike, horizon: int) -> Scalar:
    r"""`divergence_penalty` for an undiscounted sum over a horizon of T steps, which is what the tasks count.

    .. math::
        \Bigl|J' - J - \sum_{t<T} E_{s \sim d_t, a \sim \pi'}[A_t]\Bigr|
        \;\le\; \epsilon \, T \sqrt{\tfrac{(T-1)(2T-1)}{3}} \, \sqrt{\overline{kl}}

    Here :math:`A_t` is the advantage of the undiscounted problem with T - t steps to go,
    :math:`\epsilon = \max_{t,s} |E_{a \sim \pi'} A_t(s, a)|`, and :math:`\overline{kl}` the mean over the T steps of
    the divergence, in either direction. Episodes may end early: states after the end earn nothing.
    """
    return jnp.asarray(epsilon) * horizon * jnp.sqrt((horizon - 1) * (2 * horizon - 1) / 3.0 * jnp.asarray(kl))


def episodic_path_penalty(kl: ArrayLike, epsilon: ArrayLike, horizon: int) -> Scalar:
    r"""`path_penalty` over a horizon: :math:`\epsilon\,(T-1) \sqrt{2\,T\,\overline{kl}}`.

    As `episodic_penalty`, but ``kl`` must be old against new. Equal to it for T = 2 and smaller from there on, by
    :math:`\sqrt{3/T}` for large T; there are problems that attain it for every T.
    """
    return jnp.asarray(epsilon) * (horizon - 1) * jnp.sqrt(2.0 * horizon * jnp.asarray(kl))


def reward_lower_bound(
    surrogate: ArrayLike, kl: ArrayLike, epsilon: ArrayLike, gamma: ArrayLike, penalty: Penalty = divergence_penalty
) -> Scalar:
    r"""A lower bound on J_R' - J_R that holds for any two policies.

    .. math::
        \frac{1}{1-\gamma} E_{s \sim d^\pi, a \sim \pi'}[A_R] - \frac{\sqrt{2\,kl}\,\gamma\,\epsilon_R}{(1-\gamma)^2}

    The first line of the proof of Theorem feasibleCase_appendix, before the surrogate is dropped, at the realised KL.
    """
    return jnp.asarray(surrogate) / (1.0 - jnp.asarray(gamma)) - penalty(kl, epsilon, gamma)


def cost_upper_bound(
    cost: ArrayLike,
    surrogate: ArrayLike,
    kl: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    penalty: Penalty = divergence_penalty,
) -> Scalar:
    r"""An upper bound on J_C' that holds for any two policies, from J_C, the realised surrogate and the realised KL.

    .. math::
        J_C + \frac{1}{1-\gamma} E_{s \sim d^\pi, a \sim \pi'}[A_C]
        + \frac{\sqrt{2\,kl}\,\gamma\,\epsilon_C}{(1-\gamma)^2}

    Eq. feasible_cost_second of the paper. (Eq. feasible_cost_frist prints A_R where A_C is meant.)
    """
    return jnp.asarray(cost) + jnp.asarray(surrogate) / (1.0 - jnp.asarray(gamma)) + penalty(kl, epsilon, gamma)


def alpha_kl(a_w: ArrayLike) -> Scalar:
    r""":math:`\alpha_{KL} = 1 / (2\, a'H^{-1}a)`, given ``a . H^-1 a``. PCPO, Theorem infeasibleCase.

    For b in units of J_C, a must be the gradient of J_C itself (that of :math:`E[A_C]/(1-\gamma)`, or the
    per-episode a of `LocalModel`), not that of the paper's :math:`E[A_C]`.
    """
    return 0.5 / jnp.asarray(a_w)


def kl_after_projection(delta: ArrayLike, violation: ArrayLike, a_w: ArrayLike) -> Scalar:
    r""":math:`\delta + (b^+)^2 \alpha_{KL}`, an upper bound on the *predicted* KL after a KL projection.

    PCPO, Lemma infeasible; with b <= 0 it is delta, Lemma feasible. Holds for the quadratic :math:`\tfrac12 d'Hd` and
    exact :math:`H^{-1}a`: where the projection is active the predicted KL is
    :math:`\delta + (b^2 - (\eta\,a'H^{-1}g)^2)\,\alpha_{KL}`. The realised divergence obeys neither: it may be larger.
    """
    return jnp.asarray(delta) + jnp.maximum(violation, 0.0) ** 2 * alpha_kl(a_w)


def printed_reward_bound(kl: ArrayLike, epsilon: ArrayLike, gamma: ArrayLike) -> Scalar:
    """The lower bound on J_R' - J_R **as printed** in Theorems feasibleCase and infeasibleCase.

    ``kl`` is delta for the former and `kl_after_projection` for the latter. Not a theorem: the proof drops
    E[A_R] as if it were nonnegative, which a projection from b > 0 makes it not. See `reward_lower_bound`.
    """
    return -divergence_penalty(kl, epsilon, gamma)


def printed_cost_bound(h: ArrayLike, kl: ArrayLike, epsilon: ArrayLike, gamma: ArrayLike) -> Scalar:
    """The upper bound on J_C' **as printed** in Theorems feasibleCase and infeasibleCase; ``kl`` as above.

    It presumes that the new policy satisfies the surrogate constraint exactly and that its KL divergence is the
    predicted one; a step computed from a linear-quadratic model does neither exactly. See `cost_upper_bound`.
    """
    return jnp.asarray(h) + divergence_penalty(kl, epsilon, gamma)


def reward_change_kl(step_H_step: ArrayLike, step_step: ArrayLike, eta: ArrayLike, smoothness: ArrayLike) -> Scalar:
    r"""Upper bound on the change of the **minimised** f = -J_R under the KL projection; Eq. bound1.

    .. math:: f(\theta_{k+1}) - f(\theta_k) \le -\tfrac1\eta d'Hd + \tfrac L2 |d|^2

    Theorem PCPO_converge; needs a feasible theta_k (b <= 0) and an L-smooth f.
    """
    return 0.5 * jnp.asarray(smoothness) * step_step - jnp.asarray(step_H_step) / eta


def printed_reward_change_l2(step_step: ArrayLike, eta: ArrayLike, smoothness: ArrayLike) -> Scalar:
    r"""Upper bound on the change of the minimised f under the L2 projection **as printed**; Eq. bound2.

    .. math::
        f(\theta_{k+1}) - f(\theta_k) \le \bigl(\tfrac L2 - \tfrac1\eta\bigr) |d|^2
        \quad \text{if } \sigma_{max}(H) \le 1

    Not a theorem: its proof takes g.d <= g'H^-1 d for granted. Without an active constraint that is right for
    H >= I, the opposite of the premise; with one, a step can raise f although the bound promises a decrease for
    every eta. docs/theory/bounds.md has both examples.
    """
    return (0.5 * jnp.asarray(smoothness) - 1.0 / jnp.asarray(eta)) * step_step
