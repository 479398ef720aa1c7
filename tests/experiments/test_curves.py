"""Pictures of runs do not mislead: what is near a limit looks near it, whatever else is in the picture."""

import numpy as np
import pytest

from pcpo.experiments import comparison, curves, plots
from pcpo.experiments.series import Series


def series(cost: np.ndarray, limit: float = 5.0, label: str = "run") -> Series:
    """A run with one seed, these costs, and a reward that rises."""
    n = len(cost)
    return Series(
        label=label,
        task="point-circle",
        algorithm="pcpo-kl",
        seeds=(0,),
        updates=np.arange(n),
        limits={"cost": np.full(n, limit)},
        columns={
            "costs.cost": cost[:, None],
            "discounted_return": np.linspace(0.0, 1.0, n)[:, None],
            "cumulative_violations.cost": np.cumsum(np.maximum(cost - limit, 0.0))[:, None],
        },
        statuses=(("ok",),) * n,
    )


@pytest.mark.parametrize("end", [5.01, 4.99, 5.0])
def test_a_run_that_ended_at_its_limit_is_drawn_beside_it_and_not_far_beyond(end):
    with plots.style():
        figure = curves.side_by_side([series(np.full(20, end))])
    (axes,) = [each for each in figure.axes if each.get_title("left") == "where they ended"]
    left, right = axes.get_xlim()
    assert left <= 4.0
    assert right >= 6.0
    assert abs(end - 5.0) < 0.02 * (right - left)


@pytest.mark.parametrize(
    ("cost", "first"),
    [
        ([9.0, 5.5] + [5.0] * 12, 1),  # a tenth above is still kept
        ([9.0, 5.51] + [5.0] * 12, 2),
        ([5.0] * 9, None),  # too short for a mean over ten updates
        ([5.0] * 12 + [20.0] + [5.0] * 3, None),  # the last ten contain 20
        ([9.0] * 5 + [0.0] * 20 + [5.4] * 10, 5),
    ],
)
def test_from_when_on_a_limit_was_kept(cost, first):
    """Worked by hand from the definition: the update's own cost, and every ten-update mean from there on."""
    assert comparison.kept_from(series(np.array(cost)), "cost") == first


@pytest.mark.parametrize(
    ("cost", "said"), [([5.0] * 9, "too short"), ([9.0] * 10, "never"), ([9.0, *[5.0] * 10], "update 1")]
)
def test_a_run_too_short_to_keep_a_limit_is_not_said_to_have_broken_it(cost, said):
    headings, (row,) = comparison.cells([comparison.summarise(series(np.array(cost)))])
    assert row[headings.index("kept from")] == said


@pytest.mark.parametrize("n", [2, 3, 8])
def test_short_runs_have_whole_updates_on_the_axis(n):
    with plots.style():
        figure = curves.learning_curves([series(np.full(n, 6.0))])
        ticks = np.array([axes.get_xticks() for axes in figure.axes[:2]])
    assert np.array_equal(ticks, np.round(ticks))
