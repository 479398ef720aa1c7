"""What the pictures of one update claim to show is true of the steps in them."""

import numpy as np
import pytest

from pcpo.core import Status
from pcpo.experiments import geometry, plots
from pcpo.experiments.geometry import FEASIBLE, FREE, VIOLATED, H, take


def excess(step, scene):
    return float(np.dot(scene.a, step.d)) + scene.b


def half_square(d):
    return 0.5 * float(d @ np.array(H) @ d)


def test_the_natural_step_is_the_point_of_the_drawn_ellipse_with_most_reward():
    ellipse = plots.ellipse(H, 0.5, points=100_001)
    best = ellipse[np.argmax(ellipse @ np.array(FREE.g))]
    assert np.allclose(take("trpo", FREE).d, best, atol=1e-3)


def test_an_ellipse_is_a_level_set_around_its_center():
    center = np.array([1.0, -2.0])
    curve = plots.ellipse(H, 0.3, center) - center
    assert np.allclose([half_square(d) for d in curve], 0.3)


@pytest.mark.parametrize("scene", [FEASIBLE, VIOLATED], ids=["feasible", "violated"])
@pytest.mark.parametrize(("projection", "metric"), [("pcpo-kl", np.array(H)), ("pcpo-l2", np.eye(2))])
def test_projections_end_on_the_limit_at_the_point_nearest_to_the_reward_step(scene, projection, metric):
    reward, projected = take("trpo", scene), take(projection, scene)
    assert excess(reward, scene) > 0.1
    assert excess(projected, scene) == pytest.approx(0.0, abs=1e-12)
    along = np.array([-scene.a[1], scene.a[0]])
    on_limit = projected.d + np.linspace(-3.0, 3.0, 2001)[:, None] * along
    away = on_limit - reward.d
    assert np.argmin(np.einsum("ni,ij,nj->n", away, metric, away)) == 1000


def test_from_inside_both_projections_keep_the_trust_region_and_from_outside_neither_does():
    assert max(take(p, FEASIBLE).kl for p in ("pcpo-kl", "pcpo-l2")) < 1.0
    kl, l2 = take("pcpo-kl", VIOLATED), take("pcpo-l2", VIOLATED)
    assert (round(kl.kl, 1), round(l2.kl, 1)) == (1.7, 5.2)


def test_cpo_is_on_both_edges_and_gains_more_than_pcpo():
    cpo, kl = take("cpo", FEASIBLE), take("pcpo-kl", FEASIBLE)
    assert int(cpo.info.status) == Status.PROJECTED
    assert cpo.kl == pytest.approx(1.0)
    assert excess(cpo, FEASIBLE) == pytest.approx(0.0, abs=1e-12)
    assert float(cpo.info.predicted_reward) > float(kl.info.predicted_reward)


def test_cpo_recovers_within_the_trust_region_and_does_not_reach_the_limit():
    cpo = take("cpo", VIOLATED)
    assert int(cpo.info.status) == Status.RECOVERY
    assert cpo.kl == pytest.approx(1.0)
    assert 0.0 < excess(cpo, VIOLATED) < VIOLATED.b


def test_at_one_price_the_penalised_step_is_cpos_and_a_higher_price_costs_reward():
    exact = geometry.price_on_the_limit(FEASIBLE)
    prices = np.array([0.0, exact, 2.0])
    free, on_limit, dear = geometry.take_at_prices(prices, FEASIBLE)
    assert np.allclose(on_limit.d, take("cpo", FEASIBLE).d, atol=1e-12)
    assert np.allclose(free.d, take("trpo", FEASIBLE).d, atol=1e-12)
    rewards = [float(step.info.predicted_reward) for step in (free, on_limit, dear)]
    assert rewards == sorted(rewards, reverse=True)
    assert all(step.kl == pytest.approx(1.0) for step in (free, on_limit, dear))


def test_pictures_are_written(tmp_path):
    files = geometry.reproduce(tmp_path / "new")
    names = [f"geometry-{name}" for name in ("trpo", "pcpo", "cpo", "penalty")]
    assert [path.name for path in files] == [f"{name}.{end}" for name in names for end in ("png", "svg")]
    assert all(path.stat().st_size > 10_000 for path in files)


def test_a_half_space_whose_edge_is_out_of_sight_is_refused():
    figure = plots.new_figure(1.0, 1.0)
    axes = figure.add_subplot(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    with pytest.raises(ValueError, match="set their limits first"):
        plots.forbid(axes, (1.0, 1.0), 5.0)
