# SPDX-License-Identifier: Apache-2.0
"""Sweeps of PsPIN units (PsPIN §IV-B2, Fig. 8): clusters, HPUs, packet sizes and handler lengths."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rich.table import Table

from spinkit._errors import SpinkitError
from spinkit.common._json import parse_json
from spinkit.common._processes import Processes, pool
from spinkit.common._terminal import console, progress_bar, table_box
from spinkit.reports._curves import Curve, Panel, Picture, byte_label


@dataclass(frozen=True)
class Grid:
    """Values of the varied parameters."""

    clusters: tuple[int, ...]
    hpus: tuple[int, ...]
    """HPUs of a cluster."""
    sizes: tuple[int, ...]
    """Bytes of packets."""
    instructions: tuple[int, ...]
    """Instructions of the handler: the macro X of its source."""


@dataclass(frozen=True)
class Point:
    """One unit, one size of packets, one handler."""

    clusters: int
    hpus: int
    size: int
    instructions: int


@dataclass(frozen=True)
class Sweep:
    """Settings of all points."""

    pspin: Path
    """`spinkit-pspin`."""
    source: Path
    machine: str
    settings: tuple[str, ...]
    packets: int
    """Packets of each run, in eight messages."""
    hpu: str | None
    includes: tuple[Path, ...]
    engine: str
    """Engine: model or rtl."""


MESSAGES = 8
"""Messages at the same time."""


def run(sweep: Sweep, grid: Grid) -> dict[Point, Mapping[str, Any]]:
    """Run all points; return their reports in the order of the grid."""
    points = [Point(*values) for values in product(grid.clusters, grid.hpus, grid.sizes, grid.instructions)]
    with (
        tempfile.TemporaryDirectory() as scratch,
        pool(os.cpu_count() or 1) as (threads, processes),
        progress_bar() as bar,
    ):
        task = bar.add_task("compile", total=len(points))
        folder = Path(scratch)
        built = {x: threads.submit(_compile, sweep, x, folder, processes) for x in grid.instructions}
        program = {x: future.result() for x, future in built.items()}
        futures = {threads.submit(_one, sweep, one, program[one.instructions], processes): one for one in points}
        reports = {}
        for future in as_completed(futures):
            reports[futures[future]] = future.result()
            bar.update(task, advance=1, description=_what(futures[future]))
    return {point: reports[point] for point in points}


def _compile(sweep: Sweep, instructions: int, folder: Path, processes: Processes) -> Path:
    program = folder / f"{instructions}.elf"
    kind = ["--hpu", sweep.hpu] if sweep.hpu else []
    includes = [word for include in sweep.includes for word in ("-I", str(include))]
    arguments = ["cc", *kind, "-O3", f"-DX={instructions}", *includes, str(sweep.source), "-o", str(program)]
    status, _, errors = processes.execute([str(sweep.pspin), *arguments], None)
    if status != 0:
        raise SpinkitError(f"{sweep.source} does not compile with -DX={instructions}:\n{errors.strip()}")
    return program


def _one(sweep: Sweep, point: Point, program: Path, processes: Processes) -> Mapping[str, Any]:
    unit = (f"accelerator.clusters={point.clusters}", f"accelerator.hpus_per_cluster={point.hpus}")
    changes = [word for change in (*sweep.settings, *unit) for word in ("--set", change)]
    load = ["--messages", str(MESSAGES), "--packets", str(-(-sweep.packets // MESSAGES)), "--size", str(point.size)]
    unit_words = ["--machine", sweep.machine, *changes, "--engine", sweep.engine]
    command = [str(sweep.pspin), "run", str(program), *unit_words, *load, "--json", "-"]
    status, output, errors = processes.execute(command, None)
    if status != 0:
        raise SpinkitError(f"spinkit pspin run ended with status {status} at {point}\n{errors.strip()}")
    report: Mapping[str, Any] = parse_json(output)
    return report


def _what(point: Point) -> str:
    return f"{point.clusters} x {point.hpus} HPUs, {point.size} B, {point.instructions} instructions"


def to_json(sweep: Sweep, reports: Mapping[Point, Mapping[str, Any]]) -> bytes:
    """Return the settings of the sweep, and the report of each point."""
    points = [{**vars(point), "report": report} for point, report in reports.items()]
    content: dict[str, Any] = {"source": sweep.source.name, "machine": sweep.machine, "set": list(sweep.settings)}
    content.update(engine=sweep.engine, points=points)
    return (json.dumps(content, indent=1) + "\n").encode()


def table(reports: Mapping[Point, Mapping[str, Any]]) -> Table:
    """Return a row for each point."""
    shown = Table(box=table_box(console()))
    for name in ("clusters", "HPUs", "packet", "instructions", "Gbit/s", "Mpackets/s", "HPUs busy", "latency, mean"):
        shown.add_column(name, justify="right")
    for point, report in reports.items():
        rates = report["throughput"]
        shown.add_row(
            str(point.clusters),
            str(point.clusters * point.hpus),
            f"{point.size} B",
            str(point.instructions),
            f"{rates['in_gbit_s']:.1f}",
            f"{rates['packets_per_us']:.1f}",
            f"{report['hpus']['mean_busy']:.1f}",
            f"{report['request_ns']['mean']:.0f} ns",
        )
    return shown


def picture(sweep: Sweep, grid: Grid, reports: Mapping[Point, Mapping[str, Any]]) -> Picture:
    """Draw throughput over the length of the handler: a panel for each unit, a curve for each size of packets."""
    from spinkit.reports import _plot  # imported here because matplotlib takes long to load

    panels = [
        Panel(
            f"{clusters} x {hpus} HPUs",
            [
                Curve(
                    byte_label(size),
                    [reports[Point(clusters, hpus, size, x)]["throughput"]["in_gbit_s"] for x in grid.instructions],
                    look,
                )
                for look, size in enumerate(grid.sizes)
            ],
        )
        for hpus in grid.hpus
        for clusters in grid.clusters
    ]
    title = f"Throughput of {sweep.machine} by clusters, HPUs and packet size"
    labels = ("Instructions of the handler", "Throughput in Gbit/s")
    return _plot.panels(title, *labels, grid.instructions, panels, len(grid.clusters))


def sources(home: Path) -> tuple[Path, Sequence[Path]]:
    """Return the source of the handler that is only instructions, and where its headers are."""
    library = home / "sdk" / "handlers" / "pspin"
    return library / "instructions" / "handlers" / "instructions.c", [library / "common"]
