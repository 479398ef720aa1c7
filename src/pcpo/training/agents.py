"""The verbs that people know: ``PCPO("point-circle").learn(updates=100)``, ``.predict``, ``.save``, ``.load``.

A thin façade: what learns is `pcpo.training.loop` with a session in memory, and everything here could be done with it.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import jax
import numpy as np
import numpy.typing as npt
from jaxtyping import Array

from pcpo.rl.normalize import seen_by_policy
from pcpo.rl.policy import environment_actions
from pcpo.tasks.adapters.gymnasium_costs import CostSpec
from pcpo.tasks.api import HostTask, Task
from pcpo.training import checkpoint
from pcpo.training.checkpoint import Checkpoint, CheckpointError
from pcpo.training.config import Config, CostLimit, config_for
from pcpo.training.files import RunError, write_whole
from pcpo.training.host.fleet import Hands
from pcpo.training.loop import Callback, Listener, Session, Stop, advance, listening
from pcpo.training.metrics import Row
from pcpo.training.named import COST, STEPS, again, named, task_of
from pcpo.training.programs import AnyProgram, Networks, program_for, shape_of_state
from pcpo.training.progress import Display, Silent, display_for
from pcpo.training.run import Record, Run, RunWriter, new_run, newest_fitting, old_run, versions
from pcpo.training.settings import settings_of
from pcpo.training.streams import arithmetic

Some = TypeVar("Some", bound="Agent")

Env: TypeAlias = str | Task | Callable[[], Any]
"""The name of a task, a task, or a function that makes a Gymnasium environment."""

SUFFIX = ".safetensors"


class Agent:
    """What `PCPO`, `TRPO`, `CPO`, `PDO` and `FPO` have in common.

    Args:
        env: The name of a task: one of pcpo's own (`pcpo tasks` lists them), ``gym:ID``, ``safety:ID``, ``gymnax:ID``,
            or ``package.module:factory``. Or a function that makes a Gymnasium environment, a new one each time. Or a
            task of your own.
        cost_limit: The largest allowed J_C per episode: a number for the only cost, a mapping from names to numbers, or
            `Constraint` objects. The paper's, where the task is the paper's and nothing is given.
        cost: Where the costs of an environment come from: a key of ``info`` or several, a function
            ``cost(observation, action, next_observation, info)``, a mapping from names to these, ``()`` for none. By
            default ``info["cost"]``, or the third value of a step that gives six.
        max_episode_steps: Steps after which an episode of an environment is cut off; its own limit by default.
        task_options: Options of a named task, such as ``{"action_mode": "raw"}``.
        networks: Networks of your own.
        workers: Processes that step environments, 0 for none but this one; one for each core by default. Changes
            nothing but the time it takes.
        threads: The same for tasks that are stepped by threads.
        **settings: Fields of `pcpo.training.config.Config`, such as ``batch_size``, ``delta``, ``seed``.

    Raises:
        ValueError: If a value is not allowed: what was given, why it is wrong, what to try.
    """

    algorithms: ClassVar[tuple[str, ...]]
    """The values of the setting ``algorithm`` that this class stands for; the first is the usual one."""

    def __init__(
        self,
        env: Env,
        cost_limit: CostLimit | None = None,
        *,
        cost: CostSpec = None,
        max_episode_steps: int | None = None,
        task_options: Mapping[str, Any] | None = None,
        networks: Networks | None = None,
        workers: int | None = None,
        threads: int | None = None,
        **settings: Any,
    ) -> None:
        chosen: dict[str, Any] = {"algorithm": self.algorithms[0], **settings}
        if chosen["algorithm"] not in self.algorithms:
            raise ValueError(f"algorithm is {chosen['algorithm']!r}; {type(self).__name__} is {self.algorithms[0]}")
        options = {**(task_options or {}), **_given({COST: cost, STEPS: max_episode_steps})}
        own = [] if networks is None else ["networks"]
        if isinstance(env, str):
            task = named(env, options).task
            config = config_for(env, cost_limit, task_options=options, own=own, **chosen)
        else:
            if task_options:
                raise ValueError(
                    f"task_options are {dict(task_options)}, but env is no name; give them where you make it"
                )
            task = task_of(env, cost, max_episode_steps)
            config = config_for(task.name, cost_limit, cost_names=task.cost_names, own=[*own, "task"], **chosen)
        program = program_for(config, task, networks, Hands(workers, threads))
        self._start(program, Session.begin(program, Record(config, (), versions())))

    def _start(self, program: AnyProgram, session: Session, out: Path | None = None) -> None:
        """Before the first update, or where a checkpoint left off."""
        self._program, self._session, self._out = program, session, out
        self._predictions = 0
        self.rows: list[Row] = []
        """The rows of all updates that this object has made, as `metrics.jsonl` has them."""

    @property
    def config(self) -> Config:
        """All settings."""
        return self._session.record.config

    @property
    def updates(self) -> int:
        """How many updates have been made."""
        return self._session.update

    @property
    def params(self) -> Any:
        """The parameters of the policies; each leaf has a leading axis of seeds."""
        return self._session.state.params

    def learn(
        self: Some,
        updates: int = 100,
        callback: Callback | None = None,
        *,
        limits: Mapping[str, float] | None = None,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        progress: bool | None = None,
    ) -> Some:
        """Makes so many updates; called again, it goes on.

        Args:
            updates: How many more.
            callback: Sees every row, in order; returning False stops after that update.
            limits: Other limits from now on, by the names of the costs; those that are not named stay.
            out: A directory to leave a run in, for `pcpo plot`, `evaluate` and all the others; called again with the
                same one, the run goes on. So it does for an agent that was loaded from there.
            overwrite: Whether a run that is there already may be replaced.
            progress: Whether to show progress; by default where there is a terminal.

        Returns:
            The agent itself.

        Raises:
            ValueError: If ``out`` holds a run that is not this agent's, or cannot be one.
            WorldError: If an environment cannot go on; the updates before that are kept, and saved.
            KeyboardInterrupt: After Ctrl-C; the update has been finished then, and the run saved.
        """
        session = self._whole_session()
        until = self.updates + settings_of(Config)["updates"].checked("updates", updates)
        other = dict(limits or {})
        self.config.with_limits(other)  # raises where there is no such cost
        record = session.record.changed(self.updates, other, until)
        stop = Stop()
        shown = sys.stderr.isatty() if progress is None else progress
        display: Display = display_for() if shown else Silent()
        with self._writer(out, record, other, overwrite) as writer, display:
            session.record = record if writer is None else writer.record
            display.start(self.config, self.updates)
            listener = Listener(session, writer, display, stop, callback, self.rows.extend)
            try:
                with listening(stop, display.say):
                    advance(session, until, listener)
            finally:  # also when the callback fails
                session.close()
                listener.save()
        if stop.reason in {"interrupted", "terminated"}:
            raise KeyboardInterrupt
        return self

    def predict(self, observation: Any, deterministic: bool = True, *, policy: int = 0) -> tuple[Any, None]:
        """The action of the policy, as the environment takes it.

        Args:
            observation: One, as the environment gives it; or many along a first axis, where they are vectors.
            deterministic: Whether to take the likeliest action rather than to draw one. Limits are kept, if at all, by
                the policy as it was trained, which draws its actions.
            policy: Which of the seeds' policies, counted from 0.

        Returns:
            The action (or one for each observation) and None, for a state that this policy does not have.
        """
        task = self._program.task
        encode = task.encode if isinstance(task, HostTask) else None
        observations = np.asarray(encode(observation) if encode else observation, np.dtype(self.config.precision))
        size = task.observation_size
        if observations.ndim not in (1, 2) or observations.shape[-1] != size:
            raise ValueError(
                f"observation has shape {observations.shape}, but {self.config.task} has {size} numbers in one; pass "
                f"[{size}], or [n, {size}] for n of them"
            )
        if not 0 <= policy < self.config.seeds:
            raise ValueError(f"policy is {policy}, but there are {self.config.seeds}; count from 0")
        self._predictions += 1
        actions = self._act(np.atleast_2d(observations), policy, deterministic)
        actions = task.decode(actions) if isinstance(task, HostTask) and task.decode else actions
        return (actions if observations.ndim == 2 else actions[0]), None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the agent to one file, whole or not at all; ``.safetensors`` is added where the name has no ending.

        Nothing in the file can execute code.

        Returns:
            The path.

        Raises:
            RunError: If `learn` was cut off in the middle of an update.
        """
        session = self._whole_session()
        target = Path(path)
        target = target if target.suffix else target.with_name(target.name + SUFFIX)
        target.parent.mkdir(parents=True, exist_ok=True)
        meta = {"update": session.update, **session.meta(), "record": session.record.to_json()}
        write_whole(target, checkpoint.to_sealed_bytes(session.state, meta))
        return target

    @classmethod
    def load(
        cls: type[Some],
        path: str | os.PathLike[str],
        env: Env | None = None,
        *,
        cost: CostSpec = None,
        max_episode_steps: int | None = None,
        networks: Networks | None = None,
        workers: int | None = None,
        threads: int | None = None,
    ) -> Some:
        """The agent in a file that `save` wrote, or the newest checkpoint in the directory of a run.

        Args:
            path: The file, with or without ``.safetensors``, or the directory.
            env: As it was given when the agent was made, where that was code of your own: no file brings code back.
            cost: The same.
            max_episode_steps: The same, for an environment that was given as a function.
            networks: As they were given when it was made.
            workers: As for the class.
            threads: As for the class.

        Raises:
            ValueError: If there is none, it is damaged, of another version or of another class.
        """
        source = Path(path)
        source = source if source.exists() else source.with_name(source.name + SUFFIX)
        if not source.exists():
            raise CheckpointError(f"{path} does not exist; give a file that save() has made, or the directory of a run")
        record, read = _from_run(source) if source.is_dir() else _from_file(source)
        config = record.config
        if config.algorithm not in cls.algorithms:
            right = next(each.__name__ for each in AGENTS if config.algorithm in each.algorithms)
            raise CheckpointError(f"{source} holds an agent of {config.algorithm}; load it with {right}.load")
        agent = cls.__new__(cls)
        if env is None and cost is None:
            task = None
        elif env is None or isinstance(env, str):
            task = again(config, env, cost)
        else:
            task = task_of(env, cost, max_episode_steps)
        program = program_for(config, task, networks, Hands(workers, threads))
        found = read(shape_of_state(program, config))
        session = Session.restored(program, record, found)
        agent._start(program, session, source.resolve() if source.is_dir() else None)
        return agent

    def _whole_session(self) -> Session:
        """The session, unless its state and its rows are of different updates."""
        if not self._session.whole:
            raise RunError(
                f"learn() was cut off in the middle of update {self._session.recorded}, so there is nothing whole to "
                "go on from or to save; load the agent from its run, or make a new one"
            )
        return self._session

    @contextlib.contextmanager
    def _writer(
        self, out: str | os.PathLike[str] | None, record: Record, limits: Mapping[str, float], overwrite: bool
    ) -> Generator[RunWriter | None]:
        """What writes the run, if one is wanted: a new one, or on in the one that this agent has left."""
        if out is None:
            yield None
            return
        directory = Path(out)
        if self._out == directory.resolve():
            with old_run(directory) as writer:
                found, _ = newest_fitting(writer, self._session.state)
                if found is None or found.update != self.updates:
                    raise RunError(
                        f"out is {directory}, which holds {0 if found is None else found.update} updates, but this "
                        f"agent has made {self.updates}; load the agent from there, or leave out away"
                    )
                writer.go_back(found)
                writer.change(self.updates, limits, record.config.updates)
                yield writer
            return
        if self.updates:
            raise RunError(
                f"out is {directory}, but the first {self.updates} updates were made without it and would be missing; "
                "give out in the first call of learn"
            )
        with new_run(directory, record.config, overwrite) as writer:
            self._out = directory.resolve()
            yield writer

    def _act(self, observations: npt.NDArray[Any], policy: int, deterministic: bool) -> npt.NDArray[Any]:
        with arithmetic(self.config.precision):
            key = jax.random.fold_in(jax.random.key(self.config.seed), self._predictions)
            state = self._session.state
            return np.asarray(self._choose(state.params, state.normalizer, observations, policy, key, deterministic))

    @functools.cached_property
    def _choose(self) -> Callable[..., Any]:
        """Compiled when it is first needed."""
        program, distribution = self._program, self._program.policy.distribution

        def choose(
            params: Any, normalizer: Any, observations: Array, policy: Array, key: Array, deterministic: bool
        ) -> Array:
            params, normalizer = jax.tree.map(lambda x: x[policy], (params, normalizer))
            seen = seen_by_policy(normalizer, observations, program.options.normalize_batches)
            p = program.policy.apply(params, seen)
            noise = distribution.noise(key, seen.shape[:1])
            actions = distribution.mode(p) if deterministic else distribution.sample(p, noise)
            return jax.vmap(functools.partial(environment_actions, program.task.action_space))(actions)

        return jax.jit(choose, static_argnames="deterministic")


class PCPO(Agent):
    """Projection-based constrained policy optimisation.

    Args:
        env: As for `Agent`.
        cost_limit: As for `Agent`.
        projection: ``"kl"``, ``"l2"`` or ``"adaptive"``.
        **settings: As for `Agent`.

    Example:
        >>> agent = PCPO("point-circle", cost_limit=5.0, projection="kl", batch_size=500, hidden=(8,))
        >>> agent.learn(updates=2).updates
        2
        >>> action, _ = agent.predict([0.0] * 9)
        >>> action.shape
        (2,)
    """

    algorithms = ("pcpo-kl", "pcpo-l2", "pcpo-adaptive")

    def __init__(
        self, env: Env, cost_limit: CostLimit | None = None, *, projection: str = "kl", **settings: Any
    ) -> None:
        if f"pcpo-{projection}" not in self.algorithms:
            raise ValueError(f"projection is {projection!r}; pass 'kl', 'l2' or 'adaptive'")
        settings.setdefault("algorithm", f"pcpo-{projection}")
        super().__init__(env, cost_limit, **settings)


class TRPO(Agent):
    """Trust region policy optimisation: costs are watched, not limited."""

    algorithms = ("trpo",)


class CPO(Agent):
    """Constrained policy optimisation, with one constraint; ``line_search=False`` for the variant without."""

    algorithms = ("cpo",)


class PDO(Agent):
    """Primal-dual optimisation; ``learning_rate`` and ``multiplier`` (the first one) are its settings."""

    algorithms = ("pdo",)


class FPO(Agent):
    """Fixed-point optimisation: a fixed ``multiplier`` on the costs."""

    algorithms = ("fpo",)


AGENTS: tuple[type[Agent], ...] = (PCPO, TRPO, CPO, PDO, FPO)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _from_file(path: Path) -> tuple[Record, Callable[[Any], Checkpoint]]:
    """The record in a file of `Agent.save`, and how to read the rest once its shape is known."""
    content = path.read_bytes()
    meta = checkpoint.about(content, str(path))
    record = Record.from_json(meta.get("record"), path)

    return record, lambda like: checkpoint.from_sealed_bytes(content, like, str(path))


def _from_run(directory: Path) -> tuple[Record, Callable[[Any], Checkpoint]]:
    """The same for a run."""
    run = Run.open(directory)
    return run.record, run.latest_state
