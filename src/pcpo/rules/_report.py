"""What all rules share: checking their arguments, and turning a step into the step and the `StepInfo` returned."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from pcpo.core import cg
from pcpo.core.line_search import Reason, backtrack
from pcpo.core.types import LocalModel, Status, StepInfo, Surrogates, Tree, most_severe
from pcpo.core.vectors import all_finite


class Step(NamedTuple):
    """A step on vectors and what belongs to it: shortening the step shortens all of it."""

    d: Float[Array, " n"]
    hd: Float[Array, " n"]
    """``H d``."""
    eta: Float[Array, ""]
    multipliers: Float[Array, " m"]

    @property
    def kl(self) -> Float[Array, ""]:
        """The predicted KL divergence, ``d'Hd / 2``."""
        return 0.5 * self.d @ self.hd

    def times(self, factor: Float[Array, ""]) -> "Step":
        """The step, shortened along itself."""
        return Step(*(factor * x for x in self))


def report(
    model: LocalModel,
    unravel: Callable[[Array], Tree],
    step: Step,
    residuals: Float[Array, " k"],
    status: Int[Array, ""],
    extra: dict[str, Array],
    happened: Surrogates | None = None,
) -> tuple[Tree, StepInfo]:
    """The tree to return and all that is said about it; a step that is not finite is replaced by none.

    Args:
        model: The model on vectors, in its own units.
        unravel: From a vector to a tree like g.
        step: The step; its multipliers are reported as they are.
        residuals: Relative residuals of CG.
        status: The most severe `Status` found on the way; NONFINITE is added here, for a model, a step or surrogates
            at the step that are not.
        extra: What only the rule knows.
        happened: The surrogates at the step, where the rule has evaluated them: added to ``extra`` as
            ``reward_change``, ``cost_changes`` and ``kl``, so that nobody need evaluate the same step again.
    """
    finite = all_finite(model.g, model.a, model.b, *step, step.kl, *(() if happened is None else happened))
    status = jnp.maximum(status, most_severe((~finite, Status.NONFINITE)))
    alive = status < Status.CG_FAILED
    step = Step(*(jnp.where(alive, x, 0.0) for x in step))
    if happened is not None:
        reward, costs, kl = (jnp.where(alive, x, 0.0) for x in happened)
        extra = extra | {"reward_change": reward, "cost_changes": costs, "kl": kl}
    info = StepInfo(
        status=status,
        eta=step.eta,
        multipliers=step.multipliers,
        predicted_reward=jnp.where(alive, model.g @ step.d, 0.0),
        predicted_costs=jnp.where(alive, model.a @ step.d, 0.0),
        predicted_kl=step.kl,
        cg_residuals=jnp.where(jnp.isnan(residuals), jnp.inf, residuals),
        extra=extra,
    )
    return unravel(step.d), info


class Searched(NamedTuple):
    """A step after backtracking."""

    step: Step
    """The step at the last trial."""
    refused: Bool[Array, ""]
    """Whether a step that is not zero was refused to the end."""
    extra: dict[str, Array]
    """``backtracks`` and ``line_search``, the `Reason` of the last trial, for `StepInfo.extra`."""
    surrogates: Surrogates | None
    """The surrogates at the step; None without ``evaluate``."""

    def unless(self, given_up: Bool[Array, ""]) -> "Searched":
        """The same, with no step at all where the search is given up."""
        surrogates = (
            None if self.surrogates is None else Surrogates(*(jnp.where(given_up, 0.0, x) for x in self.surrogates))
        )
        return self._replace(step=self.step.times(jnp.where(given_up, 0.0, 1.0)), surrogates=surrogates)


def search(model: LocalModel, step: Step, test: Callable[[Surrogates], Int[Array, ""]]) -> Searched:
    """Backtracks along a step. Without ``evaluate`` there is nothing to search on, and the full step is accepted."""
    surrogates = None
    if model.evaluate is None:
        backtracks, reason = jnp.zeros((), jnp.int32), jnp.asarray(int(Reason.ACCEPTED), jnp.int32)
    else:
        found = backtrack(model.evaluate, step.d, test)
        step, backtracks, reason = step.times(found.scale), found.backtracks, found.reason
        surrogates = found.surrogates
    refused = (reason != Reason.ACCEPTED) & jnp.any(step.d != 0.0)
    return Searched(step, refused, {"backtracks": backtracks, "line_search": reason}, surrogates)


def stateless(num_constraints: int) -> tuple[()]:
    """The state of a rule that remembers nothing."""
    del num_constraints
    return ()


def solver(cg_iterations: int, cg_tolerance: float | None) -> cg.Solver:
    """`conjugate_gradient` with its limits, checked."""
    if not isinstance(cg_iterations, int) or cg_iterations < 1:
        raise ValueError(f"cg_iterations is {cg_iterations!r}, but CG needs an int of at least 1; the paper takes 10")
    if cg_tolerance is not None:
        check_number("cg_tolerance", cg_tolerance, at_least=0.0, advice="pass None for what the dtype can resolve")
    return partial(cg.conjugate_gradient, iterations=cg_iterations, tolerance=cg_tolerance)


def check_number(
    name: str, value: ArrayLike, *, above: float | None = None, at_least: float | None = None, advice: str
) -> None:
    """Raises a ValueError for a number out of range. A tracer has no value yet and passes."""
    if jnp.ndim(value) != 0:
        raise ValueError(f"{name} has shape {jnp.shape(value)}, but one number is needed; vmap over several values")
    if isinstance(value, Tracer):
        return
    number = float(np.asarray(value))
    if above is not None and not number > above:
        raise ValueError(f"{name} is {number:g}, but must be above {above:g}; {advice}")
    if at_least is not None and not number >= at_least:
        raise ValueError(f"{name} is {number:g}, but must be at least {at_least:g}; {advice}")


def check_delta(delta: ArrayLike) -> None:
    """Raises a ValueError for a trust region without an inside."""
    check_number("delta", delta, above=0.0, advice="the paper takes 1e-4, practitioners 0.01")
