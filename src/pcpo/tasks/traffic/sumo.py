"""The only door to SUMO: one simulation, and never two of them in one process.

libsumo keeps its simulation in global variables. A second ``start`` silently replaces the first, so that two
environments in one process would overwrite each other without any error. A `Simulation` therefore owns the process it
is in from its first load until it is closed, and another one is refused until then. libsumo is not made for threads
either: one call at a time.
"""

import os
import shutil
import tempfile
import weakref
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
        self._routes: Path | None = None
        self._finalizer: weakref.finalize[..., Simulation] | None = None
        self._started_by = 0
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
        options = ["-n", str(self._net), "-r", str(self._routes), *self._options, "--seed", str(self._seed)]
        try:
            if self.sumo.isLoaded():
                self.sumo.load(options)
            else:
                self.sumo.start(["sumo", *options])
        except self._failures() as error:
            raise WorldError(
                f"{self.task}: SUMO could not start ({error}); its own message is on the error output. "
                f"The network is {self._net}"
            ) from error

    def step(self) -> None:
        """One step.

        Raises:
            WorldError: SUMO fails, or nothing has been loaded.
        """
        if self._finalizer is None:  # without this, whoever has the process now would be moved
            raise WorldError(f"{self.task}: nothing has been simulated yet, or it has been closed; reset it first")
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
            self._finalizer = self._routes = None

    def _claim(self) -> None:
        """Makes sure that this process simulates nothing else."""
        global _owner  # noqa: PLW0603  (libsumo's state is global too, and this says whose it is)
        holder = _owner() if _owner is not None else None
        if holder is self and self._started_by == os.getpid():
            return
        if holder is not None and holder._started_by != os.getpid():
            whose = f"this process was forked from one that simulates {holder.task}"
        elif holder is not None:
            whose = f"this process simulates {holder.task} already"
        elif self.sumo.isLoaded():
            whose = "this process has a simulation already that something else has started"
        else:
            _owner = weakref.ref(self)
            self._started_by = os.getpid()
            # The demand goes into a file, since SUMO reads nothing else.
            folder = Path(tempfile.mkdtemp(prefix="pcpo-traffic-"))
            self._finalizer = weakref.finalize(self, _release, self.sumo, self._started_by, folder)
            self._routes = folder / "demand.rou.xml"
            self._routes.write_text(self._demand)
            return
        raise WorldError(
            f"{self.task}: {whose}, and SUMO can only run once in a process; close that environment first, or give "
            "each environment a process of its own, started by spawn: "
            "gymnasium.vector.AsyncVectorEnv(..., context='spawn') does"
        )

    def _failures(self) -> tuple[type[Exception], ...]:
        return (self.sumo.TraCIException, self.sumo.FatalTraCIError)


def _release(sumo: Any, started_by: int, folder: Path) -> None:
    """Closes SUMO, in the process that started it; a copy made by fork leaves it alone."""
    global _owner  # noqa: PLW0603
    if started_by == os.getpid():
        sumo.close()
        shutil.rmtree(folder, ignore_errors=True)
        _owner = None
