"""Backtracking line search that says why it ended as it did."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pcpo.core.types import Surrogates


class Reason(IntEnum):
    """Why a trial was refused, or that it was not. Where several apply, the largest is reported."""

    ACCEPTED = 0
    """All conditions hold."""
    REWARD_NOT_IMPROVED = 1
    """The objective did not rise."""
    COST_TOO_HIGH = 2
    """A cost surrogate rose by more than is left under the limit (or rose at all above it)."""
    KL_TOO_LARGE = 3
    """The KL divergence is beyond delta, by more than rounding and CG explain."""
    NOT_FINITE = 4
    """A surrogate was not a finite number."""


class LineSearch(NamedTuple):
    """The last trial, accepted or not."""

    scale: Float[Array, ""]
    """``ratio ** backtracks``, the factor on the step."""
    backtracks: Int[Array, ""]
    """How often the step was shortened."""
    reason: Int[Array, ""]
    """A `Reason`: ACCEPTED, or why the last trial was refused."""
    surrogates: Surrogates
    """The surrogates at the last trial."""


def judge(
    trial: Surrogates,
    objective: Float[Array, ""],
    delta: Float[Array, ""],
    cost_room: Float[Array, " m"],
    needs_improvement: Bool[Array, ""] | bool = True,
) -> Int[Array, ""]:
    """The `Reason` for one trial: objective above zero, costs within ``cost_room``, KL within delta, all finite.

    Args:
        trial: Surrogates at the trial, as changes.
        objective: Change of what is to be improved: the reward, or for PDO and FPO reward - lambda . costs.
        delta: Largest KL divergence.
        cost_room: By how much each cost may rise; infinite for rules without a cost test.
        needs_improvement: False switches the first condition off (CPO above its limit).
    """
    # A natural step has a KL divergence of delta to second order, so that rounding and what CG left over (1e-12 in
    # float64, 1e-6 in float32) would often decide. The square root of eps is well above both and below any meaning.
    radius = delta * (1.0 + jnp.sqrt(jnp.finfo(trial.kl.dtype).eps))
    finite = jnp.isfinite(trial.reward) & jnp.all(jnp.isfinite(trial.costs)) & jnp.isfinite(trial.kl)
    checks = (
        (needs_improvement & ~(objective > 0.0), Reason.REWARD_NOT_IMPROVED),
        (jnp.any(~(trial.costs <= cost_room)), Reason.COST_TOO_HIGH),
        (~(trial.kl <= radius), Reason.KL_TOO_LARGE),
        (~finite, Reason.NOT_FINITE),
    )
    codes = [jnp.where(refused, int(reason), int(Reason.ACCEPTED)) for refused, reason in checks]
    return jnp.max(jnp.stack(codes)).astype(jnp.int32)


def backtrack(
    evaluate: Callable[[Array], Surrogates],
    step: Float[Array, " n"],
    test: Callable[[Surrogates], Int[Array, ""]],
    ratio: float = 0.8,
    max_trials: int = 15,
) -> LineSearch:
    r"""Tries :math:`\rho^k d` for k = 0, 1, ... until ``test`` accepts the surrogates there or trials run out.

    TRPO (Schulman et al., 2015), appendix C; with CPO's ratio of 0.8 and 15 trials. What to do when the last
    trial is refused is the rule's decision.
    """

    def trial(backtracks: Int[Array, ""]) -> LineSearch:
        scale = jnp.asarray(ratio, step.dtype) ** backtracks.astype(step.dtype)
        surrogates = evaluate(scale * step)
        return LineSearch(scale, backtracks, test(surrogates), surrogates)

    def go_on(last: LineSearch) -> Array:
        return (last.reason != Reason.ACCEPTED) & (last.backtracks + 1 < max_trials)

    first = trial(jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(go_on, lambda last: trial(last.backtracks + 1), first)
