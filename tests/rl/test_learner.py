"""Whole updates: what equals what to the bit, what is refused and counted, and that nothing is compiled again."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from pcpo.core.types import LocalModel, Status
from pcpo.rl.audit import NONFINITE_NAMES
from pcpo.rl.learner import TrainState, rule_for
from pcpo.rl.options import ALGORITHMS, Options
from pcpo.rl.signals import advantages, signals_of
from pcpo.rl.surrogate import Batch, surrogate
from tests.rl.worlds import Setup, collect, episode_keys, floats_as, hyper, setup, silent_critics, walk

EPISODES = 40
KEY = jax.random.key(7)
WALK = walk(8)


class Ready(NamedTuple):
    """A learner whose update is compiled once for the whole module, and how often Python ran through it."""

    s: Setup
    update: Any
    traced: list[int]

    def batch(self, state: TrainState, seed: int = 0, episodes: int = EPISODES):
        return _play(self.s.policy, state.params, jax.random.key(seed), episodes)


@functools.partial(jax.jit, static_argnums=(0, 3))
def _play(policy, params, key, episodes):
    return collect(WALK, policy, params, episode_keys(key, episodes))


@functools.cache
def ready(algorithm: str = "pcpo-kl") -> Ready:
    """Two constraints, the first of them violated; statistics of two batches, of which none has been seen."""
    options = Options(algorithm, normalize_batches=2, spectrum_every=5)
    s = setup(WALK, m=2, options=options, limits=[3.0, 100.0])
    traced = [0]

    def update(*args):
        traced[0] += 1
        return s.learner.update(*args)

    return Ready(s, jax.jit(update), traced)


def equal(x, y):
    assert jax.tree.structure(x) == jax.tree.structure(y)
    jax.tree.map(np.testing.assert_array_equal, x, y)


def vector(tree) -> np.ndarray:
    return np.asarray(ravel_pytree(tree)[0])


# --- what equals what


def test_pdo_with_multiplier_0_is_trpo_bit_for_bit():
    """Three updates of each in float32, where every other order of operations shows; all but the multiplier itself.

    A multiplier of 1 tells them apart. And max(0, lambda + beta b) follows the step, for each cost.
    """
    trpo, pdo = ready("trpo"), ready("pdo")
    low = jnp.float32
    numbers = floats_as(pdo.s.hyper._replace(learning_rate=jnp.asarray(0.0)), low)
    a, b = floats_as(trpo.s.state, low), floats_as(pdo.s.state, low)
    rollout = None
    for k in range(3):
        rollout = floats_as(trpo.batch(floats_as(a, float), seed=k), low)
        key = jax.random.fold_in(KEY, k)
        priced, also = pdo.update(b._replace(rule=jnp.ones_like(b.rule)), rollout, numbers, key)
        assert np.any(vector(priced.params) != vector(b.params))
        np.testing.assert_array_equal(also["multipliers"], 1.0)
        (a, seen), (b, also) = trpo.update(a, rollout, numbers, key), pdo.update(b, rollout, numbers, key)
        assert jax.tree.leaves(a.params)[0].dtype == low
        equal(a._replace(rule=()), b._replace(rule=()))
        equal(seen, also)
        assert seen["status"] == Status.OK
        np.testing.assert_array_equal(b.rule, 0.0)
        assert np.any(vector(priced.params) != vector(a.params))

    start = b._replace(rule=jnp.array([2.0, 0.3], low))
    state, metrics = pdo.update(start, rollout, numbers._replace(learning_rate=jnp.asarray(0.01, low)), KEY)
    violation = np.asarray(metrics["costs"]) - [3.0, 100.0]
    assert violation[0] > 0.0
    np.testing.assert_allclose(state.rule, [2.0 + 0.01 * violation[0], 0.0], rtol=1e-6)


def test_vmapped_seeds_equal_single_ones():
    """To 1e-6 of each leaf in float64, after ten steps of CG that are not done.

    docs/learner.md has the same at the paper's scale (1e-11), and what float32 does instead.
    """
    r = ready()
    init = jax.jit(jax.vmap(lambda seed: r.s.learner.init(jax.random.key(seed), r.s.hyper)))
    axes = TrainState(0, 0, 0, 0, None)  # pyright: ignore[reportArgumentType]
    states = init(jnp.arange(3))
    one = [jax.tree.map(lambda x, i=i: x[i], states) for i in range(3)]
    rollouts = [r.batch(each, seed) for seed, each in enumerate(one)]
    keys = jax.random.split(KEY, 3)
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *rollouts)
    mapped = jax.jit(jax.vmap(r.s.learner.update, in_axes=(axes, 0, None, 0), out_axes=(axes, 0)))
    together, metrics = mapped(states._replace(iteration=one[0].iteration), stacked, r.s.hyper, keys)

    def close(x, y):
        scale = np.linalg.norm(np.nan_to_num(np.asarray(y, float)))
        np.testing.assert_allclose(x, y, rtol=0, atol=float(1e-6 * scale))

    for i in range(3):
        alone, seen = r.update(one[i], rollouts[i], r.s.hyper, keys[i])
        mine = jax.tree.map(lambda x, i=i: x[i], together._replace(iteration=jnp.ones(3, jnp.int32)))
        jax.tree.map(close, mine, alone)
        jax.tree.map(close, jax.tree.map(lambda x, i=i: x[i], metrics), seen)
        assert np.linalg.norm(vector(alone.params) - vector(one[i].params)) > 1e-2
        assert seen["status"] == Status.PROJECTED


def test_nothing_is_compiled_again_for_other_numbers_and_seeds():
    """Run for PCPO; for FPO, whose multiplier is a number too, tracing alone is counted."""
    others = {"delta": 1e-5, "limits": [0.0, 7.0], "multiplier": 3.0, "gamma": 0.5, "gae_lambda": 0.0, "damping": 0.1,
              "cost_discounts": [0.9, 1.0], "max_kl": 0.1, "critic_radius": 1.0, "learning_rate": 1.0}  # fmt: skip
    run, fpo = ready(), ready("fpo")
    h, state = run.s.hyper, run.s.state
    rollouts = [run.batch(state, seed) for seed in range(2)]
    for name, value in others.items():
        numbers = h._replace(**{name: jnp.asarray(value, float)})
        for seed, rollout in enumerate(rollouts):
            run.update(state, rollout, numbers, jax.random.key(seed))
        fpo.update.eval_shape(fpo.s.state, rollouts[0], numbers, jax.random.key(1))
    assert (run.traced, run.update._cache_size(), fpo.traced) == ([1], 1, [1])


def test_the_rules_get_their_numbers():
    """Every algorithm by its name, on a model whose answers are known: g and a at right angles, H = I."""
    model = LocalModel(jnp.array([3.0, 0.0]), jnp.array([[0.0, 2.0]]), jnp.array([4.0]), lambda v: v)
    numbers = hyper(1, delta=0.5, multiplier=0.75, learning_rate=0.1, max_kl=np.inf)
    half = np.sqrt(0.5)
    expected = {
        "pcpo-kl": [1.0, -2.0], "pcpo-l2": [1.0, -2.0], "cpo": [0.0, -1.0], "trpo": [1.0, 0.0],
        "pcpo-kl-flipped": [1.0, -2.0], "pcpo-l2-flipped": [1.0, -2.0],  # g and a at right angles: no difference
        "pdo": np.array([3.0, -1.5]) / np.hypot(3.0, 1.5), "fpo": np.array([3.0, -1.5]) / np.hypot(3.0, 1.5),
    }  # fmt: skip
    assert expected.keys() == set(ALGORITHMS) - {"pcpo-adaptive"}
    for name, wanted in expected.items():
        rule = rule_for(Options(name, line_search=False), numbers)
        step, state, _ = rule.update(model, rule.init(1))
        np.testing.assert_allclose(step, wanted, atol=1e-12)
        if name == "pdo":
            np.testing.assert_allclose(state, [0.75 + 0.1 * 4.0])
    capped = rule_for(Options("pcpo-kl"), numbers._replace(max_kl=jnp.asarray(0.25)))
    step, _, info = capped.update(model, ())
    np.testing.assert_allclose(step, half * np.array([1.0, -2.0]) / np.sqrt(5.0), atol=1e-12)
    assert info.status == Status.KL_CAPPED
    rule = rule_for(Options("pcpo-adaptive"), numbers)
    assert rule.init(1).updates == 0


# --- the audit


@functools.cache
def small_step() -> tuple[Any, TrainState, Any]:
    """A feasible step so small that a linear picture must be right."""
    s = ready().s
    rollout = ready().batch(s.state)
    numbers = s.hyper._replace(delta=jnp.asarray(1e-12), limits=jnp.array([1e3, 1e3]))
    return rollout, *ready().update(s.state, rollout, numbers, KEY)


def test_for_a_small_step_what_was_predicted_is_what_happened():
    _, _, m = small_step()
    assert m["status"] == Status.OK
    assert float(m["predicted_kl"]) == pytest.approx(1e-12, rel=0.01)  # by as much as CG is not done
    assert float(m["kl"]) == pytest.approx(1e-12, rel=0.3)  # H is measured on a fifth of 200 steps
    for predicted, happened in (("predicted_reward", "reward_change"), ("predicted_costs", "cost_changes")):
        np.testing.assert_allclose(m[happened], m[predicted], rtol=5e-3)
        assert np.all(m[happened] != m[predicted])


def test_the_audit_speaks_of_the_step_that_was_taken():
    """Every number again, from the difference of the parameters, a dense H and the plain formulas."""
    rollout, after, m = small_step()
    s = ready().s
    signals = signals_of(rollout, s.critic, s.state.critics, s.hyper, s.options)
    A = advantages(signals)
    batch = Batch(rollout.observations, rollout.actions, rollout.mask, A)
    flat, unravel = ravel_pytree(s.state.params)
    d = vector(after.params) - np.asarray(flat)

    @jax.jit
    def look(d):
        key = jax.random.split(KEY, 3)[0]
        model = surrogate(s.policy, s.state.params, batch, m["costs"] - 1e3, 0.2, s.hyper.damping, key)
        H = jax.vmap(lambda e: ravel_pytree(model.fvp(unravel(e)))[0])(jnp.eye(d.size))
        a = jnp.stack([ravel_pytree(jax.tree.map(lambda x, i=i: x[i], model.a))[0] for i in range(2)])
        assert model.evaluate is not None
        return ravel_pytree(model.g)[0], a, H, model.evaluate(unravel(d))

    g, a, H, happened = (jax.tree.map(np.asarray, x) for x in look(jnp.asarray(d)))
    near = functools.partial(np.testing.assert_allclose, rtol=1e-5)
    near(m["predicted_reward"], g @ d)
    near(m["predicted_costs"], a @ d)
    near(m["predicted_kl"], 0.5 * d @ H @ d)
    near(m["reward_change"], happened.reward)
    near(m["cost_changes"], happened.costs)
    near(m["kl"], happened.kl, rtol=1e-4)
    values = np.linalg.eigvalsh(H)
    near(m["spectrum_max"], values[-1])
    assert m["spectrum_min"] >= values[0] * (1 - 1e-6)
    near(m["condition"], m["spectrum_max"] / m["spectrum_min"])
    near(m["entropy"], 0.5 * np.log(2 * np.pi * np.e))

    kl, largest = float(m["kl"]), np.abs(np.asarray(A)).max(axis=(1, 2))
    gamma, T = 0.99, 8
    epsilon = np.sqrt(2 * kl) * largest
    near(m["bound_estimate_reward"], m["reward_change"] - np.sqrt(2 * kl) * gamma * epsilon[0] / (1 - gamma) ** 1.5)
    near(m["bound_estimate_costs"], m["costs"] + m["cost_changes"] + epsilon[1:] * (T - 1) * np.sqrt(2 * T * kl))


def test_the_spectrum_is_measured_when_it_is_due():
    r = ready()
    rollout = r.batch(r.s.state)
    for iteration, due in ((0, True), (1, False), (5, True)):
        _, m = r.update(r.s.state._replace(iteration=jnp.asarray(iteration, jnp.int32)), rollout, r.s.hyper, KEY)
        assert np.all(np.isfinite([m["spectrum_min"], m["spectrum_max"], m["condition"]]) == due)


def test_one_update_moves_on():
    r = ready()
    rollout = r.batch(r.s.state)
    state, m = r.update(r.s.state, rollout, r.s.hyper, KEY)
    assert state.iteration == 1
    assert m["env_steps"] == np.sum(rollout.mask) < 8 * EPISODES
    assert m["violations"][0] == max(0.0, m["costs"][0] - 3.0)
    assert m["costs"][1] == pytest.approx(m["episode_length"])  # the second cost is 1 a step
    assert m["violations"][1] == 0.0
    assert np.any(vector(state.critics) != vector(r.s.state.critics))
    again, _ = r.update(r.s.state, rollout, r.s.hyper, KEY)
    equal(state, again)
    other, _ = r.update(r.s.state, rollout, r.s.hyper, jax.random.key(8))
    assert np.any(vector(other.params) != vector(state.params))


# --- refusals


def planted(rollout, name, value):
    """A batch with one number of its second episode replaced, at its first step."""
    if name == "final_observations":
        return rollout._replace(final_observations=rollout.final_observations.at[1, 0].set(value))
    x = getattr(rollout, name)
    return rollout._replace(**{name: x.at[(0, 1, *([0] * (x.ndim - 2)))].set(value)})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("observations", "observation"),
        ("final_observations", "observation"),
        ("rewards", "reward"),
        ("costs", "cost"),
        ("actions", "action"),
    ],
)
def test_what_is_not_a_number_is_refused_and_named(name, called, value):
    check_refused(planted(ready().batch(ready().s.state), name, value), called)


def test_a_gradient_that_overflows_is_refused():
    """An action far outside of what the policy would ever do: finite, but the square of its distance is not."""
    check_refused(planted(ready().batch(ready().s.state), "actions", 1e200), "gradient")


def test_critics_that_overflow_are_refused():
    check_refused(planted(ready().batch(ready().s.state), "rewards", 1e200), "critic")


def test_a_step_whose_surrogates_overflow_is_refused():
    """A limit so far away that the projection leads to where no divergence is a number."""
    numbers = ready().s.hyper._replace(limits=jnp.array([-1e200, 100.0]))
    check_refused(ready().batch(ready().s.state), "surrogate", numbers)


def test_statistics_that_overflow_are_refused():
    """Finite observations whose variance is not: all would be normalised to zero from then on. So are the critics'."""
    rollout = ready().batch(ready().s.state)
    check_refused(planted(rollout, "observations", 1e200), "normalizer", also=("critic",))


def check_refused(rollout, called, numbers=None, also=()):
    r = ready()
    start = r.s.state
    state, m = r.update(start, rollout, numbers or r.s.hyper, KEY)
    names = {name for name, found in zip(NONFINITE_NAMES, np.asarray(m["nonfinite"]), strict=True) if found}
    assert names == {called, *also}
    assert m["refused"]
    assert m["status"] == Status.NONFINITE
    equal(state._replace(iteration=start.iteration), start)
    assert state.iteration == start.iteration + 1
    for name in ("predicted_reward", "predicted_costs", "predicted_kl", "reward_change", "cost_changes", "kl", "eta"):
        np.testing.assert_array_equal(m[name], np.zeros_like(m[name]))
    good, seen = r.update(state, r.batch(state, 1), r.s.hyper, KEY)  # and it goes on
    assert not seen["refused"]
    assert np.any(vector(good.params) != vector(start.params))


def test_a_clean_update_is_not_refused():
    r = ready()
    _, m = r.update(r.s.state, r.batch(r.s.state), r.s.hyper, KEY)
    assert not m["refused"]
    assert not np.any(m["nonfinite"])
    assert m["nonfinite"].shape == (len(NONFINITE_NAMES),)


# --- observations


def test_statistics_are_of_raw_observations_and_frozen_after_their_batches():
    r = ready()
    state, seen = r.s.state, []
    for k in range(4):
        rollout = r.batch(state, k)  # of a policy that does not normalise: only what was observed matters here
        state, _ = r.update(state, rollout, r.s.hyper, jax.random.fold_in(KEY, k))
        seen.append(np.asarray(rollout.observations)[np.asarray(rollout.mask)])
        known = np.concatenate(seen[: min(k + 1, 2)])
        np.testing.assert_allclose(state.normalizer.mean, known.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(state.normalizer.variance, known.var(axis=0), rtol=1e-10, atol=1e-25)
        assert state.normalizer.seen == len(known)
        assert state.normalizer.batches == min(k + 1, 2)


def test_an_update_uses_the_statistics_its_batch_was_played_with():
    """The same step as on a batch that was normalised beforehand, by a learner that has no statistics yet.

    Critics that estimate zero on both sides, since theirs are inputs of another scale.
    """
    r = ready()
    silent = r.s.state._replace(critics=silent_critics(r.s.critic, 2, 3))
    rollout = r.batch(silent)
    known = r.update(silent, r.batch(silent, 5), r.s.hyper, KEY)[0].normalizer
    beforehand = rollout._replace(
        observations=jnp.where(rollout.mask[..., None], known.apply(rollout.observations), 0.0)
    )
    a, _ = r.update(silent._replace(normalizer=known), rollout, r.s.hyper, KEY)
    b, _ = r.update(silent, beforehand, r.s.hyper, KEY)
    c, _ = r.update(silent, rollout, r.s.hyper, KEY)
    np.testing.assert_allclose(vector(a.params), vector(b.params), rtol=1e-6, atol=1e-9)
    assert np.linalg.norm(vector(a.params) - vector(c.params)) > 1e-3
