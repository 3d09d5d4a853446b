# SPDX-License-Identifier: Apache-2.0
"""`spinrun --report` and `spinkit page`: the page of a run has the numbers of its report and of its timeline."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner
from spinkit import _paths
from spinkit.cli import main
from spinkit.reports import _run_page
from spinkit.simulate._perfetto import Slice

from .browser import browser
from .conftest import CHECKOUT


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of `allreduce.c`."""
    folder = tmp_path_factory.mktemp("run")
    program = folder / "allreduce"
    subprocess.run([_paths.command("spincc"), "-g", CHECKOUT / "examples" / "allreduce.c", "-o", program], check=True)
    report = folder / "new" / "report"
    options = ["-n", "4", "--set", "network.model=fabric", "--report", report]
    done = subprocess.run([_paths.command("spinrun"), *options, program], capture_output=True, text=True, check=True)
    assert f"{report}/index.html\n{report}/timeline.html\n" in done.stderr
    assert "the last of 500 sums is" in done.stdout
    return report


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading."""
    below = page[page.index(f"<h2>{heading}</h2>") :]
    table = below[: below.index("</table>")]
    cells = [
        re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)
        for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
    ]
    return [[unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in row] for row in cells]


def test_the_page_has_the_numbers_of_the_report(run: Path) -> None:
    page = (run / "index.html").read_text()
    report = json.loads((run / "report.json").read_text())
    assert "All ranks finished." in page
    assert "No message was lost." in page
    _heading, *handlers = rows(page, "Handlers")
    calls = {
        name: [f"{one['calls']:,}", str(one["errors"])] for name, one in report["handlers"].items() if one["calls"]
    }
    assert {row[0]: row[1:3] for row in handlers} == calls
    assert len(handlers) >= 2
    use = rows(page, "Use of each card")
    assert [row[0] for row in use[1:]] == ["0", "1", "2", "3"]
    share = report["cards"][0]["hpu_busy_ps"] / report["end_ps"] / 4
    assert use[1][5] == f"{100 * share:.1f} %"
    lines = rows(page, "Hottest lines")
    assert lines[1][1].startswith("allreduce.c:")
    number = int(lines[1][1].partition(":")[2])
    assert lines[1][4] == (CHECKOUT / "examples" / "allreduce.c").read_text().splitlines()[number - 1].strip()
    counters = {row[0]: row[1] for row in rows(page, "Counters")}
    assert counters["bytes sent"] == f"{sum(card['bytes_sent'] for card in report['cards']):,}"
    assert len(rows(page, "Links")) == 1 + len(report["network"]["busiest_links"])
    # All ranks send their vector to rank 0, whose card sends the sums to all.
    matrix = re.findall(r"<title>rank (\d+) to rank (\d+): ([\d,]+) B</title>", page)
    assert {(source, target) for source, target, _ in matrix} == {
        *[(str(r), "0") for r in range(4)],
        *[("0", str(r)) for r in range(4)],
    }
    assert sum(int(count.replace(",", "")) for *_, count in matrix) == sum(c["bytes_received"] for c in report["cards"])


def test_lost_messages_come_first(tmp_path: Path) -> None:
    program = tmp_path / "sum"
    [source] = re.findall(r"^```c\n(.*?)^```$", (CHECKOUT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "sum.c").write_text(source)
    subprocess.run([_paths.command("spincc"), tmp_path / "sum.c", "-o", program], check=True)
    small = ["--set", "accelerator.hpus=1", "--set", "accelerator.packet_buffer_bytes=8192"]
    command = [_paths.command("spinrun"), "-n", "2", *small, "--report", tmp_path / "r", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, "the status of the run"
    page = (tmp_path / "r" / "index.html").read_text()
    assert "Messages were lost, see below." in page
    assert "1 handler call failed." in page
    assert "Rank failed</span> · rank: 1 · code: 1" in page
    [_, row] = rows(page, "Lost messages")
    assert row[1:4] == ["1", "8", "31,808"]
    assert row[4].startswith("put from rank 0 to 1, 40,000 B, at 1.065 µs")


def test_many_ranks_are_grouped_in_the_matrix() -> None:
    slices = [Slice(f"rank {rank}", "NIC in", "put", 0, 1, {"sender": 0, "bytes": 10}) for rank in range(130)]
    matrix = _run_page._matrix(slices, 130)
    assert matrix is not None
    assert (matrix["size"], matrix["group"], matrix["most"]) == (44, 3, "30 B")
    assert matrix["cells"][0]["text"] == "ranks 0–2 to ranks 0–2: 30 B"
    assert matrix["cells"][-1] == {"x": 43, "y": 0, "share": 0.333, "text": "ranks 0–2 to rank 129: 10 B"}
    assert _run_page._matrix([], 4) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "report.json: no such file; `spinrun --report"),
        ("{}", "no report of spinrun: KeyError"),
        ("{", "no report of spinrun"),
    ],
)
def test_a_folder_without_a_report_is_an_error(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "report.json").write_text(content)
    result = CliRunner().invoke(main, ["page", str(tmp_path)])
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (tmp_path / "index.html").exists()


def test_a_report_excludes_other_files_of_it() -> None:
    for option in ("--json", "--trace"):
        command = [_paths.command("spinrun"), "--report", "r", option, "f", "prog"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "cannot be used with" in done.stderr


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1366, 768, 390])
def test_a_browser_shows_it_without_overflow(run: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with browser(tmp_path) as tab:
        tab.look(width, 800, dark)
        tab.open(run / "index.html")
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run("getComputedStyle(document.querySelector('.matrix rect:last-child')).fill") == "rgb(0, 114, 178)"
        assert (tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 25, 30)") == dark
        assert tab.errors == []
