"""The settings of a run: one object in code, in its file and on the command line.

Nothing here imports jax before numbers for it are asked for.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, no_type_check

from pcpo import __version__
from pcpo.training.settings import setting, settings_of

if TYPE_CHECKING:
    from pcpo.rl.options import Hyper, Options
    from pcpo.tasks.registry import Preset

ALGORITHMS = ("pcpo-kl", "pcpo-l2", "pcpo-adaptive", "cpo", "pdo", "fpo", "trpo", "pcpo-kl-flipped", "pcpo-l2-flipped")
"""As in `pcpo.rl.options`, which cannot be imported here without jax; a test compares them."""

LARGEST_SEED = 2**31 - 1

OWN = ("task", "networks")
"""What can be an object of the user's."""

PRESET = ("gamma", "gae_lambda", "batch_size", "hidden", "delta", "bootstrap", "max_kl", "critic", "critic_steps")
"""The settings that the paper has values of its own for; its tasks are trained with those."""


@no_type_check  # it does so itself, with words for users
@dataclass(frozen=True)
class Constraint:
    """One cost and how much of it is allowed.

    Args:
        name: The task's name for the cost.
        limit: The largest allowed J_C, per episode.
        discount: Of the cost; 1 counts every step alike. Never inherited from the reward's gamma.
        gae_lambda: Of the cost's advantages.

    Example:
        >>> Constraint("cost", 5.0)
        Constraint(name='cost', limit=5.0, discount=1.0, gae_lambda=0.95)
    """

    name: str
    limit: float = setting(math.nan, float, "Largest allowed J_C per episode.", advice="try a number, such as 5",
                           low=-1e12, high=1e12)  # fmt: skip
    discount: float = field(default=1.0, kw_only=True, metadata=setting(
        1.0, float, "Discount of the cost.", advice="try 1: every step counts alike", safe="0.9 to 1",
        low=0.0, high=1.0).metadata)  # fmt: skip
    gae_lambda: float = field(default=0.95, kw_only=True, metadata=setting(
        0.95, float, "lambda of the cost's advantages.", safe="0.5 to 1", low=0.0, high=1.0).metadata)  # fmt: skip

    def __post_init__(self) -> None:
        """Checks the values."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a constraint's name is {self.name!r}; give the task's name for the cost, such as 'cost'")
        for key, about in settings_of(Constraint).items():
            object.__setattr__(self, key, about.checked(f"{key} of {self.name!r}", getattr(self, key)))


CostLimit: TypeAlias = float | int | Mapping[str, float | int] | Constraint | Sequence[Constraint]
"""A limit for the only cost, limits by name, or constraints."""


@no_type_check  # it does so itself, with words for users
@dataclass(frozen=True)
class Config:
    """Everything that decides what a run computes; two equal ones compute the same.

    Made with `config_for`, which knows the settings that the paper uses for a task; the defaults here are those of
    any other task. A value that is not allowed is a ValueError that says what to try.
    """

    task: str
    """A name that `pcpo.tasks.registry` knows, or what a task object of the user's calls itself."""
    task_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the task's factory."""
    constraints: tuple[Constraint, ...] = ()
    """One for each cost of the task, in its order."""
    own: tuple[str, ...] = ()
    """What was given as an object, in Python, and cannot be made again from this: ``"task"``, ``"networks"``. Whoever
    goes on with it has to give it again."""
    algorithm: str = setting(
        "pcpo-kl", str, "The update rule.", choices=ALGORITHMS, advice="try pcpo-kl"
    )  # fmt: skip
    updates: int = setting(
        100, int, "Updates of the policy in all.", safe="all", low=1, high=10_000_000
    )  # fmt: skip
    seed: int = setting(
        0, int, "The first seed; runs with other seeds are independent.", safe="all", low=0, high=LARGEST_SEED
    )  # fmt: skip
    seeds: int = setting(
        1, int, "How many seeds are trained side by side, from the first one on; part of a run's identity.",
        safe="1 to 64", low=1, high=4096,
    )  # fmt: skip
    delta: float = setting(
        0.01, float, "KL radius of the reward step, in nats.", safe="1e-5 to 0.02", low=1e-12, high=10.0
    )  # fmt: skip
    gamma: float = setting(
        0.99, float, "Discount of the reward.", safe="0.9 to 0.999", low=0.0, high=1.0
    )  # fmt: skip
    gae_lambda: float = setting(
        0.95, float, "lambda of the reward's advantages.", safe="0.9 to 1", low=0.0, high=1.0
    )  # fmt: skip
    batch_size: int = setting(
        20_000, int, "Steps of the environment per update, rounded up to whole episodes.",
        safe="5000 to 200000", low=1, high=100_000_000,
    )  # fmt: skip
    hidden: tuple[int, ...] = setting(
        (64, 32), int, "Widths of the hidden layers of the policy and the critics.", safe="16 to 512 each", low=1,
        high=65_536, many=True,
    )  # fmt: skip
    bootstrap: bool = setting(
        True, bool, "Whether an episode that was cut off is worth its critic's estimate at the end.",
        advice="pass True or False",
    )  # fmt: skip
    bootstrap_costs: bool = setting(
        False, bool, "The same for the costs; only those with a discount below 1 can be.", advice="pass True or False"
    )  # fmt: skip
    normalize_batches: int = setting(
        0, int, "Batches whose observations enter the running mean and variance that observations are normalised "
        "with; frozen afterwards. 0 leaves observations as they are.", safe="0, or 10 to 1000", low=0, high=10_000_000,
    )  # fmt: skip
    max_kl: float = setting(
        1.0, float, "Largest predicted KL of a whole PCPO step; inf for none.", safe="0.1 to inf", low=1e-12
    )  # fmt: skip
    several: str = setting(
        "cyclic", str, "How PCPO projects onto several constraints.", choices=("cyclic", "dykstra"),
        advice="try cyclic",
    )  # fmt: skip
    line_search: bool = setting(
        True, bool, "Whether CPO backtracks.", advice="pass True or False"
    )  # fmt: skip
    learning_rate: float = setting(
        0.01, float, "By how much PDO's multiplier grows per unit of violation.", safe="0.001 to 0.1", low=0.0,
        high=1e6,
    )  # fmt: skip
    multiplier: float = setting(
        0.0, float, "FPO's fixed multiplier of the costs (1 there if not given), and the one that PDO starts with.",
        safe="0 to 50", low=0.0, high=1e9,
    )  # fmt: skip
    cg_iterations: int = setting(
        10, int, "Steps of conjugate gradient, at most.", safe="10 to 50", low=1, high=10_000
    )  # fmt: skip
    damping: float = setting(
        1e-5, float, "Multiple of the identity that is added to H.", safe="1e-6 to 0.1", low=0.0, high=1e3
    )  # fmt: skip
    fisher_fraction: float = setting(
        0.2, float, "Part of the batch on which H is measured, drawn afresh in each update.", safe="0.1 to 1",
        low=1e-6, high=1.0,
    )  # fmt: skip
    critic: str = setting(
        "network", str, "Whether critics are networks like the policy's, fitted by natural gradient steps, or linear "
        "functions of observations, their squares and time, fitted by least squares.", choices=("network", "linear"),
        advice="try network",
    )  # fmt: skip
    critic_steps: int = setting(
        5, int, "Natural gradient steps of the critics per update.", safe="1 to 20", low=1, high=10_000
    )  # fmt: skip
    critic_radius: float = setting(
        0.01, float, "KL radius of one step of a critic.", safe="0.001 to 0.1", low=1e-12, high=10.0
    )  # fmt: skip
    critic_fraction: float = setting(
        0.2, float, "Part of the batch on which the critics' curvature is measured.", safe="0.1 to 1", low=1e-6,
        high=1.0,
    )  # fmt: skip
    environments: int = setting(
        0, int, "Environments that play at once, for tasks simulated on the host; up to 512 also the block on which "
        "the policy is evaluated. 0 for the task's own number.",
        safe="0, or 8 to 512", low=0, high=65_536, advice="try 0",
    )  # fmt: skip
    precision: str = setting(
        "float32", str, "float64 is exact and slow: for comparisons.", choices=("float32", "float64"),
        advice="try float32",
    )  # fmt: skip
    spectrum_every: int = setting(
        10, int, "Updates between two measurements of H's smallest and largest eigenvalue, and of what half of a "
        "batch confirms of the other half's promise; 0 for none.",
        safe="0, or 5 and more", low=0, high=10_000_000,
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Checks every value, alone and with the others."""
        if not isinstance(self.task, str) or not self.task:
            raise ValueError(f"task is {self.task!r}; give the name of a task, `pcpo tasks` lists them")
        for name, about in settings_of(Config).items():
            object.__setattr__(self, name, about.checked(name, getattr(self, name)))
        if not isinstance(self.task_options, Mapping):
            raise ValueError(f"task_options are {self.task_options!r}; give a mapping such as {{'action_mode': 'raw'}}")
        if isinstance(self.constraints, str) or not all(isinstance(each, Constraint) for each in self.constraints):
            raise ValueError(f"constraints are {self.constraints!r}; give Constraints, as Constraint('cost', 5.0)")
        object.__setattr__(self, "task_options", dict(self.task_options))
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if isinstance(self.own, str) or not set(self.own) <= set(OWN):
            raise ValueError(f"own is {self.own!r}; only {' and '.join(OWN)} can be of one's own")
        object.__setattr__(self, "own", tuple(sorted(set(self.own))))
        self._check_together()

    def _check_together(self) -> None:
        names = [constraint.name for constraint in self.constraints]
        if len(set(names)) < len(names):
            raise ValueError(f"constraints are named {', '.join(names)}; give each cost one limit")
        if self.seed + self.seeds - 1 > LARGEST_SEED:
            raise ValueError(
                f"seed is {self.seed} and seeds {self.seeds}, so the last seed would be {self.seed + self.seeds - 1}, "
                f"but must be at most {LARGEST_SEED}; try a smaller seed"
            )
        if self.algorithm == "cpo" and len(names) > 1:
            raise ValueError(
                f"algorithm is 'cpo', which handles one constraint, but there are {len(names)} "
                f"({', '.join(names)}); try pcpo-kl"
            )
        if self.bootstrap_costs and all(constraint.discount >= 1.0 for constraint in self.constraints):
            raise ValueError(
                "bootstrap_costs is True, but no cost has a discount below 1, and an undiscounted sum has no tail to "
                "estimate; try a cost discount of 0.99, or leave it out"
            )

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds that are trained side by side."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The costs, in the order of the task."""
        return tuple(constraint.name for constraint in self.constraints)

    @property
    def limits(self) -> dict[str, float]:
        """The limit of each cost."""
        return {constraint.name: constraint.limit for constraint in self.constraints}

    def replace(self, **changes: Any) -> "Config":
        """The same settings with some changed."""
        return dataclasses.replace(self, **changes)

    def with_limits(self, limits: Mapping[str, float]) -> "Config":
        """The same settings with other limits; costs that are not named keep theirs.

        Raises:
            ValueError: If there is no such cost.
        """
        unknown = [name for name in limits if name not in self.limits]
        if unknown:
            raise ValueError(_no_such_cost(self.task, unknown[0], self.cost_names))
        changed = [
            dataclasses.replace(each, limit=limits[each.name]) if each.name in limits else each
            for each in self.constraints
        ]
        return self.replace(constraints=tuple(changed))

    def options(self) -> "Options":
        """What is static in an update."""
        from pcpo.rl.critics import FitOptions
        from pcpo.rl.linear_features import LinearOptions
        from pcpo.rl.options import Options

        return Options(
            algorithm=self.algorithm,
            several=self.several,
            line_search=self.line_search,
            cg_iterations=self.cg_iterations,
            fisher_fraction=self.fisher_fraction,
            critic=LinearOptions()
            if self.critic == "linear"
            else FitOptions(steps=self.critic_steps, fraction=self.critic_fraction),
            bootstrap=self.bootstrap,
            bootstrap_costs=self.bootstrap_costs,
            normalize_batches=self.normalize_batches,
            spectrum_every=self.spectrum_every,
        )

    def hyper(self) -> "Hyper":
        """The numbers that are traced, in double precision; a program converts them to its own."""
        import numpy as np

        from pcpo.rl.options import Hyper

        def number(value: float | list[float]) -> Any:
            return np.asarray(value, np.float64)

        return Hyper(
            delta=number(self.delta),
            gamma=number(self.gamma),
            gae_lambda=number(self.gae_lambda),
            limits=number([constraint.limit for constraint in self.constraints]),
            cost_discounts=number([constraint.discount for constraint in self.constraints]),
            cost_gae_lambdas=number([constraint.gae_lambda for constraint in self.constraints]),
            max_kl=number(self.max_kl),
            damping=number(self.damping),
            critic_radius=number(self.critic_radius),
            learning_rate=number(self.learning_rate),
            multiplier=number(self.multiplier),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, complete. An infinite ``max_kl`` is None, since JSON has no infinity."""
        plain = dataclasses.asdict(self)
        plain["hidden"], plain["own"] = list(self.hidden), list(self.own)
        plain["constraints"] = [dataclasses.asdict(constraint) for constraint in self.constraints]
        plain["max_kl"] = None if math.isinf(self.max_kl) else self.max_kl
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any], version: str = __version__) -> "Config":
        """The settings that `to_json` wrote.

        Args:
            plain: What `to_json` gave.
            version: The version of pcpo that wrote it, for the error message.

        Raises:
            ValueError: If settings are missing or unknown, as in a file of another version, or have a wrong value.
        """
        known = {each.name for each in dataclasses.fields(cls)}
        unknown, missing = sorted(set(plain) - known), sorted(known - set(plain))
        if unknown or missing:
            parts = [f"has no setting {', '.join(missing)}"] if missing else []
            parts += [f"has a setting {', '.join(unknown)} that this version does not know"] if unknown else []
            raise ValueError(
                f"the configuration was written by pcpo {version} and {' and '.join(parts)}; this is pcpo "
                f"{__version__}: {_remedy(version)}"
            )
        values = dict(plain)
        values["max_kl"] = math.inf if plain["max_kl"] is None else plain["max_kl"]
        try:
            values["constraints"] = tuple(Constraint(**each) for each in plain["constraints"])
        except TypeError:
            raise ValueError(f"constraints are {plain['constraints']!r}; restore the configuration's file") from None
        config = cls(**values)
        from pcpo.training.named import names_code

        if "task" not in config.own and names_code(config.task, config.task_options):
            raise ValueError(
                f"{config.task} takes code that is not pcpo's, but the configuration does not say so, and no file may "
                "run code; the file has been changed by hand: restore it"
            )
        return config


def config_for(
    task: str,
    cost_limit: CostLimit | None = None,
    *,
    cost_names: Sequence[str] | None = None,
    task_options: Mapping[str, Any] | None = None,
    own: Sequence[str] = (),
    cost_settings: Mapping[str, Mapping[str, float]] | None = None,
    **settings: Any,
) -> Config:
    """The settings for a task: those the paper trains it with where it does, with yours in their place.

    Args:
        task: The name of a task, `pcpo tasks` lists them.
        cost_limit: A limit for the only cost, limits by name, or constraints; the preset's where not given.
        cost_names: The costs of a task object of your own, which has no preset.
        task_options: Options of the task, such as ``{"action_mode": "raw"}``.
        own: What is given as an object, see `Config.own`.
        cost_settings: Fields of a `Constraint` by the name of its cost, in place of the preset's.
        **settings: Fields of `Config`.

    Raises:
        ValueError: If the task, an option or a value is wrong.

    Example:
        >>> config_for("point-circle", 2.5).delta
        0.0001
        >>> config_for("mine", 2.5, cost_names=["heat"]).constraints
        (Constraint(name='heat', limit=2.5, discount=1.0, gae_lambda=0.95),)
    """
    unknown = [name for name in settings if name not in settings_of(Config)]
    if unknown:
        raise ValueError(f"there is no setting {unknown[0]!r}; there are: {', '.join(settings_of(Config))}")
    options = dict(task_options or {})
    from pcpo.training.named import named, plain_options

    if cost_names is None:
        found = named(task, options)
        names, preset = found.task.cost_names, found.preset
        own = (*own, "task") if found.own else own
    else:
        names, preset = tuple(cost_names), None
    if preset is None:
        _check_every_limit(task, cost_limit, names)
        usual, defaults = {name: Constraint(name, 0.0) for name in names}, dict[str, Any]()
    else:
        usual, defaults = _of_the_paper(preset, names)
    if settings.get("algorithm") == "fpo":
        defaults["multiplier"] = 1.0
    constraints = tuple(
        dataclasses.replace(each, **(cost_settings or {}).get(each.name, {}))
        for each in _constraints(task, cost_limit, usual)
    )
    return Config(task, plain_options(options), constraints, tuple(own), **{**defaults, **settings})


def _of_the_paper(preset: "Preset", names: Sequence[str]) -> tuple[dict[str, Constraint], dict[str, Any]]:
    """The constraints and the settings that the paper trains a task with."""
    constraints = {
        name: Constraint(name, preset.limits[name], discount=preset.cost_discount, gae_lambda=preset.cost_gae_lambda)
        for name in names
    }
    return constraints, {
        "gamma": preset.gamma,
        "gae_lambda": preset.gae_lambda,
        "batch_size": preset.batch_size,
        "hidden": preset.hidden,
        "delta": preset.delta,
        "bootstrap": False,
        "max_kl": math.inf,
        "critic": preset.critic,
        "critic_steps": 1,
    }


def _constraints(task: str, limit: CostLimit | None, preset: Mapping[str, Constraint]) -> tuple[Constraint, ...]:
    """One constraint for each cost of the preset, with the limits that are given in place of the preset's."""
    given: dict[str, Any]
    if limit is None:
        given = {}
    elif isinstance(limit, Mapping):
        given = {name: dataclasses.replace(preset[name], limit=value) if name in preset else value
                 for name, value in limit.items()}  # fmt: skip
    elif isinstance(limit, Constraint | Iterable) and not isinstance(limit, str):
        given = _by_name(limit)
    elif len(preset) == 1:
        given = {name: dataclasses.replace(each, limit=limit) for name, each in preset.items()}
    else:
        names = ", ".join(preset) or "none"
        raise ValueError(
            f"cost_limit is {limit!r}, but {task} has {len(preset)} costs ({names}); name them, as in "
            f"{dict.fromkeys(preset, 5.0)}"
        )
    unknown = [name for name in given if name not in preset]
    if unknown:
        raise ValueError(_no_such_cost(task, unknown[0], tuple(preset)))
    return tuple(given.get(name, each) for name, each in preset.items())


def _by_name(limits: Constraint | Iterable[Any]) -> dict[str, Constraint]:
    """Constraints by the names of their costs."""
    listed: list[Any] = [limits] if isinstance(limits, Constraint) else list(limits)
    if not all(isinstance(each, Constraint) for each in listed):
        raise ValueError(f"cost_limit is {limits!r}; give a number, a mapping such as {{'cost': 5.0}}, or Constraints")
    found = {each.name: each for each in listed}
    if len(found) < len(listed):
        raise ValueError(f"cost_limit names {', '.join(each.name for each in listed)}; give each cost one limit")
    return found


def _check_every_limit(task: str, limit: CostLimit | None, names: Sequence[str]) -> None:
    """A task without a preset has no limit that we could assume."""
    if limit is None:
        missing = list(names)
    elif isinstance(limit, Constraint | Iterable) and not isinstance(limit, str):
        known = limit if isinstance(limit, Mapping) else _by_name(limit)
        missing = [name for name in names if name not in known]
    else:
        missing = []
    if missing:
        raise ValueError(
            f"cost_limit is {limit!r}, which has no limit for {', '.join(missing)} of {task}; give one for each cost, "
            f"as in {dict.fromkeys(names, 5.0)}"
        )


def _no_such_cost(task: str, name: str, known: Sequence[str]) -> str:
    return f"{task} has no cost {name!r}; it has {', '.join(known) or 'none'}"


def _remedy(version: str) -> str:
    """What to do about a file of another version."""
    if _numbers(version) > _numbers(__version__):
        return f"install pcpo {version} or newer to read it"
    if _numbers(version) < _numbers(__version__):
        return f"install pcpo {version} to go on from it, or train again"
    return "the file has been changed by hand; restore it"


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int(part) if part.isdigit() else -1 for part in parts)
