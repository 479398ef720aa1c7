"""What lights and slow spells do, step by step, without SUMO."""

import pytest

from pcpo.tasks.traffic.lights import Lights
from pcpo.tasks.traffic.spells import Spells, just_over, over


def play(requests: str, yellow_time: float = 2.0):
    """One light that is asked to switch wherever there is an x.

    Returns:
        What it shows, timer, direction and red ages, after each step.
    """
    lights = Lights(1, yellow_time, 1.0)
    shown, timers, directions, reds = [], [], [], []
    for request in requests:
        lights.ask([request == "x"])
        lights.passed()
        shown.append(lights.shown(0))
        timers.append(lights.timer[0])
        directions.append(lights.direction[0])
        reds.append(tuple(lights.red[0]))
    return shown, timers, directions, reds


def test_a_light_begins_with_vertical_green_and_nothing_counted():
    lights = Lights(4, 2.0, 1.0)
    assert [lights.shown(i) for i in range(4)] == ["GrGr"] * 4
    assert (lights.direction, lights.timer, lights.yellow) == ([0] * 4, [0.0] * 4, [False] * 4)
    assert lights.red == [[0.0, 0.0]] * 4


def test_a_switch_by_hand():
    """Green until it is asked, yellow for 2 s while the other waits, then the other; the timer counts yellow only."""
    shown, timers, directions, reds = play(".x....x..")
    assert shown == ["GrGr", "yryr", "yryr", "rGrG", "rGrG", "rGrG", "ryry", "ryry", "GrGr"]
    assert timers == [0, 0, 1, 2, 2, 2, 0, 1, 2]
    assert directions == [0, 1, 1, 1, 1, 1, 0, 0, 0]
    # vertical, horizontal: yellow is not red, and who waits grows older
    assert reds == [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 1)]


@pytest.mark.parametrize(("yellow_time", "period"), [(2.0, 3), (3.0, 4)])
def test_asking_always_gives_the_least_green_and_the_least_red(yellow_time, period):
    """Green for one step; red for one step more than yellow."""
    shown, _, _, reds = play("x" * 24, yellow_time)
    assert shown == (["yryr"] * (period - 1) + ["rGrG"] + ["ryry"] * (period - 1) + ["GrGr"]) * (24 // (2 * period))
    assert max(max(pair) for pair in reds) == period


def test_requests_during_yellow_are_ignored():
    assert play("xxxx....") == play("x..x....")
    assert play("xx......") == play("x.......")


def test_lights_do_not_know_each_other():
    lights = Lights(2, 2.0, 1.0)
    assert lights.ask([False, True]) == [(1, "yryr")]
    lights.passed()
    assert lights.ask([True, False]) == [(0, "yryr")]
    lights.passed()
    assert lights.ask([False, False]) == [(1, "rGrG")]
    lights.passed()
    assert lights.red == [[0.0, 3.0], [1.0, 0.0]]


def test_seven_seconds_are_allowed_and_one_more_is_not():
    """A switch every 7 steps is red for 7 s exactly; every 8 steps it costs 1 in one step of each phase."""
    for period, expected in ((7, 0), (8, 1), (10, 3)):
        _, _, _, reds = play(("x" + "." * (period - 1)) * 4)
        phases = reds[period + 2 :]  # after the first, which the reset cut short
        costs = [over(pair, 7.0) for pair in phases[: 2 * period]]
        assert sum(costs) == 2 * expected
        assert sum(just_over(pair, 7.0, 1.0) for pair in phases[: 2 * period]) == 2 * (expected > 0)


def test_a_slow_spell_by_hand():
    """Slow is below the threshold, not at it; a fast step ends a spell; whoever is gone is forgotten."""
    spells = Spells(3.0, 0.5)
    seen = []
    for speeds in ({"a": 2.9, "b": 3.0}, {"a": 0.0, "b": 2.0}, {"a": 3.0, "b": 1.0}, {"a": 1.0}, {"a": 1.0, "b": 1.0}):
        spells.passed(speeds.items())
        seen.append(dict(spells.seconds))
    assert seen == [{"a": 0.5}, {"a": 1.0, "b": 0.5}, {"b": 1.0}, {"a": 0.5}, {"a": 1.0, "b": 0.5}]


def test_a_spell_costs_from_the_first_step_beyond_the_limit():
    spells, late, new = Spells(3.0, 0.5), [], []
    for _ in range(23):
        spells.passed([("a", 1.0)])
        late.append(over(spells.seconds.values(), 10.0))
        new.append(just_over(spells.seconds.values(), 10.0, 0.5))
    assert late == [0] * 20 + [1, 1, 1]  # 20 steps are 10 s
    assert new == [0] * 20 + [1, 0, 0]
