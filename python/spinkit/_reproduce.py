"""`spinkit reproduce`: run experiments, show them, write their files."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.box import HEAVY_HEAD
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from spinkit import _machines, _report, _run
from spinkit._experiment import Experiment
from spinkit._results import to_json, write_atomically
from spinkit._run import Results, Toolchain

_PLAIN_WIDTH = 160
"""Columns of output that goes to a file or pipe."""


def _console(stderr: bool = False) -> Console:
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, width=None if terminal else _PLAIN_WIDTH, highlight=False)


def _print(console: Console, content: RenderableType) -> None:
    """Print after an empty line; without rich's padding at line ends where that would go to a file."""
    console.print()
    if console.is_terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    for line in captured.get().splitlines():
        console.print(line.rstrip(), markup=False, soft_wrap=True)


def run(experiment: Experiment, tools: Toolchain, folder: Path, quick: bool) -> Results:
    """Run an experiment with a progress bar on a terminal, or a line a run elsewhere (on standard error)."""
    console = _console(stderr=True)
    if not console.is_terminal:
        return _run.run(
            experiment,
            tools,
            folder,
            quick,
            lambda what, done, total: console.print(f"{experiment.name} {done}/{total}: {what}", markup=False),
        )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(experiment.name, total=None)
        return _run.run(
            experiment,
            tools,
            folder,
            quick,
            lambda _, done, total: progress.update(task, completed=done, total=total),
        )


def write(results: Results, home: Path, folder: Path) -> list[Path]:
    """Write JSON, pictures and page; return the files for people, the page first."""
    drawn = _report.pictures(results)
    machines = [_machines.load(home / "machines" / f"{name}.toml") for name in results.experiment.machines]
    page = folder / "index.html"
    written = [page]
    write_atomically(folder / "results.json", to_json(results))
    write_atomically(page, _report.html(results, drawn, machines))
    for name, picture in drawn.items():
        for file, content in ((f"{name}.png", picture.png), (f"{name}.svg", picture.svg)):
            write_atomically(folder / file, content)
            written.append(folder / file)
    return [*written, folder / "results.json"]


def show(results: Results) -> None:
    """Print the times and the comparison with the paper."""
    console = _console()
    box = HEAVY_HEAD if console.is_terminal else None
    experiment = results.experiment
    console.print(Text(f"{experiment.title} · {experiment.paper}", style="bold"))
    for times in _report.time_tables(results):
        table = Table(title=f"{experiment.measure.label} in µs on {times.machine}", title_justify="left", box=box)
        for heading in times.headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for row in times.rows:
            table.add_row(*row)
        _print(console, table)
    table = Table(title="Paper and here", title_justify="left", box=box)
    table.add_column("what the paper says")
    for heading in ("paper", "here", "here / paper"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for verdict in results.verdicts:
        cells = _report.claim_cells(verdict)
        style = "green" if verdict.holds else "bold red"
        table.add_row(
            Text(f"{cells['text']} ({cells['source']})"),
            *(cells[key] for key in ("paper", "here", "ratio")),
            Text(cells["verdict"], style=style),
        )
    _print(console, table)
