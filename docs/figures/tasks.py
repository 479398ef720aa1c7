"""Draws the pictures on the pages of the tasks: `python docs/figures/tasks.py`.

The point's policies are written by hand; the ants move at random, as before the first update.
"""

import math
from pathlib import Path

import jax
import numpy as np
from PIL import Image

from pcpo.tasks.api import DeviceTask, HostTask
from pcpo.tasks.draw import frame
from pcpo.tasks.episode import Episode, play_on_host, play_one
from pcpo.tasks.registry import make


def turn_to(direction: float, heading: float) -> float:
    """The shortest way round, to be clipped by the task."""
    return (direction - heading + math.pi) % (2 * math.pi) - math.pi


def run_circles(observation, t):
    """Out to the circle, then along it."""
    x, y, heading = (float(number) for number in observation[:3])
    radius = math.hypot(x, y)
    tangent = math.atan2(y, x) + math.pi / 2
    direction = math.pi / 2 if radius < 8 else tangent + 0.06 * (radius - 13.5)
    return 1.0, turn_to(direction, heading)


def stay_inside(observation, t):
    """Up and down the rectangle: counter-clockwise, as slowly as its width asks for."""
    x, y, heading = (float(number) for number in observation[:3])
    angle = 2 * math.pi * t / 34
    goal = 1.9 * math.cos(angle), 4.2 * math.sin(angle)
    direction = math.atan2(goal[1] - y, goal[0] - x)
    turn = turn_to(direction, heading)
    return (0.9 if abs(turn) < 0.7 else 0.25), turn


def seek_apples(observation, t):
    """Towards the nearest apple in sight, around the nearest bomb."""
    apples, bombs = np.asarray(observation[9:19]), np.asarray(observation[19:29])
    bearings = (np.arange(10) - 4.5) * math.pi / 10
    if not apples.any():
        return 0.5, 0.25
    goal = bearings[apples.argmax()]
    if bombs.max() > 0.7 and abs(bearings[bombs.argmax()] - goal) < 0.6 and apples.max() < bombs.max():
        return 0.4, -0.25 * np.sign(bearings[bombs.argmax()])
    return (1.0 if abs(goal) < 0.5 else 0.3), goal


def save(name, steps, policy, seed):
    """A picture of a point robot."""
    task = make(name)
    assert isinstance(task, DeviceTask)
    episode = play_one(task, policy, jax.random.key(seed))
    n = steps or len(episode.rewards)
    write(name, frame(task, *Episode(episode.states[: n + 1], episode.rewards[:n], episode.costs[:n])))


def save_ant(name, steps, seed):
    """A picture of an ant; by MuJoCo's renderer if there is OpenGL, so draw it where there is."""
    task, noise = make(name), np.random.default_rng(seed)
    assert isinstance(task, HostTask)
    assert task.paint is not None
    scenes, rewards, costs = play_on_host(task, lambda observation, t: noise.normal(size=8), seed)
    write(name, task.paint(task, scenes[: steps + 1], rewards[:steps], costs[:steps]), colours=256)


def save_traffic(name, steps, act, **options):
    """A picture of traffic; act(t, noise)."""
    task, noise = make(name, **options), np.random.default_rng(0)
    assert isinstance(task, HostTask)
    assert task.paint is not None
    scenes, rewards, costs = play_on_host(task, lambda observation, t: act(t, noise), 0)
    write(name, task.paint(task, scenes[: steps + 1], rewards[:steps], costs[:steps]))


def switch_in_turn(t, noise):
    """Every light every 11 seconds, one 3 seconds after the other."""
    return [1.0 if (t + 3 * light) % 11 == 0 else -1.0 for light in range(4)]


def write(name, picture, colours=128):
    image = Image.fromarray(picture).quantize(colours, dither=Image.Dither.NONE)
    image.save(Path(__file__).parent / f"task-{name}.png", optimize=True)


if __name__ == "__main__":
    save("point-circle", 44, run_circles, seed=0)
    save("point-square", None, stay_inside, seed=0)
    save("point-gather", 10, seek_apples, seed=13)
    save_ant("ant-circle", 380, seed=28)
    save_ant("ant-gather", 400, seed=18)
    save_traffic("grid", 130, switch_in_turn)
    save_traffic("bottleneck", 330, lambda t, noise: noise.normal(size=20), action_mode="normalize")
