"""The only door to SUMO: one simulation, and never two of them in one process.

libsumo keeps its simulation in global variables. A second ``start`` silently replaces the first, so that two
environments in one process would overwrite each other without any error. A `Simulation` therefore owns the process it
is in from its first load until it is closed, and another one is refused until then. libsumo is not made for threads
either: one call at a time.
"""

import os
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pcpo.tasks.host import WorldError
from pcpo.tasks.traffic import nets

DEBIAN_PACKAGES = "libgl1 libx11-6 libxext6 libxrender1 libexpat1 libatomic1"
"""What libsumo's wheel takes from the system; a desktop has it, a bare machine or container may not."""

_NEVER = ("--xml-validation", "never", "--xml-validation.net", "never", "--xml-validation.routes", "never")
_owner: "weakref.ref[Simulation] | None" = None


def engine(task: str) -> Any:
    """SUMO's library, as Python sees it.

    Raises:
        WorldError: It cannot be imported; says what to install.
    """
    try:
        import libsumo
    except ModuleNotFoundError as error:
        if error.name != "libsumo":
            raise
        raise WorldError(f"{task} needs SUMO, which is not installed; pip install 'pcpo[traffic]'") from None
    except ImportError as error:
        raise WorldError(
            f"{task} needs SUMO, which is installed but cannot be loaded ({error}); "
            f"on Debian and Ubuntu: apt install {DEBIAN_PACKAGES}"
        ) from None
    return libsumo


@dataclass
class _Hold:
    """A process that is held for a simulation."""

    process: int
    demand: str = ""
    """The file of the last load: no other simulation has it."""

    def lasts(self, sumo: Any) -> bool:
        """Whether SUMO runs what was loaded last; somebody else may have closed it, or started another simulation."""
        return (
            self.process == os.getpid() and sumo.isLoaded() and sumo.simulation.getOption("route-files") == self.demand
        )


class Simulation:
    """SUMO, running one network with one demand; nothing happens before the first `load`.

    Args:
        task: Whose it is, for messages.
        net: One of `nets.JUNCTION_RADII`.
        demand: SUMO's XML of vehicle types, routes, vehicles and flows.
        time_step: Seconds of a step.
        warnings: Whether SUMO says what it finds odd, on the error output.
    """

    def __init__(self, task: str, net: str, demand: str, time_step: float, warnings: bool = False) -> None:
        self.sumo = engine(task)
        self.task = task
        self._net = nets.path(net)
        self._demand = demand
        self._options = [
            *("--step-length", str(time_step), "--time-to-teleport", "-1", "--collision.check-junctions", "true"),
            *("--no-step-log", "true", "--no-warnings", str(not warnings).lower(), *_NEVER),
        ]
        self._finalizer: weakref.finalize[..., Simulation] | None = None
        self._hold = _Hold(0)
        self._seed = 0

    def load(self, seed: int) -> None:
        """Begins again at time zero, as the seed decides; the first time, SUMO is started and the process claimed.

        Raises:
            WorldError: The process has a simulation already, or SUMO refuses what it was given.
        """
        self._claim()
        if not self.sumo.isLoaded() and (fault := nets.fault(self._net)):
            raise WorldError(f"{self.task}: {self._net} is no network ({fault}); install pcpo again")
        self._seed = int(np.random.SeedSequence(seed & (2**64 - 1)).generate_state(1)[0] >> 1)
        # SUMO reads nothing but files. It keeps this one open, so that the name can go at once, and a process that is
        # killed leaves nothing behind.
        with tempfile.TemporaryDirectory(prefix="pcpo-traffic-", ignore_cleanup_errors=True) as folder:
            demand = Path(folder) / "demand.rou.xml"
            demand.write_text(self._demand)
            self._hold.demand = str(demand)
            self._begin(["-n", str(self._net), "-r", str(demand), *self._options, "--seed", str(self._seed)])

    def check(self) -> None:
        """Makes sure that what is read of SUMO, or done to it, is of this simulation.

        Raises:
            WorldError: Nothing has been loaded, it has been closed, or SUMO does not run it any more.
        """
        if self._finalizer is None:
            raise WorldError(f"{self.task}: nothing has been simulated yet, or it has been closed; reset it first")
        if not self._hold.lasts(self.sumo):
            raise WorldError(
                f"{self.task}: its simulation is gone: it failed to start, or something else in this process has "
                "closed it or started another one; leave libsumo to the environment, and reset it"
            )

    def step(self) -> None:
        """One step.

        Raises:
            WorldError: SUMO fails, or there is nothing to step; see `check`.
        """
        self.check()
        try:
            self.sumo.simulationStep()
        except self._failures() as error:
            raise WorldError(
                f"{self.task}: SUMO failed in a step of the simulation with SUMO's seed {self._seed} ({error}); "
                "its own message is on the error output"
            ) from error

    def close(self) -> None:
        """Ends SUMO and lets others have the process; a later `load` starts it again."""
        if self._finalizer is not None:
            self._finalizer()
            self._finalizer = None

    def _claim(self) -> None:
        """Makes sure that this process simulates nothing else."""
        global _owner  # noqa: PLW0603  (libsumo's state is global too, and this says whose it is)
        holder = _owner() if _owner is not None else None
        if holder is self and (self._hold.lasts(self.sumo) or self._was_closed()):
            return
        if holder is not None and holder._hold.process != os.getpid():
            whose = f"this process was forked from one that simulates {holder.task}"
        elif holder is not None and holder is not self:
            whose = f"this process simulates {holder.task} already"
        elif self.sumo.isLoaded():
            whose = "this process has a simulation already that something else has started"
        else:
            _owner = weakref.ref(self)
            self._hold = _Hold(os.getpid())
            self._finalizer = weakref.finalize(self, _release, self.sumo, self._hold)
            return
        raise WorldError(
            f"{self.task}: {whose}, and SUMO can only run once in a process; close that environment first, or give "
            "each environment a process of its own, started by spawn: "
            "gymnasium.vector.AsyncVectorEnv(..., context='spawn') does"
        )

    def _was_closed(self) -> bool:
        """Somebody else has closed SUMO, in the process that is held: it can be started again."""
        return self._hold.process == os.getpid() and not self.sumo.isLoaded()

    def _begin(self, options: list[str]) -> None:
        try:
            if self.sumo.isLoaded():
                self.sumo.load(options)
            else:
                self.sumo.start(["sumo", *options])
        except self._failures() as error:
            raise WorldError(
                f"{self.task}: SUMO could not start ({error}); its own message is on the error output. It was given "
                f"the network {self._net} and the cars that the option demand asks for"
            ) from error

    def _failures(self) -> tuple[type[Exception], ...]:
        return (self.sumo.TraCIException, self.sumo.FatalTraCIError)


def _release(sumo: Any, hold: _Hold) -> None:
    """Closes SUMO, unless it runs what somebody else has started; a copy made by fork leaves it alone."""
    global _owner  # noqa: PLW0603
    if hold.process == os.getpid():
        if hold.lasts(sumo):
            sumo.close()
        _owner = None
