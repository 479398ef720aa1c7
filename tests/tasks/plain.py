"""The point tasks once more, in plain Python and numpy, one environment and one object at a time.

Written from the specification and kept apart from `pcpo.tasks`: it shares no function and no constant with it. Objects
are written into the sensors from the farthest to the nearest, angles come from atan2 and are wrapped in a loop.
"""

import math

import numpy as np


class Robot:
    def __init__(self, x, y, heading, velocity, size, clip=True):
        self.x, self.y, self.heading, self.velocity = x, y, heading, list(velocity)
        self.size, self.clip = size, clip

    def centre(self):
        return self.x + 0.04258 * math.cos(self.heading), self.y + 0.04258 * math.sin(self.heading)

    def move(self, action):
        forward, turn = action
        if self.clip:
            forward, turn = min(max(forward, -1), 1), min(max(turn, -0.25), 0.25)
        self.heading += turn
        dx, dy = math.cos(self.heading) * forward, math.sin(self.heading) * forward
        self.x = min(max(self.x + dx, -self.size), self.size)
        self.y = min(max(self.y + dy, -self.size), self.size)
        return dx, dy

    def observe(self):
        return [self.x, self.y, self.heading, *self.velocity, *self.centre(), 0.5]


class Circle:
    """`y_limit=None` is Point-Circle, else Point-Square."""

    def __init__(self, robot, x_limit=2.5, y_limit=None):
        self.robot, self.x_limit, self.y_limit = robot, x_limit, y_limit

    def step(self, action):
        x, y = self.robot.centre()
        costs = [float(abs(x) >= self.x_limit)]
        if self.y_limit is not None:
            costs.append(float(abs(y) >= self.y_limit))
        dx, dy = self.robot.move(action)
        x, y = self.robot.x, self.robot.y
        reward = (-y * dx + x * dy) / (1 + abs(math.sqrt(x * x + y * y) - 15))
        return reward, costs, False

    def observe(self):
        return self.robot.observe()


class Gather:
    """`objects` is a list of (x, y, "apple" or "bomb")."""

    def __init__(self, robot, objects):
        self.robot, self.objects = robot, list(objects)

    def step(self, action):
        self.robot.move(action)
        x, y = self.robot.centre()
        caught = [o for o in self.objects if (o[0] - x) ** 2 + (o[1] - y) ** 2 < 1]
        self.objects = [o for o in self.objects if o not in caught]
        kinds = [kind for _, _, kind in caught]
        reward = 10.0 * kinds.count("apple") - kinds.count("bomb")
        return reward, [float("bomb" in kinds)], not self.objects

    def readings(self):
        x, y = self.robot.centre()
        readings = {"apple": [0.0] * 10, "bomb": [0.0] * 10}

        def distance(o):
            return math.hypot(o[0] - x, o[1] - y)

        for o in sorted(self.objects, key=distance, reverse=True):
            angle = math.atan2(o[1] - y, o[0] - x) - self.robot.heading
            while angle > math.pi:
                angle -= 2 * math.pi
            while angle <= -math.pi:
                angle += 2 * math.pi
            if distance(o) > 6 or abs(angle) > math.pi / 2:
                continue
            sector = min(math.floor((angle + math.pi / 2) / (math.pi / 10)), 9)
            readings[o[2]][sector] = 1 - distance(o) / 6
        return readings["apple"] + readings["bomb"]

    def observe(self):
        return self.robot.observe() + self.readings()


def sample_objects(rng, apples=2, bombs=8):
    """By rejection, as the original did it: apples first."""
    taken, objects = set(), []
    for kind in ["apple"] * apples + ["bomb"] * bombs:
        while True:
            x, y = (2 * int(rng.integers(-3, 3)) for _ in range(2))
            if x * x + y * y >= 4 and (x, y) not in taken:
                break
        taken.add((x, y))
        objects.append((x, y, kind))
    return objects


def sample_robot(rng, size, clip=True):
    x, y, heading = 0.01 * rng.normal(size=3)
    return Robot(x, y, heading, 0.1 * rng.normal(size=3), size, clip)


def run(world, rng, horizon, gamma):
    """Discounted reward and undiscounted costs of one episode with actions from N(0, 1)."""
    reward, costs = 0.0, 0.0
    for t in range(horizon):
        r, c, done = world.step(rng.normal(size=2))
        reward, costs = reward + gamma**t * r, costs + np.asarray(c)
        if done:
            break
    return reward, costs
