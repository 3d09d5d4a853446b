# SPDX-License-Identifier: Apache-2.0
"""The scoreboard, docs/results/index.md: every figure, table and printed number of the papers, and its verdict.

`experiments/papers.toml` lists the rows. Numbers and verdicts are those of docs/validation.md, and the class of a claim
is that of its definition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Literal

from spinkit._errors import SpinkitError
from spinkit.common._toml import Place, Table, convert, parse_toml, read_text
from spinkit.experiments._claims import Claim, Kind
from spinkit.experiments._definition import Experiment
from spinkit.reports._validation import PAGE, Update, Written, sections, written_claims

FILE = Path("experiments") / "papers.toml"
SCOREBOARD = Path("docs") / "results" / "index.md"
README = Path("README.md")

_BEGIN = "<!-- generated: scoreboard -->"
_END = "<!-- end -->"

Word = Literal["holds", "in part", "differs", "fails"]

_CLASSES: Mapping[Kind, str] = {
    "simulated": "simulated",
    "formula": "formula",
    "frozen": "frozen data",
    "ours": "ours",
}


class _Row(Table, frozen=True, kw_only=True):
    """A figure, table or number of a paper."""

    place: str
    text: str
    printed: str | None = None
    """The number as the paper prints it."""
    claims: tuple[str, ...] = ()
    """The claims that test it: experiment/claim."""
    missing: str | None = None
    """Given instead of claims: the reason why nothing tests it."""


class _Paper(Table, frozen=True, kw_only=True):
    """A paper, and its rows in its order."""

    name: str
    title: str
    row: tuple[_Row, ...]


class _File(Table, frozen=True, kw_only=True):
    """`experiments/papers.toml`."""

    paper: tuple[_Paper, ...]


@dataclass(frozen=True)
class Tested:
    """A claim, and its row in docs/validation.md."""

    experiment: str
    claim: Claim
    written: Written

    @property
    def word(self) -> Word:
        """The verdict."""
        words: Mapping[str, Word] = {"holds": "holds", "differs in part": "in part", "differs": "differs"}
        return words.get(re.split(r"[,(]", self.written.verdict)[0].strip(), "fails")


@dataclass(frozen=True)
class Scored:
    """A row of the scoreboard, with the claims that test it."""

    row: _Row
    tested: Sequence[Tested]

    @property
    def kinds(self) -> list[Kind]:
        """The classes of its claims, the first claim's first."""
        return list(dict.fromkeys(one.claim.kind for one in self.tested))

    @property
    def judging(self) -> list[Tested]:
        """The claims that decide: the simulated ones, if there are any."""
        return [one for one in self.tested if one.claim.kind == "simulated"] or list(self.tested)

    @property
    def counts(self) -> bool:
        """True for a printed number that a simulation reproduces or fails to reproduce."""
        return self.row.printed is not None and "simulated" in self.kinds

    @property
    def word(self) -> Word:
        """The verdict on all claims that decide."""
        words = {one.word for one in self.judging}
        if "fails" in words:
            return "fails"
        return words.pop() if len(words) == 1 else "in part"

    @property
    def explanation(self) -> str:
        """Extent to which runs explain the differences: `explained`, `unexplained`, or in between."""
        found = [re.search(r"unexplained|[\d to]*%? ?explained", one.written.verdict) for one in self.judging]
        words = {match[0].strip() for match in found if match is not None}
        if len(words) > 1:
            return "partly explained"
        return words.pop() if words else ""


def updates(home: Path, page: str, load: Callable[[str], Experiment], known: Sequence[str]) -> list[Update]:
    """Write the scoreboard, and its sentence in the README, by the text of docs/validation.md.

    A folder without a list of papers has neither.
    """
    if not (home / FILE).is_file():
        return []
    experiments = {name: load(name) for name in known}
    papers = score(home, page, experiments)
    file, readme = home / SCOREBOARD, home / README
    before = read_text(file) if file.is_file() else ""
    found = [Update(file, before, "\n".join([*_page(page, papers, experiments), ""]), ())]
    if readme.is_file():
        text = read_text(readme)
        found.append(Update(readme, text, _with_summary(readme, text, summary(papers)), ()))
    return found


def _with_summary(file: Path, text: str, sentence: str) -> str:
    """Replace the sentence between the comments."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise SpinkitError(f"{file}: has no place for the counts of the scoreboard; add these lines:\n{_BEGIN}\n{_END}")
    return f"{before}{begin}\n\n{fill(sentence, 130)}\n\n{end}{after}"


def score(home: Path, page: str, experiments: Mapping[str, Experiment]) -> dict[str, list[Scored]]:
    """Return the rows of each paper; an unknown or missing claim is an error."""
    file = home / FILE
    table = convert(parse_toml(read_text(file), file), _File, Place(file))
    written = written_claims(page)
    known = {
        f"{name}/{claim.name}": (name, claim) for name, experiment in experiments.items() for claim in experiment.claims
    }
    papers: dict[str, list[Scored]] = {}
    for index, paper in enumerate(table.paper):
        for number, row in enumerate(paper.row):
            place = Place(file) / "paper" / index / "row" / number
            if bool(row.claims) == (row.missing is not None):
                raise place.error("give either claims, or missing with the reason")
            for one, name in enumerate(row.claims):
                if name not in known:
                    raise (place / "claims" / one).error(f"{name}: no such claim; it is written EXPERIMENT/CLAIM")
                if name not in written:
                    experiment = name.partition("/")[0]
                    raise SpinkitError(
                        f"{home / PAGE}: has no row of the claim {name}; run `spinkit reproduce {experiment}` and "
                        f"`spinkit validation --write {experiment}`"
                    )
            tested = [Tested(*known[name], written[name]) for name in row.claims]
            papers.setdefault(paper.name, []).append(Scored(row, tested))
    _check_complete(file, papers, known)
    return papers


def _check_complete(file: Path, papers: Mapping[str, Sequence[Scored]], known: Mapping[str, tuple[str, Claim]]) -> None:
    """Fail unless each claim with a number of a paper is in a row."""
    listed = {f"{one.experiment}/{one.claim.name}" for rows in papers.values() for row in rows for one in row.tested}
    for name, (_, claim) in known.items():
        if claim.paper is not None and claim.kind != "ours" and name not in listed:
            raise SpinkitError(f"{file}: has no row with {name}, a claim with a number of a paper; add it to a row")


def summary(papers: Mapping[str, Sequence[Scored]]) -> str:
    """Count the printed numbers in one sentence."""
    rows = [row for several in papers.values() for row in several if row.counts]
    words = Counter(row.word for row in rows)
    differing = [row for row in rows if row.word in ("in part", "differs")]
    shares = Counter(row.explanation for row in differing)
    whole, none = shares["explained"], shares["unexplained"]
    text = (
        f"{words['holds']} of {len(rows)} printed numbers hold on every simulated card, {words['in part']} on some "
        f"cards or in some readings, and {words['differs']} differ"
    )
    text += f", and {words['fails']} fail" if words["fails"] else ""
    return (
        f"{text}. Runs that change only the cause explain {whole} of the {len(differing)} differences entirely and "
        f"{len(differing) - whole - none} in part; {none} are unexplained."
    )


def _page(page: str, papers: Mapping[str, Sequence[Scored]], experiments: Mapping[str, Experiment]) -> Iterator[str]:
    claims = [claim for experiment in experiments.values() for claim in experiment.claims]
    yield "# Results"
    yield ""
    yield "<!-- Written by `spinkit validation --write` from docs/validation.md and experiments/papers.toml. -->"
    yield ""
    yield (
        "This page has a row for each figure, table and printed number of the papers, in their order. "
        f"**{summary(papers)}**"
    )
    yield ""
    yield from _counts(papers)
    yield ""
    yield (
        "*Printed numbers* are rows with a number that simulations test: only the class *simulated* counts as "
        "reproduction. A row holds if all its claims hold on all cards and models."
    )
    yield ""
    yield "| class | meaning | claims | of these regression tests |"
    yield "| --- | --- | --: | --: |"
    for kind, meaning in _MEANINGS.items():
        chosen = [claim for claim in claims if claim.kind == kind]
        tests = sum(claim.regression for claim in chosen)
        yield f"| {_CLASSES[kind]} | {meaning} | {len(chosen)} | {tests or '–'} |"
    yield ""
    yield (
        "Bounds of a *regression test* lie around our result: it notices a change, and validates nothing. "
        "*x % explained* is the share of the distance from the paper's interval that a run removes by changing only "
        "the stated cause. Numbers, intervals, reasons and runs are in [Validation](../validation.md), to which all "
        "rows lead."
    )
    places = sections(page)
    for name, rows in papers.items():
        yield ""
        yield f"## {name}"
        yield ""
        yield "| place | figure, table or number | paper | ours | class | verdict | experiment |"
        yield "| --- | --- | --: | --- | --- | --- | --- |"
        for row in rows:
            yield _line(row, places)


_MEANINGS: Mapping[Kind, str] = {
    "simulated": "a sentence or number of a paper, tested by simulations of this version",
    "formula": "arithmetic on printed numbers, or a formula of a paper: nothing is simulated",
    "frozen": "a comparison with stored measurements: x86 processors, synthesis, the hardware in RTL, LAMMPS",
    "ours": "our expectation, a sum by hand, or a paper's sentence with other hardware or another baseline",
}


def _counts(papers: Mapping[str, Sequence[Scored]]) -> Iterator[str]:
    yield "| | printed numbers | hold | in part | differ | other classes | missing | rows |"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: |"

    def line(name: str, rows: Sequence[Scored]) -> str:
        words = Counter(row.word for row in rows if row.counts)
        missing = sum(row.row.missing is not None for row in rows)
        others = sum(row.row.printed is not None and not row.counts and bool(row.tested) for row in rows)
        cells = (words["holds"], words["in part"], words["differs"] + words["fails"], others, missing, len(rows))
        return f"| {name} | {sum(words.values())} | {' | '.join(map(str, cells))} |"

    for name, rows in papers.items():
        yield line(name, rows)
    yield line("all", [row for rows in papers.values() for row in rows])


def _line(scored: Scored, places: Mapping[str, str]) -> str:
    row = scored.row
    if row.missing is not None:
        cells = [row.place, row.text, row.printed or "", "–", "–", f"**missing**: {row.missing}", "–"]
    else:
        names = dict.fromkeys(one.experiment for one in scored.tested)
        links = ", ".join(f"[{name}](../validation.md#{places[name]})" for name in names)
        kinds = " · ".join(_CLASSES[kind] for kind in scored.kinds)
        kinds += " (regression test)" if all(one.claim.regression for one in scored.tested) else ""
        cells = [row.place, row.text, row.printed or "", _ours(scored), kinds, _verdict(scored), links]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _verdict(scored: Scored) -> str:
    counts = Counter(one.word for one in scored.judging)
    if scored.word == "holds":
        return "holds"
    if scored.word == "fails":
        return "**fails**"
    word = "differs" if scored.word == "differs" else "holds in part"
    if scored.row.printed is None and len(scored.judging) > 1:
        word = f"{counts['holds']} of {len(scored.judging)} hold"
    return f"{word}, {scored.explanation}" if scored.explanation else word


def _ours(scored: Scored) -> str:
    """Write our numbers beside a printed one, those of each claim in a line."""
    if scored.row.printed is None:
        return ""
    lines = []
    for one in scored.tested:
        machines: dict[str, list[str]] = {}
        for machine, text in one.written.cells.items():
            machines.setdefault(text, []).append(machine)
        groups = [text if len(machines) == 1 else f"{text} ({', '.join(names)})" for text, names in machines.items()]
        prefix = f"`{one.claim.name}`: " if len(scored.tested) > 1 else ""
        lines.append(prefix + "; ".join(groups))
    return "<br>".join(lines)
