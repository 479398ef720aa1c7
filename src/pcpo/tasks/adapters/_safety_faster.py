"""Faster steps for Safety-Gymnasium's navigation tasks, with trajectories that are the same to the last bit.

MuJoCo takes a quarter of such a step; the rest is Python that looks bodies up by their names, makes one numpy call for
each obstacle and runs MuJoCo's forward pass three times on one state. `hasten` gives the objects of one environment
classes of their own, derived from theirs, in which the functions that take the time are written anew. Nothing of the
package is changed, and where it is not the one that is known here, everything stays as it is. Whoever moves things by
hand between two steps gets costs and observations of the state as it is then.

What keeps the numbers the same:

1. Sums, products and square roots of a few numbers are rounded alike by Python and by numpy. Where that is not so
   (absolute values of complex numbers, arctangents, products with matrices), numpy's own functions are called, for all
   obstacles at once instead of one after the other; a row of a product is still made by the same routine for a vector.
2. A forward pass changes nothing when nothing has changed since the last one: MuJoCo starts its solver from
   accelerations that only a step of time writes.
3. What sensors say between two steps of the environment is nobody's input: they are read after the last of MuJoCo's.

The first is a matter of numpy and the second of MuJoCo, and the fingerprint covers neither: it is of Safety-Gymnasium's
files. The first was compared under numpy 2.4, and no version is refused for it. The second was compared under MuJoCo
4.0, and is looked at in the first step of each episode, on the model that is simulated; where it does not hold, all
forward passes are made.
"""

import copy
import functools
import hashlib
import importlib
import logging
import math
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

KNOWN = "e8cfa7ac893444e348b24c22b915aef0d3eb822ec6d1309dc787f0a40cba4662"
"""The fingerprint of Safety-Gymnasium 1.0.0; see `fingerprint`."""

_BODIES = {
    "Goal": "goal",
    "PushBox": "push_box",
    "Hazards": "hazard{}",
    "Vases": "vase{}",
    "Buttons": "button{}",
    "Pillars": "pillar{}",
    "Gremlins": "gremlin{}obj",
}
"""The bodies whose positions are those of obstacles, by the class of these."""

_log = logging.getLogger(__name__)


def known() -> bool:
    """Whether the installed Safety-Gymnasium is the one whose steps are known here; MuJoCo and numpy are not asked."""
    return fingerprint() == KNOWN


@functools.cache
def tell(what: str) -> None:
    """Warns in the log, of each thing once in a process."""
    _log.warning(what)


def hasten(env: Any) -> bool:
    """Makes the steps of one environment faster, if all that is replaced for that is known here.

    Args:
        env: Safety-Gymnasium's ``Builder``, not reset yet.

    Returns:
        Whether it was done. Otherwise the package is not `known`, and the environment is as it was.
    """
    if not known():
        return False
    _replace(env, importlib.import_module("safety_gymnasium.builder").Builder, _Stepping)
    task, base = env.task, importlib.import_module("safety_gymnasium.bases.base_task").BaseTask
    _replace(task.agent, importlib.import_module("safety_gymnasium.bases.base_agent").BaseAgent, _Robot)
    _replace(task, base, _Simulating, _Costing, _Observing)
    for obstacle in task._obstacles:
        name = type(obstacle).__name__
        _replace(obstacle, type(obstacle), *_OBSTACLES.get(name, ()), *([_Placed] if name in _BODIES else []))
    return True


@functools.cache
def fingerprint() -> str:
    """What tells one version of the files that decide over a step from another, edited ones included."""
    package = Path(importlib.import_module("safety_gymnasium.builder").__file__ or "").parent
    folders = ("bases", "agents", "assets", "utils", "tasks/safe_navigation", "tasks/safe_vision")
    files = [package / "builder.py", package / "world.py"]
    files += sorted(file for folder in folders for file in (package / folder).rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _replace(thing: Any, base: type, *parts: type) -> None:
    """Gives an object a class that has some parts before its own; those only that find there what the base has.

    A task with an `obs` of its own keeps it. The name stays: Safety-Gymnasium looks at the names of classes.
    """
    own = type(thing)
    fitting = tuple(
        part for part in parts if all(getattr(own, name) is getattr(base, name) for name in _replaced(part, base))
    )
    if fitting:
        thing.__class__ = _derived(own, fitting)


@functools.cache
def _derived(own: type, parts: tuple[type, ...]) -> type:
    ours = {name: value for part in parts for name, value in vars(part).items() if not name.startswith("__")}
    return type(own.__name__, (own,), {**ours, "stock": own, "__module__": own.__module__})


def _replaced(part: type, base: type) -> list[str]:
    """What a part has in place of something of the base."""
    return [
        name
        for name, value in vars(part).items()
        if (callable(value) or isinstance(value, property)) and hasattr(base, name)
    ]


def _mujoco() -> Any:
    """MuJoCo, which Safety-Gymnasium has imported by then."""
    return sys.modules["mujoco"]


class _Places:
    """Where a model keeps what is asked for by name."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.robot: int = model.body("agent").id
        self.low, self.high = model.actuator_ctrlrange.T
        self._bodies: dict[tuple[str, int | None], Any] = {}
        self._sensors: dict[str, slice] = {}

    def bodies(self, name: str, count: int | None) -> Any:
        """The number of a body, or those of several whose names are numbered."""
        found = self._bodies.get((name, count))
        if found is None:
            numbered = [self.model.body(name.format(i)).id for i in range(count or 0)]
            found = self.model.body(name).id if count is None else np.array(numbered, np.intp)
            self._bodies[name, count] = found
        return found

    def sensor(self, name: str) -> slice:
        """Where a sensor's numbers are among those of all."""
        found = self._sensors.get(name)
        if found is None:
            sensor = self.model.sensor(name)
            found = self._sensors[name] = slice(int(sensor.adr[0]), int(sensor.adr[0] + sensor.dim[0]))
        return found


def _places(engine: Any) -> _Places:
    """Those of the model that is simulated now: each reset builds a new one."""
    found = getattr(engine, "places", None)
    if found is None or found.model is not engine.model:
        found = engine.places = _Places(engine.model)
    return found


class _Robot:
    """A robot that knows where it is without asking by name."""

    stock: Any
    engine: Any
    sensor_conf: Any
    sensor_info: Any

    @property
    def pos(self) -> Float[np.ndarray, "3"]:
        """Where it is."""
        return self.engine.data.xpos[_places(self.engine).robot].copy()

    @property
    def mat(self) -> Float[np.ndarray, "3 3"]:
        """How it is turned."""
        return self.engine.data.xmat[_places(self.engine).robot].copy().reshape(3, 3)

    @property
    def vel(self) -> Float[np.ndarray, "3"]:
        """How it moves."""
        model, data = self.engine.model, self.engine.data
        jacobian = np.zeros((3, model.nv))
        _mujoco().mj_jacBody(model, data, jacobian, None, _places(self.engine).robot)
        return np.dot(jacobian, data.qvel)

    def dist_xy(self, pos: Any) -> float:
        """How far something is on the ground."""
        x, y, _ = self.engine.data.xpos[_places(self.engine).robot].tolist()
        across, along = float(pos[0]) - x, float(pos[1]) - y
        return math.sqrt(across * across + along * along)

    def get_sensor(self, name: str) -> npt.NDArray[np.float64]:
        """What one sensor says."""
        return self.engine.data.sensordata[_places(self.engine).sensor(name)].copy()

    def sensed(self) -> dict[str, list[float]]:
        """What all sensors say, in plain numbers; angles are made sines and cosines, which is the original's to do."""
        known = self.sensor_info
        if known.hinge_pos_names or known.ballquat_names or known.freejoint_pos_name or known.freejoint_qvel_name:
            return {name: each.ravel().tolist() for name, each in self.stock.obs_sensor(self).items()}
        places, numbers = _places(self.engine), self.engine.data.sensordata.tolist()
        names = chain(self.sensor_conf.sensors, known.hinge_vel_names, known.ballangvel_names)
        return {name: numbers[places.sensor(name)] for name in names}

    def apply_action(self, action: Any, noise: Any = None) -> None:
        """Sets the controls."""
        if noise is not None:
            self.stock.apply_action(self, action, noise)
            return
        places = _places(self.engine)
        self.engine.data.ctrl[:] = np.asarray(action).clip(places.low, places.high)


class _Placed:
    """Obstacles that are where bodies of known names are."""

    engine: Any

    @property
    def pos(self) -> npt.NDArray[np.float64]:
        """Where they are: a row each, where there are several."""
        bodies = _places(self.engine).bodies(_BODIES[type(self).__name__], getattr(self, "num", None))
        return self.engine.data.xpos[bodies].copy()


class _Hazards:
    """Hazards, whose distances are computed all at once."""

    agent: Any
    pos: Any
    size: float
    cost: float
    is_constrained: bool

    def cal_cost(self) -> dict[str, Any]:
        """How deep the robot is in each, added up."""
        if not self.is_constrained:
            return {}
        away = (self.pos - self.agent.pos)[:, :2]
        away *= away
        total = 0
        for distance in np.sqrt(away[:, 0] + away[:, 1]).tolist():
            if distance <= self.size:
                total += self.cost * (self.size - distance)
        return {"cost_hazards": total}


class _Sigwalls:
    """Lines that only cost something; the robot is asked once where it is."""

    agent: Any
    num: int
    locate_factor: float
    is_constrained: bool

    def cal_cost(self) -> dict[str, Any]:
        """Whether the robot is beyond any of them."""
        if not self.is_constrained:
            return {}
        x, y, _ = self.agent.pos.tolist()
        return {"cost_out_of_boundary": abs(x) > self.locate_factor or (self.num == 4 and abs(y) > self.locate_factor)}


class _Stepping:
    """An environment whose task knows when a step of it is on its way: nobody else can move anything then."""

    stock: Any
    task: Any
    steps: int

    def step(self, action: Any) -> Any:
        """One step."""
        self.task.stepping, self.task.first = True, self.steps == 0
        try:
            return self.stock.step(self, action)
        finally:
            self.task.stepping = self.task.settled = False


def repeatable(model: Any, data: Any) -> bool:
    """Whether a forward pass, made once more of the same state, would change nothing. It is made of a copy.

    It says most where things touch: without contacts and limits MuJoCo's solver has nothing to do.
    """
    again = copy.copy(data)
    _mujoco().mj_forward(model, again)
    arrays = {name: getattr(data, name) for name in _arrays(type(data))}
    return all(each.tobytes() == getattr(again, name).tobytes() for name, each in arrays.items())


@functools.cache
def _arrays(kind: type) -> tuple[str, ...]:
    """The names of the arrays that MuJoCo's data hold, its solver's own accounts left out."""
    empty = kind(_mujoco().MjModel.from_xml_string("<mujoco/>"))
    return tuple(
        name
        for name in dir(empty)
        if not name.startswith(("_", "solver")) and isinstance(getattr(empty, name), np.ndarray)
    )


class _Simulating:
    """A task whose MuJoCo steps are one call."""

    stock: Any
    agent: Any
    stepping = False
    """Whether a step of the environment is on its way."""
    first = False
    """Whether it is the first of its episode."""
    trusting = True
    """Whether a second forward pass of one state has never changed anything."""
    settled = False
    """Whether another forward pass may be saved. True only from a simulation to the end of the same step."""

    def simulation_forward(self, action: Any) -> bool:
        """The steps of MuJoCo that are one of the environment."""
        self.settled = False
        task: Any = self
        if task.debug or task.action_noise or task._mocaps:
            failed = self.stock.simulation_forward(self, action)
        else:
            self._simulate(action)
            failed = False
        if self.stepping and not failed:
            self.settled = self._trusted()
        return failed

    def _trusted(self) -> bool:
        engine = self.agent.engine
        if self.first and self.trusting and not repeatable(engine.model, engine.data):
            self.trusting = False
            tell("With this MuJoCo, a second forward pass changes the first's numbers: Safety-Gymnasium's are all made")
        return self.trusting

    def _simulate(self, action: Any) -> None:
        task: Any = self
        model, data = task.world.engine.model, task.world.engine.data
        self.agent.apply_action(action)
        steps = task.random_generator.binomial(task.sim_conf.frameskip_binom_n, task.sim_conf.frameskip_binom_p)
        mujoco, flags = _mujoco(), model.opt.disableflags
        model.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
        try:
            mujoco.mj_step(model, data, nstep=steps)
        finally:
            model.opt.disableflags = flags
        mujoco.mj_forward(model, data)


class _Costing:
    """A task whose costs are taken of a state whose forward pass has been made."""

    stock: Any
    settled: bool

    def calculate_cost(self) -> dict[str, Any]:
        """The costs of all obstacles, and their sum."""
        task: Any = self
        if task._is_load_static_geoms or not self.settled:
            return self.stock.calculate_cost(self)
        costs: dict[str, Any] = {}
        for obstacle in task._obstacles:
            costs.update(obstacle.cal_cost())
        costs["cost_sum"] = sum(cost for name, cost in costs.items() if name.startswith("cost_"))
        return costs


class _Observing:
    """A task whose lidars are computed for all obstacles at once."""

    stock: Any
    agent: Any
    lidar_conf: Any
    settled: bool

    def obs(self) -> Any:
        """What the robot observes."""
        task: Any = self
        if task.observe_vision or not task.observation_flatten or self.lidar_conf.type != "pseudo":
            return self.stock.obs(self)
        if not self.settled:
            _mujoco().mj_forward(task.model, task.data)
        obstacles = task._obstacles
        parts: dict[str, list[float]] = self.agent.sensed()
        seen = [obstacle for obstacle in obstacles if obstacle.is_lidar_observed]
        lidars = self._lidars([obstacle.pos for obstacle in seen])
        parts.update({f"{obstacle.name}_lidar": lidar for obstacle, lidar in zip(seen, lidars, strict=True)})
        for obstacle in obstacles:
            if getattr(obstacle, "is_comp_observed", False):
                parts[f"{obstacle.name}_comp"] = task._obs_compass(obstacle.pos).tolist()
        return np.array(list(chain.from_iterable(parts[name] for name in task.obs_info.obs_space_dict.spaces)))

    def _obs_lidar_pseudo(self, positions: Any) -> npt.NDArray[np.float64]:
        """What one lidar says."""
        return np.array(self._lidars([positions])[0])

    def _lidars(self, positions: Sequence[Any]) -> list[list[float]]:
        """What each of some lidars says of the obstacles at its positions."""
        groups = [np.array(each, float, ndmin=2)[:, :2] for each in positions]
        if not groups:
            return []
        distances, angles = self._from_robot(groups[0] if len(groups) == 1 else np.concatenate(groups))
        lidars: list[list[float]] = []
        first = 0
        for group in groups:
            last = first + len(group)
            lidars.append(self._lidar(distances[first:last], angles[first:last]))
            first = last
        return lidars

    def _from_robot(self, places: Float[np.ndarray, "n 2"]) -> tuple[list[float], list[float]]:
        """How far things on the ground are, and in which directions."""
        world = np.zeros((len(places), 1, 3))
        world[:, 0, :2] = places
        world -= self.agent.pos
        ego = np.matmul(world, self.agent.mat)[:, 0, :2].copy()
        return np.abs(ego.view(np.complex128)[:, 0]).tolist(), np.arctan2(ego[:, 1], ego[:, 0]).tolist()

    def _lidar(self, distances: list[float], angles: list[float]) -> list[float]:
        """The nearest obstacle in each direction, as how near it is; each shines into the directions beside its own."""
        conf = self.lidar_conf
        bins, reach, turn = conf.num_bins, conf.max_dist, 2 * np.pi
        width = turn / bins
        lidar = [0.0] * bins
        for distance, angle in zip(distances, angles, strict=True):
            angle %= turn  # noqa: PLW2901
            place = int(angle / width)
            near = float(np.exp(-conf.exp_gain * distance)) if reach is None else max(0.0, reach - distance) / reach
            lidar[place] = max(lidar[place], near)
            if conf.alias:
                part = (angle - width * place) / width
                after, before = (place + 1) % bins, (place - 1) % bins
                lidar[after] = max(lidar[after], part * near)
                lidar[before] = max(lidar[before], (1 - part) * near)
        return lidar


_OBSTACLES: dict[str, tuple[type, ...]] = {"Hazards": (_Hazards,), "Sigwalls": (_Sigwalls,)}
"""What is replaced in obstacles of a class, besides where they are."""
