# SPDX-License-Identifier: Apache-2.0
"""Finds, reads and checks the files of experiments; every mistake is an error that names the file and the key."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import msgspec

from spinkit._errors import SpinkitError, choice
from spinkit.common._toml import Place, check_file_name, convert, is_there, parse_toml, read_text
from spinkit.common._values import written
from spinkit.experiments._claims import Data, Scope, build_claim
from spinkit.experiments._definition import FILE, MOST_CURVES, Axis, Experiment, Figure, File, Series, Sweep
from spinkit.experiments._includes import imported_from_package
from spinkit.experiments._runners import program_runner

GROUPS = ("sc17", "pspin", "use-cases", "mpi", "beyond")
"""Folders of `experiments`: the two papers, use cases with pages, MPI, and questions that no paper asks."""


def by_group(home: Path) -> dict[str, list[str]]:
    """Return the names of all experiments of each group, in the order of `GROUPS`."""
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, file in sorted(_files(home).items()):
        groups.setdefault(_group(home, file), []).append(name)
    return {group: names for group, names in groups.items() if names}


def available(home: Path) -> list[str]:
    """Return the names of all experiments."""
    return sorted(_files(home))


def _files(home: Path) -> dict[str, Path]:
    """Return the files `experiments/GROUP/PROGRAM/NAME.toml`, by name; a name is unique in all groups."""
    found: dict[str, Path] = {}
    for file in sorted((home / "experiments").glob("*/*/*.toml")):
        if file.stem in found:
            raise SpinkitError(f"{file}: {found[file.stem]} has the same name")
        found[file.stem] = file
    return found


def _group(home: Path, file: Path) -> str:
    return file.relative_to(home / "experiments").parts[0]


def load(home: Path, name: str) -> Experiment:
    """Read one experiment: an included one by its name, or any other by the path of its folder or of its file.

    A path has a `/` or begins with a dot. Any other word names an included experiment, else a folder here.
    """
    place = Path(name)
    files = _files(home)
    if "/" in name or name.startswith(".") or (name not in files and is_there(place / FILE, Path.is_file)):
        if place.suffix == ".toml" and is_there(place, Path.is_file):
            return read(place.resolve())
        if not is_there(place / FILE, Path.is_file):
            raise SpinkitError(f"{name}: there is no {FILE} in this folder; `spinkit new experiment NAME` makes one")
        return read(place.resolve() / FILE)
    if name not in files:
        elsewhere = "; an experiment of your own is named by its folder, such as ./my-experiment"
        raise SpinkitError(f"{name}: no such experiment; {choice(name, list(files))}{elsewhere}")
    return read(files[name])


def read(file: Path) -> Experiment:
    """Read and check a file; an `experiment.toml` is named by its folder, any other file by itself."""
    place = Place(file)
    table = convert(parse_toml(read_text(file), file), File, place)
    program, sweep, measure, run = table.program, table.sweep, table.measure, table.run
    _check_sweep(sweep, place / "sweep")
    _check_series(table.series, file.parent, place / "series")
    series = _on_axes(tuple(_marked(one) for one in table.series), table.axis, sweep, place / "axis")
    quick_values = sweep.values if run.quick_values is None else run.quick_values
    if any(one.script is None and one.peer is None for one in series):
        program_runner(program).check(table, file.parent, place)
    if measure.bytes is not None and (measure.bytes < 1 or not measure.is_time):
        raise (place / "measure" / "bytes").error("expected at least 1, and a key …_ps")
    for index, value in enumerate(quick_values):
        if value not in sweep.values:
            raise (place / "run" / "quick_values" / index).error(f"{value} is not in sweep.values")
    names = tuple(one.name for one in series)
    scope = Scope(
        table.machines,
        names,
        sweep.values,
        measure.unit,
        measure.shown,
        table.models,
        table.other_models,
        run.shared_run,
        program_runner(program).point_reports or sweep.of_machine,
        _data(series, file.parent),
    )
    claims = tuple(build_claim(one, place / "claim" / index, scope) for index, one in enumerate(table.claim))
    _check_names([claim.name for claim in claims], place / "claim")
    for index, claim in enumerate(claims):
        if not program.sources and any(run.flags for one in claim.known for run in one.shown):
            raise (place / "claim" / index).error("shown.flags needs a program with sources")
        if not claim.where(quick_values):
            problem = "run.quick_values contains no value that this claim tests"
            raise (place / "claim" / index / "values").error(problem)
    _check_names([figure.name for figure in table.figure], place / "figure")
    for index, figure in enumerate(table.figure):
        check_file_name(figure.name, place / "figure" / index / "name")
        _check_figure(figure, scope, place / "figure" / index)
    return Experiment(
        name=file.parent.name if file.name == FILE else file.stem,
        file=file,
        title=table.title,
        paper=table.paper,
        summary=table.summary.strip(),
        program=program,
        models=table.models,
        machines=table.machines,
        sweep=sweep,
        series=series,
        measure=measure,
        claims=claims,
        figures=table.figure,
        timeout_s=run.timeout_s,
        quick_values=quick_values,
        shared_run=run.shared_run,
        axes=(*([sweep.axis] if sweep.of_machine else []), *(key for axis in table.axis for key in axis.set)),
        insensitive=run.insensitive,
    )


def _data(series: tuple[Series, ...], folder: Path) -> dict[str, Data]:
    """Return the origin of the numbers of the series that no run of a command gives; those of a peer are stored."""
    origins: dict[str, Data] = {one.name: "frozen" for one in series if one.peer is not None}
    for one in series:
        if one.script is not None and (one.data or not _simulates(one, folder / one.script)):
            origins[one.name] = one.data or "frozen"
    return origins


def _simulates(series: Series, script: Path) -> bool:
    """Return whether a script runs something: it gets the program, or uses this package."""
    return any("{program}" in word for word in series.args) or bool(imported_from_package(script))


def _on_axes(series: tuple[Series, ...], axes: tuple[Axis, ...], sweep: Sweep, place: Place) -> tuple[Series, ...]:
    """Return the series at all combinations of the axes' values, in the order of the first axis."""
    taken = {sweep.axis}
    choices = []
    for index, axis in enumerate(axes):
        choices.append(_choices(axis, place / index))
        for key in axis.set:
            if key in taken:
                raise (place / index / "set").error(f"{key} is an axis already")
            taken.add(key)
    return tuple(
        msgspec.structs.replace(
            one,
            name=f"{one.name}@{','.join(change for changes, _ in several for change in changes)}",
            label=", ".join([one.label, *(label for _, label in several)]),
            set=(*one.set, *(change for changes, _ in several for change in changes)),
        )
        if several
        else one
        for one in series
        for several in product(*choices)
    )


def _choices(axis: Axis, place: Place) -> list[tuple[tuple[str, ...], str]]:
    """Return the changes of the machine at each value of an axis, with their labels."""
    counts = {len(values) for values in axis.set.values()}
    if len(counts) != 1 or counts == {0}:
        raise (place / "set").error("expected parameters with equally many values, at least one")
    for key in axis.set:
        if "." not in key:
            raise (place / "set").error(f"{key} is no parameter of a machine; they have a dot, such as dma.L_ns")
    if axis.labels and {len(axis.labels)} != counts:
        raise (place / "labels").error(f"expected one for each of the {counts.pop()} values")
    changes = [
        tuple(f"{key}={written(value)}" for key, value in zip(axis.set, values, strict=True))
        for values in zip(*axis.set.values(), strict=True)
    ]
    return list(zip(changes, axis.labels or [", ".join(one).replace("=", " = ") for one in changes], strict=True))


def _check_series(series: tuple[Series, ...], folder: Path, place: Place) -> None:
    _check_names([one.name for one in series], place)
    for index, one in enumerate(series):
        check_file_name(one.name, place / index / "name")
        if one.script is not None and not is_there(folder / one.script, Path.is_file):
            raise (place / index / "script").error(f"there is no file {one.script} in this folder")
        if one.data is not None and one.script is None:
            raise (place / index / "data").error("only the numbers of a script have an origin: remove it")
        if one.peer is not None and one.script is not None:
            raise (place / index / "peer").error("give a peer or a script")
        if one.peer is not None and not all(one.peer.partition("/")):
            raise (place / index / "peer").error(f"expected NAME/RUN, is {one.peer}")


def _marked(series: Series) -> Series:
    """Return the series with a mark in its label if its numbers are a peer's."""
    return series if series.peer is None else msgspec.structs.replace(series, label=f"{series.label} (published)")


def _check_sweep(sweep: Sweep, place: Place) -> None:
    if not sweep.values or list(sweep.values) != sorted(set(sweep.values)):
        raise (place / "values").error("expected increasing numbers")
    for index, value in enumerate(sweep.values):
        if not sweep.of_machine and not isinstance(value, int):
            raise (place / "values" / index).error("expected an integer, as the axis is no parameter of the machine")
    if sweep.names and len(sweep.names) != len(sweep.values):
        raise (place / "names").error(f"expected one for each of the {len(sweep.values)} values")


def _check_names(names: list[str], place: Place) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise (place / index / "name").error(f"{name} occurs twice")


def _check_figure(figure: Figure, scope: Scope, place: Place) -> None:
    if figure.machine not in scope.machines:
        raise (place / "machine").error(f"{figure.machine} is not in machines")
    if figure.model is not None and figure.model not in scope.models:
        raise (place / "model").error(f"{figure.model} is not in models")
    if (figure.key is None and not figure.bandwidth) != (figure.label is None):
        raise (place / "label").error("a key, or bandwidth, and its label are given together")
    shown = scope.series if figure.series is None else figure.series
    if len(shown) > MOST_CURVES:
        raise (place / "series").error(f"at most {MOST_CURVES} curves can be distinguished, found {len(shown)}")
    if figure.below and len(figure.below) != len(shown):
        raise (place / "below").error(f"expected one for each of the {len(shown)} series")
    for key, names in (("series", shown), ("below", figure.below)):
        for index, one in enumerate(names):
            if one not in scope.series:
                raise (place / key / index).error(f"{one} is not a series; there are {', '.join(scope.series)}")
