# SPDX-License-Identifier: Apache-2.0
"""`spinkit reproduce timelines`: the trace diagrams of App. C.3 of the sPIN paper, drawn from runs.

`experiments/sc17/timelines.toml` has the runs, and quotes the paper on each diagram. Each sentence
is tested on the run by a function of `_narrative`.
"""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table as TextTable
from rich.text import Text

from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._json import parse_json
from spinkit.common._kept import Kept, sources
from spinkit.common._output import write_atomically
from spinkit.common._terminal import console, print_block, styled, table_box
from spinkit.common._toml import Integer, Place, Table, convert, parse_toml, read_text
from spinkit.reports import _narrative, _report
from spinkit.reports._timeline import KEY, Timeline
from spinkit.simulate import _perfetto
from spinkit.simulate._toolchain import Toolchain

NAME = "timelines"
GROUP = "sc17"
_KINDS = {True: "holds", False: "fails"}
_STYLES = {"holds": "green", "explained": "yellow", "fails": "bold red"}


class Difference(Table, frozen=True, kw_only=True):
    """Reason why a sentence is not literally true here."""

    reason: str
    models: tuple[str, ...] | None = None
    """Models whose rules cause it; by default all."""
    test: str | None = None
    """Function of `_narrative` that tests the replacing statement; by default the sentence's."""


class Sentence(Table, frozen=True, kw_only=True):
    """A sentence of the paper about a diagram."""

    text: str
    test: str
    """The name of the function of `_narrative` that tests it."""
    differs: tuple[Difference, ...] = ()

    def difference(self, model: str) -> Difference | None:
        """Return why the sentence is not literally true by the rules of a model; `None` when it is."""
        return next((one for one in self.differs if one.models is None or model in one.models), None)


class Diagram(Table, frozen=True, kw_only=True):
    """One run, whose last round is shown."""

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
    models: tuple[str, ...]
    machine: str
    """Its name without the model."""
    timeout_s: Integer
    diagram: tuple[Diagram, ...]


@dataclass(frozen=True)
class Verdict:
    """The outcome of the test of a sentence."""

    sentence: Sentence
    reason: str | None
    """Reason why the sentence is not literally true here."""
    tested: str
    """Description of the test."""
    holds: bool
    """True if the test passes."""
    found: str
    """Measured values."""

    @property
    def kind(self) -> str:
        """The class of the verdict: `holds`, `explained` or `fails`."""
        return "explained" if self.holds and self.reason else _KINDS[self.holds]

    @property
    def word(self) -> str:
        """Text of the verdict."""
        return {"holds": "holds", "explained": "differs (explained)", "fails": "does not hold"}[self.kind]


@dataclass(frozen=True)
class Drawn:
    """A diagram with its run by the rules of a model."""

    diagram: Diagram
    model: str
    timeline: Timeline
    svg: bytes
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Outcome:
    """All diagrams."""

    file: _File
    drawn: tuple[Drawn, ...]

    @property
    def diagrams(self) -> list[tuple[Drawn, ...]]:
        """The runs of each diagram, in the order of the models."""
        return [tuple(one for one in self.drawn if one.diagram is diagram) for diagram in self.file.diagram]

    @property
    def unmet(self) -> list[str]:
        """The sentences that do not hold, with the measured values."""
        return [
            f"{NAME}: does not hold: {verdict.sentence.text} ({one.diagram.name}, {one.model}: {verdict.found})"
            for one in self.drawn
            for verdict in one.verdicts
            if not verdict.holds
        ]


def file(home: Path) -> Path:
    """Return the file with the diagrams."""
    return home / "experiments" / GROUP / f"{NAME}.toml"


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
            where = at / "sentence" / number
            _check_test(sentence.test, where)
            for which, difference in enumerate(sentence.differs):
                _check_test(difference.test or sentence.test, where / "differs" / which)
                for model in difference.models or ():
                    if model not in table.models:
                        raise (where / "differs" / which / "models").error(f"{model} is not among the models")
    return table


def _check_test(name: str, place: Place) -> None:
    if name not in _narrative.TESTS:
        raise (place / "test").error(f"there is no test {name!r}")


def run(home: Path, tools: Toolchain, out: Path) -> Outcome:
    """Run and draw every diagram, test its sentences, and write all files."""
    table = load(home)
    folder = out / NAME
    folder.mkdir(parents=True, exist_ok=True)
    kept = Kept(folder)
    with TemporaryDirectory(prefix=".run-", dir=out) as scratch:
        runner = _Runner(file(home).parent, tools, Path(scratch), table.timeout_s)
        drawn = [
            _draw(kept, diagram, model, runner.run(diagram, f"{model}-{table.machine}"))
            for diagram in table.diagram
            for model in table.models
        ]
    outcome = Outcome(table, tuple(drawn))
    write_atomically(folder / "results.json", (json.dumps(_results(outcome), indent=1) + "\n").encode())
    write_atomically(folder / "index.html", _page(outcome))
    return outcome


def link(home: Path, out: Path) -> dict[str, str]:
    """Return the page, as seen from the folder of results, and its title; nothing if the page was not written."""
    page = Path(NAME) / "index.html"
    return {page.as_posix(): load(home).title} if (out / page).is_file() else {}


def _picture(diagram: Diagram, model: str) -> str:
    return f"{diagram.name}-{model}.svg"


def files(outcome: Outcome, out: Path) -> list[Path]:
    """Return the files that people read, the page first."""
    folder = out / NAME
    return [
        folder / "index.html",
        *(folder / _picture(one.diagram, one.model) for one in outcome.drawn),
        folder / "results.json",
    ]


def show(outcome: Outcome) -> None:
    """Print the sentences with their verdicts."""
    out = console()
    out.print(Text(f"{outcome.file.title} · {outcome.file.paper}", style="bold"))
    for drawn in outcome.diagrams:
        table = TextTable(title=drawn[0].diagram.title, title_justify="left", box=table_box(out))
        table.add_column("claim of the paper")
        table.add_column("model", no_wrap=True)
        table.add_column("here")
        table.add_column("verdict", no_wrap=True)
        for number, sentence in enumerate(drawn[0].diagram.sentence):
            for index, one in enumerate(drawn):
                verdict = one.verdicts[number]
                why = f"; why: {verdict.reason}" if verdict.reason else ""
                word = Text(verdict.word, style=_STYLES[verdict.kind])
                text = styled("" if index else sentence.text)
                table.add_row(text, one.model, f"{verdict.tested}: {verdict.found}{why}", word)
        print_block(out, table)


class _Runner:
    """Compiles and runs the programs."""

    def __init__(self, folder: Path, tools: Toolchain, scratch: Path, timeout_s: int) -> None:
        self._folder, self._tools, self._scratch, self._timeout_s = folder, tools, scratch, timeout_s
        self._programs: dict[str, Path] = {}

    def run(self, diagram: Diagram, machine: str) -> Timeline:
        """Return the timeline of the last round."""
        trace = self._scratch / "trace.pftrace"
        report = self._scratch / "report.json"
        words = ["-n", str(diagram.ranks), "--machine", machine, "--nic", diagram.nic]
        words += [word for change in diagram.set for word in ("--set", change)]
        words += ["--fail-on-drop", "--fail-on-handler-error", "--timeout", str(self._timeout_s)]
        words += ["--trace", str(trace), "--json", str(report)]
        program = self._program(diagram.source)
        output = self._execute([str(self._tools.spinrun), *words, str(program), *diagram.args], diagram.name)
        line = parse_json(output.splitlines()[-1])
        if line.get("data_ok") is not True:
            raise SpinkitError(f"{NAME}: {diagram.name}: wrong data")
        described = parse_json(report.read_text(encoding="utf-8"))["parameters"]
        parameters = {key: parameter["value"] for key, parameter in described.items()}
        slices = _perfetto.read(trace)
        begin, end = _round(diagram, slices, parameters, line[diagram.time] * diagram.times)
        shown = [
            replace(one, start=one.start - begin, end=one.end - begin) for one in slices if begin <= one.start < end
        ]
        return Timeline(shown, end - begin, parameters)

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


def _round(
    diagram: Diagram, slices: Sequence[_perfetto.Slice], parameters: Mapping[str, str], length: int
) -> tuple[int, int]:
    """Return the start and end of the last round.

    A round begins when rank 0 posts a message. It ends, after the printed time, when a CPU has noticed the result.
    """
    begins = [one.start for one in slices if (one.process, one.row, one.name) == ("rank 0", "CPU", "post")]
    noticed = {one.end for one in slices if one.row == "CPU" and one.name != "post"}
    if Timeline(slices, 0, parameters).notices() == []:
        # Polls are free: the result is in memory a DMA latency after a handler, its write, or a match.
        keys = ("dma.L_ns", "nic.match_header_ns", "nic.match_cam_ns")
        latency, *matches = (round(1000 * float(parameters[key])) for key in keys)
        noticed |= {one.end + latency for one in slices if one.row == "DMA" or one.row.startswith("HPU ")}
        noticed |= {one.end + latency + match for one in slices if one.row == "NIC in" for match in matches}
    for begin in reversed(begins):
        for lost in range(diagram.times):
            if begin + length + lost in noticed:
                return begin, begin + length + lost
    raise SpinkitError(f"{NAME}: {diagram.name}: no CPU notices anything {length} ps after a message of rank 0")


def _draw(kept: Kept, diagram: Diagram, model: str, timeline: Timeline) -> Drawn:
    verdicts = []
    for sentence in diagram.sentence:
        difference = sentence.difference(model)
        instead, reason = (difference.test, difference.reason) if difference else (None, None)
        test = _narrative.TESTS[instead or sentence.test]
        holds, found = test.on(timeline)
        verdicts.append(Verdict(sentence, reason, test.says, holds, found))

    def draw() -> bytes:
        from spinkit.reports import _gantt  # imported here because matplotlib takes long to load

        return _gantt.draw(diagram.title, timeline)

    code = sources(Path(__file__).parent, "_gantt.py", "_plot.py", "_timeline.py")
    inputs = digest([], [code, _report.drawn_by(), diagram.title, repr(timeline)])
    return Drawn(diagram, model, timeline, kept.get(_picture(diagram, model), inputs, draw), tuple(verdicts))


def _results(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "diagram": one.diagram.name,
            "model": one.model,
            "length_ps": one.timeline.length,
            "slices": len(one.timeline.slices),
            "sentences": [
                {
                    "text": verdict.sentence.text,
                    "tested": verdict.tested,
                    "found": verdict.found,
                    "verdict": verdict.word,
                    "reason": verdict.reason,
                }
                for verdict in one.verdicts
            ],
        }
        for one in outcome.drawn
    ]


def _page(outcome: Outcome) -> bytes:
    diagrams = [
        {
            "about": drawn[0].diagram,
            "pictures": [{"model": one.model, "svg": b64encode(one.svg).decode()} for one in drawn],
            "rows": [
                {"sentence": sentence, "verdicts": [(one.model, one.verdicts[number]) for one in drawn]}
                for number, sentence in enumerate(drawn[0].diagram.sentence)
            ],
        }
        for drawn in outcome.diagrams
    ]
    kinds = [verdict.kind for one in outcome.drawn for verdict in one.verdicts]
    counts = {"all": len(kinds), **{kind: kinds.count(kind) for kind in ("holds", "explained", "fails")}}
    summary = outcome.file.summary.strip().split("\n\n")
    about = {"title": outcome.file.title, "paper": outcome.file.paper, "summary": summary}
    return _report.render(
        "timelines.html.j2", title=outcome.file.title, e=about, diagrams=diagrams, counts=counts, key=KEY
    )
