"""Many updates, and what the bounds said of each: raw results, failures and looseness."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pcpo.core import bounds
from pcpo.experiments.bounds.updates import (
    Case,
    Judged,
    Scalar,
    Update,
    aligned_case,
    draw_case,
    evaluate,
    judge,
    judge_episodic,
    scales,
    update,
)

DELTAS = tuple(float(x) for x in 10.0 ** np.arange(-6.0, 0.1, 0.5))
"""KL radii of the study, two for each decade."""
STATEMENTS = ("feasible_reward", "feasible_cost", "infeasible_reward", "infeasible_cost")
"""The printed bounds: two of Theorem feasibleCase, two of Theorem infeasibleCase."""


class Study(NamedTuple):
    """Raw results as numpy arrays: cases along the first axis N, `DELTAS` along the second."""

    gamma: np.ndarray
    beta: np.ndarray
    cosine: np.ndarray
    discounted: Update
    judged: Judged
    episodic: Update
    episodic_judged: Judged
    counter_example: dict[str, np.ndarray]


@partial(jax.jit, static_argnums=(1, 2))
def _draw(keys: Key[Array, " N"], states: int, actions: int) -> Case:
    """A case for every key."""
    return jax.vmap(partial(draw_case, states=states, actions=actions))(keys)


@partial(jax.jit, static_argnums=1)
def _take(cases: Case, horizon: int) -> tuple[Update, Judged, Update, Judged]:
    """Takes and judges the step of every case at every delta, discounted and over a horizon."""

    def one(case: Case, delta: Scalar) -> tuple[Update, Judged, Update, Judged]:
        done, over_horizon = update(case, delta), update(case, delta, horizon=horizon)
        return done, judge(done, case.gamma), over_horizon, judge_episodic(over_horizon, horizon)

    over_deltas = jax.vmap(one, in_axes=(None, 0))
    return jax.vmap(over_deltas, in_axes=(0, None))(cases, jnp.asarray(DELTAS, float))


def study(problems: int = 2000, states: int = 6, actions: int = 3, horizon: int = 20, seed: int = 0) -> Study:
    """Draws the problems and takes every step; float64 whatever the session's default is."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), problems)
        cases = _draw(keys, states, actions)
        results = jax.tree.map(np.asarray, _take(cases, horizon))
        example = counter_example(tuple(float(x) for x in 10.0 ** np.arange(-6.0, 1.3, 0.25)))
    done = results[0]
    cosine = np.asarray(done.scales.r / np.sqrt(done.scales.q * done.scales.s))[:, 0]
    gamma, beta = np.asarray(cases.gamma), np.asarray(cases.beta)
    return Study(gamma, beta, cosine, done, results[1], results[2], results[3], example)


def counter_example(violations: tuple[float, ...]) -> dict[str, np.ndarray]:
    """What happens in `aligned_case` for each violation b, with delta = b^2 alpha_KL: one entry each."""
    case = aligned_case()
    s = scales(evaluate(case, case.theta)).s
    b = jnp.asarray(violations, float)

    def one(delta: Scalar) -> dict[str, Array]:
        done = update(case, delta)
        it = done.happened
        kl = bounds.kl_after_projection(delta, done.b, s)
        correct = bounds.reward_lower_bound((1.0 - case.gamma) * it.reward_surrogate, it.kl, it.epsilon_R, case.gamma)
        sharper = it.reward_surrogate - bounds.path_penalty(it.kl_old_new, it.half_range_R, case.gamma)
        return {
            "delta": delta,
            "violation": done.b,
            "reward_change": it.reward_change,
            "printed_bound": bounds.printed_reward_bound(kl, it.epsilon_R, case.gamma),
            "correct_bound": correct,
            "sharper_bound": sharper,
            "cosine": done.scales.cosine,
        }

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(b**2 * bounds.alpha_kl(s)))


def failures(found: Study) -> dict[str, np.ndarray]:
    """Which of the printed `STATEMENTS` fail: ``[N, deltas]``, NaN where the theorem does not speak of the case.

    A bound counts as failed where it is missed by more than a billionth of the change and of the violation.
    """
    violated = (found.beta > 0.0)[:, None]
    it = found.discounted.happened
    missed = {
        "reward": found.judged.printed_reward < -1e-9 * (np.abs(it.reward_change) + np.abs(found.discounted.b)),
        "cost": found.judged.printed_cost < -1e-9 * (np.abs(it.cost_change) + np.abs(found.discounted.b)),
    }
    return {
        f"{theorem}_{what}": np.where(violated == (theorem == "infeasible"), missed[what], np.nan)
        for theorem in ("feasible", "infeasible")
        for what in ("reward", "cost")
    }


def looseness(verdicts: Judged) -> np.ndarray:
    """How many times larger each penalty is than the error it bounds (reward): ``[N, deltas, len(PENALTIES)]``."""
    return np.asarray(verdicts.reward_penalties) / np.asarray(verdicts.reward_error)[..., None]
