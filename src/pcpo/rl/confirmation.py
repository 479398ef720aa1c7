"""How much of what one half of a batch promises the other half confirms."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pcpo.core.cg import conjugate_gradient
from pcpo.core.rows import over_rows
from pcpo.core.types import LocalModel
from pcpo.core.vectors import as_vectors, ratio, unit
from pcpo.rl.networks import Params
from pcpo.rl.policy import Policy
from pcpo.rl.rollout import AnyRollout
from pcpo.rl.surrogate import Batch, log_probs_of, rows_of


def confirmed(
    policy: Policy,
    params: Params,
    rollout: AnyRollout,
    batch: Batch,
    advantages: Float[Array, "k T E"],
    model: LocalModel,
    cg_iterations: int,
    in_l2: bool = False,
) -> Float[Array, " k"]:
    r"""The part of a promise that is no accident of the sample: of the reward's step, and of each correction.

    With gradients :math:`\hat a_1, \hat a_2` from every other episode, the direction that the first half takes changes
    the cost by this part of what it promises, going by the second half, which it has never seen:

    .. math:: \frac{\hat a_2' H^{-1} \hat a_1}{\hat a_1' H^{-1} \hat a_1}

    1 where the gradient is known, about 0 where it is noise: then an update does on its own batch what it promises,
    and on the next one nothing. Below 0 is chance. The whole batch does better than half of it: where noise is all
    that is wrong, :math:`2c / (1 + c)` of its promise is to be expected on fresh episodes.

    Args:
        policy: The policy.
        params: theta_k.
        rollout: The episodes, at least two; one alone confirms nothing, and gives not-a-number.
        batch: The same, as the surrogates see them.
        advantages: Of reward and costs, by episodes; those of the batch.
        model: The picture of the update.
        cg_iterations: As many as the rule makes.
        in_l2: Whether corrections go along :math:`\hat a_1` itself, as those of the L2 projection, and not along
            :math:`H^{-1}\hat a_1`.
    """
    episodes = advantages.shape[-1]
    if episodes < 2:
        return jnp.full(advantages.shape[0], jnp.nan, advantages.dtype)
    signs = jnp.where(jnp.arange(episodes) % 2 == 0, 1.0, -1.0).astype(advantages.dtype)
    weights = rollout.as_rows(advantages * signs[None, None, :]).reshape(advantages.shape[0], -1) / episodes
    log_probs = log_probs_of(policy, rows_of(batch.observations), rows_of(batch.actions))
    _, pullback, _ = jax.vjp(log_probs, params, has_aux=True)
    (differences,) = over_rows(pullback)(weights)
    g, a = (jax.tree.map(lambda x, part=part: x[part], differences) for part in (0, slice(1, None)))
    split = LocalModel(g=g, a=a, b=model.b, fvp=model.fvp)
    (whole, fvp), (difference, _) = _rows(model), _rows(split)
    # Of the first half (1 + episodes) // 2 episodes, of the second episodes // 2; both as means over their own.
    first, second = whole + difference, (whole - difference) * (((1 + episodes) // 2) / (episodes // 2))
    towards, _ = unit(first)
    solved = conjugate_gradient(fvp, towards[:1] if in_l2 else towards, cg_iterations).x
    w = jnp.concatenate([solved, towards[1:]]) if in_l2 else solved
    return ratio(jnp.sum(second * w, axis=-1), jnp.sum(first * w, axis=-1))


def _rows(model: LocalModel) -> tuple[Float[Array, "k n"], Callable[[Array], Array]]:
    """All gradients of a model as vectors, and its Fisher product on vectors."""
    flat, _ = as_vectors(model)
    return jnp.concatenate([flat.g[None], flat.a]), flat.fvp
