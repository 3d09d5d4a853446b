# SPDX-License-Identifier: Apache-2.0
"""`spinkit handlers`: purpose and costs of each handler of the library, as `sdk/handlers/README.md`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spinkit._errors import SpinkitError
from spinkit.common._processes import Processes, pool
from spinkit.reports._report import render
from spinkit.simulate._toolchain import Toolchain

KINDS = (("rv32imac", "inorder"), ("rv32imafdc", "ooo-a15"), ("armv7a", "ooo-a15"))
"""Instruction set and timing of each kind of HPU."""

_MACHINE = "sc17-int"

# The comment directly above a handler describes its effect.
_HANDLER = re.compile(r"(?:/\* (?P<comment>(?:(?!\*/).)*?) ?\*/\n)?__handler int (?P<name>\w+)\(", re.DOTALL)


@dataclass(frozen=True)
class Cost:
    """Cost of a handler on one kind of HPU."""

    instructions: int
    cycles: int


@dataclass(frozen=True)
class Row:
    """One handler with one kind of message."""

    handler: str
    message: str
    costs: tuple[Cost, ...]
    """The costs on each kind of HPU."""
    does: str


@dataclass(frozen=True)
class Library:
    """One folder of the library."""

    name: str
    state: str
    state_bytes: int
    rows: tuple[Row, ...]


def described(header: str) -> dict[str, str]:
    """Return the handlers of a header file, each with the description from the comment above it."""
    found = {}
    for match in _HANDLER.finditer(header):
        comment = " ".join((match["comment"] or "").replace("\n *", "\n").split())
        sentence = re.match(r"(?:Header|Payload|Completion) handler: (.+?)\.(?: |$)", comment)
        if sentence is None:
            raise SpinkitError(f"{match['name']}: no comment “Payload handler: what it does.” above it")
        found[match["name"]] = sentence[1]
    return found


def measure(home: Path, tools: Toolchain) -> list[Library]:
    """Compile `cost.c` and `cost_services.c` of `sdk/handlers`, and run their cases on each kind of HPU."""
    folder = home / "sdk" / "handlers"
    texts: dict[str, dict[str, str]] = {}
    for file in sorted(folder.glob("*/*.h")):
        texts.setdefault(file.parent.name, {}).update(described(file.read_text(encoding="utf-8")))
    # The parts in `common` are no handlers; cost.c has a handler for each of them.
    texts["common"] = described((folder / "cost.c").read_text(encoding="utf-8"))
    with TemporaryDirectory(prefix="spinkit-handlers-") as scratch, pool(cpu_count() or 1) as (threads, processes):
        kinds = ",".join(kind for kind, _ in KINDS)
        cases = []
        for source in sorted(folder.glob("cost*.c")):
            program = Path(scratch) / source.stem
            processes.output([tools.spincc, "-O3", "--hpu", kinds, source, "-o", program])
            cases += [(program, case) for case in processes.output([program]).split()]
        runs = threads.map(lambda case: _run(processes, tools.spinrun, *case), cases)
        return _libraries(list(runs), texts)


def page(libraries: Sequence[Library]) -> str:
    """Write `sdk/handlers/README.md`."""
    return render("handlers.md.j2", libraries=libraries, kinds=KINDS, machine=_MACHINE).decode()


_Counted = dict[str, dict[str, int]]


def _run(processes: Processes, spinrun: Path, program: Path, case: str) -> tuple[dict[str, Any], list[_Counted]]:
    """Run one case; return its description, and the counts of handlers on each kind of HPU."""
    about: dict[str, Any] = {}
    counted = []
    for kind, timing in KINDS:
        report = program.with_name(f"{case}.{kind}.json")
        options = ["-n", "2", "--machine", _MACHINE, "--set", f"hpu.kind={kind}", "--set", f"hpu.timing={timing}"]
        about = json.loads(processes.output([spinrun, *options, "--json", report, program, case]))
        handlers = json.loads(report.read_text(encoding="utf-8"))["handlers"]
        for name, one in handlers.items():
            if one["errors"]:
                raise SpinkitError(f"{program.name} {case}: {name} failed on {kind}")
        counted.append({name: one for name, one in handlers.items() if one["calls"]})
    return about, counted


def _libraries(
    runs: Sequence[tuple[dict[str, Any], list[_Counted]]], texts: Mapping[str, Mapping[str, str]]
) -> list[Library]:
    found = []
    for name, handlers in texts.items():
        own = [(about, counted) for about, counted in runs if about["library"] == name]
        rows = tuple(
            Row(handler, about["message"], tuple(_cost(kind[handler]) for kind in counted), does)
            for handler, does in handlers.items()
            for about, counted in own
            if handler in counted[0]
        )
        missing = set(handlers) - {row.handler for row in rows}
        if missing:
            raise SpinkitError(f"sdk/handlers/cost*.c have no case for {', '.join(sorted(missing))}")
        found.append(Library(name, own[0][0]["state"], own[0][0]["bytes"], rows))
    return found


def _cost(counted: Mapping[str, int]) -> Cost:
    return Cost(counted["min_instructions"], counted["min_cycles"])
