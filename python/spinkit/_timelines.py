"""`spinkit reproduce timelines`: the trace diagrams of App. C.3 of the sPIN paper, drawn from runs.

`experiments/timelines/timelines.toml` says what is run, and quotes what the paper tells of each diagram. Each sentence
is tested on the run by a function of `_narrative`.
"""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table as TextTable
from rich.text import Text

from spinkit import _gantt, _narrative, _perfetto, _report
from spinkit._errors import SpinkitError
from spinkit._output import write_atomically
from spinkit._round import Round
from spinkit._run import Toolchain, parse_json
from spinkit._text import console, print_block, styled, table_box
from spinkit._toml import Integer, Place, Table, convert, parse_toml, read_text

NAME = "timelines"
_KINDS = {True: "holds", False: "fails"}
_STYLES = {"holds": "green", "explained": "yellow", "fails": "bold red"}


class Sentence(Table, frozen=True, kw_only=True):
    """A sentence of the paper about a diagram."""

    text: str
    test: str
    """The name of the function of `_narrative` that tests it."""
    differs: str | None = None
    """Why the sentence is not literally true here; the test says what is true instead."""


class Diagram(Table, frozen=True, kw_only=True):
    """One run, of which the last round is shown."""

    name: str
    title: str
    paper: str
    source: str
    nic: str
    ranks: Integer
    args: tuple[str, ...]
    time: str
    """The key of the shown round's time in picoseconds in the last line that the program prints."""
    times: Integer = 1
    """The factor by which the shown time is longer than the printed one."""
    set: tuple[str, ...] = ()
    """Changed parameters of the machine."""
    sentence: tuple[Sentence, ...]


class _File(Table, frozen=True, kw_only=True):
    """A `timelines.toml`."""

    title: str
    paper: str
    summary: str
    machine: str
    timeout_s: Integer
    diagram: tuple[Diagram, ...]


@dataclass(frozen=True)
class Verdict:
    """The outcome of the test of a sentence."""

    sentence: Sentence
    tested: str
    """What the test checks, in words."""
    holds: bool
    """Whether what the test checks is true."""
    found: str
    """What was measured."""

    @property
    def kind(self) -> str:
        """The class of the verdict: `holds`, `explained` or `fails`."""
        return "explained" if self.holds and self.sentence.differs else _KINDS[self.holds]

    @property
    def word(self) -> str:
        """The verdict in words."""
        return {"holds": "holds", "explained": "differs, as expected", "fails": "does not hold"}[self.kind]


@dataclass(frozen=True)
class Drawn:
    """A diagram with its run."""

    diagram: Diagram
    timeline: Round
    svg: bytes
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Outcome:
    """All diagrams."""

    file: _File
    drawn: tuple[Drawn, ...]

    @property
    def unmet(self) -> list[str]:
        """The sentences that do not hold, with what was measured."""
        return [
            f"{NAME}: does not hold: {verdict.sentence.text} ({one.diagram.name}: {verdict.found})"
            for one in self.drawn
            for verdict in one.verdicts
            if not verdict.holds
        ]


def file(home: Path) -> Path:
    """Return the file with the diagrams."""
    return home / "experiments" / NAME / f"{NAME}.toml"


def load(home: Path) -> _File:
    """Read the diagrams."""
    source = file(home)
    place = Place(source)
    table = convert(parse_toml(read_text(source), source), _File, place)
    for index, diagram in enumerate(table.diagram):
        at = place / "diagram" / index
        if not (source.parent / diagram.source).is_file():
            raise (at / "source").error(f"there is no file {diagram.source} beside this one")
        for number, sentence in enumerate(diagram.sentence):
            if sentence.test not in _narrative.TESTS:
                raise (at / "sentence" / number / "test").error(f"there is no test {sentence.test!r}")
    return table


def run(home: Path, tools: Toolchain, out: Path) -> Outcome:
    """Run and draw every diagram, test its sentences, and write all files."""
    table = load(home)
    folder = out / NAME
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".run-", dir=out) as scratch:
        runner = _Runner(home / "experiments" / NAME, tools, Path(scratch), table.machine, table.timeout_s)
        outcome = Outcome(table, tuple(_draw(diagram, runner.run(diagram)) for diagram in table.diagram))
    for one in outcome.drawn:
        write_atomically(folder / f"{one.diagram.name}.svg", one.svg)
    write_atomically(folder / "results.json", (json.dumps(_results(outcome), indent=1) + "\n").encode())
    write_atomically(folder / "index.html", _page(outcome))
    return outcome


def link(home: Path, out: Path) -> dict[str, str]:
    """Return the page, as seen from the folder of results, and its title; nothing if the page was not written."""
    page = Path(NAME) / "index.html"
    return {page.as_posix(): load(home).title} if (out / page).is_file() else {}


def files(outcome: Outcome, out: Path) -> list[Path]:
    """Return the files that people read, the page first."""
    folder = out / NAME
    return [
        folder / "index.html",
        *(folder / f"{one.diagram.name}.svg" for one in outcome.drawn),
        folder / "results.json",
    ]


def show(outcome: Outcome) -> None:
    """Print the sentences with their verdicts."""
    out = console()
    out.print(Text(f"{outcome.file.title} · {outcome.file.paper}", style="bold"))
    for one in outcome.drawn:
        table = TextTable(title=one.diagram.title, title_justify="left", box=table_box(out))
        table.add_column("what the paper says")
        table.add_column("here")
        table.add_column("verdict", no_wrap=True)
        for verdict in one.verdicts:
            why = f"\nwhy: {verdict.sentence.differs}" if verdict.sentence.differs else ""
            word = Text(verdict.word, style=_STYLES[verdict.kind])
            table.add_row(styled(verdict.sentence.text + why), f"{verdict.tested}: {verdict.found}", word)
        print_block(out, table)


class _Runner:
    """Compiles and runs the programs."""

    def __init__(self, folder: Path, tools: Toolchain, scratch: Path, machine: str, timeout_s: int) -> None:
        self._folder, self._tools, self._scratch = folder, tools, scratch
        self._machine, self._timeout_s = machine, timeout_s
        self._programs: dict[str, Path] = {}

    def run(self, diagram: Diagram) -> Round:
        """Return the timeline of the last round."""
        trace = self._scratch / "trace.pftrace"
        report = self._scratch / "report.json"
        words = ["-n", str(diagram.ranks), "--machine", self._machine, "--nic", diagram.nic]
        words += [word for change in diagram.set for word in ("--set", change)]
        words += ["--fail-on-drop", "--fail-on-handler-error", "--timeout", str(self._timeout_s)]
        words += ["--trace", str(trace), "--json", str(report)]
        program = self._program(diagram.source)
        output = self._execute([str(self._tools.spinrun), *words, str(program), *diagram.args], diagram.name)
        line = parse_json(output.splitlines()[-1])
        if line.get("data_ok") is not True:
            raise SpinkitError(f"{NAME}: {diagram.name}: wrong data")
        parameters = parse_json(report.read_text(encoding="utf-8"))["parameters"]
        slices = _perfetto.read(trace)
        begin, end = _round(diagram, slices, line[diagram.time] * diagram.times)
        shown = [
            replace(one, start=one.start - begin, end=one.end - begin) for one in slices if begin <= one.start < end
        ]
        return Round(shown, end - begin, {key: told["value"] for key, told in parameters.items()})

    def _program(self, source: str) -> Path:
        if source not in self._programs:
            program = self._scratch / Path(source).stem
            command = [str(self._tools.spincc), "-O3", str(self._folder / source), "-o", str(program)]
            self._execute(command, source)
            self._programs[source] = program
        return self._programs[source]

    def _execute(self, command: Sequence[str], what: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            name = Path(command[0]).name
            problem = f"{NAME}: {what}: {name} ended with status {done.returncode}\n{done.stderr.strip()}"
            raise SpinkitError(problem.rstrip())
        return done.stdout


def _round(diagram: Diagram, slices: Sequence[_perfetto.Slice], length: int) -> tuple[int, int]:
    """Return the start and end of the last round.

    A round begins when rank 0 posts a message. It ends, after the printed time, when a CPU has noticed the result.
    """
    begins = [one.start for one in slices if (one.process, one.row, one.name) == ("rank 0", "CPU", "post")]
    noticed = {one.end for one in slices if one.row == "CPU" and one.name != "post"}
    for begin in reversed(begins):
        for lost in range(diagram.times):
            if begin + length + lost in noticed:
                return begin, begin + length + lost
    raise SpinkitError(f"{NAME}: {diagram.name}: no CPU notices anything {length} ps after a message of rank 0")


def _draw(diagram: Diagram, timeline: Round) -> Drawn:
    verdicts = []
    for sentence in diagram.sentence:
        test = _narrative.TESTS[sentence.test]
        holds, found = test.on(timeline)
        verdicts.append(Verdict(sentence, test.says, holds, found))
    return Drawn(diagram, timeline, _gantt.draw(diagram.title, timeline), tuple(verdicts))


def _results(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "diagram": one.diagram.name,
            "length_ps": one.timeline.length,
            "slices": len(one.timeline.slices),
            "sentences": [
                {
                    "text": verdict.sentence.text,
                    "tested": verdict.tested,
                    "found": verdict.found,
                    "verdict": verdict.word,
                    "reason": verdict.sentence.differs,
                }
                for verdict in one.verdicts
            ],
        }
        for one in outcome.drawn
    ]


def _page(outcome: Outcome) -> bytes:
    diagrams = [
        {"about": one.diagram, "svg": b64encode(one.svg).decode(), "verdicts": one.verdicts} for one in outcome.drawn
    ]
    kinds = [verdict.kind for one in outcome.drawn for verdict in one.verdicts]
    counts = {"all": len(kinds), **{kind: kinds.count(kind) for kind in ("holds", "explained", "fails")}}
    summary = outcome.file.summary.strip().split("\n\n")
    about = {"title": outcome.file.title, "paper": outcome.file.paper, "summary": summary}
    return _report.render(
        "timelines.html.j2", title=outcome.file.title, e=about, diagrams=diagrams, counts=counts, key=_gantt.KEY
    )
