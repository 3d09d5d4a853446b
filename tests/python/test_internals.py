# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/internals name functions, breakpoints, files and crates that exist."""

from __future__ import annotations

import re
import sys

import pytest

from .conftest import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "docs" / "site"))
import crate_graph
import performance

INTERNALS = CHECKOUT / "docs" / "internals"
FOLDERS = ("crates", "sdk", "docs", "tests", "examples", "experiments", "machines", "rtl", "python", "fuzz")


def defines(file: str, function: str) -> bool:
    name = function.rpartition("::")[2]
    return re.search(rf"\bfn {name}\b", (CHECKOUT / file).read_text()) is not None


def test_functions_of_the_path_of_a_put_are_in_their_files() -> None:
    rows = re.findall(
        r"^\| .+? \| ((?:`[\w:]+`(?:, )?)+) \| `(crates/\S+)` \|$", (INTERNALS / "put.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 20
    steps = [(file, function) for functions, file in rows for function in re.findall(r"`([\w:]+)`", functions)]
    assert [step for step in steps if not defines(*step)] == []


def test_breakpoints_of_the_path_of_a_put_are_functions_of_their_modules() -> None:
    groups, _ = crate_graph.read(CHECKOUT)
    breakpoints = re.findall(r"^rbreak (\S+)$", (INTERNALS / "put.gdb").read_text(), re.MULTILINE)
    assert len(breakpoints) > 10
    for pattern in breakpoints:
        crate, *modules = [part for part in re.sub(r"\.\*|::h?$", "", pattern).split("::") if part]
        *modules, function = modules
        folder = CHECKOUT / "crates" / groups[crate] / crate / "src"
        file = folder.joinpath(*modules)
        sources = [path for path in (file.with_suffix(".rs"), file / "mod.rs") if path.is_file()]
        assert len(sources) == 1, pattern
        assert defines(str(sources[0].relative_to(CHECKOUT)), function), pattern


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", *(f"docs/internals/{page.name}" for page in INTERNALS.glob("*.md"))]
)
def test_paths_in_pages_exist(page: str) -> None:
    paths = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", (CHECKOUT / page).read_text())
    named = [path for path in paths if not re.search(r"(?<![\w-])[A-Z]+(?![\w-])", path)]  # `KIND` stands for any name
    assert [path for path in named if not (CHECKOUT / path).exists()] == []


def test_the_picture_shows_the_crates_and_their_dependencies() -> None:
    groups, uses = crate_graph.read(CHECKOUT)
    assert len(groups) > 20
    assert uses["abi"] == set()
    assert {"nic", "net"} <= uses["cluster"]
    # The picture leaves out what follows: cluster uses nic, and nic uses sim.
    assert crate_graph.direct(uses)["world"] >= {"ranks"}
    assert "sim" not in crate_graph.direct(uses)["world"]
    assert crate_graph.PICTURE.read_text() == crate_graph.draw(groups, uses), (
        "python3 docs/site/crate_graph.py draws it again"
    )


def test_a_circle_of_crates_is_an_error() -> None:
    with pytest.raises(ValueError, match="in a circle: one, two"):
        crate_graph.rows({"one": "base", "two": "base"}, {"one": {"two"}, "two": {"one"}})


def test_decisions_are_numbered_dated_and_listed() -> None:
    index = (INTERNALS / "decisions" / "README.md").read_text()
    pages = sorted((INTERNALS / "decisions").glob("0*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text()
        date = re.search(r"^Date: (\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
        assert date, page
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Alternatives", "Reason", "Consequence"], page
        assert f"| [{page.name[:4]}]({page.name}) | {date[1]} |" in index


def test_numbers_of_the_benchmark_become_tables() -> None:
    bench = {
        "machine": {
            "cpu": "X",
            "cores": 2,
            "memory_kib": 2**21,
            "load": [0, 1.25, 2],
            "kernel": "6",
            "rustc": "rustc 1 (a)",
            "python": "3",
        },
        "method": "CPU time",
        "numbers": [{"name": "a/b", "value": 4853210.0, "unit": "hops/s"}, {"name": "c", "value": 1.118, "unit": "s"}],
        "aims": [
            {"name": "c", "value": 1, "unit": "s", "at_most": True, "measured": 1.118},
            {"name": "d", "value": 5e5, "unit": "x", "at_most": False, "measured": None},
        ],
    }
    text = performance.markdown(bench)
    assert "Machine: X, 2 cores, 2 GiB of memory, Linux 6, rustc 1, Python 3. Load averages" in text
    assert "| `a/b` | 4,850,000 | hops/s |" in text
    assert "| `c` | ≤ 1 s | 1.12 |" in text
    assert "| `d` | ≥ 500,000 x | not measured |" in text
    assert len(performance.BLOCK.findall(performance.PAGE.read_text())) == 1
