# SPDX-License-Identifier: Apache-2.0
"""`spinkit sweep`: runs an experiment at every combination of parameters, and writes one table of all points."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from spinkit._errors import SpinkitError
from spinkit.common._progress import steps
from spinkit.common._terminal import console, print_block, table_box
from spinkit.experiments import _pool
from spinkit.experiments._claims import inside
from spinkit.experiments._definition import Experiment
from spinkit.experiments._outcome import Run
from spinkit.experiments._workshop import Settings
from spinkit.simulate import _machines
from spinkit.simulate._tasks import tools_digest
from spinkit.sweeps import _dask
from spinkit.sweeps._dask import Credentials
from spinkit.sweeps._grid import Axis, Point, points

_LEAST_AT_ONCE = 64
"""Runs that are given to a Dask cluster at the same time, at least."""

Row = dict[str, Any]
"""One measured point: machine, series, parameters, and all numbers."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sweep."""

    experiment: Experiment
    axes: tuple[Axis, ...]
    rows: tuple[Row, ...]
    """In the order of points, machines, series and values."""
    failures: tuple[str, ...]
    """The failed runs, with their errors."""

    @property
    def wrong(self) -> list[Row]:
        """The rows with wrong data."""
        return [row for row in self.rows if not row["data_ok"]]


def run(experiment: Experiment, axes: Sequence[Axis], settings: Settings, columns: Sequence[str] = ()) -> Outcome:
    """Run an experiment at all points; `columns` are places in the report of a run that become columns."""
    grid = points(axes)
    _check(experiment, grid[0], settings)
    variants = {
        point: replace(experiment, variant=point.description, point=point.settings, claims=(), figures=())
        for point in grid
    }
    numbers = {id(variant): number for number, variant in enumerate(variants.values())}
    machines = experiment.machine_files
    names = [series.name for series in experiment.series]
    found: dict[tuple[int, int, int, float], list[Row]] = {}
    failures = []
    with steps() as tell, closing(_pool.run_points(list(variants.values()), settings, tell)) as ended:
        for job, outcome in ended:
            if isinstance(outcome, SpinkitError):
                failures.append(str(outcome))
                continue
            number = numbers[id(job.experiment)]
            place = (number, machines.index(job.machine), names.index(job.series[0].name), job.value or 0)
            found[place] = _rows(experiment, grid[number], outcome, columns)
    rows = tuple(row for place in sorted(found) for row in found[place])
    # A run that several points have in common fails once.
    return Outcome(experiment, tuple(axes), rows, tuple(dict.fromkeys(failures)))


def run_anywhere(
    experiment: Experiment,
    axes: Sequence[Axis],
    settings: Settings,
    columns: Sequence[str] = (),
    scheduler: str | None = None,
    options: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
) -> Outcome:
    """Run an experiment at all points, on a Dask cluster if a scheduler is named."""
    if scheduler is None:
        if options:
            raise SpinkitError("--cluster-option has no meaning without --scheduler")
        if credentials is not None:
            raise SpinkitError("--tls-ca, --tls-cert and --tls-key have no meaning without --scheduler")
        return run(experiment, axes, settings, columns)
    tools = tools_digest(settings.tools.spinrun, settings.tools.library)
    jobs = settings.jobs or len(os.sched_getaffinity(0))
    with _dask.connect(scheduler, jobs, options or {}, tools, credentials) as remote:
        # More runs than present workers: others may join, and none should wait for its next run.
        threads = max(2 * jobs, 2 * remote.workers, _LEAST_AT_ONCE)
        return run(experiment, axes, replace(settings, jobs=threads, remote=remote), columns)


def problems(outcome: Outcome) -> str:
    """Return a message with the runs that failed or have wrong data, and the remedy."""
    keys = [key for one in outcome.axes for key in one.keys]
    lines = list(outcome.failures)
    if lines:
        many = "1 run" if len(lines) == 1 else f"{len(lines)} runs"
        lines.append(f"{many} failed; the table has all others, and the same command makes only what failed again")
    for row in outcome.wrong:
        where = ", ".join(f"{key} = {row[key]}" for key in (*keys, outcome.experiment.sweep.axis))
        lines.append(f"wrong data: {row['series']} on {row['machine']}, {where}")
    return "\n".join(lines)


def _check(experiment: Experiment, first: Point, settings: Settings) -> None:
    """Raise an error now for parameters that do not exist, or that vary in the experiment itself."""
    for key in first.values:
        if key in experiment.axes:
            raise SpinkitError(f"{key} is an axis of {experiment.name} already")
    for machine in experiment.machine_files:
        _machines.load(settings.machines, experiment.place(machine), first.settings)


def _rows(experiment: Experiment, point: Point, run: Run, columns: Sequence[str]) -> list[Row]:
    rows = []
    for one in run.points:
        # Handlers for PsPIN and schedules have a report for each value, which is the line of the point.
        report = {**run.report, **one.line}
        reported = {column: inside(report, column) for column in columns}
        row: Row = {"machine": one.machine, "series": one.series.name, "nic": one.series.nic, "mode": one.series.mode}
        row |= point.values | {experiment.sweep.axis: one.value, experiment.measure.key: one.measured}
        row |= {key: value for key, value in one.line.items() if key not in row and not _is_nested(value)} | reported
        for column in columns:
            if _is_nested(row[column]):
                raise SpinkitError(f"--column {column}: is no number or text in the report of a run")
        rows.append(row | {"data_ok": one.data_ok})
    return rows


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping | list)


def to_json(rows: Sequence[Row]) -> bytes:
    """Write a table as a list of objects, a line each, as `pandas.read_json` reads it."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f"[\n{lines}\n]\n".encode()


def to_csv(rows: Sequence[Row]) -> bytes:
    """Write a table as CSV with the names of the columns in the first line (RFC 4180)."""
    content = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(content, columns)
    writer.writeheader()
    writer.writerows(rows)
    return content.getvalue().encode()


def to_parquet(rows: Sequence[Row]) -> bytes:
    """Write a table as Parquet."""
    content = io.BytesIO()
    try:
        import pandas as pd  # imported here because only tables need it

        pd.DataFrame(rows).to_parquet(content, engine="pyarrow", index=False)
    except ImportError as error:
        problem = f"{str(error).splitlines()[0]}: Parquet needs more packages: pip install 'spinkit[frames]'"
        raise SpinkitError(problem) from None
    return content.getvalue()


def table(outcome: Outcome) -> Table:
    """Return for each machine and series the least and the largest measured number, and where they are."""
    measure, axis = outcome.experiment.measure, outcome.experiment.sweep.axis
    shown = Table(title=measure.heading, title_justify="left", box=table_box(console()))
    for name in ("machine", "series"):
        shown.add_column(name)
    for name in ("points", "least", "at", "largest", "at"):
        shown.add_column(name, justify="left" if name == "at" else "right")
    keys = [key for one in outcome.axes for key in one.keys] + [axis]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in outcome.rows:
        groups.setdefault((row["machine"], row["series"]), []).append(row)
    labels = {series.name: series.label for series in outcome.experiment.series}
    for (machine, series), rows in groups.items():
        ends = [pick(rows, key=lambda row: measure.shown(row[measure.key])) for pick in (min, max)]
        cells = [
            cell
            for row in ends
            for cell in (measure.text(row[measure.key]), ", ".join(f"{key} = {row[key]}" for key in keys))
        ]
        shown.add_row(machine, labels[series], str(len(rows)), *cells)
    return shown


def show(outcome: Outcome) -> None:
    """Print the table."""
    if outcome.rows:
        print_block(console(), table(outcome))
