# SPDX-License-Identifier: Apache-2.0
"""`spinkit validation`: the numbers of docs/validation.md, written from the results of `spinkit reproduce`.

A generated part of the page lies between two comments:

    <!-- generated: claims raid5 -->
    <!-- end -->

`claims NAME` is a table of an experiment's claims: the paper's sentence and number, ours on each machine, and below the
reason of each difference with the runs that show it. `times NAME values=64,1048576 series=rdma,spin` is a table of
measured numbers; `spin/rdma` stands for the share of the time of `rdma` that `spin` saves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import floor, inf
from pathlib import Path
from typing import Any

from spinkit._errors import SpinkitError
from spinkit.common._json import parse_json
from spinkit.common._output import write_atomically
from spinkit.common._toml import read_text
from spinkit.common._version import __version__
from spinkit.experiments._claims import Claim, changes_in_words
from spinkit.experiments._definition import Experiment, Series
from spinkit.experiments._demonstrations import Explanation
from spinkit.reports._report import label, labels
from spinkit.reports._results import stated

PAGE = Path("docs") / "validation.md"

_BEGIN = re.compile(r"<!-- generated: (?P<kind>[a-z]+) (?P<name>[a-z0-9-]+)(?P<options>(?: [a-z]+=\S+)*) -->")
_END = "<!-- end -->"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Load = Callable[[str], Experiment]


@dataclass(frozen=True)
class _Part:
    """A generated part of the page: its lines lie between `begin` and `end`."""

    kind: str
    name: str
    options: Mapping[str, str]
    begin: int
    end: int
    """The index of the line with the first comment, and of that with the last."""


@dataclass(frozen=True)
class _Page:
    """The page, line by line, and its generated parts."""

    file: Path
    lines: Sequence[str]
    parts: Sequence[_Part]

    def error(self, line: int, message: str) -> SpinkitError:
        """Make an error that names the line with this index."""
        return SpinkitError(f"{self.file}:{line + 1}: {message}")


@dataclass(frozen=True)
class Update:
    """The present page, and the page according to the results."""

    file: Path
    before: str
    after: str
    names: tuple[str, ...]
    """The experiments of its parts."""

    def write(self) -> bool:
        """Write the page, if it changes; return whether it did."""
        if self.before != self.after:
            write_atomically(self.file, self.after.encode())
        return self.before != self.after

    def check(self) -> None:
        """Fail unless the page agrees with the results."""
        pairs = zip_longest(self.before.split("\n"), self.after.split("\n"), fillvalue="")
        for number, (there, wanted) in enumerate(pairs, 1):
            if there != wanted:
                remedy = f"spinkit validation --write {' '.join(self.names)}"
                raise SpinkitError(
                    f"{self.file}:{number}: differs from the results; they say:\n{wanted}\nThe page has:\n{there}\n"
                    f"If the results are right, `{remedy}` writes them to the page."
                )


def update(home: Path, out: Path, names: Sequence[str], load: Load, known: Sequence[str]) -> Update:
    """Fill in the parts of the page that are about these experiments."""
    page = _read(home / PAGE, known)
    text = "\n".join(page.lines)
    results = {name: _Results(load(name), out) for name in dict.fromkeys(names)}
    for name in results:
        if not any((part.kind, part.name) == ("claims", name) for part in page.parts):
            marks = f"<!-- generated: claims {name} -->\n{_END}"
            raise SpinkitError(
                f"{page.file}: has no place for the claims of {name}; add these lines to a section:\n{marks}"
            )
    lines = list(page.lines)
    for part in reversed(page.parts):
        if part.name in results:
            lines[part.begin + 1 : part.end] = ["", *_KINDS[part.kind](results[part.name], part, page), ""]
    return Update(page.file, text, "\n".join(lines), tuple(results))


def parts(home: Path, known: Sequence[str]) -> list[tuple[str, str]]:
    """Return the kind and the experiment of each generated part of the page."""
    return [(part.kind, part.name) for part in _read(home / PAGE, known).parts]


@dataclass(frozen=True)
class Written:
    """A claim's row on the page."""

    cells: Mapping[str, str]
    """Our numbers, by machine; without the marks of notes."""
    verdict: str


def written_claims(page: str) -> dict[str, Written]:
    """Return the rows of all claims on the page's text, by experiment/claim."""
    found: dict[str, Written] = {}
    experiment, machines = "", list[str]()
    for line in page.split("\n"):
        if begun := _BEGIN.fullmatch(line):
            experiment = begun["name"] if begun["kind"] == "claims" else ""
        elif line == _END:
            experiment = ""
        if not experiment or not line.startswith("| "):
            continue
        _, _, *numbers, verdict = re.split(r"(?<!\\) \| ", line[2:-2])
        if claim := re.search(r"`([^`]+)`</sub> \| ", line):
            texts = (re.sub(r"[*]| [˒⁰¹²³⁴⁵⁶⁷⁸⁹]+$", "", text) for text in numbers)
            cells = {machine: text for machine, text in zip(machines, texts, strict=True) if text != "–"}
            found[f"{experiment}/{claim[1]}"] = Written(cells, verdict)
        elif verdict == "verdict":
            machines = numbers
    return found


def sections(page: str) -> dict[str, str]:
    """Return the anchor of the section with the claims of each experiment."""
    found: dict[str, str] = {}
    anchor = ""
    for line in page.split("\n"):
        if heading := re.fullmatch(r"#+ (.+)", line):
            anchor = re.sub(r"[^\w -]", "", heading[1].lower()).replace(" ", "-")
        elif (begun := _BEGIN.fullmatch(line)) and begun["kind"] == "claims":
            found[begun["name"]] = anchor
    return found


def _read(file: Path, known: Sequence[str]) -> _Page:
    """Find the generated parts of the page; every mistake in a comment is an error."""
    page = _Page(file, read_text(file).split("\n"), [])
    parts: list[_Part] = []
    begun: tuple[int, re.Match[str]] | None = None
    for index, line in enumerate(page.lines):
        if line == _END:
            if begun is None:
                raise page.error(index, "this generated part does not begin")
            start, match = begun
            options = dict(word.split("=", 1) for word in match["options"].split())
            parts.append(_Part(match["kind"], match["name"], options, start, index))
            begun = None
        elif line.startswith("<!-- generated"):
            found = _BEGIN.fullmatch(line)
            if begun is not None:
                raise page.error(begun[0], f"this generated part does not end with {_END}")
            if found is None or found["kind"] not in _KINDS:
                kinds = ", ".join(f"<!-- generated: {kind} NAME … -->" for kind in _KINDS)
                raise page.error(index, f"unknown part {line}; there are {kinds}")
            if found["name"] not in known:
                raise page.error(index, f"{found['name']}: no such experiment; there are: {', '.join(known)}")
            begun = (index, found)
    if begun is not None:
        raise page.error(begun[0], f"this generated part does not end with {_END}")
    return _Page(file, page.lines, parts)


class _Results:
    """The results of an experiment, as `spinkit reproduce` wrote them."""

    def __init__(self, experiment: Experiment, out: Path) -> None:
        self.experiment = experiment
        self.file = out / experiment.name / "results.json"
        if not self.file.is_file():
            raise self._error("there are no results")
        try:
            content = parse_json(read_text(self.file))
            self.points = {
                (one["machine"], one["series"], one[experiment.sweep.axis]): one[experiment.measure.key]
                for one in content["points"]
            }
            self.claims: dict[tuple[str, str], Mapping[str, Any]] = {
                (one["name"], one["model"]): one for one in content["claims"]
            }
            version, quick = content["spinkit"], content["quick"]
            wrong = any(not one["data_ok"] for one in content["points"])
        except (ValueError, LookupError, TypeError):
            raise self._error("this is no file with results of this version") from None
        if version != __version__:
            raise self._error(f"these are results of spinkit {version}, not {__version__}")
        if quick:
            raise self._error("these are results of --quick, with fewer points")
        if wrong:
            raise self._error("these are results with wrong data")
        self._check_claims()

    def _check_claims(self) -> None:
        wanted = [(claim.name, model) for claim in self.experiment.claims for model in self.experiment.models]
        for claim in self.experiment.claims:
            # As in the file: tuples are lists there.
            facts = json.loads(json.dumps(stated(claim)))
            for model in self.experiment.models:
                found = self.claims.get((claim.name, model), {})
                if any(found.get(key) != value for key, value in facts.items()):
                    raise self._error(f"the claim {claim.name} has changed since")
        if list(self.claims) != wanted:
            raise self._error("its claims are others than those of the experiment's file")

    def _error(self, message: str) -> SpinkitError:
        return SpinkitError(f"{self.file}: {message}; run `spinkit reproduce {self.experiment.name}`")

    def point(self, machine: str, series: str, value: int) -> float:
        """Return a measured number."""
        if (machine, series, value) not in self.points:
            raise self._error(f"there is no result of {series} on {machine} for {value}")
        found = self.points[machine, series, value]
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._error(f"{series} on {machine}, {value}: this is no number")
        return found


def _claims(results: _Results, part: _Part, page: _Page) -> Iterator[str]:
    """Lay out an experiment's claims, and the reasons where results differ."""
    for option in part.options:
        raise page.error(part.begin, f"claims takes no {option}")
    experiment = results.experiment
    places = [(model, machine) for model in experiment.models for machine in experiment.machines]
    files = [experiment.machine(*place) for place in places]
    notes: dict[str, _Note] = {}
    yield _row("the paper", "its number", *files, "verdict")
    yield _row("---", "--:", *["--:"] * len(places), "---")
    for claim in experiment.claims:
        of_models = [results.claims[claim.name, model] for model in experiment.models]
        cells = [_cell(claim, results.claims[claim.name, model], machine, notes) for model, machine in places]
        yield _row(_sentence(experiment, claim), _paper(claim, of_models[0]), *cells, _verdict(claim, of_models))
        for model, of_one in zip(experiment.models, of_models, strict=True):
            for shown in of_one["shown"]:
                notes[shown["reason"]].add_run(experiment, claim, model, shown)
    if notes:
        yield ""
    for note in notes.values():
        yield from note.lines()


@dataclass(frozen=True)
class _Note:
    """Reason for a difference from the paper, and the runs that show it; a reason without a run is unexplained."""

    number: int
    reason: str
    runs: dict[str, list[tuple[str, str]]]
    """For each change in words the numbers that it gives, and their claims."""

    def add_run(self, experiment: Experiment, claim: Claim, model: str, shown: Mapping[str, Any]) -> None:
        """Add the numbers of a run."""
        change = changes_in_words(shown["set"], shown.get("flags", ()))
        machines = list(dict.fromkeys(one["machine"] for one in shown["numbers"]))
        for machine in machines:
            numbers = [one["number"] for one in shown["numbers"] if one["machine"] == machine]
            text = f"{_span(claim, numbers)} on {experiment.machine(model, machine)}"
            if machine == machines[-1] and shown["explained"] is not None:
                text += f" ({floor(100 * shown['explained'])} % explained)".replace("-", "−")
            self.runs.setdefault(change, []).append((text, claim.name))

    def lines(self) -> Iterator[str]:
        """Write it as an item of a list."""
        unexplained = "" if self.runs else " *(unexplained: no run shows it)*"
        yield f"{self.number}. {self.reason.strip()}{unexplained}"
        several = len({name for found in self.runs.values() for _, name in found}) > 1
        for change, found in self.runs.items():
            numbers = (f"{text} (`{name}`)" if several else text for text, name in found)
            yield f"{' ' * len(f'{self.number}. ')}- A run that changes only {change}: {', '.join(numbers)}."


def _cell(claim: Claim, verdict: Mapping[str, Any], machine: str, notes: dict[str, _Note]) -> str:
    """Write the numbers of a claim on a machine, with the marks of the notes that explain differences."""
    found = [one for one in verdict["numbers"] if one["machine"] == machine]
    if not found:
        return "–"
    # An order of several series may have pairs that need not differ; those that must are shown.
    bounds = [-inf if one["at_least"] is None else one["at_least"] for one in found]
    numbers = [one["number"] for one, bound in zip(found, bounds, strict=True) if bound == max(bounds)]
    reasons = dict.fromkeys(one["reason"] for one in found if one["reason"] is not None and not one["holds"])
    for reason in reasons:
        notes.setdefault(reason, _Note(len(notes) + 1, reason, {}))
    marks = "˒".join(str(notes[reason].number).translate(_SUPERSCRIPTS) for reason in reasons)
    unexplained = any(one["reason"] is None and not one["holds"] for one in found)
    text = _span(claim, numbers)
    return " ".join(filter(None, (f"**{text}**" if unexplained else text, marks)))


def _sentence(experiment: Experiment, claim: Claim) -> str:
    points = [] if claim.of_runs else [labels(experiment.sweep, claim.values)]
    return f"{claim.text}<br><sub>{' · '.join([claim.source, *points, f'`{claim.name}`'])}</sub>"


def _span(claim: Claim, numbers: Sequence[float]) -> str:
    """Write the range of numbers, with signs of minus."""
    return claim.span(min(numbers), max(numbers)).replace("-", "−")


def _paper(claim: Claim, of_one: Mapping[str, Any]) -> str:
    """Write the paper's number, and the interval that its sentence allows."""
    bounds = [one["at_least"] for one in of_one["numbers"] if one["at_least"] is not None]
    least = max(bounds, default=None)
    if least is not None and claim.at_most is not None:
        allowed = _span(claim, (least, claim.at_most))
    elif least is not None:
        allowed = f"at least {claim.format(least)}"
    else:
        allowed = f"at most {claim.format(claim.at_most or 0.0)}"
    if claim.paper is None or claim.format(claim.paper) == allowed:
        return allowed
    return f"{claim.format(claim.paper)} ({allowed})"


def _verdict(claim: Claim, of_models: Sequence[Mapping[str, Any]]) -> str:
    """Write the verdict, with the share of a difference that runs explain, and the class of the claim."""
    return f"{_word(of_models)}{_CLASSES['regression' if claim.regression else claim.kind]}"


_CLASSES = {
    "simulated": "",
    "ours": "",
    "regression": " (regression test)",
    "formula": " (arithmetic)",
    "frozen": " (stored data)",
}
"""Words behind a verdict that is neither about a simulated sentence of a paper nor derived by us."""


def _word(of_models: Sequence[Mapping[str, Any]]) -> str:
    shown = [run for one in of_models for run in one["shown"]]
    if any(one["fails"] for one in of_models) or not all(
        run["holds"] and (run["explained"] or 0) >= 0 for run in shown
    ):
        return "**fails**"
    differing = sum(one["differing"] for one in of_models)
    if differing == 0:
        return "holds"
    word = "differs" if differing == sum(one["samples"] for one in of_models) else "differs in part"
    shares = [share for one in of_models if one["explained"] is not None for share in one["explained"]]
    return f"{word}, {Explanation(min(shares), max(shares)).text}"


def _times(results: _Results, part: _Part, page: _Page) -> Iterator[str]:
    """Lay out measured numbers: a row for each machine and value, a column for each series."""
    experiment = results.experiment
    sweep, measure = experiment.sweep, experiment.measure
    known: dict[str, Mapping[str, Any]] = {
        "machines": {name: name for name in experiment.machine_files},
        "values": {str(value): value for value in sweep.values},
        "series": {series.name: series for series in experiment.series},
    }
    for option in part.options:
        if option not in known:
            raise page.error(part.begin, f"{option}: no such option; there are {', '.join(known)}")

    def pick(option: str, word: str) -> Any:
        if word not in known[option]:
            raise page.error(part.begin, f"{option}: {word} is not among {', '.join(known[option])}")
        return known[option][word]

    def picked(option: str) -> list[Any]:
        words = part.options.get(option)
        return list(known[option].values()) if words is None else [pick(option, word) for word in words.split(",")]

    columns: list[list[Series]] = [
        [pick("series", word) for word in entry.split("/")]
        for entry in part.options.get("series", ",".join(known["series"])).split(",")
    ]

    def cell(machine: str, value: int, column: Sequence[Series]) -> str:
        times = [results.point(machine, series.name, value) for series in column]
        if len(times) == 1:
            return measure.text(times[0])
        return f"{100 * (1 - times[0] / times[1]):.1f} %"

    headings = [
        column[0].label if len(column) == 1 else f"{column[0].label}: saved of {column[1].label}" for column in columns
    ]
    yield _row("machine", sweep.label, *headings)
    yield _row("---", "--:", *["--:"] * len(columns))
    for value in picked("values"):
        for machine in picked("machines"):
            yield _row(machine, label(sweep, value), *(cell(machine, value, column) for column in columns))


_KINDS: Mapping[str, Callable[[_Results, _Part, _Page], Iterator[str]]] = {"claims": _claims, "times": _times}
"""Kinds of generated parts."""


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
