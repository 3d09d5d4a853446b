# SPDX-License-Identifier: Apache-2.0
"""The gallery: a card for each experiment with its figure and one line, which leads to the experiment's page.

Figures and pages are those of `spinkit reproduce` in `out`; an experiment without them has a card without picture.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

GROUPS = {
    "sc17": "sPIN (SC'17)",
    "pspin": "PsPIN (ISCA'21)",
    "use-cases": "Use cases",
    "mpi": "MPI programs",
    "beyond": "Beyond the papers",
}
FOLDER = "gallery"
"""Folder of pictures and pages, beside the page."""


@dataclass(frozen=True)
class Entry:
    """An experiment."""

    name: str
    group: str
    title: str
    line: str


def entries(root: Path) -> list[Entry]:
    """Return all experiments, by group and name."""
    found = []
    for file in sorted((root / "experiments").glob("*/*/*.toml"), key=lambda file: file.stem):
        content = tomllib.loads(file.read_text())
        group = file.relative_to(root / "experiments").parts[0]
        found.append(Entry(file.stem, group, content["title"], first_sentence(content["summary"])))
    order = list(GROUPS)
    return sorted(found, key=lambda one: order.index(one.group))


def first_sentence(text: str) -> str:
    """Return the first sentence of a summary as plain text."""
    words = " ".join(text.split()).replace("`", "")
    found = re.match(r"(.+?[.:?])(?= [A-Z“]|$)", words)
    return (found[1] if found else words).rstrip(":")


def write(root: Path, pages: Path) -> None:
    """Write the page `gallery.md`, and copy the pictures and pages of experiments that ran."""
    results, folder = root / "out", pages / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    text = [
        "# Gallery",
        "Every experiment with its first figure. A card leads to the experiment's page, with all figures, claims and "
        "parameters; `spinkit reproduce NAME` makes it.",
    ]
    listed = entries(root)
    for group, title in GROUPS.items():
        cards = [_card(one, results / one.name, folder) for one in listed if one.group == group]
        text += [f"## {title}", '<div class="cards">\n' + "\n".join(cards) + "\n</div>"]
    timelines = sorted((results / "timelines").glob("*-sc17.svg"))
    if timelines:
        text += ["## Timelines", "One round of each program, drawn from a run (`spinkit reproduce timelines`)."]
        text.append('<div class="cards">\n' + "\n".join(_timeline(file, folder) for file in timelines) + "\n</div>")
    (pages / "gallery.md").write_text("\n\n".join(text) + "\n")


def _card(one: Entry, results: Path, folder: Path) -> str:
    pictures = sorted(results.glob("*.svg"), key=lambda file: ("integrated" not in file.name, file.name))
    picture = ""
    if pictures:
        shutil.copy(pictures[0], folder / f"{one.name}.svg")
        picture = f'<img src="{FOLDER}/{one.name}.svg" loading="lazy" alt="{escape(one.title)}">'
    words = f"<strong>{escape(one.title)}</strong><span>{escape(one.line)}</span><code>{one.name}</code>"
    if not (results / "index.html").is_file():
        return f'<div class="card">{picture}{words}</div>'
    shutil.copy(results / "index.html", folder / f"{one.name}.html")
    return f'<a class="card" href="{FOLDER}/{one.name}.html">{picture}{words}</a>'


def _timeline(file: Path, folder: Path) -> str:
    shutil.copy(file, folder / f"timeline-{file.name}")
    name = file.stem.removesuffix("-sc17")
    picture = f'<img src="{FOLDER}/timeline-{file.name}" loading="lazy" alt="timeline of {name}">'
    return f'<a class="card" href="{FOLDER}/timeline-{file.name}">{picture}<strong>{name}</strong></a>'
