"""What an update predicted, what it did on the batch it was computed from, and whether its numbers were numbers."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from pcpo.core.bounds import episodic_path_penalty, path_penalty
from pcpo.core.line_search import Reason
from pcpo.core.spectrum import lanczos
from pcpo.core.types import LocalModel, Status, StepInfo, Surrogates, Tree
from pcpo.core.vectors import all_finite, as_vectors, ratio
from pcpo.rl.normalize import Normalizer
from pcpo.rl.rollout import AnyRollout

NONFINITE_NAMES = (
    "observation", "reward", "cost", "action", "gradient", "curvature", "critic", "surrogate", "normalizer"
)  # fmt: skip
"""What can turn out not to be a number; the order of the metric ``nonfinite``."""


def find_nonfinite(
    rollout: AnyRollout,
    model: LocalModel,
    info: StepInfo,
    critics: Tree,
    values: Float[Array, "k T E"],
    normalizer: Normalizer,
) -> Bool[Array, " q"]:
    """Which of the quantities in `NONFINITE_NAMES` are not finite, each only where what it is made of still was.

    So a single infinite reward is named as the reward, not as everything that came of it. Critics and normalizer are
    those that the batch would lead to. A line search that ended at numbers which were none has found no step, but what
    it saw is named all the same.
    """
    played = _played_nonfinite(rollout)
    sound = ~jnp.any(played)
    statistics = sound & ~all_finite(*normalizer[:3])
    critic = sound & ~all_finite(values, *jax.tree.leaves(critics))
    sound &= ~critic & ~statistics
    gradient = sound & ~all_finite(*jax.tree.leaves((model.g, model.a)), model.b)
    curvature = sound & ~gradient & ~all_finite(info.cg_residuals)
    searched = info.extra.get("line_search", jnp.zeros((), jnp.int32)) == Reason.NOT_FINITE
    surrogate = sound & ~gradient & ~curvature & (searched | (info.status == Status.NONFINITE))
    return jnp.stack([*played, gradient, curvature, critic, surrogate, statistics])


def _played_nonfinite(rollout: AnyRollout) -> Bool[Array, " 4"]:
    """Whether an observation, reward, cost or action of a batch was the first thing in its episode to be wrong.

    A step goes observation, action, then reward and cost, and the next observation comes after them.
    """
    horizon = rollout.mask.shape[0]

    def wrong(x: Array) -> Bool[Array, "..."]:
        return ~jnp.all(jnp.isfinite(x), axis=tuple(range(2, x.ndim)))

    def first(wrong: Bool[Array, "T E"]) -> Int[Array, " E"]:
        steps = jnp.arange(horizon, dtype=jnp.int32)[:, None]
        return jnp.min(jnp.where(wrong, steps, horizon + 1), axis=0)

    after_the_last = jnp.where(jnp.all(jnp.isfinite(rollout.final_observations), axis=-1), horizon + 1, horizon)
    observation, action = (first(rollout.as_episodes(wrong(x))) for x in (rollout.observations, rollout.actions))
    observation = jnp.minimum(observation, after_the_last)
    reward, cost = (first(wrong(x)) for x in (rollout.rewards, rollout.costs))
    sources = (
        (observation <= horizon) & (observation <= action),
        (reward < observation) & (reward < action),
        (cost < observation) & (cost < action),
        action < observation,
    )
    return jnp.stack([jnp.any(source) for source in sources])


def realised(model: LocalModel, step: Tree, info: StepInfo) -> Surrogates:
    """The surrogates at the step that is taken; from the rule's own look at them where it had one."""
    if "kl" in info.extra:
        return Surrogates(info.extra["reward_change"], info.extra["cost_changes"], info.extra["kl"])
    assert model.evaluate is not None  # surrogate() always gives one
    return model.evaluate(step)


def estimated_bounds(
    happened: Surrogates,
    costs: Float[Array, " m"],
    advantages: Float[Array, "k T E"],
    weights: Float[Array, "k T"],
    discounts: Float[Array, " k"],
) -> tuple[Float[Array, ""], Float[Array, " m"]]:
    r"""What the worst-case bounds of `pcpo.core.bounds` come to with what a batch can tell: **estimates, not bounds**.

    .. math:: \hat\epsilon = \sqrt{2\,\overline{kl}}\; \max_{\text{batch}} |\hat A|

    stands in for :math:`\max_s |E_{a\sim\pi'} A(s,a)|` (Pinsker's inequality, with the mean divergence for that of the
    worst state and the largest advantage seen for the largest there is). The advantages come with the weights that
    they have in the gradient, and without them here. Returns the estimated lower bound of the change of J_R and the
    estimated upper bounds of the new J_C.
    """
    horizon = advantages.shape[1]
    largest = jnp.max(ratio(jnp.max(jnp.abs(advantages), axis=2), weights), axis=1)
    epsilon = jnp.sqrt(2.0 * happened.kl) * largest

    def penalty(epsilon: Array, discount: Array) -> Array:
        below_one = jnp.where(discount < 1.0, discount, 0.0)
        discounted = path_penalty(happened.kl, epsilon, below_one)
        return jnp.where(discount < 1.0, discounted, episodic_path_penalty(happened.kl, epsilon, horizon))

    penalties = jax.vmap(penalty)(epsilon, discounts)
    return happened.reward - penalties[0], costs + happened.costs + penalties[1:]


def spectrum(model: LocalModel, key: Key[Array, ""], products: int) -> dict[str, Array]:
    """The ends of H's spectrum by Lanczos."""
    flat, _ = as_vectors(model)
    found = lanczos(flat.fvp, jax.random.normal(key, flat.g.shape, flat.g.dtype), products)
    return {"spectrum_min": found.smallest, "spectrum_max": found.largest, "condition": found.condition}


def now_and_then(look: Callable[[], dict[str, Array]], iteration: Int[Array, ""], every: int) -> dict[str, Array]:
    """What is measured in every so many updates only, 0 for none; not-a-number in the others."""
    shapes = jax.eval_shape(look)

    def skip() -> dict[str, Array]:
        return jax.tree.map(lambda x: jnp.full(x.shape, jnp.nan, x.dtype), shapes)

    return skip() if every == 0 else jax.lax.cond(iteration % every == 0, look, skip)
