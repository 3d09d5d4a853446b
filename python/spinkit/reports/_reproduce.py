# SPDX-License-Identifier: Apache-2.0
"""`spinkit reproduce`: run experiments, show them, write their files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._kept import Kept, sources
from spinkit.common._output import write_atomically
from spinkit.common._progress import steps
from spinkit.common._terminal import PROSE, console, print_block, styled, table_box
from spinkit.common._version import __version__
from spinkit.experiments import _demonstrations, _pool, _sensitivity
from spinkit.experiments._definition import Experiment
from spinkit.experiments._outcome import Results
from spinkit.experiments._pool import Outcome
from spinkit.experiments._sensitivity import Tried
from spinkit.experiments._workshop import Settings
from spinkit.reports import _report
from spinkit.reports._curves import Picture, Plot
from spinkit.reports._results import to_json, to_table
from spinkit.simulate import _machines
from spinkit.simulate._machines import Machine

_Row = TypeVar("_Row")

_STYLES = {"holds": "green", "explained": "yellow", "fails": "bold red"}


def run(experiments: Sequence[Experiment], settings: Settings, verbose: bool = True) -> list[Outcome]:
    """Run experiments and write the files of each; show a progress bar on a terminal, else lines.

    An experiment's runs include those that show the reasons of differences from the paper. Outcomes are in the order
    of the experiments. Progress goes to standard error.
    """
    cases = {one.name: _demonstrations.cases(one, settings.quick) for one in experiments}
    variants = [case.variant for several in cases.values() for case in several]
    ended: dict[int, Results | SpinkitError] = {}
    complete = {}
    with steps(verbose) as tell, closing(_pool.run_all([*experiments, *variants], settings, tell)) as outcomes:
        for one, outcome in outcomes:
            ended[id(one)] = outcome
            experiment = next(base for base in experiments if base.name == one.name)
            several = cases[experiment.name]
            if all(id(part) in ended for part in (experiment, *(case.variant for case in several))):
                whole = _together(ended[id(experiment)], [(case, ended[id(case.variant)]) for case in several])
                complete[experiment.name] = (experiment, whole)
                if isinstance(whole, Results):
                    write(whole, settings)
    return [complete[experiment.name] for experiment in experiments]


def _together(
    outcome: Results | SpinkitError, shown: Sequence[tuple[_demonstrations.Case, Results | SpinkitError]]
) -> Results | SpinkitError:
    """Add demonstrations to an experiment's results; if a run failed, return that error instead."""
    failures = [one for one in (outcome, *(one for _, one in shown)) if isinstance(one, SpinkitError)]
    if isinstance(outcome, SpinkitError) or failures:
        return SpinkitError("\n".join(dict.fromkeys(map(str, failures))))
    return _demonstrations.add(outcome, [(case, one) for case, one in shown if isinstance(one, Results)])


def vary(outcomes: Sequence[Outcome], settings: Settings, verbose: bool = True) -> dict[str, list[Tried]]:
    """Change the assumed parameters of experiments one by one; write the files again, and `sensitivity.json`."""
    complete = {experiment.name: results for experiment, results in outcomes if isinstance(results, Results)}
    changes = {
        name: _sensitivity.changes(results.experiment, lambda machine: _machines.load(settings.machines, machine))
        for name, results in complete.items()
    }
    variants = [change.variant for several in changes.values() for change in several]
    ended = {}
    with steps(verbose) as tell, closing(_pool.run_all(variants, settings, tell)) as varied:
        for variant, outcome in varied:
            ended[variant.name, variant.variant] = outcome
    tried = {
        name: [_sensitivity.compare(one, results, ended[name, one.what]) for one in changes[name]]
        for name, results in complete.items()
    }
    for name, results in complete.items():
        write_atomically(settings.out / name / "sensitivity.json", _sensitivity.to_json(results, tried[name]))
        write(results, settings, tried[name])
    return tried


def files(results: Results, out: Path) -> list[Path]:
    """Return the files of `write` that people read, the page first."""
    folder = out / results.experiment.name
    pictures = [f"{figure.name}.{kind}" for figure in results.experiment.figures for kind in ("png", "svg")]
    return [folder / name for name in ("index.html", *pictures, "results.json")]


def write(results: Results, settings: Settings, tried: Sequence[Tried] | None = None) -> None:
    """Write JSON, pictures and page, those only that changed."""
    folder = settings.out / results.experiment.name
    kept = Kept(folder)
    drawn = {name: _picture(kept, name, plot) for name, plot in _report.plots(results).items()}
    machines = _machines_of([results.experiment], settings.machines)
    content = to_table(results)
    # json is much faster without line breaks.
    kept.get("results.json", digest([], [json.dumps(content)]), lambda: to_json(content))
    section = _report.section(results, drawn, tried)
    inputs = digest([], [_page_sources(), repr(section), repr(machines), str(results.quick)])
    kept.get("index.html", inputs, lambda: _report.page(section, machines, results.quick))


def _picture(kept: Kept, name: str, plot: Plot) -> Picture:
    """Return a figure, which is drawn unless its files are those of the same data."""
    inputs = digest([], [_plot_sources(), repr(plot)])
    draw = cache(lambda: _report.draw(plot))  # both files are of one drawing
    return Picture(
        svg=kept.get(f"{name}.svg", inputs, lambda: draw().svg), png=kept.get(f"{name}.png", inputs, lambda: draw().png)
    )


_REPORTS = Path(__file__).parent
_LAYS_OUT = ("jinja2", "markupsafe")
"""Packages whose versions decide how pages look."""


@cache
def _plot_sources() -> str:
    """Return a digest of everything besides its data that decides how a figure looks."""
    return digest([], [sources(_REPORTS, "_plot.py", "_curves.py"), _report.drawn_by()])


@cache
def _page_sources() -> str:
    """Return a digest of everything besides its content that decides how a page looks."""
    package = _REPORTS.parent
    made_by = (sources(_REPORTS, "_report.py"), sources(package / "common", "_prose.py"))
    return digest(
        [], [*made_by, sources(package / "templates", "*.j2"), __version__, *map(metadata.version, _LAYS_OUT)]
    )


def write_report(
    outcomes: Sequence[Outcome], settings: Settings, tried: Mapping[str, Sequence[Tried]], pages: Mapping[str, str]
) -> Path:
    """Write the page of all experiments, if it changed, with links to further pages; each experiment has its files."""
    sections = [
        _report.section(outcome, _drawn(outcome, settings.out), tried.get(experiment.name))
        if isinstance(outcome, Results)
        else _report.failed_section(experiment, str(outcome))
        for experiment, outcome in outcomes
    ]
    machines = _machines_of([experiment for experiment, _ in outcomes], settings.machines)
    versions = _versions(settings)
    content = [repr(one) for one in (sections, machines, versions, settings.quick, pages)]

    def page() -> bytes:
        return _report.report(sections, machines, versions, settings.quick, pages)

    Kept(settings.out).get("report.html", digest([], [_page_sources(), *content]), page)
    return settings.out / "report.html"


def _drawn(results: Results, out: Path) -> dict[str, Picture]:
    """Return the pictures that `write` has drawn."""
    folder = out / results.experiment.name
    names = [figure.name for figure in results.experiment.figures]
    return {name: Picture(*((folder / f"{name}.{kind}").read_bytes() for kind in ("svg", "png"))) for name in names}


def _machines_of(experiments: Sequence[Experiment], command: Path) -> list[Machine]:
    names = dict.fromkeys(experiment.place(name) for experiment in experiments for name in experiment.machine_files)
    return _machines.load_all(command, list(names))


def _versions(settings: Settings) -> dict[str, str]:
    """Return the version of each part on which results depend, and digests that identify builds."""
    tools = settings.tools
    files = {
        "spincc": tools.spincc,
        "spinrun": tools.spinrun,
        "spinkit-pspin": tools.pspin,
        "libportals.so": tools.library,
    }
    builds = {name: f"SHA-256 {digest([file], [])[:16]}…" for name, file in files.items() if file is not None}
    return {"spinkit": __version__, "zig (clang) for the card": metadata.version("ziglang"), **builds}


def _time_tables(title: str | None, times: _report.TimeTable, out: Console) -> list[Table]:
    """Lay out a column for each series; where the console is too narrow, a row for each, in several tables."""

    def table(labels: Sequence[str], columns: Sequence[Sequence[str]], side: JustifyMethod) -> Table:
        table = Table(title=title, title_justify="left", box=table_box(out))
        table.add_column(labels[0], justify=side, no_wrap=True)
        for column in columns:
            table.add_column(column[0], justify="right", no_wrap=True)
        for row in zip(labels[1:], *(column[1:] for column in columns), strict=True):
            table.add_row(*row)
        return table

    def fits(table: Table) -> bool:
        return out.measure(table, options=out.options.update(max_width=sys.maxsize)).maximum <= out.width

    values, *series = zip(times.headings, *times.rows, strict=True)
    if fits(whole := table(values, series, "right")):
        return [whole]
    tables, columns = [], times.rows
    while columns:
        counts = range(len(columns), 0, -1)
        parts = ((count, table(times.headings, columns[:count], "left")) for count in counts)
        count, part = next((count, part) for count, part in parts if count == 1 or fits(part))
        tables.append(part)
        columns = columns[count:]
    return tables


_BRIEF_ROWS = 4


def show_brief(results: Results) -> None:
    """Print a few times and the counts of verdicts."""
    out = console()
    experiment = results.experiment
    out.print(Text(" · ".join(filter(None, (experiment.title, experiment.paper))), style="bold"))
    times = _report.time_tables(results)[: _BRIEF_ROWS // 2]
    count = min(_BRIEF_ROWS // len(times), len(times[0].rows))
    rows = [
        [f"{one.machine}, {row[0]}", *row[1:]]
        for one in times
        for row in _spread(
            [row for row, value in zip(one.rows, results.values, strict=True) if _is_quick(results, value)], count
        )
    ]
    headings = [experiment.measure.heading, *times[0].headings[1:]]
    for part in _time_tables(None, _report.TimeTable("", headings, rows), out):
        print_block(out, part)
    counts = _report.count(results.verdicts)
    if counts["all"]:
        texts = {"holds": "hold", "explained": "differ for a stated reason", "fails": "fail"}
        words = [f"{counts[key]} {text}" for key, text in texts.items() if counts[key]]
        print_block(out, Text(f"{counts['all']} verdicts on the paper's statements: {', '.join(words)}"))


def _is_quick(results: Results, value: float) -> bool:
    return value in results.experiment.values(quick=True)


def _spread(rows: Sequence[_Row], count: int) -> list[_Row]:
    """Return `count` rows at most: the first, the last, and others at equal distances."""
    if len(rows) <= count:
        return list(rows)
    return [rows[round(number * (len(rows) - 1) / max(1, count - 1))] for number in range(count)]


def show(results: Results) -> None:
    """Print the times and the comparison with the paper."""
    out = console()
    box = table_box(out)
    experiment = results.experiment
    out.print(Text(" · ".join(filter(None, (experiment.title, experiment.paper))), style="bold"))
    for times in _report.time_tables(results):
        title = escape(f"{experiment.measure.heading} on {times.machine}")
        for part in _time_tables(title, times, out):
            print_block(out, part)
    if not experiment.claims:
        return
    table = Table(title="Paper and here", title_justify="left", box=box)
    table.add_column("claim of the paper", max_width=None if out.is_terminal else PROSE)
    table.add_column("paper", justify="right", no_wrap=True)
    for model in experiment.models:
        table.add_column(f"here, {model}" if model else "here", justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=not out.is_terminal)
    notes = []
    for claim in _report.claim_rows(results):
        table.add_row(
            styled("; ".join(filter(None, (f"{claim['text']} ({claim['source']})", claim["quick"])))),
            claim["paper"],
            *(
                cell
                for cells in claim["models"]
                for cell in (cells["here"], Text(cells["verdict"], style=_STYLES[cells["kind"]]))
            ),
        )
        if any(cells["reason"] for cells in claim["models"]):
            notes.append("\n".join([claim["text"], *_reasons(claim)]))
    print_block(out, table)
    for note in notes:
        print_block(out, styled(note))


def _reasons(claim: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reason of each difference from the paper, and the runs that show it."""
    for cells in claim["models"]:
        where = f" ({cells['model']})" if cells["model"] else ""
        if cells["reason"]:
            yield f"    why{where}: {cells['reason']}"
        for one in cells["shown"]:
            share = f", {one['share']}" if one["share"] else ""
            yield f"    shown{where}: a run on {one['machines']} {one['change']} gives {one['numbers']}{share}"


def show_sensitivity(tried: Sequence[Tried]) -> None:
    """Print the claims that turn with each change of an assumed parameter."""
    out = console()
    table = Table(title="Assumed parameters", title_justify="left", box=table_box(out))
    table.add_column("parameter", no_wrap=True)
    table.add_column("machines")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("changed to", justify="right", no_wrap=True)
    table.add_column("claims that turn")
    for row in _report.sensitivity_rows(tried):
        turns = f"does not run: {row['error']}" if row["error"] else "\n".join(row["turns"]) or "–"
        values = (f"{row[end]} {row['unit']}".rstrip() for end in ("from", "to"))
        table.add_row(row["key"], row["machines"], *values, Text(turns))
    print_block(out, table)
    if idle := _report.idle_changes(tried):
        print_block(out, Text(f"No change of these moves a number: {', '.join(idle)}."))
