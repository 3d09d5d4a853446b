# SPDX-License-Identifier: Apache-2.0
"""Pool of runs: all experiments of a command share its threads, and finished runs are cached."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from spinkit._errors import EndingError, SpinkitError
from spinkit.common._digest import digest
from spinkit.common._progress import Progress, Step
from spinkit.experiments import _cache
from spinkit.experiments._definition import Experiment, ProgramKey
from spinkit.experiments._jobs import Job, jobs
from spinkit.experiments._outcome import Results, Run, judge, read_points
from spinkit.experiments._runners import Runner, prepare
from spinkit.experiments._workshop import Settings, Workshop

Runners = Mapping[str, Runner]
"""The runner of each series of an experiment, by its name."""

Outcome = tuple[Experiment, Results | SpinkitError]


def _run(job: Job, runner: Runner, workshop: Workshop) -> tuple[Run, bool]:
    """Return the outcome of a job, and True if the cache has it."""
    settings = workshop.settings
    key = digest(workshop.machine_files(job), runner.inputs(job))
    file = settings.out / job.experiment.name / "runs" / f"{job.name}.json"
    cached = None if settings.fresh else _cache.load(file, key)
    found = cached or runner.execute(job)
    points = read_points(job.experiment, job.machine, job.series, job.values, found.output)
    if cached is None:
        _cache.save(file, key, found)
    return Run(job.machine, job.series, points, found.report), cached is not None


def run_all(
    experiments: Sequence[Experiment], settings: Settings, progress: Progress
) -> Generator[Outcome, None, None]:
    """Run experiments and variants of them, their points in one pool; yield each outcome as soon as it is complete.

    Runs shared by variants are made once. Failures in the runs of an experiment are one error, which
    does not end the others.
    """
    with _opened(settings) as (workshop, threads):
        yield from _drive(experiments, settings.quick, workshop, threads, progress)


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[Workshop, ThreadPoolExecutor]]:
    """Make a pool and its threads; if the block ends by an exception, all runs end."""
    settings.out.mkdir(parents=True, exist_ok=True)
    processors = sorted(os.sched_getaffinity(0))
    count = settings.jobs or len(processors)
    # Simulator and ranks hand over faster on one processor, so each thread stays on one if all processors have runs.
    is_full = settings.remote is None and count >= len(processors)
    places = cycle([{one} for one in processors] if is_full else [processors])
    with (
        TemporaryDirectory(prefix=".run-", dir=settings.out) as scratch,
        ThreadPoolExecutor(count, initializer=lambda: os.sched_setaffinity(0, next(places))) as threads,
    ):
        workshop = Workshop(settings, Path(scratch))
        try:
            yield workshop, threads
        except BaseException:
            workshop.interrupt()
            threads.shutdown(cancel_futures=True)
            raise


Ended = tuple[Job, Run | SpinkitError]


def run_points(points: Sequence[Experiment], settings: Settings, progress: Progress) -> Generator[Ended, None, None]:
    """Run variants of one experiment; yield the outcome of each of their runs as soon as it is there.

    Runs that variants have in common are made once, and yielded for each.
    """
    with _opened(settings) as (workshop, threads):
        wanted: dict[tuple[str, str], list[Job]] = {}
        for point in points:
            for job in jobs(point, settings.quick, workshop.describe):
                wanted.setdefault(job.key, []).append(job)
        runners = {points[0].program_key: prepare(points[0], workshop)}
        for job, outcome in _each([several[0] for several in wanted.values()], runners, workshop, threads, progress):
            for same in wanted[job.key]:
                yield same, outcome


def _drive(
    experiments: Sequence[Experiment], quick: bool, workshop: Workshop, threads: ThreadPoolExecutor, progress: Progress
) -> Generator[Outcome, None, None]:
    prepared: dict[ProgramKey, Future[Runners]] = {}
    workshop.describe_all(experiments)
    whole: dict[str, Experiment] = {}
    for experiment in experiments:
        series = whole.setdefault(experiment.name, experiment).series  # variants after the first may lack some
        if experiment.program_key not in prepared:
            prepared[experiment.program_key] = threads.submit(prepare, replace(experiment, series=series), workshop)
    runners: dict[ProgramKey, Runners] = {}
    wanted: dict[tuple[str, str], Job] = {}
    left: list[tuple[Experiment, list[tuple[str, str]]]] = []
    for experiment in experiments:
        try:
            runners[experiment.program_key] = prepared[experiment.program_key].result()
        except SpinkitError as error:
            yield experiment, error
            continue
        several = jobs(experiment, quick, workshop.describe)
        for job in several:
            wanted.setdefault(job.key, job)
        left.append((experiment, [job.key for job in several]))
    done: dict[tuple[str, str], Run | SpinkitError] = {}
    for job, outcome in _each(list(wanted.values()), runners, workshop, threads, progress):
        done[job.key] = outcome
        for one in [one for one in left if all(key in done for key in one[1])]:
            left = [other for other in left if other is not one]
            yield one[0], _outcome(one[0], quick, [done[key] for key in one[1]])


def _each(
    wanted: Sequence[Job],
    runners: Mapping[ProgramKey, Runners],
    workshop: Workshop,
    threads: ThreadPoolExecutor,
    progress: Progress,
) -> Iterator[tuple[Job, Run | SpinkitError]]:
    """Make different runs; yield each as soon as it has ended."""
    total = len(wanted)

    def made(job: Job) -> tuple[Run, bool]:
        for _ in range(workshop.settings.retries):
            try:
                return _run(job, runners[job.experiment.program_key][job.series[0].name], workshop)
            except EndingError:
                raise
            except SpinkitError as error:
                progress(Step(f"{job.experiment.name}: {job.title}", 0, total, False, str(error)))
        return _run(job, runners[job.experiment.program_key][job.series[0].name], workshop)

    # Runs with many ranks take longest. They start first, so that not everything waits for them at the end.
    futures = {threads.submit(made, job): job for job in sorted(wanted, key=lambda job: -job.ranks)}
    for count, future in enumerate(as_completed(futures), 1):
        job = futures[future]
        outcome: Run | SpinkitError
        cached = False
        try:
            outcome, cached = future.result()
        except SpinkitError as error:
            outcome = SpinkitError(f"{job.title}: {error}")
        progress(Step(f"{job.experiment.name}: {job.title}", count, total, cached))
        yield job, outcome


def _outcome(experiment: Experiment, quick: bool, ended: Sequence[Run | SpinkitError]) -> Results | SpinkitError:
    failures = [one for one in ended if isinstance(one, SpinkitError)]
    if failures:
        return SpinkitError("\n".join(f"{experiment.name}: {failure}" for failure in failures))
    try:
        return judge(experiment, quick, [one for one in ended if isinstance(one, Run)])
    except SpinkitError as error:
        return SpinkitError(f"{experiment.name}: {error}")
