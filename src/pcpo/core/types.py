"""The nouns of one policy update. Units and signs are decided here and nowhere else.

Letters follow the paper: ``g`` and ``a`` are gradients of the reward and the cost surrogates, ``b`` is the
violation, ``H`` the (damped) Fisher matrix, ``d = theta - theta_k`` the step, ``m`` the number of constraints.

* Reward is maximised: ``g`` points uphill.
* Everything is **per episode**: ``g . d`` is the predicted change of J_R, ``a_i . d`` that of J_C,i, and
  ``b_i = J_C,i - h_i`` is counted in the same episodes. A per-step ``a`` beside a per-episode ``b`` makes the
  projection as many times too long as an episode has steps.
* Advantages behind ``a`` may be centred but never standardised: their scale is the scale of the constraint.
* A step is feasible, to first order, when ``a_i . d + b_i <= 0`` for every i.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int

Tree: TypeAlias = Any
"""Any pytree of floating-point arrays: parameters, a gradient, a step."""


class Status(IntEnum):
    """What happened in an update, mildest first: where several apply, the largest is reported."""

    OK = 0
    """The reward step, untouched: no constraint is active."""
    PROJECTED = 1
    """At least one constraint is active and shaped the step."""
    RECOVERY = 2
    """CPO only: the half-space cannot be reached inside the trust region; the step purely lowers the cost."""
    ZERO_REWARD_GRADIENT = 3
    """g is zero: there is no reward to improve, only constraints to restore."""
    KL_CAPPED = 4
    """The step was shortened along itself until its predicted KL was ``max_kl``."""
    ZERO_COST_GRADIENT_VIOLATED = 5
    """A violated constraint has a zero gradient: no step can lower it to first order, so it was left out."""
    INFEASIBLE_INTERSECTION = 6
    """No step that satisfies all constraints at once was found: empty, or too thin or too far to reach."""
    LINE_SEARCH_FAILED = 7
    """No trial passed. The step is zero, or CPO's shortest trial when it started from a violated constraint."""
    CG_FAILED = 8
    """H showed no positive curvature along a gradient (or an own metric no positive length). The step is zero."""
    NONFINITE = 9
    """The model, the step or the surrogates at the step were not finite. The step is zero."""


class Surrogates(NamedTuple):
    """Surrogates at a step ``d``, as *changes* from ``d = 0``, where all of them are exactly zero."""

    reward: Float[Array, ""]
    """Change of the reward surrogate, per episode."""
    costs: Float[Array, " m"]
    """Changes of the cost surrogates, per episode."""
    kl: Float[Array, ""]
    """Mean KL(pi_theta || pi_theta+d) over the states of the batch."""


class StepInfo(NamedTuple):
    """Everything an update can say about the step it returns (not about one that it discarded)."""

    status: Int[Array, ""]
    """A `Status`."""
    eta: Float[Array, ""]
    """Length of the reward step: the factor before ``H^-1 g``."""
    multipliers: Float[Array, " m"]
    """PCPO: nu in ``d = eta H^-1 g - sum_i nu_i L^-1 a_i``. CPO: nu/lambda. PDO, FPO: the lambda that was used."""
    predicted_reward: Float[Array, ""]
    """``g . d``."""
    predicted_costs: Float[Array, " m"]
    """``a_i . d``."""
    predicted_kl: Float[Array, ""]
    """``d'Hd / 2``."""
    cg_residuals: Float[Array, " k"]
    """``|H x - r| / |r|`` for the k = 1 + m right-hand sides r = g, a_1 .. a_m; zero where nothing had to be solved."""
    extra: dict[str, Array]
    """What only this rule knows; each rule documents its keys."""


@jax.tree_util.register_pytree_with_keys_class
@dataclass(frozen=True, eq=False)
class LocalModel:
    """The linear-quadratic picture of one update: all that a rule is allowed to see of a policy and its data.

    Args:
        g: Gradient of the reward surrogate (ascent), any pytree of floating-point arrays.
        a: The same tree with a leading axis ``m``: gradients of the m cost surrogates. ``m = 0`` is legal.
        b: ``[m]``, violations ``J_C - h``; positive means violated.
        fvp: ``v -> H v`` on trees like g, damping included. Pass a `jax.tree_util.Partial` (as `jax.linearize`
            returns) to move models in and out of ``jit``; a plain function is wrapped.
        evaluate: ``d -> Surrogates`` on the full batch, or None. Its gradient at 0 is g, its Jacobian a.

    Raises:
        ValueError: The shapes contradict each other. The message names the argument and the remedy.

    Example:
        >>> import jax.numpy as jnp
        >>> H = jnp.diag(jnp.array([10.0, 2.0]))
        >>> model = LocalModel(g=jnp.array([5.0, 4.0]), a=jnp.ones((1, 2)), b=jnp.zeros(1), fvp=lambda v: H @ v)
        >>> model.num_constraints
        1
    """

    g: Tree
    a: Tree
    b: Float[Array, " m"]
    fvp: Callable[[Tree], Tree]
    evaluate: Callable[[Tree], Surrogates] | None = None

    def __post_init__(self) -> None:
        """Converts numbers to arrays, wraps plain functions and checks the shapes against each other."""
        for name in ("g", "a"):
            object.__setattr__(self, name, jax.tree.map(jnp.asarray, getattr(self, name)))
        object.__setattr__(self, "b", jnp.asarray(self.b))
        object.__setattr__(self, "fvp", _as_partial(self.fvp, "fvp"))
        if self.evaluate is not None:
            object.__setattr__(self, "evaluate", _as_partial(self.evaluate, "evaluate"))
        _check_shapes(self.g, self.a, self.b)

    @property
    def num_constraints(self) -> int:
        """The number of constraints, m."""
        return self.b.shape[0]

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any], ...], None]:
        """The five fields are the children; nothing is static."""
        names = ("g", "a", "b", "fvp", "evaluate")
        return tuple((jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in names), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any, ...]) -> "LocalModel":
        """Rebuilds without checks: jax puts placeholders where arrays were."""
        model = object.__new__(cls)
        for name, child in zip(("g", "a", "b", "fvp", "evaluate"), children, strict=True):
            object.__setattr__(model, name, child)
        return model


class Init(Protocol):
    """``init(num_constraints) -> state``."""

    def __call__(self, num_constraints: int) -> Any:
        """The state before the first update."""
        ...


class Update(Protocol):
    """``update(model, state) -> (step, state, info)``: pure, jittable, vmappable."""

    def __call__(self, model: LocalModel, state: Any) -> tuple[Tree, Any, StepInfo]:
        """The step to add to the parameters, a tree like ``model.g``."""
        ...


class UpdateRule(NamedTuple):
    """A pair of pure functions, as in optax: ``state = init(m)``, ``step, state, info = update(model, state)``."""

    init: Init
    update: Update


def most_severe(*conditions: tuple[Bool[Array, "..."], Status]) -> Int[Array, ""]:
    """The largest status whose condition holds anywhere, `Status.OK` when none does."""
    codes = [jnp.where(jnp.any(holds), int(status), int(Status.OK)) for holds, status in conditions]
    return jnp.max(jnp.stack(codes)).astype(jnp.int32)


def _as_partial(function: Any, name: str) -> Any:
    if not callable(function):
        raise ValueError(f"{name} is {type(function).__name__}, which cannot be called; pass a function of a tree")
    return function if isinstance(function, Partial) else Partial(function)


def _check_shapes(g: Tree, a: Tree, b: Array) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(g)
    if not leaves:
        raise ValueError("g has no arrays in it; pass the gradient of the reward surrogate as a pytree of arrays")
    if b.ndim != 1:
        raise ValueError(
            f"b has shape {b.shape}, but one violation per constraint is needed, shape [m]; "
            "for a single constraint pass jnp.reshape(b, (1,)) and give a a leading axis of length 1"
        )
    g_structure, a_structure = jax.tree.structure(g), jax.tree.structure(a)
    if a_structure != g_structure:
        raise ValueError(
            f"a has tree structure {a_structure}, g has {g_structure}; a must be the same tree as g with a "
            "leading axis m, as jax.jacrev of the m cost surrogates gives it"
        )
    for (path, g_leaf), a_leaf in zip(leaves, jax.tree.leaves(a), strict=True):
        name = jax.tree_util.keystr(path)
        if not jnp.issubdtype(g_leaf.dtype, jnp.floating) or not jnp.issubdtype(a_leaf.dtype, jnp.floating):
            raise ValueError(
                f"g{name} is {g_leaf.dtype} and a{name} is {a_leaf.dtype}; gradients must be floating point"
            )
        if a_leaf.shape != (b.shape[0], *g_leaf.shape):
            raise ValueError(
                f"a{name} has shape {a_leaf.shape}, but b has {b.shape[0]} constraint(s) and g{name} has shape "
                f"{g_leaf.shape}, so it must be {(b.shape[0], *g_leaf.shape)}; "
                "stack one gradient per constraint along a new first axis (for a single one: a[None])"
            )
