"""Running experiments: each program is compiled once, runs use all cores, and finished runs are cached."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Protocol

from spinkit import _cache, _machines, _pspin
from spinkit._cache import Entry
from spinkit._errors import EndingError, SpinkitError
from spinkit._experiment import Experiment, Series
from spinkit._machines import Machine
from spinkit._programs import Program, Programs
from spinkit._progress import Progress, Step
from spinkit._run import Results, Run, Toolchain, judge, parse_json, read_points
from spinkit._worker import REPORT, Done, Task, tools_digest
from spinkit._worker import run as run_here

_GRACE_S = 30
"""Additional time that spinrun has to end after its own --timeout."""


class Remote(Protocol):
    """Runs commands on other computers."""

    def perform(self, task: Task) -> Done:
        """Run one, and wait for its end; several threads may do so at a time."""

    def cancel(self) -> None:
        """End all that is running."""


@dataclass(frozen=True)
class Settings:
    """Settings that all experiments of a command share."""

    home: Path
    tools: Toolchain
    machines: Path
    """`spinkit-machines`."""
    out: Path
    """Each experiment has a folder with its name in this folder."""
    quick: bool = False
    fresh: bool = False
    """Run everything, without using the cache."""
    jobs: int | None = None
    """Number of runs at the same time; if it is not given, the number of processors."""
    retries: int = 0
    """How often a run that failed is made again."""
    remote: Remote | None = None
    """What runs commands on a cluster; without, they run on this computer."""


Describe = Callable[[str, tuple[str, ...]], Machine]
"""Describes a machine with changed parameters."""

_FIELD = re.compile(r"\{([^{}]*)\}")
"""A placeholder in an argument: `{values}`, `{network.radix}`."""


@dataclass(frozen=True, eq=False)
class Job:
    """One run of an experiment's program."""

    experiment: Experiment
    machine: str
    series: tuple[Series, ...]
    """The series that the run measures: one, unless they share a run."""
    quick: bool
    describe: Describe
    value: float | None = None
    """The value of an axis of the machine."""

    @property
    def values(self) -> tuple[float, ...]:
        return self.experiment.values(self.quick) if self.value is None else (self.value,)

    @property
    def name(self) -> str:
        """A name for the run, which jobs share only if they are the same run."""
        name = f"{self.machine}.{self.series[0].name}.{'quick' if self.quick else 'all'}"
        varied = [*self._settings(self.series[0].set), *map(str, self.experiment.chosen or ())]
        return (f"{name}.{_cache.digest([], varied)[:16]}" if varied else name).replace("/", "-")

    @property
    def key(self) -> tuple[str, str]:
        """Jobs with the same key are the same run."""
        return self.experiment.name, self.name

    @property
    def what(self) -> str:
        variant = f", {self.experiment.variant}" if self.experiment.variant else ""
        axis = self.experiment.sweep.axis
        at = "" if self.value is None else f", {axis} = {self.value}"
        return f"{'; '.join(series.label for series in self.series)} on {self.machine}{variant}{at}"

    @property
    def ranks(self) -> int:
        return int(self._fill(str(self.experiment.program.ranks)))

    @property
    def options(self) -> list[str]:
        """Options of spinrun on which the outcome depends."""
        changes = [word for change in self.changes for word in ("--set", change)]
        series = self.series[0]
        noise = [] if series.noise is None else ["--noise", series.noise]
        where = [] if series.noise_ranks is None else ["--noise-ranks", series.noise_ranks]
        clock = ["--clock", "simulated"] if self.experiment.program.mpi else []
        machine = ["--machine", self.experiment.place(self.machine), "--nic", series.nic]
        return ["-n", str(self.ranks), *machine, *changes, *noise, *where, *clock]

    @property
    def changes(self) -> tuple[str, ...]:
        """Changed parameters of the machine, of which later ones replace earlier ones.

        They are those of the variant that the series does not set itself, its own, and those of the point.
        """
        return self._settings(tuple(self._fill(change, changes=()) for change in self.series[0].set))

    def _settings(self, own: tuple[str, ...]) -> tuple[str, ...]:
        keys = {change.partition("=")[0] for change in own}
        # Cards without handlers have HPUs that are never used.
        unused = () if self.series[0].nic == "spin" else ("hpu.", "accelerator.")
        varied = self.experiment.changes.get(self.machine, ())
        before = (one for one in varied if one.partition("=")[0] not in keys and not one.startswith(unused))
        after = (one for one in self.experiment.point if not one.startswith(unused))
        at = () if self.value is None else (f"{self.experiment.sweep.axis}={self.value}",)
        return (*before, *own, *after, *at)

    def handlers(self, value: float) -> _pspin.Handlers:
        """Return the handlers for PsPIN's interface that run for a value."""
        folder, program, series = self.experiment.folder, self.experiment.program, self.series[0]
        more = {"mode": series.mode, "folder": str(folder)}
        flags = tuple(self._fill(flag, value, None, **more) for flag in (*program.flags, *series.flags))
        place = (program.pspin or "").replace("{mode}", series.mode)
        sweep = self.experiment.sweep
        if sweep.names:
            place = place.replace("{name}", sweep.names[sweep.values.index(value)])
        return _pspin.Handlers(folder / place, flags)

    def words_at(self, value: float) -> list[str]:
        """Return the options of `spinkit pspin run` for a value, and what follows them."""
        series = self.series[0]
        changes = self._settings(tuple(self._fill(change, value, ()) for change in series.set))
        machine = self.experiment.place(self.machine)
        options = ["--machine", machine, *(word for change in changes for word in ("--set", change))]
        # Those of all series are last, as they may be of a folder's driver.
        arguments = (*series.args, *self.experiment.program.args)
        more = {"mode": series.mode, "folder": str(self.experiment.folder)}
        return [*options, *(self._fill(word, value, changes, **more) for word in arguments)]

    @property
    def arguments(self) -> list[str]:
        """Arguments of the program; a script gets only those of its series, in which `{program}` is filled in last."""
        if self.series[0].script is not None:
            machine = self.experiment.place(self.machine)
            more = {"mode": self.series[0].mode, "machine": machine, "program": "{program}"}
            return [self._fill(arg, None, None, **more) for arg in self.series[0].args]
        common = {} if self.experiment.shared_run else {"mode": self.series[0].mode}
        own = [self._fill(arg, mode=series.mode) for series in self.series for arg in series.args]
        return [*(self._fill(arg, None, None, **common) for arg in self.experiment.program.args), *own]

    def _fill(self, text: str, value: float | None = None, changes: tuple[str, ...] | None = None, **more: str) -> str:
        """Fill in placeholders; parameters are those of the machine with these changes, or with those of the run."""
        of_value = {} if value is None else {"value": str(value)}
        fields = {"values": ",".join(map(str, self.values)), "max": str(max(self.values)), **of_value, **more}

        def field(match: re.Match[str]) -> str:
            name = match[1]
            if name in fields:
                return fields[name]
            if "." in name:
                made = self.changes if changes is None else changes
                for parameter in self.describe(self.experiment.place(self.machine), made).parameters:
                    if parameter.key == name:
                        return parameter.value
            known = ", ".join(f"{{{field}}}" for field in fields)
            problem = f"{text!r} may contain only {known} and parameters of the machine"
            raise SpinkitError(f"{self.experiment.name}: {problem}")

        return _FIELD.sub(field, text)


def jobs(experiment: Experiment, quick: bool, describe: Describe) -> list[Job]:
    """Return the runs of an experiment."""
    groups: dict[object, list[Series]] = {}
    for series in experiment.series:
        groups.setdefault(
            (series.nic, series.set, series.noise, series.noise_ranks) if experiment.shared_run else series, []
        ).append(series)
    values = experiment.values(quick) if experiment.sweep.of_machine else (None,)
    return [
        Job(experiment, machine, tuple(group), quick, describe, value)
        for machine in experiment.machine_files
        for group in groups.values()
        for value in values
    ]


class Processes:
    """The processes that are running, so that an interrupt can end them all."""

    def __init__(self) -> None:
        self._live: set[subprocess.Popen[str]] = set()
        self._lock = Lock()
        self._closed = False

    def execute(self, command: list[str], timeout_s: float | None, folder: Path | None = None) -> tuple[int, str, str]:
        """Run a command, in a folder or the present one; return its exit status, output and error output."""
        with self._lock:
            if self._closed:
                raise EndingError("interrupted")
            try:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                )
            except OSError as error:
                raise SpinkitError(f"{command[0]}: {error.strerror}") from None
            self._live.add(process)
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise SpinkitError(f"{command[0]} did not end within {timeout_s} s") from None
        finally:
            with self._lock:
                self._live.discard(process)
        return process.returncode, output, errors

    def interrupt(self) -> None:
        """Start no more processes and send SIGINT to all, so that spinrun ends its ranks."""
        with self._lock:
            self._closed = True
            for process in self._live:
                process.send_signal(signal.SIGINT)


class _Pool:
    """Compiles and runs experiments; the runs of all experiments share one pool."""

    def __init__(self, settings: Settings, scratch: Path) -> None:
        tools = settings.tools
        self.settings = settings
        self._scratch = scratch
        self._tools_digest = tools_digest(tools.spinrun, tools.library)
        self.processes = Processes()
        self._machines: dict[tuple[str, tuple[str, ...]], Machine] = {}
        self._programs = Programs(settings.home, settings.out, tools, settings.fresh, self.processes.execute)

    def interrupt(self) -> None:
        """End all that is running."""
        self.processes.interrupt()
        if self.settings.remote is not None:
            self.settings.remote.cancel()

    def describe(self, machine: str, changes: tuple[str, ...]) -> Machine:
        """Describe a machine with changed parameters."""
        if (machine, changes) not in self._machines:
            self._machines[machine, changes] = _machines.load(self.settings.machines, machine, changes)
        return self._machines[machine, changes]

    def compile(self, experiment: Experiment) -> Program:
        folder = self.settings.out / experiment.name
        folder.mkdir(exist_ok=True)
        if experiment.program.pspin is not None:
            sdk = self.settings.home / "sdk"
            builder = _pspin.Builder(self.settings.tools.pspin, sdk, folder, self.processes.execute)
            return Program(folder, "", builder)
        if experiment.program.schedules:
            return self._make_schedules(experiment, folder)
        return self._programs.get(experiment) if experiment.program.sources else Program(folder, "")

    def _make_schedules(self, experiment: Experiment, folder: Path) -> Program:
        files = []
        wanted = experiment.values(self.settings.quick)
        # On an axis of the machine there is one schedule for all values.
        for value, words in zip(experiment.sweep.values, experiment.program.schedules, strict=False):
            if value in wanted or experiment.sweep.of_machine:
                made = [word.replace("{folder}", str(experiment.folder)) for word in words.split()]
                files.append(folder / f"schedule-{value}.bin")
                self._goal([*made, "-o", str(files[-1])])
        return Program(folder, _cache.digest([self.settings.tools.goal, *files], []))

    def _goal(self, words: list[str]) -> None:
        status, _, errors = self.processes.execute([str(self.settings.tools.goal), *words], None)
        if status != 0:
            raise SpinkitError(f"spinkit goal {words[0]} ended with status {status}\n{errors.strip()}".rstrip())

    def run(self, job: Job, program: Program) -> tuple[Run, bool]:
        """Return the outcome of a job, and whether it comes from the cache."""
        settings = self.settings
        way, words = self._way(job, program)
        key = _cache.digest(self.describe(job.experiment.place(job.machine), ()).files, words)
        file = settings.out / job.experiment.name / "runs" / f"{job.name}.json"
        cached = None if settings.fresh else _cache.load(file, key)
        found = cached or way(job, program)
        points = read_points(job.experiment, job.machine, job.series, job.values, found.output)
        if cached is None:
            _cache.save(file, key, found)
        return Run(job.machine, job.series, points, found.report), cached is not None

    def _way(self, job: Job, program: Program) -> tuple[Callable[[Job, Program], Entry], list[str]]:
        """Return how a job is run, and what its outcome depends on besides the machine."""
        script = job.series[0].script
        if script is not None:
            words = [_digest_script(job.experiment.folder / script), *job.arguments]
            return self._execute_script, [*words, self._tools_digest, program.digest] if program.digest else words
        if program.builder is not None:
            handlers = [job.handlers(value) for value in job.values]
            words = [word for value in job.values for word in (str(value), *job.words_at(value))]
            return self._execute_pspin, [program.builder.digest(handlers), *words]
        execute = self._execute_schedules if job.experiment.program.schedules else self._execute
        return execute, [self._tools_digest, program.digest, *job.options, "--", *job.arguments]

    def _execute_script(self, job: Job, program: Program) -> Entry:
        script = str(job.experiment.folder / (job.series[0].script or ""))
        words = [word.replace("{program}", str(program.file)) for word in job.arguments]
        status, output, errors = self.processes.execute([sys.executable, script, *words], job.experiment.timeout_s)
        if status != 0 and not _tells_wrong_data(status, output):
            raise SpinkitError(f"{job.series[0].script} ended with status {status}\n{errors.strip()}".rstrip())
        return Entry(output, {})

    def _execute_pspin(self, job: Job, program: Program) -> Entry:
        """Run the handlers for each value; the lines have the form of a program's output, with the reports."""
        assert program.builder is not None
        experiment = job.experiment
        lines = []
        for value in job.values:
            target = program.builder.get(job.handlers(value))
            words: tuple[str | Path, ...] = ("run", target, "--json", REPORT, *job.words_at(value))
            done = self._perform(self._task("spinkit-pspin", words, job, experiment.timeout_s), job, f".{value}")
            if done.status != 0:
                what = f"spinkit pspin run ended with status {done.status} at {experiment.sweep.axis} = {value}"
                raise SpinkitError(f"{what}\n{done.errors.strip()}".rstrip())
            told = _report(done, "the report of spinkit pspin run")
            if experiment.sweep.axis in told:
                raise SpinkitError(f"sweep.axis: {experiment.sweep.axis} is a key of the report too")
            lines.append(json.dumps({experiment.sweep.axis: value, "data_ok": True} | told))
        return Entry("".join(f"{line}\n" for line in lines), {})

    def _execute(self, job: Job, program: Program) -> Entry:
        limit = job.experiment.timeout_s
        strict = ("--fail-on-drop", "--fail-on-handler-error")  # such a run measures something else
        limits = ("--timeout", str(limit), "--json", REPORT)
        words: tuple[str | Path, ...] = (*job.options, *strict, *limits, program.file, *job.arguments)
        done = self._perform(self._task("spinrun", words, job, limit + _GRACE_S), job)
        if done.status != 0 and not _tells_wrong_data(done.status, done.output):
            raise SpinkitError(f"spinrun ended with status {done.status}\n{done.errors.strip()}".rstrip())
        return Entry(done.output, _report(done, "spinrun's report"))

    def _task(self, command: str, words: tuple[str | Path, ...], job: Job, timeout_s: float | None) -> Task:
        return Task(command, words, self.describe(job.experiment.place(job.machine), ()).files, timeout_s)

    def _perform(self, task: Task, job: Job, part: str = "") -> Done:
        if self.settings.remote is not None:
            return self.settings.remote.perform(task)
        tools = self.settings.tools
        command = {"spinrun": tools.spinrun, "spinkit-goal": tools.goal, "spinkit-pspin": tools.pspin}[task.command]
        return run_here(
            task, command, self._scratch / f"{job.experiment.name}.{job.name}{part}.json", self.processes.execute
        )

    def _execute_schedules(self, job: Job, program: Program) -> Entry:
        """Run the schedule of each value; the lines have the form of a program's output."""
        experiment = job.experiment
        lines = []
        for value in job.values:
            place = experiment.place(job.machine)
            machine = ["--machine", place, *(word for change in job.changes for word in ("--set", change))]
            schedule = program.file / f"schedule-{value if job.value is None else job.experiment.sweep.values[0]}.bin"
            words: tuple[str | Path, ...] = (
                "run",
                schedule,
                *machine,
                *job.arguments,
                "--progress",
                "off",
                "--json",
                "-",
            )
            done = self._perform(self._task("spinkit-goal", words, job, None), job, f".{value}")
            if done.status != 0:
                raise SpinkitError(f"spinkit goal run ended with status {done.status}\n{done.errors.strip()}".rstrip())
            try:
                told = parse_json(done.output)
            except ValueError as error:
                raise SpinkitError(f"spinkit goal run: {error}") from None
            line = {
                experiment.sweep.axis: value,
                experiment.measure.key: round(told["max_end_ns"] * 1000),
                "data_ok": told["unreceived_messages"] == 0,
            }
            lines.append(json.dumps(line | _without(told, _NO_RESULTS)))
        return Entry("".join(f"{line}\n" for line in lines), {})


def _tells_wrong_data(status: int, output: str) -> bool:
    """Return whether a program has failed only because its results are wrong, which its points tell in detail."""
    return status == 1 and re.search(r'"data_ok": *false', output) is not None


Outcome = tuple[Experiment, Results | SpinkitError]


def run_all(
    experiments: Sequence[Experiment], settings: Settings, progress: Progress
) -> Generator[Outcome, None, None]:
    """Run experiments and variants of them, their points in one pool; yield each outcome as soon as it is complete.

    Runs that variants have in common are made once. What fails in an experiment, in any of its runs, is one error and
    does not end the others.
    """
    with _opened(settings) as (pool, threads):
        yield from _drive(experiments, settings.quick, pool, threads, progress)


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[_Pool, ThreadPoolExecutor]]:
    """Make a pool and its threads; if what uses them ends early, so does all that is running."""
    settings.out.mkdir(parents=True, exist_ok=True)
    processors = sorted(os.sched_getaffinity(0))
    count = settings.jobs or len(processors)
    # When each processor has runs of its own, simulator and ranks hand over on one: that takes a fraction of the time.
    is_full = settings.remote is None and count >= len(processors)
    places = cycle([{one} for one in processors] if is_full else [processors])
    with (
        TemporaryDirectory(prefix=".run-", dir=settings.out) as scratch,
        ThreadPoolExecutor(count, initializer=lambda: os.sched_setaffinity(0, next(places))) as threads,
    ):
        pool = _Pool(settings, Path(scratch))
        try:
            yield pool, threads
        except BaseException:
            pool.interrupt()
            threads.shutdown(cancel_futures=True)
            raise


Ended = tuple[Job, Run | SpinkitError]


def run_points(points: Sequence[Experiment], settings: Settings, progress: Progress) -> Generator[Ended, None, None]:
    """Run variants of one experiment; yield the outcome of each of their runs as soon as it is there.

    Runs that variants have in common are made once, and yielded for each.
    """
    with _opened(settings) as (pool, threads):
        wanted: dict[tuple[str, str], list[Job]] = {}
        for point in points:
            for job in jobs(point, settings.quick, pool.describe):
                wanted.setdefault(job.key, []).append(job)
        programs = {points[0].name: pool.compile(points[0])}
        for job, outcome in _each([several[0] for several in wanted.values()], programs, pool, threads, progress):
            for same in wanted[job.key]:
                yield same, outcome


def _drive(
    experiments: Sequence[Experiment], quick: bool, pool: _Pool, threads: ThreadPoolExecutor, progress: Progress
) -> Generator[Outcome, None, None]:
    compiled: dict[str, Future[Program]] = {}
    for experiment in experiments:
        if experiment.name not in compiled:
            compiled[experiment.name] = threads.submit(pool.compile, experiment)
    programs: dict[str, Program] = {}
    wanted: dict[tuple[str, str], Job] = {}
    left: list[tuple[Experiment, list[tuple[str, str]]]] = []
    for experiment in experiments:
        try:
            programs[experiment.name] = compiled[experiment.name].result()
        except SpinkitError as error:
            yield experiment, error
            continue
        several = jobs(experiment, quick, pool.describe)
        for job in several:
            wanted.setdefault(job.key, job)
        left.append((experiment, [job.key for job in several]))
    done: dict[tuple[str, str], Run | SpinkitError] = {}
    for job, outcome in _each(list(wanted.values()), programs, pool, threads, progress):
        done[job.key] = outcome
        for one in [one for one in left if all(key in done for key in one[1])]:
            left = [other for other in left if other is not one]
            yield one[0], _outcome(one[0], quick, [done[key] for key in one[1]])


def _each(
    wanted: Sequence[Job],
    programs: Mapping[str, Program],
    pool: _Pool,
    threads: ThreadPoolExecutor,
    progress: Progress,
) -> Iterator[tuple[Job, Run | SpinkitError]]:
    """Make different runs; yield each as soon as it has ended."""
    total = len(wanted)

    def made(job: Job) -> tuple[Run, bool]:
        for _ in range(pool.settings.retries):
            try:
                return pool.run(job, programs[job.experiment.name])
            except EndingError:
                raise
            except SpinkitError as error:
                progress(Step(f"{job.experiment.name}: {job.what}", 0, total, False, str(error)))
        return pool.run(job, programs[job.experiment.name])

    # Runs with many ranks take longest. They start first, so that not everything waits for them at the end.
    futures = {threads.submit(made, job): job for job in sorted(wanted, key=lambda job: -job.ranks)}
    for count, future in enumerate(as_completed(futures), 1):
        job = futures[future]
        outcome: Run | SpinkitError
        cached = False
        try:
            outcome, cached = future.result()
        except SpinkitError as error:
            outcome = SpinkitError(f"{job.what}: {error}")
        progress(Step(f"{job.experiment.name}: {job.what}", count, total, cached))
        yield job, outcome


def _report(done: Done, what: str) -> Any:
    """Return the report of a command."""
    if done.report is None:
        raise SpinkitError(f"{what}: No such file or directory")
    try:
        return parse_json(done.report)
    except ValueError as error:
        raise SpinkitError(f"{what}: {error}") from None


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
"""Keys of the report of a schedule whose values depend on this computer, or are long."""


def _digest_script(script: Path) -> str:
    """Return a digest of a script and of what it may read: the files beside it but the experiment's own."""
    beside = sorted(file for file in script.parent.iterdir() if file.is_file() and file.name != "experiment.toml")
    return _cache.digest(beside, [script.name, *(file.name for file in beside)])


def _without(table: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """Return a table, and the tables in it, without some keys."""
    kept = {key: value for key, value in table.items() if key not in keys}
    return {key: _without(value, keys) if isinstance(value, dict) else value for key, value in kept.items()}


def _outcome(experiment: Experiment, quick: bool, ended: Sequence[Run | SpinkitError]) -> Results | SpinkitError:
    failures = [one for one in ended if isinstance(one, SpinkitError)]
    if failures:
        return SpinkitError("\n".join(f"{experiment.name}: {failure}" for failure in failures))
    try:
        return judge(experiment, quick, [one for one in ended if isinstance(one, Run)])
    except SpinkitError as error:
        return SpinkitError(f"{experiment.name}: {error}")
