# SPDX-License-Identifier: Apache-2.0
"""`spinkit view`: the page holds the file, reads the slices that Python reads, and shows them in a browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from spinkit import _paths, goal
from spinkit.cli import main
from spinkit.simulate import _perfetto
from spinkit.simulate._perfetto import Slice

from .browser import Browser, browser
from .conftest import CHECKOUT

MODEL = CHECKOUT / "python" / "spinkit" / "templates" / "view" / "model.js"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with timelines of handlers and of a packet network, which has counters."""
    folder = tmp_path_factory.mktemp("traces")
    program = folder / "hello"
    subprocess.run([_paths.command("spincc"), CHECKOUT / "examples" / "hello.c", "-o", program], check=True)
    for name, nic in (("handlers", "pspin-400g"), ("other", "sc17-int")):
        command = [
            _paths.command("spinrun"),
            "-n",
            "4",
            "--machine",
            nic,
            "--trace",
            folder / f"{name}.pftrace",
            program,
        ]
        subprocess.run(command, check=True, capture_output=True)
    goal.generate("alltoall", ranks=16).save(folder / "all.bin")
    command = [_paths.command("spinkit-goal"), "run", "packet", folder / "all.bin", "--trace", folder / "net.pftrace"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


def make(folder: Path, *names: str) -> Path:
    page = folder / f"{'-'.join(names)}.html"
    result = CliRunner().invoke(main, ["view", *(str(folder / f"{name}.pftrace") for name in names), "-o", str(page)])
    assert (result.exit_code, result.output) == (0, f"{page}\n")
    return page


def test_the_page_holds_the_file_and_needs_nothing_else(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = make(traces, "handlers").read_text()
    [packed] = re.findall(r'<script type="text/x-trace" data-name="handlers.pftrace">(.*?)</script>', text)
    assert zlib.decompress(base64.b64decode(packed)) == (traces / "handlers.pftrace").read_bytes()
    rest = text.replace(packed, "")
    assert not re.search(r"https?://|src=|@import|url\(", rest)
    monkeypatch.chdir(traces)
    result = CliRunner().invoke(main, ["view", "handlers.pftrace", "other.pftrace"])
    assert result.output == "handlers-other.html\n"
    assert Path("handlers-other.html").is_file()


@pytest.mark.parametrize("content", [b"", b"\x0a", b"{}", b"\x0a\x05abc", b"\x0a\x80"])
def test_a_file_that_is_no_timeline_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    result = CliRunner().invoke(main, ["view", str(file), "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 1
    assert f"{file}: is no timeline; write one with `spinrun --trace FILE`" in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_wrong_usage_is_refused(traces: Path) -> None:
    for words, message in (([], "Missing argument"), (["handlers.pftrace"] * 5, "4 timelines at most, 5 are given")):
        result = CliRunner().invoke(main, ["view", *(str(traces / word) for word in words)])
        assert result.exit_code == 2
        assert message in result.stderr


READ = """
const { Model } = require(process.argv[1]);
const model = new Model(new Uint8Array(require("fs").readFileSync(process.argv[2])));
const slices = Array.from(model.start, (start, slice) => {
  const lane = model.lanes[model.lane[slice]];
  const row = [model.processes[lane.process], lane.name, model.names[model.name[slice]], start, model.end[slice]];
  return [...row, Object.fromEntries(model.arguments(slice))];
});
const counters = model.counters.map((one) => [model.processes[one.process], one.name, one.unit, one.value.length]);
const arrows = Array.from(model.arrows.from, (from, index) => [from, model.arrows.to[index]]);
const middle = model.length / 2;
console.log(JSON.stringify({ slices, counters, arrows, sum: model.summary(0, middle).names, middle }));
"""


def read_in_node(file: Path) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js (Debian: apt-get install nodejs)")
    done = subprocess.run([node, "-e", READ, str(MODEL), str(file)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ["handlers", "other", "net"])
def test_the_page_reads_the_slices_that_python_reads(traces: Path, name: str) -> None:
    file = traces / f"{name}.pftrace"
    expected = _perfetto.read(file)
    found = read_in_node(file)
    slices = [Slice(*one) for one in found["slices"]]
    assert len(expected) > 20

    def key(one: Slice) -> tuple[Any, ...]:
        return (one.start, -one.end, one.process, one.row, one.name, sorted(one.arguments.items()))

    if name == "net":  # its arguments include texts, which Python leaves out
        slices, expected = (
            [Slice(*key(one)[2:5], one.start, one.end, {}) for one in some] for some in (slices, expected)
        )
    assert sorted(slices, key=key) == sorted(expected, key=key)
    # Arrows lead forward in time; messages, their packets and handlers have them.
    assert len(found["arrows"]) > 10
    assert all(slices[source].start <= slices[target].start for source, target in found["arrows"])
    assert bool(found["counters"]) == (name == "net")
    half: dict[str, float] = {}
    for one in expected:
        if one.start < found["middle"]:
            half[one.name] = half.get(one.name, 0) + min(one.end, found["middle"]) - one.start
    assert {one["name"]: one["time"] for one in found["sum"]} == {
        name: pytest.approx(time) for name, time in half.items() if time
    }


def ready(tab: Browser, page: Path, fragment: str = "") -> dict[str, str]:
    tab.open(page, fragment)
    tab.wait("document.documentElement.dataset.ready == 'true'")
    data: dict[str, str] = tab.run("({...document.documentElement.dataset})")
    return data


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [(1366, 768), (768, 1024), (390, 844)])
def test_a_browser_draws_the_slices(traces: Path, tab: Browser, size: tuple[int, int], dark: bool) -> None:
    tab.look(*size, dark)
    data = ready(tab, make(traces, "handlers"))
    expected = _perfetto.read(traces / "handlers.pftrace")
    assert data["slices"] == str(len(expected))
    assert int(data["drawn"]) >= 20
    assert int(data["arrows"]) > 10
    assert tab.run(
        "document.documentElement.scrollWidth <= innerWidth && document.body.scrollHeight <= innerHeight + 1"
    )
    light = tab.run("page.look.paper")
    assert (light == "#15191e") == dark
    # The canvas has pixels of the colour of a handler.
    assert (
        tab.run(
            "(() => { const { canvas, context } = page.panels[0], seen = new Set();"
            " const { data } = context.getImageData(0, 0, canvas.width, canvas.height);"
            " for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);"
            " return seen.size; })()"
        )
        > 5
    )
    assert tab.errors == []


def test_a_click_shows_a_slice_with_its_causes_and_links_lead_to_them(traces: Path, tab: Browser) -> None:
    tab.look(1366, 768)
    ready(tab, make(traces, "handlers"))
    handler = next(one for one in _perfetto.read(traces / "handlers.pftrace") if one.name == "capitals")
    place = tab.run(
        "(() => { const p = page.panels[0], m = p.model, s = m.name.findIndex((n) => m.names[n] == 'capitals');"
        " const r = p.canvas.getBoundingClientRect(); p.show(m.start[s] - 1e5, m.end[s] + 1e5); page.draw();"
        " return [r.x + p.x((m.start[s] + m.end[s]) / 2), r.y + p.top[m.lane[s]] - p.scroll + AXIS + 8]; })()"
    )
    tab.drag(tuple(place), tuple(place))
    shown = tab.run("document.getElementById('output').innerText")
    assert shown.startswith("capitals\n")
    assert f"{handler.start:,} ps" in shown
    assert "caused by" in shown
    tab.run("document.querySelector('#output button').click()")
    assert not tab.run("document.getElementById('output').innerText").startswith("capitals\n")
    assert tab.errors == []


def test_search_range_and_keys(traces: Path, tab: Browser) -> None:
    tab.look(1366, 768)
    ready(tab, make(traces, "other"))
    slices = _perfetto.read(traces / "other.pftrace")
    tab.run(
        "(() => { const s = document.getElementById('search'); s.value = 'CAPITALS';"
        " s.dispatchEvent(new Event('input')); s.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'})); })()"
    )
    count = sum(one.name == "capitals" for one in slices)
    assert tab.run("document.getElementById('hits').textContent") == f"{count} slices"
    assert tab.run("document.querySelector('#output h3').textContent") == "capitals"
    tab.run("document.getElementById('all').click()")
    box = tab.run("(() => { const r = page.panels[0].canvas.getBoundingClientRect(); return [r.x, r.y, r.width]; })()")
    tab.drag((box[0] + 151, box[1] + 60), (box[0] + box[2] - 1, box[1] + 60), shift=True)
    rows = tab.run(
        "[...document.querySelectorAll('#output table:first-child tr')].map((r) => r.innerText.split('\\t'))"
    )
    assert ["capitals", str(count)] in [row[:2] for row in rows]
    before = tab.run("page.panels[0].to - page.panels[0].from")
    tab.run("page.panels[0].canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'w'}))")
    assert tab.run("page.panels[0].to - page.panels[0].from") == pytest.approx(0.7 * before)
    assert tab.errors == []


def test_two_files_share_a_time_axis(traces: Path, tab: Browser) -> None:
    tab.look(1366, 768)
    data = ready(tab, make(traces, "handlers", "other"))
    assert data["slices"].split() == [
        str(len(_perfetto.read(traces / f"{name}.pftrace"))) for name in ("handlers", "other")
    ]
    tab.run("page.panels[0].zoom(0.5)")
    assert tab.run("page.panels[0].from == page.panels[1].from && page.panels[0].to == page.panels[1].to")
    tab.run("document.getElementById('linked').click(); page.panels[0].zoom(0.5)")
    assert tab.run("page.panels[0].to - page.panels[0].from < page.panels[1].to - page.panels[1].from")
    assert tab.errors == []


def test_many_slices_are_drawn_as_groups(tmp_path: Path, tab: Browser) -> None:
    """A frame draws a bounded number of boxes, whatever the number of slices."""
    goal.generate("alltoall", ranks=180, size=8).save(tmp_path / "all.bin")
    command = [_paths.command("spinkit-goal"), "run", tmp_path / "all.bin", "--trace", tmp_path / "many.pftrace"]
    subprocess.run(command, check=True, capture_output=True)
    tab.look(1366, 768)
    data = ready(tab, make(tmp_path, "many"), "#measure=30")
    assert int(data["slices"]) == 4 * 180 * 179
    # 33 rows are visible, each with a box for each pixel at most.
    assert tab.run("(page.panels[0].show(0, page.length), page.draw(), page.panels[0].drawn)") < 33 * 1366
    assert float(data["drawing"]) < 100, "ms; 3 on an idle computer"
    assert tab.errors == []


def test_a_damaged_page_says_so(traces: Path, tab: Browser) -> None:
    page = make(traces, "other")
    text = page.read_text()
    packed = base64.b64encode(zlib.compress((traces / "other.pftrace").read_bytes()[:-3])).decode()
    page.write_text(re.sub(r'(data-name="other.pftrace">).*?<', rf"\g<1>{packed}<", text))
    tab.open(page)
    tab.wait("document.getElementById('output').textContent.startsWith('The timeline cannot be read: the file ends')")
    assert len(tab.errors) == 1
