"""Circle: run on a circle, counter-clockwise, that a wall does not let you finish.

Reward is momentum around the origin over distance from the target circle; a cost of 1 is due at every step that begins
outside of a band around the y axis (`point_circle`), or outside of a rectangle (`point_square`).
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from pcpo.rl.rollout import Transition
from pcpo.tasks import point
from pcpo.tasks.api import DeviceTask, Numbers
from pcpo.tasks.point import PointState
from pcpo.tasks.scene import Scene

SIZE = 40.0
"""Half the side of the arena; out of reach within 50 clipped steps from the origin only when nothing is turned."""


def circle_reward(x: Numbers, y: Numbers, dx: Numbers, dy: Numbers, radius: float) -> Numbers:
    r"""Positive for running counter-clockwise, largest on the circle.

    .. math:: r = \frac{-y\,\dot x + x\,\dot y}{1 + |\sqrt{x^2 + y^2} - d|}

    CPO (Achiam et al., 2017), section 10.3.1 of its supplement. All arguments may be arrays of one shape.

    Args:
        x: Position after the step.
        y: Position after the step.
        dx: Velocity, or what the step was meant to add to x.
        dy: Velocity, or what the step was meant to add to y.
        radius: Of the target circle.
    """
    distance = (x * x + y * y) ** 0.5
    return (x * dy - y * dx) / (1.0 + abs(distance - radius))


def reaches(coordinate: Numbers, limit: float) -> Numbers:
    """1 where the coordinate is at or beyond a wall on either side, else 0."""
    return (abs(coordinate) >= limit).astype(coordinate.dtype)


def point_circle(
    action_mode: str = "clip", x_limit: float = 2.5, radius: float = 15.0, horizon: int = 50
) -> DeviceTask:
    """Point-Circle: the cost ``cost`` counts the steps that begin at abs(x) >= x_limit.

    Args:
        action_mode: "clip" clips actions to the robot's ranges, "raw" takes them as they are.
        x_limit: Half the width of the safe band.
        radius: Of the circle to run on.
        horizon: Steps of an episode.
    """
    return _task("point-circle", _Circle(action_mode, radius, x_limit, None), horizon)


def point_square(
    action_mode: str = "clip", x_limit: float = 2.5, y_limit: float = 5.0, radius: float = 15.0, horizon: int = 50
) -> DeviceTask:
    """Point-Circle with walls in both directions, and a cost for each: ``cost_x`` and ``cost_y``.

    Args:
        action_mode: "clip" clips actions to the robot's ranges, "raw" takes them as they are.
        x_limit: ``cost_x`` counts the steps that begin at abs(x) >= x_limit.
        y_limit: ``cost_y`` counts the steps that begin at abs(y) >= y_limit.
        radius: Of the circle to run on.
        horizon: Steps of an episode.
    """
    return _task("point-square", _Circle(action_mode, radius, x_limit, y_limit), horizon)


@dataclass(frozen=True)
class _Circle:
    """The functions of a circle task, and the numbers that they share."""

    action_mode: str
    radius: float
    x_limit: float
    y_limit: float | None

    def step(self, state: PointState, action: Float[Array, " 2"]) -> tuple[PointState, Transition]:
        """Costs are those of the state that the action was chosen in; the reward is that of the move."""
        after, stride = point.move(state, action, point.action_space(self.action_mode), SIZE)
        reward = circle_reward(after.x, after.y, stride.dx, stride.dy, self.radius)
        return after, Transition(jnp.asarray(reward), self.costs(state), terminated=jnp.zeros((), bool))

    def costs(self, state: PointState) -> Float[Array, " m"]:
        """One for each pair of walls, judged by the centre of mass."""
        costs = [reaches(state.centre_x, self.x_limit)]
        if self.y_limit is not None:
            costs.append(reaches(state.centre_y, self.y_limit))
        return jnp.stack(costs)

    def scene(self, state: PointState) -> Scene:
        """The circle and the walls."""
        return Scene(
            position=(float(state.x), float(state.y)),
            heading=float(state.heading),
            arena=SIZE,
            view=1.3 * self.radius,
            circle=self.radius,
            safe_x=self.x_limit,
            safe_y=self.y_limit,
        )


def _task(name: str, circle: _Circle, horizon: int) -> DeviceTask:
    return DeviceTask(
        name=name,
        observation_size=point.OBSERVATION_SIZE,
        action_space=point.action_space(circle.action_mode),
        horizon=horizon,
        cost_names=("cost",) if circle.y_limit is None else ("cost_x", "cost_y"),
        reset=point.reset,
        step=circle.step,
        observe=point.observe,
        scene=circle.scene,
    )
