"""The tasks of Safety-Gymnasium, on current versions of Python, numpy, MuJoCo and Gymnasium.

Its newest release asks for versions of 2022, and its import fails on Python 3.11 and on Gymnasium 1.x. What fails is
its front door: `make`, the wrappers and the vector environments. The tasks behind it run unchanged, so this module
goes to them directly. Nothing of the installed package is changed, neither its files nor its classes: what has to be
different is so in classes derived from them. (Its dataclasses are imported as Python 3.10 would have made them.)

Differences from ``safety_gymnasium.make``:

1. Its ``__init__`` is never run. `safety_gymnasium.make` does not exist in a process that has used this module; use
   `environment`.
2. Where nothing is drawn, models are built without textures and materials. The original decodes six pictures of the
   sky at every reset, which takes 10 to 50 times as long as the rest of it. Trajectories are the same to the last bit.
3. There, too, the functions that most of a step's time goes to are replaced by faster ones that give the same
   numbers to the last bit (`pcpo.tasks.adapters._safety_faster`), and a file that each reset parses is parsed once.
   Where the package is not the 1.0.0 that is known, its own are used, see `tell_if_slow`.
4. An observation is not checked against its space a second time: whoever collects it checks that it is finite.
5. There are no wrappers: an episode that is over is not stepped, and is begun again by whoever asks for it.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import re
import sys
import types
import warnings
import xml.etree.ElementTree as ET
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from typing import Any

import gymnasium
import numpy as np

from pcpo.tasks.adapters._safety_faster import hasten, known, tell

INSTALL = "pip install 'pcpo[safety]' && pip install --no-deps safety-gymnasium"
"""The second command takes the package without the versions of 2022 that it asks for."""

ROBOTS = ("Point", "Car", "Doggo", "Racecar", "Ant")
LEVELS = ("0", "1", "2")
HORIZONS: Mapping[str, int] = {
    **{kind + level: 1000 for kind in ("Goal", "Button", "Push", "FadingEasy", "FadingHard") for level in LEVELS},
    **{kind + level: 500 for kind in ("Circle", "Race") for level in LEVELS},
    "Run0": 500,
}
"""Steps of an episode, by the name of what there is to do."""
RUNNERS: Mapping[str, str] = {
    "HalfCheetah": "half_cheetah",
    "Hopper": "hopper",
    "Swimmer": "swimmer",
    "Walker2d": "walker2d",
    "Ant": "ant",
    "Humanoid": "humanoid",
}
"""The robots whose speed is limited, and how their modules spell them."""
RUNNERS_HORIZON = 1000

_NAVIGATION = re.compile(rf"Safety({'|'.join(ROBOTS)})({'|'.join(HORIZONS)})-v0")
_VELOCITY = re.compile(rf"Safety({'|'.join(RUNNERS)})Velocity-v([01])")


def names() -> tuple[str, ...]:
    """The names of all tasks, as Safety-Gymnasium spells them."""
    navigation = [f"Safety{robot}{kind}-v0" for kind in HORIZONS for robot in ROBOTS]
    return (*navigation, *(f"Safety{robot}Velocity-v{version}" for robot in RUNNERS for version in (0, 1)))


def horizon(name: str) -> int:
    """Steps after which an episode of a task is over.

    Raises:
        ValueError: If there is no such task.

    Example:
        >>> horizon("SafetyPointGoal1-v0")
        1000
    """
    found = _NAVIGATION.fullmatch(name)
    if found:
        return HORIZONS[found[2]]
    if _VELOCITY.fullmatch(name):
        return RUNNERS_HORIZON
    raise ValueError(_unknown(name))


def environment(name: str, render_mode: str | None = None) -> Any:
    """One environment: a `gymnasium.Env` but for its steps, which are six things and not five.

    They are ``observation, reward, cost, terminated, truncated, info``.

    Args:
        name: As Safety-Gymnasium spells it.
        render_mode: ``"rgb_array"`` for pictures. Textures are decoded then, and resets are slow.

    Raises:
        ValueError: If there is no such task, or Safety-Gymnasium is not installed. One line that says what to do.

    Example:
        >>> env = environment("SafetyPointGoal1-v0")  # doctest: +SKIP
        >>> env.reset(seed=0)[0].shape  # doctest: +SKIP
        (60,)
    """
    horizon(name)  # a wrong name is said before anything is loaded
    load()
    runner = _VELOCITY.fullmatch(name)
    if runner:
        robot, version = runner.groups()
        module = f"safety_gymnasium.tasks.safe_velocity.safety_{RUNNERS[robot]}_velocity_v{version}"
        with _arrays_as_defaults():
            return getattr(importlib.import_module(module), f"Safety{robot}VelocityEnv")(render_mode=render_mode)
    return _navigation(name, render_mode)


def load() -> None:
    """Makes Safety-Gymnasium's modules importable, all but its front door.

    Raises:
        ValueError: If they are not there. One line that says what to install.
    """
    if "safety_gymnasium.builder" in sys.modules:
        return
    spec = importlib.util.find_spec("safety_gymnasium")
    if spec is None:
        raise ValueError(f"Safety-Gymnasium is not installed; install it with: {INSTALL}")
    made = "safety_gymnasium" not in sys.modules
    if made:
        sys.modules["safety_gymnasium"] = importlib.util.module_from_spec(spec)
    try:
        with _arrays_as_defaults():
            importlib.import_module("safety_gymnasium.builder")
    except ImportError as error:
        if made:
            del sys.modules["safety_gymnasium"]
        raise ValueError(f"Safety-Gymnasium cannot be imported ({error}); install it with: {INSTALL}") from None


def tell_if_slow() -> None:
    """Warns in the log, once in a process, where the steps of the installed version are not made faster.

    It is for whoever makes a task, and not for `environment`: that is called in many processes, for one user.
    """
    load()
    if not known():
        tell("Safety-Gymnasium is not the 1.0.0 that is known here: its own steps are used, half as fast")


@functools.cache
def builder() -> type[Any]:
    """Safety-Gymnasium's ``Builder``, whose robots find their joints on MuJoCo 4; the rest is as it is there.

    It asks for a joint by an array with its number in it, which MuJoCo 2 understood and MuJoCo 4 does not.
    """
    load()
    module = importlib.import_module("safety_gymnasium.builder")

    class Builder(module.Builder):
        _get_task = _with_globals(module.Builder._get_task, tasks=_Derived(module.tasks, _of_listening_robots))

    return Builder


class _Derived:
    """A module whose classes are given as others, derived from them."""

    def __init__(self, module: Any, derive: Callable[[type[Any]], type[Any]]) -> None:
        self._module = module
        self._derive = derive

    def __getattr__(self, name: str) -> Any:
        return self._derive(getattr(self._module, name))


@functools.cache
def _of_listening_robots(task: type[Any]) -> type[Any]:
    """A task that makes its robot of a class of ours."""
    agents = _Derived(importlib.import_module("safety_gymnasium.agents"), _listening)
    return _named_alike(task, {"_build_agent": _with_globals(task._build_agent, agents=agents)})


@functools.cache
def _listening(robot: type[Any]) -> type[Any]:
    """A robot that gets an answer about its joints."""

    def load_model(self: Any) -> None:
        robot._load_model(self)
        self.engine.model = _Model(self.engine.model)

    return _named_alike(robot, {"_load_model": load_model})


def _named_alike(own: type[Any], different: dict[str, Any]) -> type[Any]:
    """A derived class of the same name: Safety-Gymnasium looks at the names of classes."""
    return type(own.__name__, (own,), {**different, "__module__": own.__module__})


class _Model:
    """The model of a robot alone, which is looked at once, before the one of its world is made."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def jnt(self, which: Any) -> Any:
        """The joint of that number."""
        return self._model.jnt(int(np.ravel(which)[0]))


def _navigation(name: str, render_mode: str | None) -> Any:
    """A robot among obstacles."""
    robot, kind = _groups(name)
    floor = {"floor_conf.type": "village"} if kind.startswith("Race") else {}
    with warnings.catch_warnings():  # the bounds of actions are float32, and their space is float64
        warnings.filterwarnings("ignore", "overflow encountered in cast", RuntimeWarning)
        env = builder()(name, config={**floor, "agent_name": robot}, render_mode=render_mode)
        spaces = env.task.obs_info.obs_space_dict.spaces
        env.task.obs_info.obs_space_dict = _trusting()(OrderedDict(spaces))  # as it is, not sorted
    task = env.task
    if render_mode is None:
        hasten(env)
    _give_angles_as_numbers(task.agent)
    if render_mode is None:
        task.world = _world_without_pictures()(task.agent, task._obstacles)
    return env


def _give_angles_as_numbers(robot: Any) -> None:
    """The angle of a joint is made a float, which numpy 2.4 does of a number and no more of an array of one."""
    if not robot.sensor_conf.sensors_angle_components:
        return
    angles, sensor = frozenset(robot.sensor_info.hinge_pos_names), robot.get_sensor
    robot.get_sensor = lambda name: sensor(name)[0] if name in angles else sensor(name)


def _groups(name: str) -> tuple[str, str]:
    found = _NAVIGATION.fullmatch(name)
    assert found is not None
    return found[1], found[2]


@functools.cache
def _trusting() -> type[Any]:
    """A space of observations that does not look at what it contains."""

    class Trusting(gymnasium.spaces.Dict):
        def contains(self, x: Any) -> bool:
            del x
            return True

    return Trusting


@functools.cache
def _world_without_pictures() -> type[Any]:
    """Safety-Gymnasium's world, which builds its model from XML at every reset, with less in the XML."""
    module = importlib.import_module("safety_gymnasium.world")
    world = module.World

    class WorldWithoutPictures(world):
        build = _with_globals(world.build, yaml=_ReadOnce(module.yaml))

        @property
        def xml_string(self) -> str | None:
            """What the model is made of."""
            return self._xml_string

        @xml_string.setter
        def xml_string(self, xml: str | None) -> None:
            self._xml_string = None if xml is None else without_pictures(xml)

        def rebuild(self, config: Any = None, state: bool = True) -> None:
            """The first time, what the task would have done without a world: build, and no second forward pass."""
            if self.engine.model is None:
                self.parse(config)
                self.build()
            else:
                super().rebuild(config, state)

    return WorldWithoutPictures


class _ReadOnce:
    """The module ``yaml`` for a function that reads one file again and again and changes nothing of what is in it."""

    def __init__(self, yaml: Any) -> None:
        self.FullLoader = yaml.FullLoader
        self._load = yaml.load
        self._read: dict[str, Any] = {}

    def load(self, stream: Any, **options: Any) -> Any:
        """What a file holds."""
        text = stream.read()
        if text not in self._read:
            self._read[text] = self._load(text, **options)
        return self._read[text]


def _with_globals(function: Any, **others: Any) -> Any:
    """The same function, for which some names stand for something else than in its module."""
    return types.FunctionType(
        function.__code__, {**function.__globals__, **others}, function.__name__, function.__defaults__
    )


def without_pictures(xml: str) -> str:
    """A MuJoCo model without textures and materials. They are for the eye: its dynamics are the same.

    Example:
        >>> without_pictures('<mujoco><asset><texture name="sky"/></asset><geom material="sky" size="1"/></mujoco>')
        '<mujoco><asset /><geom size="1" /></mujoco>'
    """
    root = ET.fromstring(xml)
    for asset in root.iter("asset"):
        for picture in [each for each in asset if each.tag in {"texture", "material"}]:
            asset.remove(picture)
    for element in root.iter():
        element.attrib.pop("material", None)
    return ET.tostring(root, encoding="unicode")


@contextlib.contextmanager
def _arrays_as_defaults() -> Generator[None]:
    """Within, fields of dataclasses may have arrays as defaults, as before Python 3.11: one that all objects share."""
    plain = dataclasses.dataclass

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        if cls is None:
            return functools.partial(dataclass, **options)
        annotated = inspect.get_annotations(cls)
        arrays = {name: each for name, each in vars(cls).items() if isinstance(each, np.ndarray) and name in annotated}
        for name, array in arrays.items():
            setattr(cls, name, dataclasses.field(default_factory=functools.partial(_same, array)))
        made = plain(cls, **options)
        for name, array in arrays.items():
            setattr(made, name, array)
        return made

    dataclasses.dataclass = dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = plain


def _same(value: Any) -> Any:
    return value


def _unknown(name: str) -> str:
    """What to say of a name that stands for no task."""
    kinds = ", ".join(
        f"{kind}{'0-2' if kind != 'Run' else '0'}" for kind in dict.fromkeys(k.rstrip("012") for k in HORIZONS)
    )
    there = (
        f"there are Safety<robot><task>-v0 with the robots {', '.join(ROBOTS)} and the tasks {kinds}, and "
        f"Safety<robot>Velocity-v1 with {', '.join(RUNNERS)}"
    )
    if "Vision" in name or "Debug" in name:
        return f"safety:{name} shows pictures or waits for a keyboard, which no policy here can learn from; {there}"
    return f"Safety-Gymnasium has no task {name!r}; {there}"
