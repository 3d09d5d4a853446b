# SPDX-License-Identifier: Apache-2.0
"""The scoreboard is that of docs/validation.md and the definitions of experiments, and the README has its counts."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from spinkit._errors import SpinkitError
from spinkit.experiments import _reader
from spinkit.experiments._definition import Experiment
from spinkit.reports import _scoreboard

from .conftest import CHECKOUT

NAMES = _reader.available(CHECKOUT)
EXPERIMENTS = {name: _reader.load(CHECKOUT, name) for name in NAMES}
PAGE = (CHECKOUT / "docs" / "validation.md").read_text()


def load(name: str) -> Experiment:
    return EXPERIMENTS[name]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder with the list of papers, which a test may change."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "docs" / "results").mkdir(parents=True)
    shutil.copy(CHECKOUT / _scoreboard.FILE, tmp_path / _scoreboard.FILE)
    return tmp_path


def test_scoreboard_and_readme_are_those_of_the_page() -> None:
    updates = _scoreboard.updates(CHECKOUT, PAGE, load, NAMES)
    assert [update.file.name for update in updates] == ["index.md", "README.md"]
    for update in updates:
        update.check()


def test_the_counts_are_those_of_the_rows() -> None:
    """Count the rows of the tables, whose words are those of the summary."""
    papers = _scoreboard.score(CHECKOUT, PAGE, EXPERIMENTS)
    lines = (CHECKOUT / _scoreboard.SCOREBOARD).read_text().split("\n")
    rows = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in lines if line.startswith("| ")]
    printed = [
        row[5] for row in rows if len(row) == 7 and row[2] and row[4].startswith(("simulated", "frozen data · sim"))
    ]
    holds = sum(word == "holds" for word in printed)
    part = sum(word.startswith("holds in part") for word in printed)
    differ = sum(word.startswith("differs") for word in printed)
    assert holds + part + differ == len(printed) > 50
    assert _scoreboard.summary(papers).startswith(
        f"{holds} of {len(printed)} printed numbers hold on every simulated card, {part} on some cards or in some "
        f"readings, and {differ} differ."
    )
    shares = [word.rpartition(", ")[2] for word in printed if word != "holds"]
    assert f"explain {shares.count('explained')} of the {part + differ} differences entirely" in _scoreboard.summary(
        papers
    )
    assert f"{shares.count('unexplained')} are unexplained." in _scoreboard.summary(papers)


def test_the_verdicts_of_the_page_are_those_of_the_definitions() -> None:
    """A claim without an expected difference holds everywhere, and one without a run is unexplained."""
    written = _scoreboard.written_claims(PAGE)
    assert set(written) == {
        f"{name}/{claim.name}" for name, experiment in EXPERIMENTS.items() for claim in experiment.claims
    }
    for name, experiment in EXPERIMENTS.items():
        for claim in experiment.claims:
            verdict = written[f"{name}/{claim.name}"].verdict
            assert verdict.startswith("holds") == (not claim.expected), f"{name}/{claim.name}: {verdict}"
            if claim.expected and not any(one.shown for one in claim.expected):
                assert ", unexplained" in verdict, f"{name}/{claim.name}: {verdict}"
            assert claim.regression == ("(regression test)" in verdict), f"{name}/{claim.name}: {verdict}"


def test_a_changed_verdict_changes_row_and_counts(home: Path) -> None:
    def page(text: str) -> str:
        [update] = _scoreboard.updates(home, text, load, NAMES)
        return update.after

    before = page(PAGE)
    row = next(line for line in PAGE.split("\n") if "`small`</sub> | 26 ns" in line)
    after = page(
        PAGE.replace(row, row.replace(" | 26 ns | – | holds |", " | 25 ns | – | differs in part, unexplained |"))
    )
    changed = [line for line in after.split("\n") if line not in before.split("\n")]
    assert any("`small`: 25 ns<br>`latency-64`: 26 ns" in line for line in changed)
    assert any("holds in part, unexplained" in line for line in changed)
    holds = re.compile(r"(\d+) of \d+ printed numbers hold on every")
    [first], [second] = holds.findall(before), holds.findall(after)
    assert int(second) == int(first) - 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'claims = ["hpu-rate/talk"]',
            'claims = ["hpu-rate/tlak"]',
            "paper[0].row[0].claims[0]: hpu-rate/tlak: no such",
        ),
        ('claims = ["hpu-rate/talk"]', "", "paper[0].row[0]: give either claims, or missing with the reason"),
        ('claims = ["hpu-rate/talk"]', 'missing = "never"', "has no row with hpu-rate/talk, a claim with a number"),
        ('claims = ["hpu-rate/talk"]', 'claim = ["hpu-rate/talk"]', "paper[0].row[0].claim: unknown key"),
    ],
)
def test_mistakes_name_the_row(home: Path, old: str, new: str, message: str) -> None:
    file = home / _scoreboard.FILE
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(SpinkitError) as error:
        _scoreboard.updates(home, PAGE, load, NAMES)
    assert message in str(error.value)


def test_a_claim_that_the_page_lacks_names_the_remedy(home: Path) -> None:
    page = PAGE.replace("`talk`</sub>", "`other`</sub>")
    with pytest.raises(SpinkitError, match="no row of the claim hpu-rate/talk; run `spinkit reproduce hpu-rate`"):
        _scoreboard.updates(home, page, load, NAMES)


def test_a_home_without_papers_has_no_scoreboard(tmp_path: Path) -> None:
    assert _scoreboard.updates(tmp_path, PAGE, load, NAMES) == []


def test_a_readme_without_a_place_names_the_lines(home: Path) -> None:
    (home / "README.md").write_text("# spinkit\n")
    with pytest.raises(SpinkitError, match="no place for the counts of the scoreboard; add these lines:\n<!-- gen"):
        _scoreboard.updates(home, PAGE, load, NAMES)
