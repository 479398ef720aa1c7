"""What a person sees of a run: reward, cost against its limit, violations so far, steps per second, time left."""

import io
import os
import pty
import subprocess
import sys

import pytest

from pcpo.training import progress
from pcpo.training.progress import Lines, Pace, clock, numbers, short, title
from tests.training.small import small


def row(update, seed=0, cost: float | None = 6.0, reward: float | None = 1.234):
    return {
        "update": update,
        "seed": seed,
        "env_steps": 1000 * (update + 1),
        "discounted_return": reward,
        "costs": {"cost": cost},
        "limits": {"cost": 5.0},
        "cumulative_violations": {"cost": 10.0 + update},
        "seconds": 0.5,
    }


def test_numbers_are_means_over_the_seeds_of_the_newest_update():
    rows = [row(0), row(1, 0, 4.0, 1.0), row(1, 1, 8.0, 2.0)]
    assert numbers(rows) == "reward 1.5  cost 6 of 5 (violations so far 11)"
    assert numbers([row(0, cost=None, reward=None)]) == "reward not finite  cost not finite of 5 (violations so far 10)"


def test_pace_begins_after_the_first_update_which_waited_for_the_compiler():
    pace = Pace(10)
    pace.see([row(0)])
    assert pace.described() == ""
    pace.see([row(1), row(2)])
    assert pace.described() == "  2k steps/s  0:04 left"  # 2000 steps in 2 * 0.5 s; 7 updates of 0.5 s, rounded to even


@pytest.mark.parametrize(("number", "shown"), [(950.0, "950"), (1300.0, "1.3k"), (41e6, "41M"), (2.5e9, "2.5G")])
def test_large_numbers_are_short(number, shown):
    assert short(number) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(7.2, "0:07"), (65.0, "1:05"), (7985.0, "2:13:05")])
def test_time_is_a_clock(seconds, shown):
    assert clock(seconds) == shown


def test_the_title_names_task_algorithm_limits_and_seeds():
    assert title(small(seeds=3, seed=4)) == "point-circle with pcpo-kl, cost <= 5, seeds 4 to 6"
    assert title(small()) == "point-circle with pcpo-kl, cost <= 5, seed 0"


def test_without_a_terminal_there_is_a_line_now_and_then_and_one_at_the_end():
    stream = io.StringIO()
    lines = Lines(stream, between=1000.0)
    with lines:
        lines.start(small(updates=5), done=0)
        for update in range(5):
            lines.show([row(update)])
        lines.say("warning: mine")
    first, second, last, warning = stream.getvalue().splitlines()
    assert first == "point-circle with pcpo-kl, cost <= 5, seed 0: compiling"
    assert second == "update 1/5  reward 1.23  cost 6 of 5 (violations so far 10)"
    assert last == "update 5/5  reward 1.23  cost 6 of 5 (violations so far 14)  2k steps/s  0:00 left"
    assert warning == "warning: mine"


SHOW = """
from pcpo.training.progress import display_for
from tests.training.small import small
from tests.training.test_progress import row
with display_for() as display:
    display.start(small(updates=3), 0)
    for update in range(3):
        display.show([row(update)])
    display.say("warning: mine")
"""


def test_on_a_terminal_there_is_a_bar():
    """On a real one, as the operating system makes them."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", SHOW], stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # what Linux says at the end
            pass
    os.close(ours)
    assert process.returncode == 0
    text = seen.decode()
    assert "point-circle with pcpo-kl, cost <= 5, seed 0" in text
    assert "3/3" in text
    assert "cost 6 of 5 (violations so far 12)  2k steps/s  0:00 left" in text
    assert "warning: mine" in text


def test_a_stream_or_no_terminal_gets_lines():
    assert isinstance(progress.display_for(io.StringIO()), Lines)
    assert isinstance(progress.display_for(), Lines)
