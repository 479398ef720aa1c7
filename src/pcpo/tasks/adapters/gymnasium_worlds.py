"""Gymnasium environments, stepped one after the other and reset only when asked to; each number is checked on its way.

No jax here: the processes that step environments import this.
"""

import contextlib
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from pcpo.tasks.adapters.gymnasium_costs import USUAL, Costs, number
from pcpo.tasks.adapters.gymnasium_spaces import Actions, Observations
from pcpo.tasks.host import Outcomes, WorldError

Maker: TypeAlias = Callable[[], Any]
"""Makes one environment. What counts is what it can do, not whether it is a ``gymnasium.Env``."""


@dataclass(frozen=True)
class Kind:
    """What there is to know of all environments that a function makes. Calling it makes n of them."""

    name: str
    make: Maker
    observations: Observations
    actions: Actions
    costs: Costs

    def __call__(self, n: int) -> "GymnasiumWorlds":
        """As many environments."""
        return GymnasiumWorlds(self, n)


class GymnasiumWorlds:
    """n environments; a `pcpo.tasks.host.HostWorlds`."""

    def __init__(self, kind: Kind, n: int) -> None:
        self.kind = kind
        self.envs = [made(kind.name, kind.make) for _ in range(n)]
        self._steps = [0] * n
        self._before: list[Any] = [None] * n
        """What each observed last, where a cost is a function of it."""
        self._remembers = kind.costs.functions

    def reset(self, which: Int[np.ndarray, " n"], seeds: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n o"]:
        """Begins episodes."""
        observations = np.empty((len(which), self.kind.observations.size))
        for row, (i, seed) in enumerate(zip(which.tolist(), seeds.tolist(), strict=True)):
            self._steps[i] = 0
            given = self.envs[i].reset(seed=seed)
            if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[1], Mapping):
                self._fail(i, f"reset gave {_kind(given)}; Gymnasium's gives a tuple of two, the observation and info")
            observations[row] = self._encoded(i, given[0])
            self._remember(i, given[0])
        return observations

    def step(self, which: Int[np.ndarray, " n"], actions: npt.NDArray[Any]) -> Outcomes:
        """One step of some."""
        n, kind = len(which), self.kind
        observations = np.empty((n, kind.observations.size))
        rewards, costs = np.empty(n), np.empty((n, len(kind.costs.sources)))
        terminated, truncated = np.empty(n, bool), np.empty(n, bool)
        decoded = kind.actions.decode(actions)
        for row, i in enumerate(which.tolist()):
            action = decoded[row]
            given = self.envs[i].step(action)
            self._steps[i] += 1
            observation, reward, ended, cut, info = self._parts(i, given)
            try:
                observations[row] = kind.observations.encode(observation)
                rewards[row] = number(reward, "step gave", "the reward")
                terminated[row], truncated[row] = _truth(ended, "terminated"), _truth(cut, "truncated")
                if kind.costs.sources:
                    costs[row] = kind.costs(self._before[i], action, observation, info)
            except WorldError as error:
                self._fail(i, str(error))
            self._remember(i, observation)
        return Outcomes(observations, rewards, costs, terminated, truncated)

    def scene(self, which: int) -> Any:
        """A picture, as the environment draws it.

        Raises:
            WorldError: If it draws none.
        """
        try:
            picture: Any = self.envs[which].render()
        except Exception as error:  # noqa: BLE001 (their code: a missing package, no display, nothing to draw with)
            self._fail(which, f"render failed with {type(error).__name__}: {error}")
        array = np.asarray(picture)
        if array.ndim != 3 or array.shape[-1] != 3:
            self._fail(which, f"render gave {_kind(picture)}; a film needs render_mode 'rgb_array'")
        return array.astype(np.uint8)

    def close(self) -> None:
        """Closes them all."""
        for env in self.envs:
            env.close()

    def _parts(self, i: int, given: Any) -> tuple[Any, Any, Any, Any, Mapping[str, Any]]:
        """What a step gave. The cost among six values goes where it would be among five."""
        size = len(given) if isinstance(given, tuple) else 0
        if size == 6 and isinstance(given[5], Mapping):
            observation, reward, cost, ended, cut, info = given
            return observation, reward, ended, cut, {**info, USUAL: cost}
        if size != 5:
            self._fail(
                i,
                f"step gave {_kind(given)}; Gymnasium's gives observation, reward, terminated, truncated, info, or "
                "with a cost after the reward; an environment of the old gym needs a wrapper (shimmy has one)",
            )
        if not isinstance(given[4], Mapping):
            self._fail(i, f"step gave a tuple of 5, and {_kind(given[4])} for info, which must be a dict")
        return given

    def _encoded(self, i: int, observation: Any) -> npt.NDArray[Any]:
        try:
            return self.kind.observations.encode(observation)
        except WorldError as error:
            self._fail(i, str(error))

    def _remember(self, i: int, observation: Any) -> None:
        """Keeps a copy: some environments write the next observation into the array of the last one."""
        if self._remembers:
            self._before[i] = observation.copy() if isinstance(observation, np.ndarray) else copy.deepcopy(observation)

    def _fail(self, i: int, what: str) -> NoReturn:
        step = self._steps[i]
        when = f"in step {step} of an episode" if step else "at the start of an episode"
        raise WorldError(f"{self.kind.name}, {when}: {what}") from None


def made(name: str, make: Maker) -> Any:
    """One environment.

    Raises:
        WorldError: If the function does not give one.
    """
    env = make()
    if not all(callable(getattr(env, method, None)) for method in ("reset", "step", "close")):
        raise WorldError(
            f"{name} gave {_kind(env)}; a function that makes an environment returns a new gymnasium.Env each time"
        )
    return env


def close_quietly(env: Any) -> None:
    """Closes an environment that was only looked at."""
    with contextlib.suppress(Exception):
        env.close()


def _truth(value: Any, name: str) -> bool:
    if value is True or value is False:
        return value
    array = np.asarray(value)
    if array.size == 1 and array.dtype.kind in "bi" and array.reshape(()) in (0, 1):
        return bool(array.reshape(()))
    raise WorldError(f"step gave {value!r} as {name}, which must be True or False")


def _kind(value: Any) -> str:
    """What something is, in a few words."""
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of the shape {value.shape}"
    return "nothing" if value is None else f"a {type(value).__name__}"
