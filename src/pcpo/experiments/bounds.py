r"""How true, and how loose, the worst-case bounds of the paper are, on random problems in which everything is exact.

Problems are drawn once, PCPO takes its actual step (KL projection) for every delta of a grid, and each bound is
compared with what happened. The violation is drawn in units of what the trust region can reach, so that it shrinks
with delta and the picture keeps its shape:

.. math:: \beta = \frac{b}{\sqrt{2 \delta\, a'H^{-1}a}}, \qquad c = \frac{a'H^{-1}g}{\sqrt{g'H^{-1}g \cdot a'H^{-1}a}}.

To first order an active projection changes the reward by :math:`\sqrt{2\delta\,g'H^{-1}g}\,(1 - c^2 - \beta c)`, while
the reward bounds as printed allow a smaller one: :math:`\sqrt{2\,kl}` times an epsilon that itself shrinks with the
step. Where :math:`\beta c > 1 - c^2` they fail for every small delta.
"""

import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from pcpo import rules
from pcpo.core import bounds
from pcpo.experiments import plots, tabular
from pcpo.experiments.tabular import CMDP, Comparison, Evaluation, Logits

if TYPE_CHECKING:
    import matplotlib.axes

Scalar = Float[Array, ""]

DELTAS = tuple(float(x) for x in 10.0 ** np.arange(-6.0, 0.1, 0.5))
"""KL radii of the study, two for each decade."""
STATEMENTS = ("feasible_reward", "feasible_cost", "infeasible_reward", "infeasible_cost")
"""The printed bounds: two of Theorem feasibleCase, two of Theorem infeasibleCase."""
PENALTIES = ("printed", "path", "path_half_range")
"""From loose to tight: the paper's, `path_penalty`, and the latter with half the range in place of epsilon."""


class Case(NamedTuple):
    """A random problem, a random policy, and how much the constraint is violated."""

    cmdp: CMDP
    theta: Logits
    gamma: Scalar
    beta: Scalar
    """b in units of what the trust region can reach; negative for a satisfied constraint."""


class Scales(NamedTuple):
    """The three numbers that describe a problem to first order."""

    q: Scalar
    """``g . H^-1 g``."""
    r: Scalar
    """``a . H^-1 g``."""
    s: Scalar
    """``a . H^-1 a``."""

    @property
    def cosine(self) -> Scalar:
        """c: cosine between the natural gradients of reward and cost, in the metric of H."""
        return self.r / jnp.sqrt(self.q * self.s)


class Update(NamedTuple):
    """One step and what came of it."""

    scales: Scales
    b: Scalar
    delta: Scalar
    predicted_kl: Scalar
    happened: Comparison


class Verdicts(NamedTuple):
    """The bounds of one update. Slack is what is left between a bound and the truth; negative means false."""

    printed_reward: Scalar
    printed_cost: Scalar
    reward_error: Scalar
    """``|J_R' - J_R - surrogate|``: what the penalties bound."""
    cost_error: Scalar
    reward_penalties: Float[Array, " 3"]
    """In the order of `PENALTIES`, at the realised divergences."""
    cost_penalties: Float[Array, " 3"]


def draw_case(key: Key[Array, ""], states: int = 6, actions: int = 3) -> Case:
    """Draws a case. Nothing is rejected and nothing depends on an outcome.

    Correlation of reward and cost uniform in [-1, 1]; sharpness of transitions log-uniform in [0.3, 10]; effective
    horizon 1 / (1 - gamma) log-uniform in [1.02, 50]; logits standard normal. Half the cases satisfy the constraint,
    beta uniform in [-1.2, 0], one in eleven of them exactly; half violate it, beta uniform in (0, 3].
    """
    cmdp_key, theta_key, numbers_key = jax.random.split(key, 3)
    side, slack, violation, correlation, sharpness, effective = jax.random.uniform(numbers_key, (6,))
    return Case(
        cmdp=tabular.random_cmdp(
            cmdp_key,
            states,
            actions,
            alignment=2.0 * correlation - 1.0,
            sharpness=_log_uniform(sharpness, 0.3, 10.0),
        ),
        theta=jax.random.normal(theta_key, (states, actions)),
        gamma=1.0 - 1.0 / _log_uniform(effective, 1.02, 50.0),
        beta=jnp.where(side < 0.5, -jnp.maximum(0.0, 1.32 * slack - 0.12), 3.0 * (1.0 - violation)),
    )


def _log_uniform(uniform: Scalar, low: float, high: float) -> Scalar:
    """From a number uniform in [0, 1) to one whose logarithm is uniform between two."""
    return low * (high / low) ** uniform


def scales(at: Evaluation) -> Scales:
    """q, r and s from gradients and natural gradients in closed form."""
    (g, a), (v, w) = tabular.policy_gradients(at), tabular.natural_gradients(at)
    return Scales(jnp.sum(g * v), jnp.sum(a * v), jnp.sum(a * w))


def update(case: Case, delta: ArrayLike, projection: str = "kl", horizon: int | None = None) -> Update:
    """PCPO's step on a case, and what it did.

    Args:
        case: The problem; its gamma is not used if there is a horizon.
        delta: KL radius.
        projection: ``"kl"`` or ``"l2"``.
        horizon: None for the discounted problem, T for the undiscounted episodic one.
    """
    delta = jnp.asarray(delta, case.theta.dtype)
    before = evaluate(case, case.theta, horizon)
    numbers = scales(before)
    b = case.beta * jnp.sqrt(2.0 * delta * numbers.s)
    model = tabular.local_model(before, limit=before.J_C - b)
    rule = rules.pcpo(delta, projection, cg_iterations=4 * case.theta.size)
    step, _, info = rule.update(model, rule.init(1))
    after = evaluate(case, case.theta + step, horizon)
    return Update(numbers, b, delta, info.predicted_kl, tabular.compare(before, after))


def evaluate(case: Case, theta: Logits, horizon: int | None = None) -> Evaluation:
    """Evaluates a policy on the problem of a case, discounted or over a horizon."""
    if horizon is None:
        return tabular.discounted(case.cmdp, theta, case.gamma)
    return tabular.episodic(case.cmdp, theta, horizon)


def judge(done: Update, gamma: Scalar) -> Verdicts:
    """Compares all bounds of the discounted problem with what happened."""
    it = done.happened
    kl = bounds.kl_after_projection(done.delta, done.b, done.scales.s)
    # With J_C - b for h, and J_C taken off both sides, so that no digits are lost to the size of J_C.
    printed_cost = bounds.printed_cost_bound(-done.b, kl, it.epsilon_C, gamma)

    def penalties(epsilon: Scalar, half_range: Scalar) -> Float[Array, " 3"]:
        return jnp.stack(
            [
                bounds.divergence_penalty(it.kl, epsilon, gamma),
                bounds.path_penalty(it.kl_old_new, epsilon, gamma),
                bounds.path_penalty(it.kl_old_new, half_range, gamma),
            ]
        )

    return Verdicts(
        printed_reward=it.reward_change - bounds.printed_reward_bound(kl, it.epsilon_R, gamma),
        printed_cost=printed_cost - it.cost_change,
        reward_error=jnp.abs(it.reward_change - it.reward_surrogate),
        cost_error=jnp.abs(it.cost_change - it.cost_surrogate),
        reward_penalties=penalties(it.epsilon_R, it.half_range_R),
        cost_penalties=penalties(it.epsilon_C, it.half_range_C),
    )


def judge_episodic(done: Update, horizon: int) -> Verdicts:
    """As `judge`, for the undiscounted problem. The paper has no bound for it: nothing printed, slack is infinite."""
    it = done.happened

    def penalties(epsilon: Scalar, half_range: Scalar) -> Float[Array, " 3"]:
        return jnp.stack(
            [
                bounds.episodic_penalty(it.kl, epsilon, horizon),
                bounds.episodic_path_penalty(it.kl_old_new, epsilon, horizon),
                bounds.episodic_path_penalty(it.kl_old_new, half_range, horizon),
            ]
        )

    infinite = jnp.full_like(done.b, jnp.inf)
    return Verdicts(
        printed_reward=infinite,
        printed_cost=infinite,
        reward_error=jnp.abs(it.reward_change - it.reward_surrogate),
        cost_error=jnp.abs(it.cost_change - it.cost_surrogate),
        reward_penalties=penalties(it.epsilon_R, it.half_range_R),
        cost_penalties=penalties(it.epsilon_C, it.half_range_C),
    )


def aligned_case(beta: ArrayLike = 1.0) -> Case:
    """The counter-example: two states, two actions, and a cost that is nearly the reward.

    Whoever works fast is busy more often, earns more and wears the machine more: cost equals reward but for one
    entry, 2.2 in place of 2. The policy tosses a fair coin, gamma is 0.9. With beta = 1 and violation b the radius is
    delta = b^2 alpha_KL: half of the printed divergence comes from either step.
    """
    moves = jnp.array([[[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]]], dtype=float)
    reward = jnp.array([[0.0, 1.0], [1.0, 2.0]], dtype=float)
    return Case(
        cmdp=CMDP(moves, reward, reward.at[1, 1].set(2.2), jnp.array([1.0, 0.0], dtype=float)),
        theta=jnp.zeros((2, 2), float),
        gamma=jnp.asarray(0.9, float),
        beta=jnp.asarray(beta, float),
    )


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


class Study(NamedTuple):
    """Raw results as numpy arrays: cases along the first axis N, `DELTAS` along the second."""

    gamma: np.ndarray
    beta: np.ndarray
    cosine: np.ndarray
    discounted: Update
    verdicts: Verdicts
    episodic: Update
    episodic_verdicts: Verdicts
    counter_example: dict[str, np.ndarray]


def study(problems: int = 2000, states: int = 6, actions: int = 3, horizon: int = 20, seed: int = 0) -> Study:
    """Draws the problems and takes every step; float64 whatever the session's default is."""

    def grid(case: Case) -> tuple[Update, Verdicts, Update, Verdicts]:
        def one(delta: Scalar) -> tuple[Update, Verdicts, Update, Verdicts]:
            done, over_horizon = update(case, delta), update(case, delta, horizon=horizon)
            return done, judge(done, case.gamma), over_horizon, judge_episodic(over_horizon, horizon)

        return jax.vmap(one)(jnp.asarray(DELTAS, float))

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), problems)
        cases = jax.jit(jax.vmap(partial(draw_case, states=states, actions=actions)))(keys)
        results = jax.tree.map(np.asarray, jax.jit(jax.vmap(grid))(cases))
        example = counter_example(tuple(float(x) for x in 10.0 ** np.arange(-6.0, 1.3, 0.25)))
    done = results[0]
    cosine = np.asarray(done.scales.r / np.sqrt(done.scales.q * done.scales.s))[:, 0]
    gamma, beta = np.asarray(cases.gamma), np.asarray(cases.beta)
    return Study(gamma, beta, cosine, done, results[1], results[2], results[3], example)


def failures(found: Study) -> dict[str, np.ndarray]:
    """Which of the printed `STATEMENTS` fail: ``[N, deltas]``, NaN where the theorem does not speak of the case.

    A bound counts as failed where it is missed by more than a billionth of the change and of the violation.
    """
    violated = (found.beta > 0.0)[:, None]
    it = found.discounted.happened
    missed = {
        "reward": found.verdicts.printed_reward < -1e-9 * (np.abs(it.reward_change) + np.abs(found.discounted.b)),
        "cost": found.verdicts.printed_cost < -1e-9 * (np.abs(it.cost_change) + np.abs(found.discounted.b)),
    }
    return {
        f"{theorem}_{what}": np.where(violated == (theorem == "infeasible"), missed[what], np.nan)
        for theorem in ("feasible", "infeasible")
        for what in ("reward", "cost")
    }


def looseness(verdicts: Verdicts) -> np.ndarray:
    """How many times larger each penalty is than the error it bounds (reward): ``[N, deltas, len(PENALTIES)]``."""
    return np.asarray(verdicts.reward_penalties) / np.asarray(verdicts.reward_error)[..., None]


def reproduce(
    directory: Path,
    *,
    problems: int = 2000,
    states: int = 6,
    actions: int = 3,
    horizon: int = 20,
    seed: int = 0,
) -> list[Path]:
    """Judges the paper's worst-case bounds on random tabular problems; writes a figure and the numbers behind it.

    Args:
        directory: Where ``bounds.png``, ``bounds.svg`` and ``bounds.json`` go; created if missing.
        problems: Random problems, 10 to 20000.
        states: States of each, 2 to 30.
        actions: Actions in each state, 2 to 10.
        horizon: Steps of an episode in the undiscounted half of the study, 2 to 100.
        seed: Of the random problems, 0 or larger.

    Returns:
        The files written.

    Raises:
        ValueError: An option is out of its range.
    """
    _check_range("problems", problems, 10, 20_000, "2000 takes some ten seconds and is enough for the figure")
    _check_range("states", states, 2, 30, "every expectation is a dense linear system; 6 is what the page shows")
    _check_range("actions", actions, 2, 10, "3 is what the page shows")
    _check_range("horizon", horizon, 2, 100, "20 is what the page shows; with one step no state can shift")
    _check_range("seed", seed, 0, 2**31 - 1, "0 is what the page shows")
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    found = study(problems, states, actions, horizon, seed)
    settings = {"problems": problems, "states": states, "actions": actions, "horizon": horizon, "seed": seed}
    numbers = directory / "bounds.json"
    contents = {"settings": settings, **summary(found), "verdicts": verdicts(found)}
    numbers.write_text(json.dumps(contents, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return [*_draw(found, directory), numbers]


def verdicts(found: Study) -> list[dict[str, str]]:
    """What is true of the theorems, as the study found it: a bound that was missed once is false."""
    failed = failures(found)
    radii = f"{len(DELTAS)} radii from {DELTAS[0]:g} to {DELTAS[-1]:g}"
    claims = {
        "feasible_reward": ("From b <= 0 the reward falls by at most the printed bound.", "Theorem feasibleCase"),
        "feasible_cost": ("From b <= 0 the cost ends under the printed bound.", "Theorem feasibleCase"),
        "infeasible_reward": ("From b > 0 the reward falls by at most the printed bound.", "Theorem infeasibleCase"),
        "infeasible_cost": ("From b > 0 the cost ends under the printed bound.", "Theorem infeasibleCase"),
    }
    judged: list[dict[str, str]] = []
    for name, (claim, place) in claims.items():
        missed = failed[name][~np.isnan(failed[name]).any(axis=1)]
        ever, updates = int(np.sum(missed.any(axis=1))), int(np.sum(missed))
        evidence = f"False in {updates} of {missed.size} updates, in {ever} of {len(missed)} problems; {radii}."
        judged.append(_verdict(claim, place, updates, evidence))
    broken = int(np.sum(_missed(found.verdicts)) + np.sum(_missed(found.episodic_verdicts)))
    judged.append(
        _verdict(
            "With the surrogate kept and the realised divergence, both bounds hold, discounted and over a horizon.",
            "here",
            broken,
            f"Missed {broken} times in {2 * found.discounted.b.size} updates, with three penalties for each.",
        )
    )
    return judged


def _verdict(claim: str, place: str, misses: int, evidence: str) -> dict[str, str]:
    return {"claim": claim, "place": place, "verdict": "fails" if misses else "holds", "evidence": evidence}


def summary(found: Study) -> dict[str, Any]:
    """The numbers of the study, as plain lists: failures and looseness by delta, by violation and by horizon."""
    failed = failures(found)
    it = found.discounted.happened
    predicted = found.discounted.delta + np.maximum(found.discounted.b, 0.0) ** 2 / (2.0 * found.discounted.scales.s)
    violated = found.beta > 0.0
    reach = np.sqrt(2.0 * found.discounted.delta * found.discounted.scales.q)
    lower = it.reward_surrogate[..., None] - found.verdicts.reward_penalties
    slack = (it.reward_change[..., None] - lower) / reach[..., None]
    small = DELTAS.index(1e-4)
    return {
        "deltas": [float(f"{d:.3g}") for d in DELTAS],
        "cases": {"feasible": int(np.sum(~violated)), "infeasible": int(np.sum(violated))},
        "printed_failures": {name: _integers(np.nansum(failed[name], axis=0)) for name in STATEMENTS},
        "printed_failures_by_violation_at_delta_1e-4": _by_bins(
            found.beta, (0.0, 0.5, 1.0, 2.0, 3.0), failed["infeasible_reward"][:, small]
        ),
        "printed_failures_by_effective_horizon": {
            name: _by_bins(1.0 / (1.0 - found.gamma), (1.0, 1.1, 1.5, 2.0, 5.0, 10.0, 50.0), np.max(values, axis=1))
            for name, values in failed.items()
        },
        "past_the_curve": {
            "cases": int(np.sum(violated & (found.beta * found.cosine > 1.0 - found.cosine**2))),
            "failed_at_the_smallest_delta": int(np.nansum(failed["infeasible_reward"][:, 0])),
        },
        "correct_bounds_failures": {
            "discounted": _broken(found.verdicts),
            "episodic": _broken(found.episodic_verdicts),
        },
        "realised_kl_above_printed": {
            "feasible": _rounded(np.mean((it.kl > predicted)[~violated], axis=0)),
            "infeasible": _rounded(np.mean((it.kl > predicted)[violated], axis=0)),
            "largest_ratio": _rounded(np.max(it.kl / predicted, axis=0)),
        },
        "reward_slack_over_reach_median": {
            "as_printed": _rounded(np.median(found.verdicts.printed_reward / reach, axis=0)),
            **{name: _rounded(np.median(slack[..., i], axis=0)) for i, name in enumerate(PENALTIES)},
        },
        "looseness": {
            "quantiles": [0.05, 0.25, 0.5, 0.75, 0.95],
            "discounted": _quantiles(looseness(found.verdicts)),
            "episodic": _quantiles(looseness(found.episodic_verdicts)),
            "discounted_median_by_delta": _medians(looseness(found.verdicts)),
            "episodic_median_by_delta": _medians(looseness(found.episodic_verdicts)),
            "discounted_median_by_violation": _medians_in_bins(found, found.beta, (-1.2, 0.0, 0.5, 1.0, 2.0, 3.0)),
            "discounted_median_by_effective_horizon": _medians_in_bins(
                found, 1.0 / (1.0 - found.gamma), (1.0, 1.5, 2.0, 5.0, 10.0, 20.0, 50.0)
            ),
        },
        "counter_example": {name: _rounded(values, 6) for name, values in found.counter_example.items()},
    }


def _missed(verdicts: Verdicts) -> np.ndarray:
    """Which correct bounds are missed by more than rounding, reward or cost: ``[N, deltas, len(PENALTIES)]``."""
    reward, cost = (
        error[..., None] > penalties * (1.0 + 1e-9) + 1e-12
        for error, penalties in (
            (verdicts.reward_error, verdicts.reward_penalties),
            (verdicts.cost_error, verdicts.cost_penalties),
        )
    )
    return np.asarray(reward | cost)


def _broken(verdicts: Verdicts) -> dict[str, int]:
    missed = _missed(verdicts)
    return {name: int(np.sum(missed[..., i])) for i, name in enumerate(PENALTIES)}


def _quantiles(ratios: np.ndarray) -> dict[str, list[float]]:
    levels = np.quantile(ratios, [0.05, 0.25, 0.5, 0.75, 0.95], axis=(0, 1))
    return {name: _rounded(levels[:, i]) for i, name in enumerate(PENALTIES)}


def _medians(ratios: np.ndarray) -> dict[str, list[float]]:
    return {name: _rounded(np.median(ratios[..., i], axis=0)) for i, name in enumerate(PENALTIES)}


def _medians_in_bins(found: Study, values: np.ndarray, edges: tuple[float, ...]) -> dict[str, dict[str, float]]:
    ratios = looseness(found.verdicts)
    return {
        f"{low:g} to {high:g}": {
            name: float(f"{np.median(ratios[(values > low) & (values <= high)][..., i]):.4g}")
            for i, name in enumerate(PENALTIES)
        }
        for low, high in pairwise(edges)
        if np.any((values > low) & (values <= high))
    }


def _by_bins(values: np.ndarray, edges: tuple[float, ...], failed: np.ndarray) -> dict[str, list[int]]:
    """[failures, cases] between neighbouring edges; cases of which the theorem does not speak (NaN) are left out."""
    speaks = ~np.isnan(failed)
    inside = [(values > low) & (values <= high) & speaks for low, high in pairwise(edges)]
    names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    return {name: [int(np.sum(failed[i])), int(np.sum(i))] for name, i in zip(names, inside, strict=True)}


def _rounded(values: np.ndarray, digits: int = 4) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in np.ravel(values)]


def _integers(values: np.ndarray) -> list[int]:
    return [int(value) for value in values]


def _check_range(name: str, value: int, low: int, high: int, advice: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, but must be a whole number from {low} to {high}; {advice}")


_PRINTED, _CORRECT, _SHARPER = plots.L2, plots.KL, plots.CPO
"""One colour for each kind of bound in all four pictures."""
_EARLY, _LATE = "#7a2f00", "#f3b98f"
"""Shades of `_PRINTED`: fails already at large steps, fails at tiny ones only."""


def _draw(found: Study, directory: Path) -> list[Path]:
    with plots.style():
        figure = plots.new_figure(11.0, 8.6)
        axes = figure.subplots(2, 2)
        _draw_counter_example(axes[0, 0], found)
        _draw_map(axes[0, 1], found)
        _draw_failures(axes[1, 0], found)
        _draw_looseness(axes[1, 1], found)
        figure.get_layout_engine().set(w_pad=0.14, h_pad=0.12)  # type: ignore[union-attr]
        return plots.save(figure, directory, "bounds")


def _draw_counter_example(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Realised loss and the losses that the bounds allow, as the violation shrinks."""
    it = found.counter_example
    shown = (it["violation"] > 0.9e-4) & (it["violation"] < 11.0)
    b, lost, printed, correct = (
        it[name][shown] * sign
        for name, sign in (("violation", 1), ("reward_change", -1), ("printed_bound", -1), ("correct_bound", -1))
    )
    axes.fill_between(b, printed, lost, where=lost > printed, color=plots.FORBIDDEN, linewidth=0.0, zorder=0)
    axes.loglog(b, printed, color=_PRINTED, linewidth=2.0)
    axes.loglog(b, correct, color=_CORRECT, linewidth=2.4)
    axes.loglog(b, lost, color=plots.INK, linewidth=1.5, linestyle=(0, (4, 2)))
    axes.set_xlim(1e-4, 10.0)
    axes.set_ylim(1e-8, 1e3)
    axes.set_xlabel(r"violation $b$ that the step takes back, with $\delta = b^2 \alpha_{KL}$")
    axes.set_ylabel(r"loss of reward, $J_R(\pi) - J_R(\pi')$")
    axes.set_title("Cost nearly the reward: false at every small step")
    plots.label(axes, (1.4e-3, 1.4e-3), "correct bound allows", _CORRECT, (-2, 12), rotation=17)
    plots.label(axes, (2.2, 1.6), "what happens", plots.INK, (0, -15))
    plots.label(axes, (6e-3, 5e-5), "printed bound allows", _PRINTED, (4, -10), align="left", rotation=33)
    plots.label(axes, (5.5e-4, 1.4e-5), "printed bound\nis false", _EARLY)


def _draw_map(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Every violated case by cosine and violation, coloured by the largest delta at which the printed bound fails."""
    failed = failures(found)["infeasible_reward"]
    largest = np.max(np.where(failed == 1.0, np.asarray(DELTAS), 0.0), axis=1)
    violated = found.beta > 0.0
    classes = (
        (largest == 0.0, "#c9cdd2", r"none $\geq 10^{-6}$", 9.0),
        ((largest > 0.0) & (largest < 0.9e-4), _LATE, r"$< 10^{-4}$", 15.0),
        ((largest > 0.9e-4) & (largest < 0.9e-2), _PRINTED, r"$10^{-4}$ to $10^{-2}$", 15.0),
        (largest > 0.9e-2, _EARLY, r"$\geq 10^{-2}$", 15.0),
    )
    for members, color, text, size in classes:
        chosen = members & violated
        axes.scatter(found.cosine[chosen], found.beta[chosen], s=size, color=color, linewidths=0.0, label=text)
    c = np.linspace((np.sqrt(13.0) - 3.0) / 2.0, 1.0, 200)  # from where the curve leaves the data, beta = 3
    axes.plot(c, (1.0 - c**2) / c, color=plots.INK, linewidth=1.6)
    axes.set_xlim(-1.0, 1.0)
    axes.set_ylim(0.0, 3.75)
    axes.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    axes.set_yticks([0.0, 1.0, 2.0, 3.0])
    axes.set_xlabel(r"cosine $c$ between the natural gradients of reward and cost")
    axes.set_ylabel(r"violation $\beta$, in reach of the trust region")
    axes.set_title(r"The printed reward bound, from $b > 0$: false right of the curve")
    plots.label(axes, (0.5, 1.5), r"$\beta c = 1 - c^2$", plots.INK, (-8, 0), align="right")
    title = r"largest $\delta$ at which it is false:"
    axes.legend(loc="upper center", ncols=4, title=title, frameon=False, handletextpad=0.1, columnspacing=1.4)


def _draw_failures(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Fraction of cases in which each bound fails, over delta."""
    percent = {name: 100.0 * np.nanmean(values, axis=0) for name, values in failures(found).items()}
    percent["feasible"] = np.maximum(percent["feasible_reward"], percent["feasible_cost"])
    percent["correct"] = 100.0 * np.mean(_missed(found.verdicts).any(axis=-1), axis=0)
    violated = found.beta > 0.0
    past = float(100.0 * np.mean((found.beta * found.cosine > 1.0 - found.cosine**2)[violated]))
    lines = (
        ("infeasible_reward", _PRINTED, "o", "printed, reward, from $b > 0$"),
        ("infeasible_cost", _EARLY, "s", "printed, cost, from $b > 0$"),
        ("feasible", plots.GREY, "^", r"printed, reward or cost, from $b \leq 0$"),
        ("correct", _CORRECT, "", "correct, all of them"),
    )
    axes.axhline(past, color=plots.GREY, linewidth=1.0, linestyle=(0, (2, 2)))
    for name, color, marker, text in lines:
        axes.semilogx(DELTAS, percent[name], color=color, marker=marker, markersize=4.5, linewidth=2.0, label=text)
    axes.set_xlim(0.9 * DELTAS[0], 1.1 * DELTAS[-1])
    axes.set_ylim(-0.04 * past, 1.15 * past)
    axes.set_xlabel(r"KL radius $\delta$")
    axes.set_ylabel("cases in which the bound is false, %")
    axes.set_title("How often the bounds are false on random problems")
    plots.label(axes, (1.0, past), "share of cases right of the curve", plots.GREY, (0, 7), align="right", size=8.5)
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.83), frameon=False, fontsize=8.5)


def _draw_looseness(axes: "matplotlib.axes.Axes", found: Study) -> None:
    """Penalty over the error it bounds, by effective horizon: median and middle half."""
    ratios = looseness(found.verdicts)
    effective = 1.0 / (1.0 - found.gamma)
    edges = np.geomspace(1.02, 50.0, 9)
    centres = np.sqrt(edges[:-1] * edges[1:])
    members = [(effective > low) & (effective <= high) for low, high in pairwise(edges)]
    kept = [i for i, chosen in enumerate(members) if np.any(chosen)]
    looks = (
        (_CORRECT, "-", 0.13, r"$\gamma\,\epsilon \sqrt{2\,KL}\, / (1-\gamma)^2$, the paper's"),
        (_SHARPER, "-", 0.0, r"$\gamma\,\epsilon \sqrt{2\,KL}\, / (1-\gamma)^{3/2}$, KL of whole paths"),
        (_SHARPER, (0, (4, 2)), 0.13, r"… with half the range in place of $\epsilon$"),
    )
    for i, (color, line, shade, text) in enumerate(looks):
        low, middle, high = np.array([np.quantile(ratios[members[k]][..., i], [0.25, 0.5, 0.75]) for k in kept]).T
        if shade:
            axes.fill_between(centres[kept], low, high, color=color, alpha=shade, linewidth=0.0)
        axes.loglog(centres[kept], middle, color=color, linewidth=2.0, linestyle=line, label=text)
    axes.set_xlim(1.02, 50.0)
    axes.set_ylim(1.0, None)
    axes.set_xticks([], minor=True)
    axes.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axes.set_xlabel(r"effective horizon $1 / (1 - \gamma)$")
    axes.set_ylabel("penalty / error that it bounds")
    axes.set_title("How loose the correct bounds are: median, middle half")
    axes.legend(loc="upper left", frameon=False, fontsize=8.5)
