# SPDX-License-Identifier: Apache-2.0
"""Checks that all links within a built site lead to files and anchors that exist."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if name in ("href", "src") and tag != "base":
                self.links.append(value)


def broken(site: Path, unchecked: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """Return the number of links within the site, and those that lead nowhere; some folders may be left out."""
    pages = {
        file: _Page(file.read_text(encoding="utf-8"))
        for file in sorted(site.rglob("*.html"))
        if file.relative_to(site).parts[0] not in unchecked and file.name != "404.html"
    }
    count, found = 0, []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("//"):
                continue
            count += 1
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            known = pages.get(target)
            if not target.is_file() or (anchor and known is not None and anchor not in known.anchors):
                found.append(f"{file.relative_to(site)}: {link}")
    return count, found
