# SPDX-License-Identifier: Apache-2.0
"""Runners: the ways to run a job, each with its checks, its preparation, its cache key and its execution.

`ProgramRun` simulates a compiled program, `ScheduleRun` a GOAL schedule, `PspinRun` handlers for PsPIN's own interface;
`ScriptRun` runs a Python script, `PeerNumbers` reads the numbers of a program that others published.
`program_runner` and `prepare` alone decide which one a series has.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from platform import python_version
from typing import Any, ClassVar, Protocol, Self

from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._json import parse_json
from spinkit.common._toml import Place, is_there
from spinkit.experiments import _peers
from spinkit.experiments._cache import Entry
from spinkit.experiments._definition import Experiment, File, Program, Series
from spinkit.experiments._handlers import Builder, Handlers
from spinkit.experiments._includes import imported_from_package
from spinkit.experiments._jobs import Job
from spinkit.experiments._programs import Compiled
from spinkit.experiments._workshop import Workshop
from spinkit.simulate._tasks import REPORT, Done

_GRACE_S = 30
"""Time for spinrun to end after its own --timeout."""

_NO_RESULTS = frozenset(
    {
        "cpu_seconds",
        "wall_seconds",
        "peak_memory_bytes",
        "packet_hops_per_cpu_second",
        "end_ns",
        "unreceived_messages",
    }
)
"""Keys of a schedule's report whose values depend on this computer, or are long."""


_CODE = digest([Path(__file__)], [])
"""Digest of this file, which makes the kept outcome of a run of a command's output and report."""


class Runner(Protocol):
    """One way to run the jobs of an experiment."""

    def inputs(self, job: Job) -> list[str]:
        """Return everything that decides the outcome of a job besides the machine's files."""

    def execute(self, job: Job) -> Entry:
        """Run a job; its output has a line for each value."""


class ProgramRunner(Runner, Protocol):
    """A runner of the experiment's own `[program]`."""

    point_reports: ClassVar[bool]
    """Each point has a report, in its line."""

    @staticmethod
    def check(table: File, folder: Path, place: Place) -> None:
        """Raise an error that names the key if the program cannot be run."""

    @classmethod
    def prepare(cls, experiment: Experiment, workshop: Workshop) -> Self:
        """Compile or generate the inputs of all jobs."""


class ProgramRun:
    """Runs a compiled program with spinrun."""

    point_reports: ClassVar[bool] = False

    def __init__(self, program: Compiled, workshop: Workshop) -> None:
        self._program = program
        self._workshop = workshop

    @staticmethod
    def check(table: File, folder: Path, place: Place) -> None:
        """Raise an error for a missing source, a wrong number of ranks, or flags of a series."""
        _refuse_flags(table.series, place)
        program, place = table.program, place / "program"
        if not program.sources:
            problem = "missing: an experiment runs a program (sources), schedules or handlers (pspin)"
            raise (place / "sources").error(problem)
        for index, flag in enumerate(program.flags):
            if "{" in flag:
                problem = "the sources are compiled once for all values: a flag cannot contain a placeholder"
                raise (place / "flags" / index).error(problem)
        for index, source in enumerate(program.sources):
            if not is_there(folder / source, Path.is_file):
                raise (place / "sources" / index).error(f"there is no file {source} in this folder")
        ranks = str(program.ranks)
        if ranks != "{max}" and not (ranks.isdecimal() and int(ranks) >= 1):
            raise (place / "ranks").error("expected at least 1, or {max}")

    @classmethod
    def prepare(cls, experiment: Experiment, workshop: Workshop) -> Self:
        """Compile the program."""
        return cls(workshop.programs.get(experiment), workshop)

    def inputs(self, job: Job) -> list[str]:
        """Return the simulator, the program, and the options and arguments of the run."""
        words = [*self.options(job), "--", *self.arguments(job)]
        return [_CODE, self._workshop.tools_digest, self._program.digest, *words, _named_files(words)]

    def execute(self, job: Job) -> Entry:
        """Simulate the program; dropped messages and failed handlers end the run."""
        limit = job.experiment.timeout_s
        strict = ("--fail-on-drop", "--fail-on-handler-error")
        limits = ("--timeout", str(limit), "--json", REPORT)
        arguments: tuple[str | Path, ...] = (
            *self.options(job),
            *strict,
            *limits,
            self._program.file,
            *self.arguments(job),
        )
        done = self._workshop.perform(job, "spinrun", arguments, limit + _GRACE_S)
        if done.status != 0 and not _reports_wrong_data(done.status, done.output):
            raise SpinkitError(f"spinrun ended with status {done.status}\n{done.errors.strip()}".rstrip())
        return Entry(done.output, _report(done, "spinrun's report"))

    @staticmethod
    def options(job: Job) -> list[str]:
        """Return the options of spinrun that decide the outcome."""
        changes = [word for change in job.changes for word in ("--set", change)]
        series = job.series[0]
        noise = [] if series.noise is None else ["--noise", series.noise]
        where = [] if series.noise_ranks is None else ["--noise-ranks", series.noise_ranks]
        clock = ["--clock", "simulated"] if job.experiment.program.mpi else []
        machine = ["--machine", job.experiment.place(job.machine), "--nic", series.nic]
        return ["-n", str(job.ranks), *machine, *changes, *noise, *where, *clock]

    @staticmethod
    def arguments(job: Job) -> list[str]:
        """Return the arguments of the program; series that share a run add theirs in order."""
        common = {} if job.experiment.shared_run else {"mode": job.series[0].mode}
        own = [job.fill(arg, mode=series.mode) for series in job.series for arg in series.args]
        return [*(job.fill(arg, None, None, **common) for arg in job.experiment.program.args), *own]


class ScheduleRun:
    """Runs GOAL schedules with `spinkit goal run`."""

    point_reports: ClassVar[bool] = False

    def __init__(self, folder: Path, inputs_digest: str, workshop: Workshop) -> None:
        self._folder = folder
        self._digest = inputs_digest
        self._workshop = workshop

    @staticmethod
    def check(table: File, folder: Path, place: Place) -> None:  # noqa: ARG004
        """Raise an error unless each value of the sweep has a schedule, or for flags."""
        _refuse_flags(table.series, place)
        if table.program.flags:
            raise (place / "program" / "flags").error("schedules are not compiled: remove the flags")
        needed = 1 if table.sweep.of_machine else len(table.sweep.values)
        if len(table.program.schedules) != needed:
            which = "only one" if table.sweep.of_machine else f"one for each of the {needed} values of the sweep"
            raise (place / "program" / "schedules").error(f"expected {which}")

    @classmethod
    def prepare(cls, experiment: Experiment, workshop: Workshop) -> Self:
        """Generate or import the schedules of the wanted values."""
        folder = workshop.settings.out / experiment.name
        goal = workshop.settings.tools.goal
        files = []
        wanted = experiment.values(workshop.settings.quick)
        # On an axis of the machine all values have one schedule.
        for value, arguments in zip(experiment.sweep.values, experiment.program.schedules, strict=False):
            if value in wanted or experiment.sweep.of_machine:
                made = [word.replace("{folder}", str(experiment.folder)) for word in arguments.split()]
                files.append(folder / f"schedule-{value}.bin")
                status, _, errors = workshop.processes.execute([str(goal), *made, "-o", str(files[-1])], None)
                if status != 0:
                    raise SpinkitError(f"spinkit goal {made[0]} ended with status {status}\n{errors.strip()}".rstrip())
        return cls(folder, digest(files, []), workshop)

    def inputs(self, job: Job) -> list[str]:
        """Return the simulator, the schedules, and the options of the run."""
        words = [*ProgramRun.options(job), "--", *ProgramRun.arguments(job)]
        return [_CODE, self._workshop.goal_digest, self._digest, *words, _named_files(words)]

    def execute(self, job: Job) -> Entry:
        """Run the schedule of each value; the report is the line of the value."""
        experiment = job.experiment
        machine = ["--machine", experiment.place(job.machine)]
        machine += [word for change in job.changes for word in ("--set", change)]
        rest = (*machine, *ProgramRun.arguments(job), "--progress", "off", "--json", "-")
        lines = []
        for value in job.values:
            schedule = self._folder / f"schedule-{value if job.value is None else experiment.sweep.values[0]}.bin"
            done = self._workshop.perform(job, "spinkit-goal", ("run", schedule, *rest), None, f".{value}")
            if done.status != 0:
                raise SpinkitError(f"spinkit goal run ended with status {done.status}\n{done.errors.strip()}".rstrip())
            try:
                report = parse_json(done.output)
            except ValueError as error:
                raise SpinkitError(f"spinkit goal run: {error}") from None
            line = {
                experiment.sweep.axis: value,
                experiment.measure.key: round(report["max_end_ns"] * 1000),
                "data_ok": report["unreceived_messages"] == 0,
            }
            lines.append(json.dumps(line | _without(report, _NO_RESULTS)))
        return Entry("".join(f"{line}\n" for line in lines), {})


class PspinRun:
    """Runs handlers for PsPIN's own interface with `spinkit pspin run`."""

    point_reports: ClassVar[bool] = True

    def __init__(self, builder: Builder, workshop: Workshop) -> None:
        self._builder = builder
        self._workshop = workshop

    @staticmethod
    def check(table: File, folder: Path, place: Place) -> None:
        """Raise an error for handlers that do not exist, or for flags of a folder, which its own Makefile builds."""
        program = table.program
        for index, one in enumerate(table.series):
            for name in table.sweep.names or ("{name}",):
                named = _named(program, one, name)
                if one.script is not None or one.peer is not None:
                    continue
                if not is_there(folder / named):
                    raise (place / "program" / "pspin").error(f"there is no file or folder {named}")
                if (one.flags or program.flags) and is_there(folder / named, Path.is_dir):
                    where = place / "series" / index if one.flags else place / "program"
                    makefile = f"{named} is a folder, which its own Makefile builds: put them into SPIN_CFLAGS there"
                    raise (where / "flags").error(makefile)

    @classmethod
    def prepare(cls, experiment: Experiment, workshop: Workshop) -> Self:
        """Make the builder, which compiles handlers when a job first needs them."""
        settings = workshop.settings
        out = settings.out / experiment.name
        library = settings.tools.library and settings.tools.library.with_name("libpspin.so")
        builder = Builder(settings.tools.pspin, library, settings.home / "sdk", out, workshop.processes.execute)
        return cls(builder, workshop)

    def inputs(self, job: Job) -> list[str]:
        """Return the handlers and the options of each value."""
        handlers = [self._handlers(job, value) for value in job.values]
        arguments = [word for value in job.values for word in (str(value), *self._options(job, value))]
        hardware = [self._workshop.hardware_digest] if _uses_hardware(arguments) else []
        return [_CODE, self._builder.digest(handlers), *arguments, _named_files(arguments), *hardware]

    def execute(self, job: Job) -> Entry:
        """Run the handlers for each value; the report is the line of the value."""
        experiment = job.experiment
        lines = []
        for value in job.values:
            target = self._builder.get(self._handlers(job, value))
            arguments: tuple[str | Path, ...] = ("run", target, "--json", REPORT, *self._options(job, value))
            done = self._workshop.perform(job, "spinkit-pspin", arguments, experiment.timeout_s, f".{value}")
            if done.status != 0:
                title = f"spinkit pspin run ended with status {done.status} at {experiment.sweep.axis} = {value}"
                raise SpinkitError(f"{title}\n{done.errors.strip()}".rstrip())
            report = _report(done, "the report of spinkit pspin run")
            if experiment.sweep.axis in report:
                raise SpinkitError(f"sweep.axis: {experiment.sweep.axis} is a key of the report too")
            lines.append(json.dumps({experiment.sweep.axis: value, "data_ok": True} | report))
        return Entry("".join(f"{line}\n" for line in lines), {})

    @staticmethod
    def _handlers(job: Job, value: float) -> Handlers:
        """Return the handlers of a value."""
        experiment, series = job.experiment, job.series[0]
        more = {"mode": series.mode, "folder": str(experiment.folder)}
        flags = tuple(job.fill(flag, value, None, **more) for flag in (*experiment.program.flags, *series.flags))
        place = (experiment.program.pspin or "").replace("{mode}", series.mode)
        sweep = experiment.sweep
        if sweep.names:
            place = place.replace("{name}", sweep.names[sweep.values.index(value)])
        return Handlers(experiment.folder / place, flags)

    @staticmethod
    def _options(job: Job, value: float) -> list[str]:
        """Return the options of `spinkit pspin run` for a value, then the arguments."""
        series = job.series[0]
        changes = job.settings(tuple(job.fill(change, value, ()) for change in series.set))
        machine = job.experiment.place(job.machine)
        options = ["--machine", machine, *(word for change in changes for word in ("--set", change))]
        # Arguments of all series are last: a folder's driver may take them.
        arguments = (*series.args, *job.experiment.program.args)
        more = {"mode": series.mode, "folder": str(job.experiment.folder)}
        return [*options, *(job.fill(word, value, changes, **more) for word in arguments)]


class ScriptRun:
    """Runs a Python script of the experiment's folder, which prints the points."""

    def __init__(self, script: str, program: Compiled | None, workshop: Workshop) -> None:
        self._script = script
        self._program = program
        self._workshop = workshop

    def inputs(self, job: Job) -> list[str]:
        """Return the script with the files beside it, the arguments, and the program if it has one."""
        arguments = self._arguments(job)
        inputs = [_CODE, python_version(), self._digest(job.experiment), *arguments, _named_files(arguments)]
        if self._program is not None:
            inputs.append(self._program.digest)
        # A script that uses this package may start the simulator.
        own = imported_from_package(job.experiment.folder / self._script)
        if self._program is not None or own:
            inputs += [self._workshop.tools_digest, digest(own, [])]
        return inputs

    def execute(self, job: Job) -> Entry:
        """Run the script; its arguments may name the program."""
        experiment = job.experiment
        program = str(self._workshop.settings.out / experiment.name if self._program is None else self._program.file)
        arguments = [word.replace("{program}", program) for word in self._arguments(job)]
        command = [sys.executable, str(experiment.folder / self._script), *arguments]
        status, output, errors = self._workshop.processes.execute(command, experiment.timeout_s)
        if status != 0 and not _reports_wrong_data(status, output):
            raise SpinkitError(f"{self._script} ended with status {status}\n{errors.strip()}".rstrip())
        return Entry(output, {})

    def _digest(self, experiment: Experiment) -> str:
        """Return a digest of the script and of the files beside it that are no experiments."""
        script = experiment.folder / self._script
        beside = sorted(
            file
            for file in script.parent.iterdir()
            if file.is_file() and file.suffix != ".md" and not experiment.is_definition(file)
        )
        return digest(beside, [script.name, *(file.name for file in beside)])

    @staticmethod
    def _arguments(job: Job) -> list[str]:
        """Return the arguments of the series, in which `{program}` is filled in last."""
        machine = job.experiment.place(job.machine)
        more = {"mode": job.series[0].mode, "machine": machine, "program": "{program}"}
        return [job.fill(arg, None, None, **more) for arg in job.series[0].args]


class PeerNumbers:
    """Reads the numbers of a program that others published."""

    def __init__(self, reference: str, workshop: Workshop) -> None:
        self._reference = reference
        self._home = workshop.settings.home

    def inputs(self, job: Job) -> list[str]:
        """Return the wanted numbers and the file that has them."""
        file = _peers.numbers(self._home, self._reference.partition("/")[0])
        there = [file] if is_there(file, Path.is_file) else []
        return [_CODE, self._reference, *map(str, job.values), digest(there, [])]

    def execute(self, job: Job) -> Entry:
        """Read the numbers of each value."""
        return Entry(_peers.lines(self._home, self._reference, job.machine, job.experiment.sweep.axis, job.values), {})


def _named_files(words: Iterable[str]) -> str:
    """Return a digest of the files that arguments name, such as `--rules FILE` and `rules=FILE`."""
    places = (Path(part) for word in words for part in {word, word.rpartition("=")[2]} if "/" in part)
    files = sorted({place for place in places if is_there(place, Path.is_file)})
    return digest(files, [])


def _uses_hardware(words: Sequence[str]) -> bool:
    """Return whether arguments of `spinkit pspin run` choose the hardware of `rtl`."""
    return any(word == "--engine=rtl" or (word == "--engine" and "rtl" in words) for word in words)


def _named(program: Program, series: Series, name: str) -> str:
    """Return the path of a series' handlers at the value of this name, relative to the experiment."""
    return (program.pspin or "").replace("{mode}", series.mode).replace("{name}", name)


def _refuse_flags(series: Sequence[Series], place: Place) -> None:
    """Raise an error for a series with flags in an experiment whose series share a program."""
    for index, one in enumerate(series):
        if one.flags:
            problem = "only series of handlers (program.pspin) are compiled separately: use program.flags"
            raise (place / "series" / index / "flags").error(problem)


def program_runner(program: Program) -> type[ProgramRunner]:
    """Return the runner of a `[program]`."""
    if program.pspin is not None:
        return PspinRun
    return ScheduleRun if program.schedules else ProgramRun


def prepare(experiment: Experiment, workshop: Workshop) -> dict[str, Runner]:
    """Compile or generate everything that an experiment runs, and return the runner of each series by its name."""
    (workshop.settings.out / experiment.name).mkdir(exist_ok=True)
    scripts = {series.name: series.script for series in experiment.series if series.script is not None}
    compiled = workshop.programs.get(experiment) if scripts and experiment.program.sources else None
    found: dict[str, Runner] = {name: ScriptRun(script, compiled, workshop) for name, script in scripts.items()}
    found |= {one.name: PeerNumbers(one.peer, workshop) for one in experiment.series if one.peer is not None}
    if len(found) < len(experiment.series):
        own: Runner = program_runner(experiment.program).prepare(experiment, workshop)
        found |= {series.name: own for series in experiment.series if series.name not in found}
    return found


def _reports_wrong_data(status: int, output: str) -> bool:
    """Return whether a program failed only because of wrong results, which its points report."""
    return status == 1 and re.search(r'"data_ok": *false', output) is not None


def _report(done: Done, name: str) -> Any:
    """Return the report of a command."""
    if done.report is None:
        raise SpinkitError(f"{name}: No such file or directory")
    try:
        return parse_json(done.report)
    except ValueError as error:
        raise SpinkitError(f"{name}: {error}") from None


def _without(table: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """Return a table, and the tables in it, without some keys."""
    kept = {key: value for key, value in table.items() if key not in keys}
    return {key: _without(value, keys) if isinstance(value, dict) else value for key, value in kept.items()}
