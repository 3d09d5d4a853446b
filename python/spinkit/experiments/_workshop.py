# SPDX-License-Identifier: Apache-2.0
"""Shared state of the runs of one command: settings, child processes, programs, machine descriptions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._processes import Processes
from spinkit.experiments._definition import Experiment
from spinkit.experiments._includes import files_below
from spinkit.experiments._jobs import Job
from spinkit.experiments._programs import Programs
from spinkit.simulate import _machines
from spinkit.simulate._machines import Machine
from spinkit.simulate._tasks import Done, Task, tools_digest
from spinkit.simulate._tasks import run as run_here
from spinkit.simulate._toolchain import Toolchain


class Remote(Protocol):
    """A Dask cluster that runs commands."""

    def perform(self, task: Task) -> Done:
        """Run one command and wait for its end; callable from several threads."""

    def cancel(self) -> None:
        """End all running commands."""


@dataclass(frozen=True)
class Settings:
    """Settings that all experiments of a command share."""

    home: Path
    tools: Toolchain
    machines: Path
    """`spinkit-machines`."""
    out: Path
    """Folder of the results, with one folder for each experiment."""
    quick: bool = False
    fresh: bool = False
    """Run everything, without using the cache."""
    jobs: int | None = None
    """Number of simultaneous runs; by default the number of processors."""
    retries: int = 0
    """Number of times that a failed run is repeated."""
    remote: Remote | None = None
    """Dask cluster that runs the commands; by default this computer runs them."""


class Workshop:
    """Compiles programs, describes machines and executes tasks for all runs of a command."""

    def __init__(self, settings: Settings, scratch: Path) -> None:
        tools = settings.tools
        self.settings = settings
        self.processes = Processes()
        self.programs = Programs(settings.home, settings.out, tools, settings.fresh, self.processes.execute)
        self._scratch = scratch
        self._machines: dict[tuple[str, tuple[str, ...]], Machine] = {}

    @cached_property
    def tools_digest(self) -> str:
        """Digest of the simulator and the libraries that it loads into a rank; an MPI adds others."""
        return tools_digest(self.settings.tools.spinrun, self.settings.tools.library, mpi=False)

    @cached_property
    def goal_digest(self) -> str:
        """Digest of the simulator of schedules."""
        return digest([self.settings.tools.goal], [])

    @cached_property
    def hardware_digest(self) -> str:
        """Digest of the sources of the hardware."""
        return digest(files_below(self.settings.home / "rtl"), [])

    def interrupt(self) -> None:
        """End all running commands."""
        self.processes.interrupt()
        if self.settings.remote is not None:
            self.settings.remote.cancel()

    def describe_all(self, experiments: Iterable[Experiment]) -> None:
        """Describe the unchanged machines of experiments in one process, so that `describe` knows them."""
        names = dict.fromkeys(one.place(machine) for one in experiments for machine in one.machine_files)
        with suppress(SpinkitError):  # `describe` raises it again, for the experiment that has the machine
            found = _machines.load_all(self.settings.machines, list(names))
            self._machines |= {(name, ()): machine for name, machine in zip(names, found, strict=True)}

    def describe(self, machine: str, changes: tuple[str, ...]) -> Machine:
        """Describe a machine with changed parameters."""
        if (machine, changes) not in self._machines:
            self._machines[machine, changes] = _machines.load(self.settings.machines, machine, changes)
        return self._machines[machine, changes]

    def machine_files(self, job: Job) -> tuple[Path, ...]:
        """Return the files of a job's machine."""
        return self.describe(job.experiment.place(job.machine), ()).files

    def perform(
        self, job: Job, command: str, arguments: tuple[str | Path, ...], timeout_s: float | None, part: str = ""
    ) -> Done:
        """Execute a command of a job, here or on the Dask cluster; `part` distinguishes the commands of one job."""
        task = Task(command, arguments, self.machine_files(job), timeout_s)
        if self.settings.remote is not None:
            return self.settings.remote.perform(task)
        tools = self.settings.tools
        place = {"spinrun": tools.spinrun, "spinkit-goal": tools.goal, "spinkit-pspin": tools.pspin}[command]
        report = self._scratch / f"{job.experiment.name}.{job.name}{part}.json"
        return run_here(task, place, report, self.processes.execute)
