# SPDX-License-Identifier: Apache-2.0
"""The `spinkit` command.

Each command imports its modules itself, so that all others start fast.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from spinkit import _new, _paths
from spinkit._errors import SpinkitError, choice
from spinkit.common._output import check_writable, is_replaced, write_atomically

if TYPE_CHECKING:
    from spinkit.experiments._claims import Verdict
    from spinkit.experiments._outcome import Demonstration, Results
    from spinkit.experiments._workshop import Settings


class _Group(click.Group):
    """Exits with status 1 and one message when a command failed; click itself exits with 2 after usage errors."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SpinkitError as error:
            click.echo(f"spinkit: {error}", err=True)
            ctx.exit(1)
        except OSError as error:
            if error.filename is None:
                raise
            click.echo(f"spinkit: {os.fsdecode(error.filename)}: {error.strerror}", err=True)
            ctx.exit(1)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spinkit", prog_name="spinkit")
def main() -> None:
    """Run sPIN experiments, plot them and compare them with the papers."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _: FrameType | None) -> None:
    """Unwind as on Ctrl-C, so that no process is left running."""
    sys.exit(128 + number)


_STANDARD_OUTPUT = Path("-")


class _Report(click.Path):
    """A file that a long run writes at its end; if it cannot be written, the error is reported at the beginning.

    If it is standard output, all other output of the command goes to standard error.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        file = Path(str(super().convert(value, param, ctx)))
        check_writable(file)
        if file == _STANDARD_OUTPUT and ctx is not None:
            ctx.with_resource(redirect_stdout(sys.stderr))
        return file


class _Numbers(click.ParamType[tuple[int, ...]]):
    """Different whole numbers with commas between them."""

    name = "numbers"

    def __init__(self, least: int = 1, most_values: int | None = None) -> None:
        self._least = least
        self._most_values = most_values

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        try:
            values = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"must be whole numbers with commas between them, is {value}", param, ctx)
        if min(values) < self._least:
            self.fail(f"must be at least {self._least}, is {min(values)}", param, ctx)
        if len(set(values)) != len(values):
            self.fail(f"a value occurs twice: {value}", param, ctx)
        if self._most_values is not None and len(values) > self._most_values:
            self.fail(f"at most {self._most_values} curves can be told apart, there are {len(values)}", param, ctx)
        return values


_FILE = _Report(dir_okay=False, writable=True, path_type=Path, allow_dash=True)
_READABLE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
_FOLDER = click.Path(file_okay=False, writable=True, path_type=Path)


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Run every experiment.")
@click.option("--quick", is_flag=True, help="Run only the quick_values of each experiment.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 if a statement of the paper does not hold without a documented reason."
)
@click.option(
    "--sensitivity",
    is_flag=True,
    help="Also change each parameter that no paper gives over its range, and show which claims turn.",
)
@click.option(
    "--model",
    metavar="MODEL",
    help="Run on the machines of this model, such as sc17-arm, in place of the experiment's first model.",
)
@click.option("--fresh", is_flag=True, help="Repeat runs that are in the cache.")
@click.option("-v", "--verbose", is_flag=True, help="Print all runs, times, claims and reasons.")
@click.option("--json", "json_file", type=_FILE, help="Also write all points to this file.")
@click.option(
    "--out",
    type=_FOLDER,
    default=Path("out"),
    show_default=True,
    help="Folder for results, with one folder for each experiment.",
)
def reproduce(
    names: tuple[str, ...],
    everything: bool,
    quick: bool,
    check: bool,
    sensitivity: bool,
    model: str | None,
    fresh: bool,
    verbose: bool,
    json_file: Path | None,
    out: Path,
) -> None:
    """Rerun experiments of the papers, plot them, and compare them with the papers.

    A folder of your own with an experiment.toml is named by its path, such as ./my-experiment (docs/experiments.md;
    `spinkit new experiment my-experiment` makes one). The name timelines stands for the trace diagrams of the sPIN
    paper's appendix, which are drawn from runs.

    Prints a few times of each experiment, and the paths of its page and figures; -v prints everything that the page
    has. Finished runs are cached: a later call with the same inputs does not repeat them. --all also writes
    report.html, one page with everything. Wrong data or a failed run always ends with exit status 1.
    """
    from spinkit.experiments import _model, _reader
    from spinkit.reports import _reproduce, _timelines
    from spinkit.reports._report import tally
    from spinkit.reports._results import to_json, to_table

    home = _paths.home()
    if everything == bool(names):
        raise click.UsageError(f"name experiments or give --all; there are:\n{_listed(home)}")
    named = [name for name in dict.fromkeys(names) if name != _timelines.NAME]
    has_timelines = _timelines.NAME in names or (everything and _timelines.file(home).is_file())
    if everything:
        named = _reader.available(home)
    chosen = [_reader.load(home, name) for name in named]
    if json_file is not None and (len(chosen) != 1 or has_timelines):
        raise click.UsageError("--json takes exactly one experiment")
    if model is not None and (everything or has_timelines):
        raise click.UsageError("--model takes named experiments, and no timelines")
    settings = _settings(out, quick, fresh)
    chosen = _model.on_models(chosen, model, settings.machines)
    outcomes = _reproduce.run(chosen, settings, verbose)
    tried = _reproduce.vary(outcomes, settings, verbose) if sensitivity else {}
    problems = []
    for experiment, outcome in outcomes:
        if isinstance(outcome, SpinkitError):
            problems.append(str(outcome))
            continue
        written = _reproduce.files(outcome, out)
        if json_file is not None:
            write_atomically(json_file, to_json(to_table(outcome)))
            written += [json_file] if json_file != _STANDARD_OUTPUT else []
        (_reproduce.show if verbose else _reproduce.show_brief)(outcome)
        if sensitivity:
            written.append(out / experiment.name / "sensitivity.json")
            _reproduce.show_sensitivity(tried[experiment.name])
        click.echo()
        for file in written if verbose else _shown(written):
            click.echo(str(file))
        problems += _problems(outcome, check)
    if has_timelines:
        problems += _reproduce_timelines(home, out, check)
    if everything:
        pages = _timelines.link(home, out) if has_timelines else {}
        click.echo(str(_reproduce.write_report(outcomes, settings, tried, pages)))
    if check and (complete := [outcome for _, outcome in outcomes if not isinstance(outcome, SpinkitError)]):
        click.echo(tally(complete))
    if problems:
        raise SpinkitError("\n".join(problems))


def _shown(files: Iterable[Path]) -> list[Path]:
    """Return the files that people look at; the others lie beside them."""
    return [file for file in files if file.suffix in (".html", ".png")]


def _listed(home: Path) -> str:
    """Return the names of all experiments, with a line for each group."""
    from spinkit.experiments import _reader
    from spinkit.reports import _timelines

    groups = _reader.by_group(home)
    if _timelines.file(home).is_file():
        groups.setdefault(_timelines.GROUP, []).append(_timelines.NAME)
    return "\n".join(f"  {group}: {', '.join(sorted(names))}" for group, names in groups.items())


def _reproduce_timelines(home: Path, out: Path, check: bool) -> list[str]:
    """Draw the trace diagrams; return the failures."""
    from spinkit.reports import _timelines
    from spinkit.simulate._toolchain import toolchain

    try:
        outcome = _timelines.run(home, toolchain(), out)
    except SpinkitError as error:
        return [str(error)]
    _timelines.show(outcome)
    click.echo()
    for file in _timelines.files(outcome, out):
        click.echo(str(file))
    return outcome.unmet if check else []


def _settings(out: Path, quick: bool, fresh: bool, jobs: int | None = None, retries: int = 0) -> Settings:
    from spinkit.experiments._workshop import Settings
    from spinkit.simulate._toolchain import toolchain

    machines = _paths.command("spinkit-machines")
    return Settings(_paths.home(), toolchain(), machines, out, quick, fresh, jobs, retries)


@main.command(name="sweep")
@click.argument("name")
@click.option(
    "--set",
    "settings",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="A parameter of the machine and its values: 1,2,4 or 50:500:50 (from, to, step) or 1:64:x2 (from, to, "
    "factor). Several parameters are combined; those that change together are KEY/KEY=VALUE/VALUE,…",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Number of runs at the same time, on a cluster of workers [default: number of processors].",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS|local|slurm|kubernetes",
    help="Run on a Dask cluster: a running one, or a new one with --jobs workers.",
)
@click.option(
    "--cluster-option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument for the new cluster, such as queue=short for slurm or image=… for kubernetes.",
)
@click.option("--tls-ca", type=_READABLE, help="The authority that signs the certificates of the cluster (PEM).")
@click.option("--tls-cert", type=_READABLE, help="The certificate of this sweep for the cluster (PEM).")
@click.option("--tls-key", type=_READABLE, help="The key of that certificate (PEM).")
@click.option(
    "--retries", type=click.IntRange(min=0), default=1, show_default=True, help="Number of retries of a failed run."
)
@click.option("--quick", is_flag=True, help="Run only the quick_values of the experiment.")
@click.option("--fresh", is_flag=True, help="Repeat runs that are in the cache.")
@click.option("--column", "columns", multiple=True, help="A place in the report of a run, such as cards.1.dma_bytes.")
@click.option("--json", "json_file", type=_FILE, help="Write the table to this file [default: OUT/NAME/sweep.json].")
@click.option("--csv", "csv_file", type=_FILE, help="Also write the table to this file, as CSV.")
@click.option("--parquet", "parquet_file", type=_FILE, help="Also write the table to this file, as Parquet.")
@click.option(
    "--plot",
    "plots",
    multiple=True,
    metavar="X,Y[,SERIES][,COLUMN=VALUE]…",
    help="Draw column Y over column X into OUT/NAME; SERIES are the columns that distinguish curves, joined by + "
    "[default: all that vary]; COLUMN=VALUE chooses rows.",
)
@click.option("--out", type=_FOLDER, default=Path("out"), show_default=True, help="Folder for results.")
def sweep_experiment(
    name: str,
    settings: tuple[str, ...],
    jobs: int | None,
    scheduler: str | None,
    options: tuple[str, ...],
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    retries: int,
    quick: bool,
    fresh: bool,
    columns: tuple[str, ...],
    json_file: Path | None,
    csv_file: Path | None,
    parquet_file: Path | None,
    plots: tuple[str, ...],
    out: Path,
) -> None:
    """Run the experiment NAME, one of ours or a folder, at every combination of parameters; write one table.

    Finished runs are cached: after an interruption or a failure the same command continues. Claims are not tested.
    docs/cluster.md describes clusters.
    """
    from spinkit.experiments import _reader
    from spinkit.sweeps import _sweep, _sweep_plot
    from spinkit.sweeps._dask import Credentials
    from spinkit.sweeps._grid import parse

    try:
        axes = [parse(text) for text in settings]
    except SpinkitError as error:
        raise click.BadParameter(str(error), param_hint="'--set'") from None
    try:
        wanted = [_sweep_plot.parse(text) for text in plots]
    except SpinkitError as error:
        raise click.BadParameter(str(error), param_hint="'--plot'") from None
    given = {key: value for key, equals, value in (option.partition("=") for option in options) if equals}
    if len(given) != len(options):
        raise click.BadParameter("expected NAME=VALUE", param_hint="'--cluster-option'")
    credentials = None
    if tls_ca or tls_cert or tls_key:
        if not (tls_ca and tls_cert and tls_key):
            raise click.UsageError("--tls-ca, --tls-cert and --tls-key belong together")
        credentials = Credentials(tls_ca, tls_cert, tls_key)
    experiment = _reader.load(_paths.home(), name)
    outcome = _sweep.run_anywhere(
        experiment, axes, _settings(out, quick, fresh, jobs, retries), columns, scheduler, given, credentials
    )
    file = json_file or out / experiment.name / "sweep.json"
    write_atomically(file, _sweep.to_json(outcome.rows))
    written = [file]
    for other, write in ((csv_file, _sweep.to_csv), (parquet_file, _sweep.to_parquet)):
        if other is not None:
            write_atomically(other, write(outcome.rows))
            written.append(other)
    for figure in wanted if outcome.rows else ():
        drawn = _sweep_plot.plot(outcome, figure)
        for content, ending in ((drawn.svg, "svg"), (drawn.png, "png")):
            written.append(out / experiment.name / f"{figure.name}.{ending}")
            write_atomically(written[-1], content)
    _sweep.show(outcome)
    click.echo()
    for one in written:
        if one != _STANDARD_OUTPUT:
            click.echo(str(one))
    if outcome.failures or outcome.wrong:
        raise SpinkitError(_sweep.problems(outcome))


@main.command()
@click.argument("kind", type=click.Choice(_new.KINDS))
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--vscode", is_flag=True, help="Also write tasks for Visual Studio Code, and a launch that stops in a handler."
)
def new(kind: _new.Kind, folder: Path, vscode: bool) -> None:
    """Make the folder NAME with a working experiment, or with a working program that has handlers.

    Its README.md explains how to run it.
    """
    for file in _new.make(kind, folder, vscode):
        click.echo(str(file))


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--write", "writes", is_flag=True, help="Write the numbers to the page.")
@click.option("--check", "checks", is_flag=True, help="Exit with 1 if the page has other numbers.")
@click.option(
    "--out",
    type=_FOLDER,
    default=Path("out"),
    show_default=True,
    help="Folder with the results of spinkit reproduce.",
)
def validation(names: tuple[str, ...], writes: bool, checks: bool, out: Path) -> None:
    """Write the results of experiments (by default all) to docs/validation.md, or compare the two.

    Results come from spinkit reproduce. Only the parts of the page between comments are written. The scoreboard of the
    papers, docs/results/index.md, and its sentence in the README are then written from that page.
    """
    from spinkit.experiments import _reader
    from spinkit.reports import _scoreboard, _validation

    if writes == checks:
        raise click.UsageError("give either --write or --check")
    home = _paths.home()
    known = _reader.available(home)
    for name in names:
        if name not in known:
            raise click.UsageError(f"{name}: no such experiment; {choice(name, known)}")
    update = _validation.update(home, out, names or known, lambda name: _reader.load(home, name), known)
    for page in (update, *_scoreboard.updates(home, update.after, lambda name: _reader.load(home, name), known)):
        if checks:
            page.check()
        elif page.write():
            click.echo(str(page.file))


@main.command()
@click.option("--out", type=_FOLDER, default=Path("out"), show_default=True, help="Folder for bench.json.")
def bench(out: Path) -> None:
    """Measure how fast the simulator is; print lines of the form `name value unit`, and write bench.json.

    At the end, print the measured number, the aim and a comparable program for each aim.
    """
    from spinkit.simulate._toolchain import toolchain
    from spinkit.suites import _aims, _bench

    folder = out / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    numbers = []
    for number in _bench.measure(_paths.home(), toolchain(), folder):
        click.echo(str(number))
        numbers.append(number)
    for compared in _aims.compare(numbers):
        click.echo(f"aim {compared}")
    _bench.write(numbers, out / "bench.json")
    click.echo(str(out / "bench.json"), err=True)


@main.command()
@click.option("--group", "names", multiple=True, help="Run only this feature group; may be repeated.")
@click.option(
    "--nic",
    "nics",
    multiple=True,
    type=click.Choice(["portals4", "spin", "rdma"]),
    default=("portals4", "spin"),
    show_default=True,
    help="Kind of card; may be repeated.",
)
@click.option("--live", is_flag=True, help="Run the programs in real time (spinrun --live), without checks about time.")
@click.option("--json", "json_file", type=_FILE, help="Also write every run to this file.")
def conformance(names: tuple[str, ...], nics: tuple[str, ...], live: bool, json_file: Path | None) -> None:
    """Run the Portals 4 tests: every feature on every card and kind of interface.

    Exits with 1 when a check fails.
    """
    from spinkit.simulate._toolchain import toolchain
    from spinkit.suites import _conformance

    home = _paths.home()
    there = {group.name: group for group in _conformance.groups(home)}
    unknown = [name for name in names if name not in there]
    if unknown:
        raise click.UsageError(f"no group {unknown[0]}; {choice(unknown[0], there)}")
    chosen = [there[name] for name in dict.fromkeys(names) or there]
    outcomes = _conformance.run(home, chosen, tuple(dict.fromkeys(nics)), toolchain(), live=live)
    _conformance.show(outcomes)
    if json_file is not None:
        write_atomically(json_file, _json_text(_conformance.report(outcomes)))
    if any(outcome.status == "failed" for outcome in outcomes):
        sys.exit(1)


@main.command()
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "json_file", type=_FILE, help="Write the numbers to this file [default: peers/NAME.json].")
def peers(name: str, folder: Path, json_file: Path | None) -> None:
    """Run a program that others published, from a checkout in FOLDER, and write its numbers.

    peers/NAME.toml names the repository, the commit and the commands. They run in a copy, so that FOLDER stays as it
    is. Experiments show the numbers as series marked “published”.
    """
    from spinkit.experiments import _peers as known
    from spinkit.suites import _peers

    home = _paths.home()
    if name not in known.names(home):
        raise click.UsageError(f"{name}: no such peer; {choice(name, known.names(home))}")
    click.echo(str(_peers.run(home, name, folder, json_file, lambda line: click.echo(line, err=True))))


@main.command("mpi-tests")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-n", "ranks", type=click.IntRange(min=1), multiple=True, help="Ranks of mpi4py's tests; 1 to 4 if not given."
)
@click.option(
    "--nic",
    "nics",
    multiple=True,
    type=click.Choice(["portals4", "spin", "rdma"]),
    default=("spin",),
    show_default=True,
    help="Kind of card; may be repeated.",
)
@click.option("--only", multiple=True, metavar="TEXT", help="Run only tests with TEXT in their name; may be repeated.")
@click.option("--skip", multiple=True, metavar="TEXT", help="Skip tests with TEXT in their name; may be repeated.")
@click.option("--python", type=_FILE, default=Path(sys.executable), help="Python that has mpi4py and its MPI.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Jobs at the same time; the number of processors if not given."
)
@click.option(
    "--timeout", "timeout_s", type=click.IntRange(min=1), default=600, show_default=True, help="Seconds for a job."
)
@click.option(
    "--native",
    "mpiexec",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The MPI's own mpiexec: it repeats tests that did not pass, to separate our failures from those of the MPI.",
)
@click.option("--json", "json_file", type=_FILE, help="Also write every run to this file.")
def mpi_tests(
    folder: Path,
    ranks: tuple[int, ...],
    nics: tuple[str, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    python: Path,
    jobs: int | None,
    timeout_s: int,
    mpiexec: Path | None,
    json_file: Path | None,
) -> None:
    """Run an MPI test suite under spinrun: mpi4py's source package, or MPICH's suite, compiled with its mpicc.

    Exits with 1 when a test fails. The file of --json is written after each job, so it has the jobs that had ended when
    the command is interrupted.
    """
    from spinkit.suites import _mpi_suites
    from spinkit.suites._mpi_cases import Outcome

    ended: list[Outcome] = []
    repeatedly = json_file is not None and is_replaced(json_file)

    def write() -> None:
        if json_file is not None:
            write_atomically(json_file, _json_text(_mpi_suites.report(suite, ended)))

    def keep(outcomes: list[Outcome]) -> None:
        ended[:] = outcomes
        if repeatedly:
            write()

    chosen = tuple(dict.fromkeys(nics))
    suite = _mpi_suites.read(folder, tuple(dict.fromkeys(ranks)), chosen, python, timeout_s, only, skip)
    try:
        _mpi_suites.run(suite, _paths.command("spinrun"), jobs, keep, mpiexec)
    finally:
        _mpi_suites.show(suite, ended)
        if not repeatedly:
            write()
    if any(outcome.status == "failed" for outcome in ended):
        sys.exit(1)


def _json_text(content: object) -> bytes:
    import json

    return (json.dumps(content, indent=1) + "\n").encode()


def _problems(results: Results, check: bool) -> list[str]:
    name = results.experiment.name
    wrong = [
        f"{name}: wrong data: {point.series.label} on {point.machine}, {results.experiment.sweep.axis} = {point.value}"
        for point in results.wrong
    ]
    if not check:
        return wrong
    from spinkit.common._prose import plain

    unmet = [f"{name}: {_unmet(verdict)}" for verdict in results.unmet]
    not_shown = [f"{name}: {plain(one.shown.description)}: {_unshown(one)}" for one in results.not_shown]
    return [*wrong, *unmet, *not_shown]


def _unshown(one: Demonstration) -> str:
    from spinkit.common._prose import plain

    if one.verdict.fails:
        return _unmet(one.verdict)
    claim = one.verdict.claim
    where = f"{one.verdict.worst.point}: {claim.format(one.verdict.worst.number)}"
    remedy = "name the parameter that is the cause, or remove the run"
    return f"moves away from the paper's interval: {plain(claim.text)} ({where}); {remedy}"


def _unmet(verdict: Verdict) -> str:
    from spinkit.common._prose import plain

    what = verdict.word if verdict.worst.holds else "does not hold"
    where = ": ".join(filter(None, (verdict.model, verdict.worst.point, verdict.claim.format(verdict.worst.number))))
    return f"{what}: {plain(verdict.claim.text)} ({where})"


@main.command(context_settings={"allow_interspersed_args": False})
@click.option("-n", "ranks", type=click.IntRange(min=1), default=1, show_default=True, help="Number of ranks.")
@click.option("--machine", default="sc17-int", show_default=True, help="Machine: a name, or a TOML file.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a parameter of the machine.")
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="Number of source lines to show for each handler.",
)
@click.option("--json", "json_file", type=_FILE, help="Also write the profile to this file.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def profile(
    ranks: int, machine: str, changes: tuple[str, ...], lines: int, json_file: Path | None, program: tuple[str, ...]
) -> None:
    """Run PROGRAM and show the cost of its handlers, their sustained rate, and the hottest source lines.

    Compile with -g to see source lines.
    """
    from spinkit.reports import _profile_view
    from spinkit.simulate import _profile

    options = ["-n", str(ranks), "--machine", machine, *(word for change in changes for word in ("--set", change))]
    measured = _profile.run(_paths.command("spinrun"), options, program, json_file == _STANDARD_OUTPUT)
    if json_file is not None:
        write_atomically(json_file, measured.to_json())
    _profile_view.show(measured, lines)


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def page(folder: Path) -> None:
    """Write the page of a run to FOLDER, which spinrun --report has made: index.html, and timeline.html."""
    from spinkit.reports import _run_page

    for file in _run_page.write(folder):
        click.echo(str(file), err=True)


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=_READABLE)
@click.option("-o", "--out", type=_FILE, help="The page [default: FILE.html in this folder].")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
def view(files: tuple[Path, ...], out: Path | None, opens: bool) -> None:
    """Make one HTML page of timelines, which any browser shows without network or server.

    FILE is written by --trace of spinrun, spinkit goal run or spinkit pspin run. Several files have one time axis, to
    compare runs. The page has search, details of each slice with its causes, and sums over a selected range.
    """
    from spinkit.reports import _view

    if len(files) > _MOST_VIEWED:
        raise click.UsageError(f"a page shows {_MOST_VIEWED} timelines at most, {len(files)} are given")
    written = out or Path(f"{'-'.join(file.stem for file in files)}.html")
    write_atomically(written, _view.page(files))
    if written != _STANDARD_OUTPUT:
        click.echo(str(written))
        if opens:
            click.launch(written.resolve().as_uri())


_MOST_VIEWED = 4


@main.command()
def handlers() -> None:
    """Measure the costs of the library's handlers, and print the page sdk/handlers/README.md."""
    from spinkit.reports import _handler_costs
    from spinkit.simulate._toolchain import toolchain

    click.echo(_handler_costs.page(_handler_costs.measure(_paths.home(), toolchain())), nl=False)


@main.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def machines(arguments: tuple[str, ...]) -> None:
    """List the machines that come with spinkit, or show their parameters."""
    _become("spinkit-machines", arguments)


def _become(command: str, arguments: tuple[str, ...]) -> None:
    """Replace this process by another command."""
    program = _paths.command(command)
    os.execv(program, [str(program), *arguments])


@main.command()
def doctor() -> None:
    """Check that compilers and commands are installed, and which parts this computer limits.

    The command exits with 1 if something is missing that all commands need.
    """
    from spinkit import _doctor

    checks = _doctor.examine()
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(f"{check.state:7}  {check.name:{width}}  {check.detail}")
    if not all(check.ok for check in checks if check.required):
        sys.exit(1)


@main.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def goal(arguments: tuple[str, ...]) -> None:
    """Run, check, convert and generate GOAL schedules (LogGOPSim's workloads)."""
    if arguments[:1] == ("import",):
        for place, name in enumerate(arguments):
            if name.endswith(".otf2"):
                sys.exit(_import_otf2(arguments, place))
    _become("spinkit-goal", arguments)


def _import_otf2(arguments: tuple[str, ...], place: int) -> int:
    """Import an OTF2 trace through the files of `spinkit trace`, and return the status of the import."""
    from spinkit.simulate import _otf2

    with tempfile.TemporaryDirectory(prefix="spinkit-otf2-") as folder:
        for warning in _otf2.convert(Path(arguments[place]), Path(folder)):
            click.echo(f"spinkit goal: warning: {warning}", err=True)
        replaced = [*arguments[:place], folder, *arguments[place + 1 :]]
        return subprocess.run([_paths.command("spinkit-goal"), *replaced], check=False).returncode


@main.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def pspin(arguments: tuple[str, ...]) -> None:
    """Build and run handlers on PsPIN units, and sweep over units (`spinkit pspin sweep`)."""
    if arguments[:1] == ("sweep",):
        sweep(list(arguments[1:]), prog_name="spinkit pspin sweep", standalone_mode=False)
    else:
        _become("spinkit-pspin", arguments)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--machine", default="pspin-400g", show_default=True, help="Machine whose unit is varied.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a parameter of the machine.")
@click.option("--clusters", type=_Numbers(), default="1,2,4,8", show_default=True, help="Numbers of clusters.")
@click.option("--hpus", type=_Numbers(), default="2,4,8", show_default=True, help="Numbers of HPUs of a cluster.")
@click.option(
    "--sizes", type=_Numbers(most_values=6), default="64,512,1024", show_default=True, help="Sizes of packets in bytes."
)
@click.option(
    "--instructions",
    type=_Numbers(0),
    default="0,64,128,256,512,1024",
    show_default=True,
    help="Lengths of handlers: X of the source.",
)
@click.option("--packets", default=2048, show_default=True, type=click.IntRange(min=8), help="Packets of each run.")
@click.option("--hpu", help="Kind of cores for which the source is compiled.")
@click.option(
    "--engine",
    type=click.Choice(["model", "rtl"]),
    default="model",
    show_default=True,
    help="Engine: the model, or the hardware of rtl/ in a simulator, which is built once for each unit.",
)
@click.option("--json", "report", type=_FILE, help="Write all reports to a file.")
@click.option("--plot", type=_FILE, help="Draw throughput over the length of handlers: an SVG or PNG file.")
def sweep(
    source: Path | None,
    machine: str,
    settings: tuple[str, ...],
    clusters: tuple[int, ...],
    hpus: tuple[int, ...],
    sizes: tuple[int, ...],
    instructions: tuple[int, ...],
    packets: int,
    hpu: str | None,
    engine: str,
    report: Path | None,
    plot: Path | None,
) -> None:
    """Run a handler of X instructions on PsPIN units of many sizes, eight messages at a time.

    SOURCE is a C source that reads the macro X; without, its handler is X instructions of one cycle.
    """
    from spinkit.common._terminal import console
    from spinkit.sweeps import _pspin_sweep

    if plot is not None and plot.suffix not in (".svg", ".png"):
        raise click.BadParameter(f"{plot} must end in .svg or .png", param_hint="'--plot'")
    grid = _pspin_sweep.Grid(clusters, hpus, sizes, instructions)
    own, includes = _pspin_sweep.sources(_paths.home())
    what = _pspin_sweep.Sweep(
        _paths.command("spinkit-pspin"),
        source or own,
        machine,
        settings,
        packets,
        hpu,
        () if source else tuple(includes),
        engine,
    )
    reports = _pspin_sweep.run(what, grid)
    console().print(_pspin_sweep.table(reports))
    if report is not None:
        write_atomically(report, _pspin_sweep.to_json(what, reports))
    if plot is not None:
        drawn = _pspin_sweep.picture(what, grid, reports)
        write_atomically(plot, drawn.svg if plot.suffix == ".svg" else drawn.png)


@main.command(context_settings={"allow_interspersed_args": False})
@click.option("-o", "--out", type=_FOLDER, default=Path("trace"), show_default=True, help="Folder for the traces.")
@click.option("--mpicc", help="Compiler of the program's MPI [default: mpicc beside the launcher, else on PATH].")
@click.option("--gzip", "packed", is_flag=True, help="Compress the traces.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def trace(out: Path, mpicc: str | None, packed: bool, command: tuple[str, ...]) -> None:
    """Run an MPI program, such as `mpirun -n 16 ./app`, and record the calls of its ranks.

    `spinkit goal import` makes a schedule of the traces. Ends with the launcher's status.
    """
    from spinkit.simulate import _mpi_trace

    status = _mpi_trace.run(_paths.home(), command, out, mpicc)
    if not any(out.glob("rank-*.spintrace")):
        raise SpinkitError(f"{out}: no trace was written; is this an MPI program that is linked with a shared library?")
    _mpi_trace.show(_mpi_trace.report(_paths.command("spinkit-goal"), out))
    if packed:
        _mpi_trace.compress(out)
    click.echo(str(out))
    sys.exit(status)
