# SPDX-License-Identifier: Apache-2.0
"""The documentation site has all pages, links lead to pages, and the check of the built site finds broken ones.

`make docs` builds the site, in an environment of its own, and checks what needs that: every link and anchor of the
built site, and a comment for every function of the C headers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from spinkit.experiments import _reader

from .conftest import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "docs" / "site"))
import commands
import gallery
import links
import pages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    pages.copy(CHECKOUT, folder)
    return folder


def test_links_of_all_pages_lead_to_pages_of_the_site(site: Path) -> None:
    missing, count = [], 0
    for page in site.rglob("*.md"):
        text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            if not re.match(r"[a-z]+:", target):
                count += 1
                if not (page.parent / target).is_file():
                    missing.append(f"{page.relative_to(site)}: {target}")
    assert missing == []
    assert count > 100


def test_the_navigation_has_every_guide(site: Path) -> None:
    listed = set(re.findall(r"[\w./-]+\.md$", (CHECKOUT / "docs" / "site" / "mkdocs.yml").read_text(), re.MULTILINE))
    guides = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "docs").rglob("*.md")}
    assert guides <= listed
    assert {
        name for name in listed if not name.startswith(("reference/", "gallery.md")) and not (site / name).is_file()
    } == set()


def test_a_source_is_shown_as_it_is(site: Path) -> None:
    shown = (site / "examples" / "hello.c.md").read_text()
    assert shown == f"# examples/hello.c\n\n```c\n{(CHECKOUT / 'examples' / 'hello.c').read_text()}```\n"


def test_bars_in_code_and_nested_lists_are_written_as_the_site_reads_them(site: Path) -> None:
    assert "`spinkit goal run|check|gen|convert|import|stats|show`" in (site / "docs" / "overview.md").read_text()
    assert re.search(r"^    - A run that changes only", (site / "docs" / "validation.md").read_text(), re.MULTILINE)


def test_broken_links_and_anchors_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/a.html#here">1</a><a href="sub/">2</a><a href="https://x.example/y">elsewhere</a>'
        '<a href="sub/a.html#gone">3</a><img src="gone.png">'
    )
    (tmp_path / "sub" / "index.html").write_text('<a href="#top">4</a><h1 id="top">x</h1>')
    (tmp_path / "sub" / "a.html").write_text('<p id="here">x</p><a href="../index.html">5</a>')
    assert links.broken(tmp_path) == (6, ["index.html: sub/a.html#gone", "index.html: gone.png"])


def test_parameters_of_machines_say_what_is_assumed() -> None:
    parameter = {"source": "assumed", "assumed": {"range": ["1", "2"], "reason": "a|b", "anchor": "§4"}}
    assert commands._cell(parameter) == "assumed; plausible: 1 to 2; a\\|b (§4)"
    assert commands._cell({"source": "§4.2 <x>"}) == "§4.2 &lt;x>"


def test_the_gallery_has_a_card_for_every_experiment(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "experiments").symlink_to(CHECKOUT / "experiments")
    results = root / "out" / "ping-pong"
    results.mkdir(parents=True)
    for name in ("discrete.svg", "integrated.svg", "index.html"):
        (results / name).write_text(name)
    (root / "out" / "timelines").mkdir()
    (root / "out" / "timelines" / "raid-spin-sc17.svg").write_text("raid")
    gallery.write(root, tmp_path)
    text = (tmp_path / "gallery.md").read_text()
    assert re.findall(r"<code>([\w-]+)</code>", text) == [one.name for one in gallery.entries(root)]
    assert sorted(one.name for one in gallery.entries(root)) == _reader.available(CHECKOUT)
    assert '<a class="card" href="gallery/ping-pong.html"><img src="gallery/ping-pong.svg"' in text
    assert (tmp_path / "gallery" / "ping-pong.svg").read_text() == "integrated.svg"
    assert (tmp_path / "gallery" / "ping-pong.html").read_text() == "index.html"
    assert text.count("<img") == 2
    assert 'src="gallery/timeline-raid-spin-sc17.svg"' in text


def test_the_first_sentence_is_plain_text() -> None:
    text = "\nIt runs `a.b` on\ncards. It ends.\n"
    assert gallery.first_sentence(text) == "It runs a.b on cards."
    assert gallery.first_sentence("no end") == "no end"
