"""One whole update of a task's program, and its parts, each a program of its own on the same batch.

The sum of the parts is not the whole: one program shares what its parts have in common, and overlaps what it can.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pcpo.core import LocalModel
from pcpo.rl import estimators
from pcpo.rl.learner import TrainState, rule_for
from pcpo.rl.networks import Params
from pcpo.rl.options import Hyper
from pcpo.rl.performance import measure
from pcpo.rl.rollout import Rollout
from pcpo.rl.signals import advantages, signals_of, targets
from pcpo.rl.surrogate import Batch, surrogate
from pcpo.training.collect_device import DeviceProgram, of_one, play_policy
from pcpo.training.config import config_for
from pcpo.training.programs import program_for

Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""


class Update(NamedTuple):
    """A program with a state of it, and the batch that the first seed's policy plays in that state."""

    program: DeviceProgram
    hyper: Hyper
    state: TrainState
    one: TrainState
    """The first seed's state."""
    rollout: Rollout
    batch: Batch
    targets: Float[Array, "k T E"]
    violations: Float[Array, " m"]
    g: Params
    a: Params


def update_of(task: str = "point-circle", warm_up: int = 1, **settings: Any) -> Update:
    """An update of a task as the paper trains it, a few updates after the start."""
    config = config_for(task, **settings)
    program = program_for(config)
    assert isinstance(program, DeviceProgram)
    hyper = Hyper(*(jnp.asarray(x, float) for x in config.hyper()))
    state = program.init(hyper)
    for _ in range(warm_up):
        state, _ = program.update(state, hyper)
    one = of_one(state, 0)

    @jax.jit
    def prepared(one: TrainState, hyper: Hyper) -> tuple[Any, ...]:
        rollout = play(program, one)
        batch, wanted = judged(program, one, rollout, hyper)
        violations = measure(rollout, hyper.gamma, hyper.cost_discounts).costs - hyper.limits
        g, a = gradients(program, one.params, batch, violations, hyper)
        return rollout, batch, wanted, violations, g, a

    return Update(program, hyper, state, one, *prepared(one, hyper))


def play(program: DeviceProgram, one: TrainState) -> Rollout:
    """The episodes of one batch."""
    return play_policy(program, one.params, one.normalizer, jax.random.key(1), program.episodes)


def judged(program: DeviceProgram, one: TrainState, rollout: Rollout, hyper: Hyper) -> tuple[Batch, Any]:
    """Values, advantages and targets."""
    signals = signals_of(rollout, program.critic, one.critics, hyper, program.options)
    return Batch(rollout.observations, rollout.actions, rollout.mask, advantages(signals)), targets(signals)


def gradients(
    program: DeviceProgram, params: Params, batch: Batch, violations: Array, hyper: Hyper
) -> tuple[Params, Params]:
    """g and a. The compiler leaves out the rest of the model."""
    model = _model(program, params, batch, violations, hyper)
    return model.g, model.a


def _model(program: DeviceProgram, params: Params, batch: Batch, violations: Array, hyper: Hyper) -> LocalModel:
    fraction = program.options.fisher_fraction
    return surrogate(program.policy, params, batch, violations, fraction, hyper.damping, jax.random.key(2))


def whole(update: Update) -> Call:
    """All of it, for all seeds, without giving the state's memory away."""
    return update.program.update, (update.state, update.hyper)


def parts(update: Update) -> dict[str, Call]:
    """The parts of an update of one seed."""
    program, hyper, one = update.program, update.hyper, update.one

    def both_gradients(params: Params, batch: Batch, violations: Array) -> tuple[Params, Params]:
        return gradients(program, params, batch, violations, hyper)

    def rule(g: Params, a: Params, params: Params, batch: Batch, violations: Array) -> Any:
        model = _model(program, params, batch, violations, hyper)
        bare = LocalModel(g, a, model.b, model.fvp)
        return rule_for(program.options, hyper).update(bare, one.rule)[0]

    def evaluate(step: Params, params: Params, batch: Batch, violations: Array) -> Any:
        model = _model(program, params, batch, violations, hyper)
        assert model.evaluate is not None
        return model.evaluate(step)

    def fit(state: TrainState, rollout: Rollout, wanted: Array) -> Any:
        return estimators.fit(
            program.critic, state.critics, rollout.observations, wanted, rollout.mask, hyper.critic_radius,
            hyper.damping, jax.random.key(3), program.options.critic,
        )  # fmt: skip

    model = (one.params, update.batch, update.violations)
    return {
        "rollout": (lambda one: play(program, one), (one,)),
        "values, advantages, targets": (
            lambda one, rollout: judged(program, one, rollout, hyper),
            (one, update.rollout),
        ),
        "gradients g and a": (both_gradients, model),
        "Fisher products: conjugate gradient and step": (rule, (update.g, update.a, *model)),
        "surrogates at the step (with the old ones)": (evaluate, (update.g, *model)),
        "critics": (fit, (one, update.rollout, update.targets)),
        "means over episodes": (lambda rollout: measure(rollout, hyper.gamma, hyper.cost_discounts), (update.rollout,)),
    }


def reference_gradient(update: Update) -> Call:
    """One gradient of the plain reward surrogate over the batch, with stored logarithms of probabilities."""
    policy = update.program.policy
    steps, episodes = update.batch.mask.shape
    observations = update.batch.observations.reshape(steps * episodes, -1)
    actions = update.batch.actions.reshape(steps * episodes, *update.batch.actions.shape[2:])
    stored = policy.distribution.log_prob(policy.apply(update.one.params, observations), actions)

    def plain(params: Params, observations: Array, actions: Array, stored: Array, weights: Array) -> Array:
        log_probs = policy.distribution.log_prob(policy.apply(params, observations), actions)
        return jnp.sum(jnp.exp(log_probs - stored) * weights) / episodes

    weights = update.batch.advantages[0].reshape(-1)
    return jax.grad(plain), (update.one.params, observations, actions, stored, weights)


def bare_passes(update: Update) -> Call:
    """One pass forward and one backward through the policy's network alone, over the batch."""
    network = update.program.policy.network
    params = update.one.params["network"]
    observations = update.batch.observations.reshape(-1, update.batch.observations.shape[-1])
    ones = jnp.ones_like(network.apply(params, observations))

    def plain(params: Params, observations: Array, ones: Array) -> Array:
        return jnp.sum(network.apply(params, observations) * ones)

    return jax.grad(plain), (params, observations, ones)
