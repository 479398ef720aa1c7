"""TRPO: the reward step alone, constraints ignored."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from pcpo.core.types import LocalModel, StepInfo, Tree, UpdateRule
from pcpo.rules._penalty import penalised_step
from pcpo.rules._report import check_delta, solver, stateless


def trpo(delta: ArrayLike, *, cg_iterations: int = 10, cg_tolerance: float | None = None) -> UpdateRule:
    r"""Trust region policy optimisation: the natural step, shortened until the reward surrogate rises within delta.

    .. math:: \max_d \; g \cdot d \;\; \text{s.t.} \;\; \tfrac12 d'Hd \le \delta

    TRPO (Schulman et al., 2015); the paper's baseline (4), "constraint ignored". Costs are predicted and reported,
    never used. Without ``evaluate`` the full step is taken.

    Differences from the CPO code: a KL divergence of exactly delta is accepted there in the search and refused
    after it; here it is accepted.

    Args:
        delta: KL radius.
        cg_iterations: Upper limit of CG steps.
        cg_tolerance: Relative residual at which CG stops; default by dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from pcpo.core import LocalModel
        >>> model = LocalModel(g=jnp.array([3.0, 4.0]), a=jnp.zeros((0, 2)), b=jnp.zeros(0), fvp=lambda v: v)
        >>> rule = trpo(delta=0.5)
        >>> step, _, info = rule.update(model, rule.init(0))
        >>> [round(float(x), 4) for x in step], round(float(info.predicted_kl), 4)
        ([0.6, 0.8], 0.5)
    """
    check_delta(delta)
    solve = solver(cg_iterations, cg_tolerance)

    def update(model: LocalModel, state: tuple[()]) -> tuple[Tree, tuple[()], StepInfo]:
        step, info = penalised_step(model, jnp.zeros_like(model.b), delta, solve)
        return step, state, info

    return UpdateRule(stateless, update)
