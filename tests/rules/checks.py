"""What an update must be, one property a function, against dense linear algebra in float64 or numbers worked by hand.

Each check raises an AssertionError that says which property failed and by how much. They know nothing of how the
library computes: `test_checks.py` shows that the library passes them, `test_known_mistakes.py` that the mistakes known
from other codes do not. Checks of one outcome take a problem and an `Outcome`; checks of a behaviour take a rule.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from pcpo import rules
from pcpo.core import LocalModel, Status, Surrogates, UpdateRule
from pcpo.core.cpo_dual import DualCase
from pcpo.core.line_search import Reason
from pcpo.experiments import tabular
from tests.problems import Problem, as_arrays, model, multiply, natural_step, nearest_in_intersection, quadratic

EXACT = 60
"""CG iterations that count as "to the end" for the small problems here."""

Evaluate = Callable[[Array], Surrogates]


@dataclass(frozen=True)
class Outcome:
    """One update with numpy arrays in float64."""

    step: np.ndarray
    state: Any
    status: Status
    eta: float
    multipliers: np.ndarray
    predicted_reward: float
    predicted_costs: np.ndarray
    predicted_kl: float
    cg_residuals: np.ndarray
    extra: dict[str, np.ndarray]


def outcome(step, state, info) -> Outcome:
    """An update as `Outcome`."""
    fields: dict[str, Any] = {
        name: np.asarray(value, float) for name, value in info._asdict().items() if name not in {"extra", "status"}
    }
    extra = {name: np.asarray(value) for name, value in info.extra.items()}
    return Outcome(step=np.asarray(step, float), state=state, status=Status(int(info.status)), extra=extra, **fields)


def run(rule: UpdateRule, p: Problem, evaluate: Evaluate | None = None, state: Any = None) -> Outcome:
    """One update, not compiled, with the surrogates of the quadratic model unless others are given."""
    local = model(*as_arrays(p))
    if evaluate is not None:
        local = LocalModel(g=local.g, a=local.a, b=local.b, fvp=local.fvp, evaluate=evaluate)
    return outcome(*rule.update(local, rule.init(len(p.b)) if state is None else state))


def run_all(
    rule: UpdateRule, problems: Problem, surrogates: Callable[..., Surrogates] = quadratic, *extra: np.ndarray
) -> list[Outcome]:
    """Updates of a batch of problems, compiled once, with ``evaluate(d) = surrogates(H, g, a, *extra, d)``."""
    state = rule.init(problems.b.shape[1])

    def update(H, g, a, b, *more):
        return rule.update(LocalModel(g, a, b, Partial(multiply, H), Partial(surrogates, H, g, a, *more)), state)

    results = jax.jit(jax.vmap(update))(*as_arrays(problems), *map(jnp.asarray, extra))
    return [outcome(*jax.tree.map(lambda x, i=i: x[i], results)) for i in range(len(problems.b))]


def stack(problems: list[Problem]) -> Problem:
    """A batch of problems."""
    return Problem(*(np.stack(x) for x in zip(*map(astuple, problems), strict=True)))


# Soundness: what holds for every rule and every model, however broken ----------------------------------------------


def is_sound(arrays: tuple[np.ndarray, ...], out: Outcome) -> None:
    """All numbers finite (residuals may be infinite in a NONFINITE update), and statuses that mean what they say.

    Args:
        arrays: g, a and b of the model.
        out: The update.
    """
    for path, value in jax.tree_util.tree_leaves_with_path((out.step, out.state, out.extra, out.cg_residuals)):
        assert not np.any(np.isnan(np.asarray(value))), (
            f"NaN in {jax.tree_util.keystr(path)}: {value} ({out.status.name})"
        )
    for name in ("step", "eta", "multipliers", "predicted_reward", "predicted_costs", "predicted_kl"):
        assert np.all(np.isfinite(getattr(out, name))), f"{name} is {getattr(out, name)}, status {out.status.name}"
    for path, value in jax.tree_util.tree_leaves_with_path((out.state, out.extra)):
        assert np.all(np.isfinite(np.asarray(value))), f"{jax.tree_util.keystr(path)} is {value} ({out.status.name})"
    if not all(np.all(np.isfinite(x)) for x in arrays):
        assert out.status == Status.NONFINITE, f"status {out.status.name} for a model that is not finite"
    if out.status >= Status.CG_FAILED:
        assert not np.any(out.step), f"status {out.status.name}, but the step is {out.step}"
        for name in ("predicted_reward", "predicted_costs", "predicted_kl"):
            assert not np.any(getattr(out, name)), f"{name} is {getattr(out, name)} for a discarded step"


def needs_no_excuse(out: Outcome) -> None:
    """A finite, well-conditioned model gets a step, not an excuse."""
    assert out.status not in {Status.NONFINITE, Status.CG_FAILED}, (
        f"status {out.status.name} although the model is finite"
    )


# The step ----------------------------------------------------------------------------------------------------------


def reward_step_is_natural(p: Problem, delta: float, out: Outcome, rtol: float = 1e-8) -> None:
    """Where no constraint is active, d = sqrt(2 delta / g'H^-1 g) H^-1 g."""
    expected = natural_step(p, delta)
    error = np.linalg.norm(out.step - expected) / np.linalg.norm(expected)
    assert error < rtol, (
        f"the reward step is not the natural one: relative error {error:.2e}, cosine with it "
        f"{_cosine(out.step, expected):.4f}, cosine with g {_cosine(out.step, p.g):.4f}, "
        f"length {np.linalg.norm(out.step) / np.linalg.norm(expected):.3f} of the right one"
    )


def spends_the_trust_region(p: Problem, delta: float, out: Outcome, rtol: float = 1e-8) -> None:
    """d'Hd / 2 = delta, with the model's own H: no more damping than fvp contains, no other length."""
    kl = 0.5 * out.step @ p.H @ out.step
    assert abs(kl / delta - 1) < rtol, f"the KL of the reward step is {kl:.6g}, delta is {delta:.6g}"


def stays_in_the_half_spaces(p: Problem, out: Outcome, tol: float = 1e-9) -> None:
    """a_i . d + b_i <= 0 for all i, up to rounding."""
    left = p.a @ out.step + p.b
    scale = np.abs(p.b) + np.abs(p.a) @ np.abs(out.step)
    assert np.all(left <= tol * scale), f"the step is outside a half-space: a.d + b = {left}, terms of size {scale}"


def stops_at_the_boundary(p: Problem, delta: float, out: Outcome, tol: float = 1e-9) -> None:
    """PCPO, m = 1: from a violating reward step exactly to a.d + b = 0, from another one nowhere."""
    reward_step = natural_step(p, delta)
    if p.a[0] @ reward_step + p.b[0] <= 0:
        assert np.allclose(out.step, reward_step, rtol=tol, atol=0), (
            f"the reward step was feasible, a.d + b = {p.a[0] @ reward_step + p.b[0]:.4g}, but was moved: "
            f"{reward_step} to {out.step}"
        )
        return
    left = p.a[0] @ out.step + p.b[0]
    assert abs(left) <= tol * (abs(p.b[0]) + np.abs(p.a[0]) @ np.abs(out.step)), f"a.d + b is {left:.6g}, not 0"


def is_the_nearest_point(p: Problem, delta: float, L: np.ndarray, out: Outcome, tol: float = 1e-7) -> None:
    """The projection of the natural step onto all half-spaces at once, in the norm of L."""
    expected = nearest_in_intersection(natural_step(p, delta), p.a, p.b, L)
    error = np.linalg.norm(out.step - expected) / np.linalg.norm(expected)
    assert error < tol, f"not the nearest point in the norm of L: {out.step} instead of {expected} ({error:.2e})"


def takes_the_whole_step(p: Problem, out: Outcome, searched: Outcome) -> None:
    """PCPO has no line search: surrogates that would refuse the step in any search change nothing."""
    assert np.array_equal(out.step, searched.step), (
        f"the step depends on a search: {searched.step} instead of {out.step}, "
        f"{np.linalg.norm(searched.step) / np.linalg.norm(out.step):.3g} of its length, for b = {p.b}"
    )


def respects_the_cap(p: Problem, cap: float, out: Outcome, rtol: float = 1e-6) -> None:
    """d'Hd / 2 <= max_kl, and if the step was shortened, equal to it."""
    kl = 0.5 * out.step @ p.H @ out.step
    assert kl <= cap * (1 + rtol), f"the KL of the step is {kl:.4g}, its cap is {cap:.4g}"
    if out.status == Status.KL_CAPPED:
        assert kl >= cap * (1 - rtol), f"shortened to a KL of {kl:.4g}, below the cap of {cap:.4g}"


def is_the_optimum_of_cpo(p: Problem, delta: float, out: Outcome, tol: float = 1e-6) -> None:
    """Feasible, and g = lambda H d + nu a with lambda, nu >= 0 and nu (a.d + b) = 0; else the recovery step."""
    w = np.linalg.solve(p.H, p.a[0])
    reach = np.sqrt(2 * delta * (p.a[0] @ w))
    if p.b[0] > reach:
        recovery = -np.sqrt(2 * delta / (p.a[0] @ w)) * w
        assert np.allclose(out.step, recovery, rtol=tol), f"not the recovery step: {out.step}, {recovery}"
        assert out.status == Status.RECOVERY, f"status {out.status.name} for a half-space out of reach"
        return
    left = p.a[0] @ out.step + p.b[0]
    kl = 0.5 * out.step @ p.H @ out.step
    assert left <= tol * reach, f"not CPO's optimum: infeasible, a.d + b = {left:.3g} (reach {reach:.3g})"
    assert kl <= delta * (1 + tol), f"not CPO's optimum: KL {kl:.6g} beyond delta {delta:.6g}"
    columns = np.stack([p.H @ out.step, p.a[0]], axis=1)
    active = abs(left) <= tol * reach
    multipliers = np.linalg.lstsq(columns if active else columns[:, :1], p.g, rcond=None)[0]
    residual = np.linalg.norm(columns[:, : len(multipliers)] @ multipliers - p.g) / np.linalg.norm(p.g)
    assert residual < np.sqrt(tol), f"not CPO's optimum: g is not lambda H d + nu a, residual {residual:.3g}"
    assert np.all(multipliers >= -np.sqrt(tol)), f"not CPO's optimum: lambda, nu = {multipliers}"
    expected = Status.PROJECTED if active else Status.OK
    assert out.status == expected, f"status {out.status.name}, expected {expected.name}"


# What is said about the step ---------------------------------------------------------------------------------------


def predicts_its_own_step(p: Problem, out: Outcome, rtol: float = 1e-8) -> None:
    """g.d, a.d and d'Hd / 2 are those of the returned step."""
    d = out.step
    for name, found, expected in (
        ("predicted_reward", out.predicted_reward, p.g @ d),
        ("predicted_costs", out.predicted_costs, p.a @ d),
        ("predicted_kl", out.predicted_kl, 0.5 * d @ p.H @ d),
    ):
        assert np.allclose(found, expected, rtol=rtol, atol=rtol * np.linalg.norm(d)), (
            f"{name} is {found}, that of the step is {expected}"
        )


def is_made_of_its_parts(p: Problem, L: np.ndarray, out: Outcome, rtol: float = 1e-8) -> None:
    """d = eta H^-1 g - sum_i nu_i L^-1 a_i with the eta and the multipliers that are reported."""
    rebuilt = float(out.eta) * np.linalg.solve(p.H, p.g) - out.multipliers @ np.linalg.solve(L, p.a.T).T
    error = np.linalg.norm(rebuilt - out.step) / np.linalg.norm(out.step)
    assert error < rtol, (
        f"eta = {float(out.eta):.6g} and multipliers {out.multipliers} do not rebuild the step: error {error:.2e}"
    )


def reports_cg_as_it_was(p: Problem, iterations: int, out: Outcome, rtol: float = 1e-5) -> None:
    """|H x - r| / |r| after the same number of steps of a conjugate gradient written again, for g and every a."""
    expected = [_cg_residual(p.H, r, iterations) for r in (p.g, *p.a)]
    assert np.allclose(out.cg_residuals, expected, rtol=rtol), f"CG residuals {out.cg_residuals}, in truth {expected}"


# Behaviour of a rule -----------------------------------------------------------------------------------------------


def survives_a_zero_cost_gradient(rule: UpdateRule, p: Problem, delta: float) -> None:
    """a = 0 leaves the reward step alone; only the status tells whether the limit is violated."""
    violations = (-1.0, 0.0, 1.0)
    problems = [replace(p, a=np.zeros_like(p.a), b=np.full_like(p.b, b)) for b in violations]
    for b, out in zip(violations, run_all(rule, stack(problems)), strict=True):
        expected = Status.ZERO_COST_GRADIENT_VIOLATED if b > 0 else Status.OK
        assert out.status == expected, f"zero cost gradient, b = {b}: status {out.status.name}, not {expected.name}"
        assert np.allclose(out.step, natural_step(p, delta), rtol=1e-8), f"zero cost gradient, b = {b}: step {out.step}"


def is_free_of_scale(rule: UpdateRule, p: Problem, together: bool = False, rtol: float = 1e-6) -> None:
    """Units of reward, of cost and of the parameters do not matter, from 1e-8 to 1e8.

    ``together`` scales reward and cost by the same number, for rules that trade one for the other. H -> c H with
    b -> b / sqrt(c) must give d / sqrt(c).
    """
    names, variants, factors = ["nothing"], [p], [1.0]
    for c in (1e-8, 1e8):
        if not together:
            names += [f"reward, times {c:g},", f"cost, times {c:g},"]
            variants += [replace(p, g=c * p.g), replace(p, a=c * p.a, b=c * p.b)]
            factors += [1.0, 1.0]
        names += [f"reward and cost, times {c:g},", f"H, times {c:g},"]
        variants += [replace(p, g=c * p.g, a=c * p.a, b=c * p.b), replace(p, H=c * p.H, b=p.b / np.sqrt(c))]
        factors += [1.0, np.sqrt(c)]
    steps = [f * out.step for f, out in zip(factors, run_all(rule, stack(variants)), strict=True)]
    for name, found in zip(names, steps, strict=True):
        error = np.linalg.norm(found - steps[0]) / np.linalg.norm(steps[0])
        assert error < rtol, f"the scale of {name} matters: the step {steps[0]} becomes {found}"


def the_limit_matters(rule: UpdateRule, p: Problem) -> None:
    """Another h is another b and another predicted cost: where a constraint is active, a.d = -b."""
    unit = np.sqrt(p.a[0] @ np.linalg.solve(p.H, p.a[0]))  # a reward step changes the cost by sqrt(2 delta) of these
    problems = [replace(p, b=np.array([b])) for b in (0.5 * unit, unit, 2.0 * unit)]
    for now, out in zip(problems, run_all(rule, stack(problems)), strict=True):
        for name, change in (("predicted", out.predicted_costs), ("made", p.a @ out.step)):
            assert np.allclose(change, -now.b, rtol=1e-8), f"the limit is ignored: b = {now.b}, a.d {name} is {change}"


def delta_matters(make: Callable[[float], UpdateRule], p: Problem) -> None:
    """The KL of the reward step is the delta given."""
    for delta in (1e-4, 1e-2):
        out = run(make(delta), p)
        kl = 0.5 * out.step @ p.H @ out.step
        assert abs(kl / delta - 1) < 1e-8, f"delta is ignored: {delta:g} given, {kl:.4g} spent"


def forgets_the_last_violation(rule: UpdateRule, p: Problem, delta: float) -> None:
    """The step of pcpo's KL projection is a function of this update's b, not of an earlier one's."""
    run(rule, replace(p, b=p.b - 0.5))
    found, expected = run(rule, p).step, nearest_in_intersection(natural_step(p, delta), p.a, p.b, p.H)
    assert np.allclose(found, expected, rtol=1e-7), f"a stale violation: {found} instead of {expected} at b = {p.b}"


def refuses_a_nan_in_any_surrogate(rule: UpdateRule, p: Problem) -> None:
    """One of the three surrogates not finite is enough: the step is zero, and the status is not a mild one."""
    names, values = ("reward", "costs", "kl"), (np.nan, np.inf)
    poison = np.array([np.where(np.arange(3) == i, value, 0.0) for i in range(3) for value in values])
    outcomes = run_all(rule, stack([p] * len(poison)), _poisoned, poison)
    for i, out in enumerate(outcomes):
        what = f"{names[i // 2]} is {values[i % 2]} at the step"
        bad = out.status in {Status.NONFINITE, Status.LINE_SEARCH_FAILED}
        assert bad, f"{what}, but the status is {out.status.name}"
        assert not np.any(out.step), f"{what}, but the step is {out.step}"


def stays_where_the_search_fails(rule: UpdateRule, p: Problem) -> None:
    """If no trial passes the step is zero (CPO: from b <= 0), and the status says so."""
    out = run(rule, p, lambda d: Surrogates(-jnp.sum(d * d), jnp.zeros(len(p.b)), 0.0 * jnp.sum(d)))
    assert out.status == Status.LINE_SEARCH_FAILED, f"no trial can pass, but the status is {out.status.name}"
    assert not np.any(out.step), f"the line search failed and left its last trial behind: {out.step}"


def keeps_the_shortest_trial_when_restoring(p: Problem, delta: float) -> None:
    """CPO from b > 0 where no trial passes: 0.8^14 of the full step, and the status says so."""
    full = run(rules.cpo(delta, line_search=False, cg_iterations=EXACT), p).step
    never = Surrogates(jnp.zeros(()), jnp.ones(1), jnp.zeros(()))
    out = run(rules.cpo(delta, cg_iterations=EXACT), p, lambda d: never)
    assert out.status == Status.LINE_SEARCH_FAILED, f"no trial can pass, but the status is {out.status.name}"
    assert np.allclose(out.step, 0.8**14 * full, rtol=1e-9), (
        f"not the shortest trial: {out.step / full} of the full step"
    )


def only_takes_what_improves(rule: UpdateRule, p: Problem) -> None:
    """The surrogate reward is larger after the step than before it, where it bends down on the way."""
    g, d_full = jnp.asarray(p.g), run(rule, p).step
    bend = 1.5 * p.g @ d_full / (d_full @ d_full)  # the full step loses reward, half of it would gain
    out = run(rule, p, lambda d: Surrogates(g @ d - bend * (d @ d), jnp.zeros(len(p.b)), 0.0 * jnp.sum(d)))
    gain = p.g @ out.step - bend * out.step @ out.step
    assert gain > 0, f"the step taken loses reward: {gain:.4g}, after {out.extra['backtracks']} backtracks"


def keeps_the_cost_allowance(p: Problem, delta: float) -> None:
    """CPO from b < 0: the surrogate cost rises by at most -b, in the units of b, where it bends up on the way."""
    rule = rules.cpo(delta, cg_iterations=EXACT)
    room = -p.b[0]
    assert room > 0
    g, a, H = jnp.asarray(p.g), jnp.asarray(p.a), jnp.asarray(p.H)
    bend = 3.0 * room / delta  # at the full step, KL = delta, the bend alone is three times the allowance

    def bent(d: Array) -> Surrogates:
        kl = 0.5 * d @ (H @ d)
        return Surrogates(g @ d, a @ d + bend * kl, kl)

    out = run(rule, p, bent)
    assert np.any(out.step), f"no step at all, status {out.status.name}"
    rise = p.a[0] @ out.step + bend * 0.5 * out.step @ p.H @ out.step
    assert rise <= room * (1 + 1e-9), f"the cost surrogate rises by {rise:.4g}, {room:.4g} is left under the limit"


def accepts_a_kl_of_exactly_delta() -> None:
    """H = I, g = (1, 0), delta = 1/2: the full step (1, 0) has KL 1/2, with no rounding, and is taken."""
    p = Problem(np.eye(2), np.array([1.0, 0.0]), np.zeros((0, 2)), np.zeros(0))
    out = run(rules.trpo(0.5), p)
    assert out.extra["line_search"] == Reason.ACCEPTED, f"refused: {Reason(int(out.extra['line_search'])).name}"
    assert out.extra["backtracks"] == 0, f"a KL of exactly delta was refused: step {out.step}"
    assert np.array_equal(out.step, [1.0, 0.0])


def works_with_unconverged_cg(p: Problem, delta: float) -> None:
    """CPO after one step of CG, where q - r^2 / s is negative: feasible, not an excuse, and along the boundary."""
    out = run(rules.cpo(delta, line_search=False, cg_iterations=1), p)
    needs_no_excuse(out)
    assert out.extra["case"] == DualCase.ACTIVE, f"case {DualCase(int(out.extra['case'])).name}"
    stays_in_the_half_spaces(p, out)
    v = p.g * (p.g @ p.g) / (p.g @ p.H @ p.g)  # one step of CG
    cut_off = p.g @ v * -p.b[0] / (p.a[0] @ v)
    gained = p.g @ out.step
    assert gained > 2 * cut_off, f"gains {gained:.3g}, the reward step cut off at the boundary gains {cut_off:.3g}"


# PDO, FPO and TRPO -------------------------------------------------------------------------------------------------


def pdo_follows_its_equations(p: Problem) -> None:
    """lambda = 0.2, 0.4, 0.2, 0 for b = 0.5, -0.5, -1.5 and beta = 0.4; the step is natural on g - lambda a."""
    delta, beta, start = 0.02, 0.4, 0.2
    rule = rules.pdo(delta, learning_rate=beta, initial_multiplier=start, cg_iterations=EXACT)
    state = rule.init(1)
    for b, used in ((0.5, 0.2), (-0.5, 0.4), (-1.5, 0.2), (0.0, 0.0)):
        now = replace(p, b=np.array([b]))
        out = run(rule, now, state=state)
        assert np.allclose(out.multipliers, used, atol=1e-12), f"lambda reported: {out.multipliers}, used: {used}"
        penalised = natural_step(replace(now, g=p.g - used * p.a[0]), delta)
        shrunk = 0.8 ** int(out.extra["backtracks"])
        assert np.allclose(out.step, shrunk * penalised, rtol=1e-8), (
            f"PDO's step is not natural on g - lambda a with lambda = {used}: {out.step}, not {shrunk * penalised}"
        )
        state = out.state
        assert np.all(np.asarray(state) >= 0), f"lambda is negative: {state}"
    assert np.allclose(state, 0.0), f"lambda ends at {state}, not at 0"


def trpo_is_the_penalised_step_without_penalty(p: Problem) -> None:
    """TRPO = FPO with lambda 0 = PDO's first step, to the bit."""
    trpo, fpo, pdo = (run(rule, p) for rule in (rules.trpo(0.02), rules.fpo(0.02, 0.0), rules.pdo(0.02)))
    for name, other in (("FPO with lambda 0", fpo), ("PDO's first", pdo)):
        assert np.array_equal(trpo.step, other.step), f"TRPO is not {name}: they differ by {trpo.step - other.step}"
        assert trpo.predicted_kl == other.predicted_kl, f"TRPO is not {name}: KL {trpo.predicted_kl}"


# Units: an exact episodic problem ----------------------------------------------------------------------------------

HORIZON = 12
GAMMA = 0.995
"""Not used by an undiscounted cost; here for the mistake of scaling by 1 / (1 - gamma)."""


def cost_of_an_episode(cmdp: tabular.CMDP, theta: Array) -> Array:
    """J_C written again: push the distribution of states forward T times and add up what is paid."""
    policy = jax.nn.softmax(theta)

    def pay(states, _):
        return jnp.einsum("s,sa,sat->t", states, policy, cmdp.transitions), jnp.sum(
            states[:, None] * policy * cmdp.cost
        )

    return jnp.sum(jax.lax.scan(pay, cmdp.start, None, length=HORIZON)[1])


class Episodes(NamedTuple):
    """Problems of three states, two actions and twelve steps, with a policy; a batch of them."""

    cmdp: tabular.CMDP
    theta: Array
    at: tabular.Evaluation


@cache
def some_episodes(count: int = 5) -> Episodes:
    """What earns also costs in these problems, so that the reward step raises the cost."""

    def one(key: Array) -> Episodes:
        problem, policy = jax.random.split(key)
        cmdp = tabular.random_cmdp(problem, states=3, actions=2, alignment=0.95)
        theta = jax.random.normal(policy, (3, 2))
        return Episodes(cmdp, theta, tabular.episodic(cmdp, theta, HORIZON))

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), count))


def prediction_is_in_the_units_of_b(rule: UpdateRule) -> None:
    """predicted_costs is the derivative of J_C per episode along the step, by finite differences of J_C."""

    def along(cmdp: tabular.CMDP, theta: Array, at: tabular.Evaluation) -> tuple[Array, Array]:
        d, _, info = rule.update(tabular.local_model(at, limit=at.J_C + 1.0), rule.init(1))
        ahead, behind = (cost_of_an_episode(cmdp, theta + h * d) for h in (1e-4, -1e-4))
        return info.predicted_costs[0], (ahead - behind) / 2e-4

    predicted, slope = map(np.asarray, jax.jit(jax.vmap(along))(*some_episodes()))
    assert np.allclose(predicted, slope, rtol=1e-5), (
        f"units: along the step J_C changes by {slope} per episode, predicted {predicted}: "
        f"factors {predicted / slope}, where an episode has {HORIZON} steps"
    )


def step_ends_at_the_limit(rule: UpdateRule, delta: float) -> None:
    """With h a little below J_C, within reach of the trust region, the real J_C after the step is h."""

    def after(cmdp: tabular.CMDP, theta: Array, at: tabular.Evaluation) -> tuple[Array, Array, Array]:
        a = jax.grad(lambda x: cost_of_an_episode(cmdp, x))(theta).ravel()
        H = jax.vmap(lambda v: tabular.fisher_product(at, v.reshape(theta.shape)).ravel())(jnp.eye(a.size))
        b = 0.5 * jnp.sqrt(2 * delta * (a @ (jnp.linalg.pinv(H, rtol=1e-9) @ a)))  # half of what the region allows
        d, _, info = rule.update(tabular.local_model(at, limit=at.J_C - b), rule.init(1))
        return b, cost_of_an_episode(cmdp, theta + d) - (at.J_C - b), info.status

    b, left, status = map(np.asarray, jax.jit(jax.vmap(after))(*some_episodes()))
    assert np.all(np.abs(left) < 0.05 * b), (
        f"units: J_C was {b} above the limit and is {left} above it after the step "
        f"({', '.join(Status(int(x)).name for x in status)})"
    )


# Helpers -----------------------------------------------------------------------------------------------------------


def _poisoned(H: Array, g: Array, a: Array, poison: Array, d: Array) -> Surrogates:
    good = quadratic(H, g, a, d)
    return Surrogates(good.reward + poison[0], good.costs + poison[1], good.kl + poison[2])


def _cosine(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def _cg_residual(H: np.ndarray, r: np.ndarray, iterations: int) -> float:
    """The relative residual of conjugate gradient, by its definition: the best point in the Krylov space."""
    krylov = [r / np.linalg.norm(r)]
    for _ in range(iterations - 1):
        krylov.append(H @ krylov[-1])
        krylov[-1] /= np.linalg.norm(krylov[-1])
    K = np.linalg.qr(np.stack(krylov, axis=1))[0]
    x = K @ np.linalg.solve(K.T @ H @ K, K.T @ r)
    return float(np.linalg.norm(H @ x - r) / np.linalg.norm(r))
