# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/use-cases for cards with PsPIN are those of the experiments that the pages name."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .conftest import CHECKOUT

TIME, MEDIAN, TAIL = "time_ps", "p50_ps", "p99_ps"


@dataclass(frozen=True)
class Measured:
    """The points of an experiment."""

    points: list[dict[str, Any]]

    def us(self, series: str, key: str, value: int, measure: str = TIME, digits: int = 3) -> str:
        """Return a time as the pages write it."""
        [point] = [one for one in self.points if one["series"] == series and one[key] == value]
        return f"{point[measure] / 1e6:.{digits}f}"


def of_kvstore(measured: Measured) -> Iterator[str]:
    labels = {"rdma": "RDMA, one-sided", "cpu": "CPU, one core", "spin": "sPIN, index on the card"}
    for series, label in labels.items():
        cells = " | ".join(measured.us(series, "ranks", clients + 1) for clients in (1, 8, 64))
        yield f"| {label} | … | {cells} |"
    fastest = [float(measured.us(series, "ranks", 65, digits=6)) for series in ("cpu", "spin")]
    yield f"{fastest[0] / fastest[1]:.1f} times as fast as one core with 64 clients"


def of_mixes(measured: Measured) -> Iterator[str]:
    def cells(series: str, measure: str, digits: int) -> str:
        mixes = [measured.us(series, "mix", mix, measure, digits) for mix in range(1, 7)]
        skews = [measured.us(f"{series}-{skew}", "mix", 1, measure, digits) for skew in (0, 120)]
        return " | ".join([*mixes, *skews])

    yield f"| RDMA, one-sided | {cells('rdma', TIME, 3)} |"
    yield f"| sPIN | {cells('spin', TIME, 3)} |"
    yield f"| 99th percentile: RDMA | {cells('rdma', TAIL, 1)} |"
    yield f"| 99th percentile: sPIN | {cells('spin', TAIL, 1)} |"
    times = {
        series: [float(measured.us(series, "mix", mix, MEDIAN, 6)) for mix in (2, 3, 4)] for series in ("spin", "rdma")
    }
    longer = [100 * (own / other - 1) for own, other in zip(times["spin"], times["rdma"], strict=True)]
    yield f"half of the gets take {min(longer):.0f} to {max(longer):.0f} % longer than with RDMA"


def of_allreduce(measured: Measured) -> Iterator[str]:
    def us(series: str, size: int, digits: int = 0) -> str:
        return measured.us(series, "bytes", size, digits=digits)

    yield f"({us('spin', 8, 1)} against {us('rdma', 8, 1)} µs for 8 B)"
    yield f"({us('spin', 32768)} against {us('rdma', 32768)} µs for 32 KiB,"
    yield f"{us('spin', 131072)} against {us('rdma', 131072)} µs for 128 KiB)"
    yield f"Floats of 4 KiB take {us('spin-float', 4096)} µs."


def of_switches(measured: Measured) -> Iterator[str]:
    def us(series: str, size: int) -> str:
        return measured.us(series, "bytes", size, digits=1)

    yield f"64 B take {us('switch', 64)} µs against {us('doubling', 64)} µs for doubling,"
    yield f"and 4 KiB {us('switch', 4096)} µs against {us('doubling', 4096)} µs"


@pytest.mark.parametrize(
    ("page", "experiment", "figures"),
    [
        ("kvstore", "kvstore-pspin", of_kvstore),
        ("kvstore", "kvstore-mixes-pspin", of_mixes),
        ("allreduce", "allreduce-pspin", of_allreduce),
        ("switch-allreduce", "switch-allreduce-pspin", of_switches),
    ],
)
def test_the_page_has_what_the_experiment_measures(page: str, experiment: str, figures: Any, tmp_path: Path) -> None:
    command = [_paths.command("spinkit"), "reproduce", experiment]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out" / experiment / "results.json").read_text())
    text = (CHECKOUT / "docs" / "use-cases" / f"{page}.md").read_text()
    lines = [" ".join(text.split()), *text.splitlines()]
    for figure in figures(Measured(results["points"])):
        begin, _, end = figure.partition("… ")
        assert any(begin in line and (not end or line.endswith(end)) for line in lines), figure
