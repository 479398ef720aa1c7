"""The paper's two-dimensional example against the derivation in docs/experiments/optimization-path.md."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcpo import rules
from pcpo.core import LocalModel
from pcpo.experiments import optimization_path as example
from pcpo.experiments import plots
from pcpo.experiments.optimization_path import claims, figure, measurements

DELTA = 1e-3


@pytest.fixture(scope="module")
def found():
    return measurements.measure()


def closed_form(x1, delta, projection):
    """Both directions at (x1, -1 - x1), worked by hand on the page."""
    eta = np.sqrt(2.0 * delta / (10.0 * x1**2 + 2.0 * (1.0 + x1) ** 2))
    along = {"kl": (4.0 * x1 - 1.0) / 6.0, "l2": np.full_like(x1, -0.5)}[projection]
    active = np.stack([along, -along], axis=1)
    inactive = np.stack([x1, 1.0 + x1], axis=1)
    return eta[:, None] * np.where(x1[:, None] > -0.5, active, inactive)


# Directions.


@pytest.mark.parametrize("projection", measurements.PROJECTIONS)
@pytest.mark.parametrize("delta", [1e-3, 0.1])
def test_directions_on_the_boundary_are_those_worked_by_hand(projection, delta):
    x1 = np.linspace(-4.0, 4.0, 1025)  # the shape that the fixture has compiled; binary fractions, so b is exactly 0
    steps, _ = measurements.directions(jnp.asarray(measurements.on_boundary(x1)), delta, projection)
    assert np.allclose(steps, closed_form(x1, delta, projection), rtol=1e-10, atol=1e-15)


def test_the_kl_direction_is_zero_at_one_of_the_three_points_and_the_l2_direction_at_none(found):
    x1 = np.array([0.75, 0.25, -0.25])
    lengths = np.sqrt(12.0 / (10.0 * x1**2 + 2.0 * (1.0 + x1) ** 2))  # |(1, -1)|_H times eta / sqrt(2 delta)
    assert np.allclose(found.claimed["kl"].shares, lengths * np.abs(4.0 * x1 - 1.0) / 6.0, atol=1e-12)
    assert np.allclose(found.claimed["kl"].shares, [0.3369, 0.0, 0.8729], atol=1e-4)
    assert np.allclose(found.claimed["l2"].shares, lengths / 2.0, atol=1e-12)


def test_directions_vanish_on_the_boundary_at_one_point_for_kl_and_nowhere_for_l2(found):
    assert np.allclose(found.zeros["kl"], [[0.25, -1.25]], atol=1e-8)
    assert found.zeros["l2"].shape == (0, 2)


def test_a_zero_between_the_points_of_the_grid_is_found():
    along = np.linspace(-8.3, 7.9, 1025)
    assert 0.25 not in along
    assert np.allclose(measurements.zeros_on_boundary(along, DELTA, "kl"), [[0.25, -1.25]], atol=1e-8)


def test_the_zero_is_a_minimum_of_f_along_the_boundary(found):
    assert found.curvature_along_boundary == pytest.approx(4.0)
    x1 = np.array([0.2, 0.25, 0.3])
    f = [float(measurements.objective(jnp.asarray(x))) for x in measurements.on_boundary(x1)]
    assert f[1] < min(f[0], f[2])
    assert np.allclose(f, 4.0 * x1**2 - 2.0 * x1 - 1.0)


def test_for_no_metric_is_the_kl_direction_zero_at_all_three_points():
    roots = jax.random.normal(jax.random.key(0), (100, 2, 2))
    metrics = roots @ roots.mT + 0.05 * jnp.eye(2)[None]
    rule = rules.pcpo(DELTA, "kl")

    @jax.jit
    def share(H, x):
        g = jnp.array([10.0, -2.0]) * x
        model = LocalModel(g=g, a=jnp.ones((1, 2)), b=jnp.zeros(1), fvp=H.__matmul__)
        kl = rule.update(model, rule.init(1))[2].predicted_kl
        return jnp.sqrt(jnp.maximum(kl, 0.0) / DELTA)  # for a zero step it is rounding, of either sign

    shares = jax.vmap(jax.vmap(share, (None, 0)), (0, None))(metrics, jnp.array(measurements.CLAIMED))
    assert shares[:, 1].max() < 1e-7
    assert shares[:, [0, 2]].min() > 1e-3


def test_from_feasible_points_directions_stay_feasible_and_kl_ones_within_the_trust_region(found):
    for projection in measurements.PROJECTIONS:
        field = found.field[projection]
        excess = (field.points + field.steps).sum(axis=1) + 1.0
        assert excess.max() < 1e-12
        feasible = field.points.sum(axis=1) <= -1.0
        assert (field.shares[feasible] <= 1.0 + 1e-9).all() == (projection == "kl")


# Paths.


def test_both_paths_run_to_infinity_in_opposite_directions(found):
    kl, l2 = found.walks["kl"], found.walks["l2"]
    assert kl.points.shape == (2001, 2)
    assert np.allclose(kl.points[-1], [16.0133, -17.0133], atol=1e-3)
    assert np.allclose(l2.points[-1], [-27.2802, -0.0089], atol=1e-3)
    assert kl.f[-1] == pytest.approx(992.68, rel=1e-4)
    assert l2.f[-1] == pytest.approx(3721.03, rel=1e-4)
    assert (np.diff(kl.points[15:, 0]) > 0.0).all()
    assert (np.diff(l2.points[15:, 0]) < 0.0).all()


def test_f_rises_with_every_kl_step_and_falls_for_a_while_under_l2(found):
    assert (np.diff(found.walks["kl"].f) > 0.0).all()
    falling = np.flatnonzero(np.diff(found.walks["l2"].f) < 0.0)
    assert len(falling) == 40
    assert (np.diff(falling) == 1).all()
    crossing = np.flatnonzero(found.walks["l2"].f > found.walks["kl"].f)
    assert 100 < crossing[0] < 120


def test_paths_meet_the_boundary_where_the_hyperbola_does_and_never_cross_it(found):
    for projection in measurements.PROJECTIONS:
        points = found.walks[projection].points
        excess = points.sum(axis=1) + 1.0
        first = int(np.flatnonzero(excess > -1e-9)[0])
        assert first == 15
        assert abs(points[first, 0] - (np.sqrt(5.0) - 1.0) / 2.0) < 0.01
        assert np.allclose(points[:first].prod(axis=1), -1.0, atol=0.01)
        assert excess.max() < 1e-12


def test_no_other_feasible_start_converges_either(found):
    for projection in measurements.PROJECTIONS:
        others = found.others[projection]
        assert len(others.starts) == 171
        fates = {claims.fate(*each) for each in zip(*others, strict=True)}
        assert fates == {"diverged"}


def test_at_the_stationary_point_itself_a_path_stays_until_rounding_moves_it():
    starts = np.tile([[0.25, -1.25]], (172, 1))  # the shape that the fixture has compiled
    visited = np.asarray(measurements.walk(jnp.asarray(starts), DELTA, 2000, "kl"))[:, 0]
    assert np.allclose(visited[:1000], [0.25, -1.25], atol=1e-6)


# Verdicts.


def test_the_verdicts(found):
    assert [(v.verdict, v.claim[:40]) for v in claims.judge(found)] == [
        ("holds", "An optimal solution to this constrained "),
        ("holds", "A stationary point of PCPO with KL proje"),
        ("holds", "PCPO with KL projection has stationary p"),
        ("partly", "The KL update direction is zero at (0.75"),
        ("holds", "PCPO with L2 norm projection does not ha"),
        ("fails", "Starting at (0.5, -2), PCPO with KL proj"),
        ("holds", "Starting at (0.5, -2), PCPO with L2 proj"),
        ("partly", "Both projections converge to different s"),
        ("untested", "If the gradient is zero in the constrain"),
    ]


def test_verdicts_follow_what_was_measured(found):
    """Had the paper's claims been true, the verdicts would say so."""
    zero = found.claimed["kl"]._replace(shares=np.zeros(3))
    stopped = found.walks["kl"]._replace(last_share=0.0)
    verdicts = claims.judge(
        found._replace(
            claimed={**found.claimed, "kl": zero},
            walks={**found.walks, "kl": stopped},
            zeros={"kl": found.zeros["kl"], "l2": found.zeros["kl"]},
        )
    )
    assert [v.verdict for v in verdicts] == [
        *("holds", "fails", "holds", "holds", "fails", "holds", "holds", "partly", "untested")
    ]


def test_claims_about_paths_are_untested_from_another_start_or_after_too_few_steps(found):
    elsewhere = claims.judge(found._replace(start=(0.0, -2.0)))
    assert [v.verdict for v in elsewhere[5:8]] == ["untested"] * 3
    short = {p: walked._replace(points=walked.points[:20], f=walked.f[:20]) for p, walked in found.walks.items()}
    assert [v.verdict for v in claims.judge(found._replace(walks=short))[5:8]] == ["untested"] * 3


@pytest.mark.parametrize(
    ("end", "share", "said"),
    [((9.0, -9.0), 1.0, "diverged"), ((0.3, -1.3), 0.001, "converged"), ((1.0, -2.0), 1.0, "moving")],
)
def test_fates(end, share, said):
    assert claims.fate((0.5, -2.0), end, share) == said


# Files.


def test_figures_and_numbers_are_written_and_written_over(found, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "measure", lambda *_: found)
    directory = tmp_path / "new" / "folder"
    first = example.reproduce(directory)
    assert sorted(path.name for path in first) == [
        "optimization-path-directions.png",
        "optimization-path-directions.svg",
        "optimization-path-paths.png",
        "optimization-path-paths.svg",
        "optimization-path.json",
    ]
    contents = {path: path.read_bytes() for path in first}
    assert all(len(content) > 10_000 for content in contents.values())
    assert all(content.startswith(b"\x89PNG") for path, content in contents.items() if path.suffix == ".png")
    for path in first:
        path.write_bytes(b"old")
    other = directory / "other.txt"
    other.write_text("mine")
    assert example.reproduce(directory) == first
    assert {path: path.read_bytes() for path in first} == contents
    assert other.read_text() == "mine"


def test_the_numbers_are_plain_json(found):
    numbers = json.loads(json.dumps(claims.as_json(found), allow_nan=False))
    assert numbers["paths"]["l2"]["steps_that_lower_f"] == 40
    assert numbers["paths"]["kl"]["largest_fall_of_f"] == 0.0
    assert numbers["paths"]["kl"]["reaches_boundary_at_step"] == 15
    assert len(numbers["paths"]["kl"]["x"]) == 201
    assert numbers["other_feasible_starts"]["kl"]["converged"] == 0
    assert [point["kl"]["share"] < 1e-6 for point in numbers["claimed_stationary_points"]] == [False, True, False]
    assert {v["verdict"] for v in numbers["verdicts"]} == {"holds", "partly", "fails", "untested"}


def test_pictures_can_be_drawn_from_any_start_and_after_a_single_step(found):
    walks = {}
    for p, walked in found.walks.items():
        walks[p] = walked._replace(points=walked.points[:2] + np.array([40.0, -60.0]), f=walked.f[:2])
    far = found._replace(start=(40.5, -62.0), steps=1, walks=walks)
    with plots.style():
        figure.draw_paths(far).canvas.draw_idle()
