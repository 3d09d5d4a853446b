"""Running an experiment: compile once, run every (machine, series) on this computer's cores, gather the points."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NoReturn

from spinkit._claims import Verdict
from spinkit._errors import SpinkitError
from spinkit._experiment import Experiment, Series

_GRACE_S = 30
"""Beyond its own --timeout, spinrun gets this long to end."""


@dataclass(frozen=True)
class Toolchain:
    """The commands that compile and run a program."""

    spincc: Path
    spinrun: Path


@dataclass(frozen=True)
class Point:
    """One measured point."""

    machine: str
    series: Series
    value: int
    time_ps: int
    data_ok: bool
    line: Mapping[str, Any]
    """All that the program printed for it."""


@dataclass(frozen=True)
class Run:
    """One run of the program: its points, by the sweep's value, and spinrun's report."""

    machine: str
    series: Series
    points: tuple[Point, ...]
    report: Mapping[str, Any]


@dataclass(frozen=True)
class Results:
    """An experiment's outcome, ordered as the experiment lists machines, series and values."""

    experiment: Experiment
    quick: bool
    runs: tuple[Run, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The values of the sweep that were run."""
        return self.experiment.values(self.quick)

    @property
    def points(self) -> list[Point]:
        """All points."""
        return [point for run in self.runs for point in run.points]

    @property
    def times(self) -> dict[tuple[str, str, int], int]:
        """The time of each point in ps."""
        return {(point.machine, point.series.name, point.value): point.time_ps for point in self.points}

    @property
    def wrong(self) -> list[Point]:
        """Points whose data was not right."""
        return [point for point in self.points if not point.data_ok]

    @property
    def unmet(self) -> list[Verdict]:
        """Claims that do not hold."""
        return [verdict for verdict in self.verdicts if not verdict.holds]


Progress = Callable[[str, int, int], None]
"""Told what was just done, how many runs are done, and of how many."""


class _Processes:
    """The processes that run now, so that an interrupt can end them all."""

    def __init__(self) -> None:
        self._live: set[subprocess.Popen[str]] = set()
        self._lock = Lock()
        self._closed = False

    def execute(self, command: list[str], timeout_s: float | None) -> tuple[int, str, str]:
        """Run a command; return its exit status, output and error output."""
        with self._lock:
            if self._closed:
                raise SpinkitError("interrupted")
            try:
                process = subprocess.Popen(
                    command,
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
        """Start no more and send SIGINT to all, on which spinrun ends its ranks."""
        with self._lock:
            self._closed = True
            for process in self._live:
                process.send_signal(signal.SIGINT)


def run(experiment: Experiment, tools: Toolchain, folder: Path, quick: bool, progress: Progress) -> Results:
    """Run an experiment; `folder` receives the executable. Failures of any run are reported together."""
    processes = _Processes()
    program = _compile(experiment, tools, processes, folder)
    jobs = [(machine, series) for machine in experiment.machines for series in experiment.series]
    done: dict[tuple[str, Series], Run] = {}
    failures: dict[tuple[str, Series], str] = {}
    with (
        TemporaryDirectory(prefix="run-", dir=folder) as scratch,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        futures = {
            pool.submit(
                _run_one, experiment, tools, processes, program, *job, quick, Path(scratch, f"{index}.json")
            ): job
            for index, job in enumerate(jobs)
        }
        try:
            for count, future in enumerate(as_completed(futures), 1):
                machine, series = job = futures[future]
                try:
                    done[job] = future.result()
                except SpinkitError as error:
                    failures[job] = f"{series.label} on {machine}: {error}"
                progress(f"{series.label} on {machine}", count, len(jobs))
        except BaseException:
            processes.interrupt()
            pool.shutdown(cancel_futures=True)
            raise
    if failures:
        raise SpinkitError("\n".join(failures[job] for job in jobs if job in failures))
    results = Results(experiment, quick, tuple(done[job] for job in jobs), ())
    times, values = results.times, results.values
    return Results(experiment, quick, results.runs, tuple(claim.test(times, values) for claim in experiment.claims))


def _compile(experiment: Experiment, tools: Toolchain, processes: _Processes, folder: Path) -> Path:
    program = folder.resolve() / experiment.name
    sources = [str(experiment.folder / source) for source in experiment.program.sources]
    status, _, errors = processes.execute([str(tools.spincc), "-O3", *sources, "-o", str(program)], None)
    if status != 0:
        raise SpinkitError(f"{experiment.name} does not compile:\n{errors.strip()}")
    return program


def _run_one(
    experiment: Experiment,
    tools: Toolchain,
    processes: _Processes,
    program: Path,
    machine: str,
    series: Series,
    quick: bool,
    report: Path,
) -> Run:
    values = experiment.values(quick)
    fields = {"mode": series.mode, "values": ",".join(map(str, values))}
    status, output, errors = processes.execute(
        [
            str(tools.spinrun),
            *("-n", str(experiment.program.ranks), "--machine", machine, "--nic", series.nic),
            *("--timeout", str(experiment.timeout_s), "--json", str(report), str(program)),
            *(arg.format_map(fields) for arg in experiment.program.args),
        ],
        experiment.timeout_s + _GRACE_S,
    )
    if status != 0:
        raise SpinkitError(f"spinrun ended with status {status}\n{errors.strip()}".rstrip())
    points = _points(experiment, machine, series, values, output)
    try:
        content = _parse(report.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpinkitError(f"spinrun's report: {error}") from None
    return Run(machine, series, points, content)


def _parse(text: str) -> Any:
    """Parse JSON proper: NaN and Infinity, which Python would take, are errors."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def _points(
    experiment: Experiment, machine: str, series: Series, values: tuple[int, ...], output: str
) -> tuple[Point, ...]:
    """Read the program's lines, one JSON object for each value of the sweep and nothing else."""
    found: dict[int, Point] = {}
    for number, text in enumerate(output.splitlines(), 1):
        point = _point(experiment, machine, series, number, text)
        if point.value not in values or point.value in found:
            problem = "is there twice" if point.value in found else "was not asked for"
            raise SpinkitError(f"output line {number}: {experiment.sweep.axis} = {point.value} {problem}")
        found[point.value] = point
    missing = [value for value in values if value not in found]
    if missing:
        raise SpinkitError(f"no result for {experiment.sweep.axis} = {', '.join(map(str, missing))}")
    return tuple(found[value] for value in values)


def _point(experiment: Experiment, machine: str, series: Series, number: int, text: str) -> Point:
    try:
        line = _parse(text)
    except ValueError:
        raise SpinkitError(f"output line {number} is not JSON: {text[:200]}") from None
    if not isinstance(line, dict):
        raise SpinkitError(f"output line {number} is not a JSON object: {text[:200]}")

    def take(key: str, kind: type) -> Any:
        value = line.get(key)
        if type(value) is not kind:
            raise SpinkitError(f"output line {number}: {key}: expected {kind.__name__}, found {value!r}")
        return value

    time_ps = take(experiment.measure.key, int)
    if time_ps <= 0:
        raise SpinkitError(f"output line {number}: {experiment.measure.key}: expected a time, found {time_ps}")
    if "mode" in line and line["mode"] != series.mode:
        raise SpinkitError(f"output line {number}: mode: expected {series.mode}, found {line['mode']!r}")
    return Point(machine, series, take(experiment.sweep.axis, int), time_ps, take("data_ok", bool), line)
