"""The adaptive projection: what it measures, what it chooses and what it says of the paper's conditions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.tree_util import Partial

from pcpo import rules
from pcpo.core import LocalModel, Status, Surrogates
from pcpo.core.bounds import printed_reward_change_l2, reward_change_kl
from pcpo.rules import AdaptiveOptions, AdaptiveState, Choice, Verdict
from tests.problems import as_arrays, multiply, random_problem

DELTA = 0.02
EVERYTHING = AdaptiveOptions(products=40)


def curved(H: Array, C: Array, g: Array, a: Array, d: Array) -> Surrogates:
    """Surrogates whose reward has the Hessian C."""
    return Surrogates(g @ d + 0.5 * d @ (C @ d), a @ d, 0.5 * d @ (H @ d))


def curved_model(H, C, g, a, b):
    return LocalModel(g, a, b, Partial(multiply, H), Partial(curved, H, C, g, a))


@jax.jit
def both(dense, C, max_kl):
    """The KL, the L2 and the adaptive step on the same model."""
    H, g, a, b = dense
    model = curved_model(H, C, g, a, b)
    made = {}
    for name in ("kl", "l2", "adaptive"):
        rule = rules.pcpo(DELTA, name, max_kl=max_kl, cg_iterations=30, adaptive=EVERYTHING)
        step, _, info = rule.update(model, rule.init(b.shape[0]))
        made[name] = step, info
    return made


def curvature(n, largest, seed=0):
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    return jnp.asarray((basis * np.linspace(-largest, 0.5 * largest, n)) @ basis.T)


@pytest.mark.parametrize("m", [1, 2])
def test_it_takes_the_step_with_the_larger_guaranteed_reward(m):
    choices = []
    for seed in range(60):
        dense = as_arrays(random_problem(seed, n=8, m=m))
        H, g = dense[0], dense[1]
        L = float(np.exp(np.random.default_rng(seed).uniform(np.log(0.1), np.log(100.0))))
        made = both(dense, curvature(8, L, seed), jnp.inf)
        step, info = made["adaptive"]
        scores = [float(g @ made[name][0] - 0.5 * L * made[name][0] @ made[name][0]) for name in ("kl", "l2")]
        np.testing.assert_allclose(info.extra["smoothness"], L, rtol=1e-6)
        np.testing.assert_allclose([info.extra["score_kl"], info.extra["score_l2"]], scores, rtol=1e-5, atol=1e-9)
        for name in ("kl", "l2"):
            d = made[name][0]
            np.testing.assert_allclose(info.extra[f"predicted_kl_{name}"], 0.5 * d @ H @ d, rtol=1e-6)
        best = Choice.L2 if scores[1] > scores[0] else Choice.KL
        if abs(scores[0] - scores[1]) > 1e-9:
            assert info.extra["projection"] == best
        taken = made["l2" if info.extra["projection"] == Choice.L2 else "kl"][0]
        np.testing.assert_allclose(step, taken, rtol=1e-9, atol=1e-12)
        if made["kl"][1].status == Status.PROJECTED:
            choices.append(int(info.extra["projection"]))
    assert 5 < sum(choices) < len(choices) - 5, "one projection always won: the choice is not tested"


def test_without_an_active_constraint_both_are_one_and_kl_stands():
    p = random_problem(0, n=8, m=1)
    H, g, a, _ = as_arrays(p)
    made = both((H, g, a, jnp.array([-100.0])), curvature(8, 1.0), jnp.inf)
    np.testing.assert_allclose(made["kl"][0], made["l2"][0], rtol=1e-12)
    assert made["adaptive"][1].extra["projection"] == Choice.KL
    assert made["adaptive"][1].status == Status.OK


def test_the_cap_excludes_a_step_and_if_both_are_over_it_the_smaller_decides():
    """L = 0 always prefers the L2 step here; its KL is larger."""
    dense = as_arrays(random_problem(3, n=8, m=1))
    dense = (*dense[:3], jnp.array([2.0]))
    flat = jnp.zeros((8, 8))
    free = both(dense, flat, jnp.inf)["adaptive"][1].extra
    assert free["projection"] == Choice.L2
    low, high = float(free["predicted_kl_kl"]), float(free["predicted_kl_l2"])
    assert low < high
    between = both(dense, flat, 0.5 * (low + high))["adaptive"][1]
    assert between.extra["projection"] == Choice.KL
    assert between.status == Status.PROJECTED
    under_both = both(dense, flat, 0.5 * low)["adaptive"][1]
    assert under_both.extra["projection"] == Choice.KL
    assert under_both.status == Status.KL_CAPPED


def test_the_l2_candidate_costs_no_product():
    """Products with H, counted vector by vector while the program runs: as many as for the KL projection."""
    count = []
    H, g, a, b = as_arrays(random_problem(4, n=8, m=2))

    def fvp(v):
        jax.debug.callback(lambda: count.append(1))
        return H @ v

    def products(projection):
        count.clear()
        model = LocalModel(g, a, b, fvp, Partial(curved, H, jnp.zeros((8, 8)), g, a))
        options = AdaptiveOptions(refresh_every=10)
        rule = rules.pcpo(DELTA, projection, cg_iterations=5, adaptive=options)
        state = rule.init(2)
        if projection == "adaptive":
            state = state._replace(updates=jnp.ones((), jnp.int32))  # not due for a refresh
        jax.block_until_ready(rule.update(model, state)[0])
        jax.effects_barrier()
        return len(count)

    assert products("adaptive") == products("kl") == 5 * (1 + 2)  # five steps of CG for g and both a_i
    assert products("l2") == 5 + 1  # five for g, and H d


def test_curvatures_are_refreshed_when_due_and_kept_between():
    H, g, a, b = as_arrays(random_problem(5, n=8, m=1))
    rule = rules.pcpo(DELTA, "adaptive", adaptive=AdaptiveOptions(refresh_every=3, products=20))
    update = jax.jit(lambda C, state: rule.update(curved_model(H, C, g, a, b), state)[1:])
    state, infos = rule.init(1), []
    for k in range(7):
        state, info = update(curvature(8, 1.0 + k), state)
        infos.append(info.extra)
    assert [round(float(extra["smoothness"]), 6) for extra in infos] == [1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 7.0]
    assert state.updates == 7
    values = np.linalg.eigvalsh(H)
    np.testing.assert_allclose([infos[-1]["ritz_min"], infos[-1]["ritz_max"]], values[[0, -1]], rtol=1e-6)


def test_one_broken_batch_does_not_blind_the_rule_until_the_next_measurement():
    """A NaN in H reached the state once, and stayed there for ten updates."""
    H, g, a, b = as_arrays(random_problem(5, n=8, m=1))
    rule = rules.pcpo(DELTA, "adaptive", adaptive=AdaptiveOptions(refresh_every=3, products=20))
    update = jax.jit(lambda H, state: rule.update(curved_model(H, curvature(8, 2.0), g, a, b), state))
    _, state, info = update(H.at[0, 0].set(jnp.nan), rule.init(1))
    assert info.status == Status.NONFINITE
    assert state == rule.init(1)  # nothing learnt, and still due
    _, state, info = update(H, state)
    assert state.updates == 1
    np.testing.assert_allclose(info.extra["smoothness"], 2.0, rtol=1e-6)
    step, later, info = update(H.at[0, 0].set(jnp.nan), state)  # not due: H is not measured, and the step is refused
    assert info.status == Status.NONFINITE
    assert not np.any(step)
    np.testing.assert_allclose(later.smoothness, 2.0, rtol=1e-6)


def paper(smoothness, ritz_min, ritz_max, eta, damping=0.0, violated=False):
    from pcpo.rules._adaptive import paper_conditions

    state = AdaptiveState(jnp.ones((), jnp.int32), *(jnp.asarray(x) for x in (smoothness, ritz_min, ritz_max)))
    found = paper_conditions(state, jnp.asarray(eta), damping, jnp.asarray(violated))
    return [Verdict(int(found[key])).name for key in ("paper_kl_improves", "paper_l2_improves", "paper_l2_premise")]


def test_the_papers_conditions_are_judged_from_what_is_known():
    # L eta / 2 = 1: sigma_min is between the damping and the Ritz minimum.
    assert paper(2.0, 0.5, 20.0, 1.0) == ["NO", "NO", "NO"]
    assert paper(2.0, 5.0, 20.0, 1.0) == ["UNDECIDED", "NO", "NO"]
    assert paper(2.0, 5.0, 20.0, 1.0, damping=1.5) == ["YES", "NO", "NO"]
    assert paper(1.0, 0.2, 0.9, 1.0) == ["NO", "YES", "UNDECIDED"]
    assert paper(1.0, 0.2, 0.9, 1.0, violated=True) == ["UNDECIDED", "UNDECIDED", "UNDECIDED"]


def test_it_needs_surrogates_and_says_so():
    H, g, a, b = as_arrays(random_problem(6, n=4, m=1))
    rule = rules.pcpo(DELTA, "adaptive")
    with pytest.raises(ValueError, match=r"evaluate.*projection='kl' or 'l2'"):
        rule.update(LocalModel(g, a, b, Partial(multiply, H)), rule.init(1))


def test_a_candidate_that_fails_leaves_the_other():
    """H has no curvature along a: the KL projection cannot be solved, the L2 projection can."""
    H = jnp.diag(jnp.array([1.0, 2.0, 0.0]))
    g, a = jnp.array([1.0, 1.0, 0.0]), jnp.array([[0.0, 0.0, 1.0]])
    model = curved_model(H, jnp.zeros((3, 3)), g, a, jnp.array([0.5]))
    rule = rules.pcpo(DELTA, "adaptive", cg_iterations=5)
    step, _, info = rule.update(model, rule.init(1))
    assert info.extra["projection"] == Choice.L2
    assert info.status == Status.PROJECTED
    np.testing.assert_allclose(step[2], -0.5)


def test_the_counter_example_to_the_l2_half_on_its_page():
    """f = x1 + x2 is linear, sigma_max(H) = 1 and b = 0, and still the L2 step raises f; numbers worked on the page."""
    H, g, a = jnp.diag(jnp.array([1.0, 0.25])), jnp.array([1.0, 1.0]), -jnp.array([[1.0, 2.0]])
    model = LocalModel(-g, a, jnp.zeros(1), Partial(multiply, H))  # rules maximise: the reward is -f
    eta = np.sqrt(2 * DELTA / 5.0)
    changes = {}
    for name, expected in (("l2", [0.8, -0.4]), ("kl", [-8 / 17, 4 / 17])):
        rule = rules.pcpo(DELTA, name)
        step, _, info = rule.update(model, rule.init(1))
        np.testing.assert_allclose(step, eta * np.array(expected), rtol=1e-12)
        np.testing.assert_allclose(info.eta, eta, rtol=1e-12)
        changes[name] = float(g @ step), float(step @ step), float(step @ H @ step)
    rise, length, _ = changes["l2"]
    promised = float(printed_reward_change_l2(length, eta, smoothness=0.0))
    np.testing.assert_allclose([rise, promised], [0.4 * eta, -0.8 * eta], rtol=1e-12)
    assert rise > 0.0 > promised
    fall, length, kl_length = changes["kl"]
    assert fall <= float(reward_change_kl(kl_length, length, eta, smoothness=0.0)) + 1e-15
