"""The pure learner: one batch of episodes in, the next policy and what is to be said of the update out."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pcpo import rules
from pcpo.core.types import Status, StepInfo, Surrogates, UpdateRule
from pcpo.rl import estimators, normalize
from pcpo.rl.audit import estimated_bounds, find_nonfinite, now_and_then, realised, spectrum
from pcpo.rl.confirmation import confirmed
from pcpo.rl.estimators import AnyCritics
from pcpo.rl.networks import Network, Params
from pcpo.rl.normalize import Normalizer
from pcpo.rl.options import Hyper, Options
from pcpo.rl.performance import measure
from pcpo.rl.policy import Policy
from pcpo.rl.rollout import AnyRollout
from pcpo.rl.signals import Signals, advantages, signals_of, targets, unexplained
from pcpo.rl.surrogate import Batch, surrogate

Metrics: TypeAlias = dict[str, Array]
"""What is known of one update, by name: numbers, and one number per constraint."""


class TrainState(NamedTuple):
    """All that one update hands to the next."""

    params: Params
    critics: AnyCritics
    rule: Any
    """State of the update rule."""
    normalizer: Normalizer
    iteration: Int[Array, ""]


class Learner(NamedTuple):
    """``state = init(key, hyper)``, then ``state, metrics = update(state, rollout, hyper, key)``; both pure."""

    init: Callable[[Key[Array, ""], Hyper], TrainState]
    update: Callable[[TrainState, AnyRollout, Hyper, Key[Array, ""]], tuple[TrainState, Metrics]]


def rule_for(options: Options, hyper: Hyper) -> UpdateRule:
    """The update rule of a name. Called inside jit, so that its numbers may be tracers."""
    cg = options.cg_iterations
    match options.algorithm.split("-"):
        case ["pcpo", projection]:
            return rules.pcpo(hyper.delta, projection, options.several, hyper.max_kl, cg_iterations=cg)
        case ["pcpo", projection, "flipped"]:
            return rules.pcpo(
                hyper.delta, projection, options.several, hyper.max_kl, cg_iterations=cg, flipped_sign=True
            )
        case ["cpo"]:
            return rules.cpo(hyper.delta, options.line_search, cg_iterations=cg)
        case ["pdo"]:
            return rules.pdo(hyper.delta, hyper.learning_rate, hyper.multiplier, cg_iterations=cg)
        case ["fpo"]:
            return rules.fpo(hyper.delta, hyper.multiplier, cg_iterations=cg)
        case _:
            return rules.trpo(hyper.delta, cg_iterations=cg)


def make_learner(policy: Policy, critic: Network, observation_size: int, options: Options) -> Learner:
    """The learner for a policy, a critic's network (one output) and the choices made."""

    def init(key: Key[Array, ""], hyper: Hyper) -> TrainState:
        policy_key, critic_key = jax.random.split(key)
        m = hyper.limits.shape[0]
        return TrainState(
            params=policy.init(policy_key),
            critics=estimators.initial(critic, critic_key, 1 + m, observation_size, options.critic),
            rule=rule_for(options, hyper).init(m),
            normalizer=normalize.empty(observation_size),
            iteration=jnp.zeros((), jnp.int32),
        )

    def update(state: TrainState, rollout: AnyRollout, hyper: Hyper, key: Key[Array, ""]) -> tuple[TrainState, Metrics]:
        fisher_key, critic_key, spectrum_key = jax.random.split(key, 3)
        # What policy k did.
        performance = measure(rollout, hyper.gamma, hyper.cost_discounts)
        signals = signals_of(rollout, critic, state.critics, hyper, options)
        by_episode = advantages(signals)
        batch = Batch(
            normalize.seen_by_policy(state.normalizer, rollout.observations, options.normalize_batches),
            rollout.actions,
            rollout.played,
            rollout.as_rows(by_episode),
            rollout.mask.shape[1],
        )
        # The next policy.
        violations = performance.costs - hyper.limits
        model = surrogate(policy, state.params, batch, violations, options.fisher_fraction, hyper.damping, fisher_key)
        step, rule_state, info = rule_for(options, hyper).update(model, state.rule)
        # What the next update needs to know of this batch.
        wanted = targets(signals)
        fitted = estimators.fit(
            critic, state.critics, rollout.observations, rollout.as_rows(wanted), rollout.played, hyper.critic_radius,
            hyper.damping, critic_key, options.critic, rollout.times,
        )  # fmt: skip
        proposed = TrainState(
            params=jax.tree.map(jnp.add, state.params, step),
            critics=fitted,
            rule=rule_state,
            normalizer=_refreshed(state.normalizer, rollout, options),
            iteration=state.iteration,
        )
        # An update with anything in it that is not a number is not made.
        nonfinite = find_nonfinite(rollout, model, info, fitted, signals.values, proposed.normalizer)
        refused = jnp.any(nonfinite)
        kept = jax.tree.map(lambda new, old: jnp.where(refused, old, new), proposed, state)

        def measurements() -> Metrics:
            in_l2 = "l2" in options.algorithm
            shares = confirmed(policy, state.params, rollout, batch, by_episode, model, options.cg_iterations, in_l2)
            return {**spectrum(model, spectrum_key, options.spectrum_products), "confirmed": shares}

        metrics = {
            **performance._asdict(),
            "violations": jnp.maximum(violations, 0.0),
            **_audited(realised(model, step, info), info, performance.costs, by_episode, signals, refused),
            **now_and_then(measurements, state.iteration, options.spectrum_every),
            "entropy": _entropy(policy, state.params, batch),
            "unexplained_variance": unexplained(signals, wanted),
            "nonfinite": nonfinite,
            "refused": refused,
        }
        return kept._replace(iteration=state.iteration + 1), metrics

    return Learner(init, update)


def _refreshed(normalizer: Normalizer, rollout: AnyRollout, options: Options) -> Normalizer:
    if not options.normalize_batches:
        return normalizer
    return normalize.include(normalizer, rollout.observations, rollout.played, options.normalize_batches)


def _audited(
    happened: Surrogates, info: StepInfo, costs: Array, advantages: Array, signals: Signals, refused: Array
) -> Metrics:
    """What the rule said of its step, and what the step did on the batch; zeros for a step that was refused."""
    reward_bound, cost_bounds = estimated_bounds(happened, costs, advantages, signals.weights, signals.discounts)
    numbers = {
        "eta": info.eta,
        "multipliers": info.multipliers,
        "predicted_reward": info.predicted_reward,
        "predicted_costs": info.predicted_costs,
        "predicted_kl": info.predicted_kl,
        "reward_change": happened.reward,
        "cost_changes": happened.costs,
        "kl": happened.kl,
    }
    return {
        "status": jnp.where(refused, int(Status.NONFINITE), info.status).astype(jnp.int32),
        **{name: jnp.where(refused, jnp.zeros_like(x), x) for name, x in numbers.items()},
        "bound_estimate_reward": reward_bound,
        "bound_estimate_costs": cost_bounds,
        "cg_residuals": info.cg_residuals,
        **{f"rule_{name}": x for name, x in info.extra.items() if name not in numbers},
    }


def _entropy(policy: Policy, params: Params, batch: Batch) -> Float[Array, ""]:
    """Mean entropy of the policy over the steps that were played."""
    observations = batch.observations.reshape(-1, batch.observations.shape[-1])
    entropies = policy.distribution.entropy(policy.apply(params, observations))
    mask = batch.mask.reshape(-1)
    return jnp.sum(jnp.where(mask, entropies, 0.0)) / jnp.maximum(jnp.sum(mask), 1).astype(entropies.dtype)
