# SPDX-License-Identifier: Apache-2.0
"""Pages of the built site in a browser: no overflow, no missing picture, no error on the console.

`make docs` builds the site in `out/site`; without it, or without Chromium, the tests skip. With SITE_PAGES=all every
page is opened.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from .browser import Browser, browser
from .conftest import CHECKOUT

SITE = CHECKOUT / "out" / "site"
PAGES = (
    "index.html",
    "gallery.html",
    "gallery/ping-pong.html",
    "examples/index.html",
    "sdk/handlers/index.html",
    "docs/overview.html",
    "docs/tutorial.html",
    "docs/debugging.html",
    "docs/results/index.html",
    "docs/use-cases/kvstore.html",
    "reference/spin.h.html",
    "reference/commands.html",
    "reference/python.html",
    "reference/machines.html",
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Serve the site: its search reads a file, which browsers refuse without a server."""
    if not (SITE / "index.html").is_file():
        pytest.skip("needs the built site: make docs")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Browser]:
    """Start a browser with a new profile, because the site remembers its last scheme."""
    with browser(tmp_path / "profile") as one:
        yield one


def pages() -> list[str]:
    """Return the pages to open: those of the list that were built, or all."""
    if os.environ.get("SITE_PAGES") == "all":
        found = (file.relative_to(SITE) for file in SITE.rglob("*.html"))
        return sorted(str(file) for file in found if file.parts[0] != "rust")
    return [name for name in PAGES if (SITE / name).is_file()]


PROBLEMS = """(() => {
  const found = [];
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) found.push(`${over} pixels too wide`);
  for (const image of document.images) {
    image.loading = "eager";
    if (image.complete && !image.naturalWidth && image.src) found.push(`missing picture ${image.src}`);
  }
  return found;
})()"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [(1366, 768), (768, 1024), (390, 844)])
def test_pages_fit_and_have_everything(served: str, tab: Browser, size: tuple[int, int], dark: bool) -> None:
    tab.look(*size, dark)
    names, problems = pages(), {}
    assert len(names) >= 10
    for name in names:
        tab.visit(f"{served}{name}")
        if tab.run("Boolean(document.body.dataset.mdColorScheme)"):  # a page of the site's theme
            tab.wait(f"document.body.dataset.mdColorScheme == '{'slate' if dark else 'default'}'")
        tab.run(PROBLEMS)
        tab.wait("[...document.images].every((image) => image.complete)")
        if found := [*tab.run(PROBLEMS), *tab.errors]:
            problems[name] = found
    assert problems == {}


def test_the_navigation_leads_to_examples_and_handlers(served: str, tab: Browser) -> None:
    tab.look(1366, 768)
    tab.visit(f"{served}index.html")
    tabs = tab.run("[...document.querySelectorAll('.md-tabs__link')].map((one) => one.innerText.trim())")
    assert {"Home", "Gallery", "Examples", "Handler library"} <= set(tabs)
    assert tab.run("document.querySelectorAll('.cards a.card').length") >= 12


def test_problems_are_found(tab: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<body style='margin:0'><div style='width:2000px'>wide</div><img src='gone.png'>"
        "<script>console.error('told')</script>"
    )
    tab.look(390, 844)
    tab.open(page)
    found = tab.run(PROBLEMS)
    assert found[0].endswith("pixels too wide")
    assert found[1].endswith("gone.png")
    assert any("told" in error for error in tab.errors)
    assert any("ERR_FILE_NOT_FOUND" in error for error in tab.errors)
