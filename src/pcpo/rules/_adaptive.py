"""The adaptive projection: KL or L2, whichever guarantees more reward for this update."""

from enum import IntEnum
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pcpo.core.metric import Directions, in_l2
from pcpo.core.spectrum import lanczos
from pcpo.core.types import LocalModel, Status
from pcpo.core.vectors import Scaled, all_finite
from pcpo.rules._report import check_number
from pcpo.rules._two_steps import Several, TwoSteps, two_steps


class Choice(IntEnum):
    """Which projection an update took."""

    KL = 0
    L2 = 1


class Verdict(IntEnum):
    """What can be said of one of the paper's conditions from bounds on the eigenvalues."""

    UNDECIDED = -1
    NO = 0
    YES = 1


class AdaptiveOptions(NamedTuple):
    """Settings of the adaptive projection; the defaults need no attention."""

    refresh_every: int = 10
    """Updates between two measurements of the curvatures. Under vmap every update pays for one."""
    products: int = 8
    """Lanczos products spent on each of the two operators in a measurement."""
    damping: float = 0.0
    """The multiple of the identity contained in ``fvp``: a lower bound of the smallest eigenvalue of H. It only
    sharpens what is reported of the paper's conditions."""


DEFAULT_OPTIONS = AdaptiveOptions()


def check_options(options: AdaptiveOptions) -> None:
    """Raises a ValueError for settings that measure nothing or never."""
    for name in ("refresh_every", "products"):
        value = getattr(options, name)
        if not isinstance(value, int) or value < 1:
            default = getattr(DEFAULT_OPTIONS, name)
            raise ValueError(f"AdaptiveOptions.{name} is {value!r}, but must be a whole number above 0; try {default}")
    check_number("AdaptiveOptions.damping", options.damping, at_least=0.0, advice="it is the damping inside fvp")


class AdaptiveState(NamedTuple):
    """What the adaptive projection remembers between updates."""

    updates: Int[Array, ""]
    smoothness: Float[Array, ""]
    """L: largest curvature of the reward surrogate at d = 0, in either direction (a lower bound, by Lanczos)."""
    ritz_min: Float[Array, ""]
    """Smallest Ritz value of H: an upper bound of its smallest eigenvalue."""
    ritz_max: Float[Array, ""]
    """Largest Ritz value of H: a lower bound of its largest eigenvalue."""


def initial_state(num_constraints: int) -> AdaptiveState:
    """Nothing measured yet; the first update measures."""
    del num_constraints
    zero = jnp.zeros((), float)
    return AdaptiveState(jnp.zeros((), jnp.int32), zero, zero, zero)


def choose(
    flat: LocalModel,
    units: Scaled,
    found: Directions,
    delta: Float[Array, ""],
    several: Several,
    cap: Float[Array, ""],
    state: AdaptiveState,
    options: AdaptiveOptions,
) -> tuple[TwoSteps, AdaptiveState, dict[str, Array]]:
    r"""Takes the projection whose step guarantees more reward, among those whose predicted KL is under ``cap``.

    .. math:: J(d) \ge g \cdot d - \tfrac L2 |d|^2 \quad \text{for a surrogate J with curvature at most L}

    PCPO (Yang et al., 2020), "Future work (1)"; derived in docs/algorithms/adaptive-projection.md. Both steps share
    the reward step, and the L2 one needs no further product with H. If neither KL is under the cap, the smaller KL
    decides; between equal scores (no constraint active), the KL projection stands.
    """
    state = _refreshed(flat, state, options)
    kl, l2 = (
        two_steps(units, found, delta, several),
        two_steps(units, in_l2(found, units.model.a), delta, several),
    )
    L = state.smoothness.astype(flat.b.dtype)
    scores = jnp.stack([flat.g @ c.step.d - 0.5 * L * (c.step.d @ c.step.d) for c in (kl, l2)])
    kls = jnp.stack([c.step.kl for c in (kl, l2)])
    largest = jnp.finfo(scores.dtype).max  # what overflows is reported as the worst number there is, never as NaN
    scores, kls = jnp.nan_to_num(scores, nan=-largest), jnp.nan_to_num(kls, nan=largest)
    usable = jnp.stack([(c.status < Status.CG_FAILED) & all_finite(*c.step, c.step.kl) for c in (kl, l2)])
    under = usable & (kls <= cap)
    by_score, by_kl = jnp.where(under, scores, -jnp.inf), jnp.where(usable, -kls, -jnp.inf)
    merit = jnp.where(jnp.any(under), by_score, by_kl)
    takes_l2 = merit[Choice.L2] > merit[Choice.KL]
    taken = jax.tree.map(partial(jnp.where, takes_l2), l2, kl)
    eta = kl.step.eta
    return (
        taken,
        state,
        {
            "projection": jnp.where(takes_l2, int(Choice.L2), int(Choice.KL)).astype(jnp.int32),
            "score_kl": scores[Choice.KL],
            "score_l2": scores[Choice.L2],
            "predicted_kl_kl": kls[Choice.KL],
            "predicted_kl_l2": kls[Choice.L2],
            "smoothness": L,
            "ritz_min": state.ritz_min,
            "ritz_max": state.ritz_max,
            "damping": jnp.full_like(state.ritz_min, options.damping),
            **paper_conditions(state, eta, options.damping, jnp.any(flat.b > 0.0)),
        },
    )


def paper_conditions(
    state: AdaptiveState, eta: Float[Array, ""], damping: float, violated: Bool[Array, ""]
) -> dict[str, Array]:
    r"""The paper's own conditions for an improvement, each a `Verdict`, from what is known of the eigenvalues.

    .. math:: \text{KL: } \sigma_{min}(H) > L \eta / 2, \qquad
        \text{L2: } \eta < 2 / L \text{ under the premise } \sigma_{max}(H) \le 1

    PCPO (Yang et al., 2020), Theorem PCPO_converge. They speak of feasible points only: with b > 0 both are
    undecided. The smallest eigenvalue is known to lie between the damping and the smallest Ritz value, the largest
    above the largest Ritz value, so that the premise can be refuted and never confirmed. L is taken as measured,
    which is a lower bound: a YES holds for that L, a NO to the first for any larger one too.
    """
    threshold = 0.5 * state.smoothness * eta.astype(state.smoothness.dtype)
    kl = _verdict(yes=damping > threshold, no=state.ritz_min <= threshold)
    l2 = _verdict(yes=threshold < 1.0, no=threshold >= 1.0)
    premise = _verdict(yes=jnp.zeros((), bool), no=state.ritz_max > 1.0)
    undecided = jnp.asarray(int(Verdict.UNDECIDED), jnp.int32)
    return {
        "paper_kl_improves": jnp.where(violated, undecided, kl),
        "paper_l2_improves": jnp.where(violated, undecided, l2),
        "paper_l2_premise": premise,
    }


def _verdict(yes: Bool[Array, ""], no: Bool[Array, ""]) -> Int[Array, ""]:
    return jnp.where(yes, int(Verdict.YES), jnp.where(no, int(Verdict.NO), int(Verdict.UNDECIDED))).astype(jnp.int32)


def _refreshed(flat: LocalModel, state: AdaptiveState, options: AdaptiveOptions) -> AdaptiveState:
    """The state after one more update, with curvatures measured anew where that is due.

    A measurement that is not finite (one NaN in H is enough) changes nothing, and stays due.
    """
    due = state.updates % options.refresh_every == 0
    measured = jax.lax.cond(due, lambda: _measured(flat, state, options.products), lambda: state)
    finite = all_finite(measured.smoothness, measured.ritz_min, measured.ritz_max)
    return jax.tree.map(partial(jnp.where, finite), measured._replace(updates=state.updates + 1), state)


def _measured(flat: LocalModel, state: AdaptiveState, products: int) -> AdaptiveState:
    """Both curvatures from a random start, another one each time, by Lanczos.

    Lanczos spends the same products as a power iteration and is never worse. Hessian-vector products of the reward
    surrogate are taken forward over reverse through ``evaluate``.
    """
    evaluate = flat.evaluate
    assert evaluate is not None  # choose() is only reached with surrogates; see pcpo()
    zero = jnp.zeros_like(flat.g)

    def hessian(v: Float[Array, " n"]) -> Float[Array, " n"]:
        return jax.jvp(jax.grad(lambda d: evaluate(d).reward), (zero,), (v,))[1]

    start = jax.random.normal(jax.random.key(state.updates), flat.g.shape, flat.g.dtype)
    reward, fisher = lanczos(hessian, start, products), lanczos(flat.fvp, start, products)
    measured = (reward.magnitude, fisher.smallest, fisher.largest)
    return AdaptiveState(state.updates, *(x.astype(state.smoothness.dtype) for x in measured))
