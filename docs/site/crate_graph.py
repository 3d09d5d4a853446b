# SPDX-License-Identifier: Apache-2.0
"""Draws the crates and their dependencies, as the Cargo manifests state them.

`crate_graph.py` writes docs/img/crates.svg. A group is a band, a crate a box, and a line leads from a crate down to a
crate that it uses. Dependencies that follow from others are left out.
"""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "img" / "crates.svg"
GROUPS = ("base", "guest", "card", "system", "live", "tools")
COLOURS = {
    "base": "#dbe9f6",
    "guest": "#e5f2df",
    "card": "#fdeccd",
    "system": "#f3e1ee",
    "live": "#dff0ee",
    "tools": "#e8e8e8",
}
WIDTH, HEIGHT, GAP, ROW, BAND, MARGIN = 96, 26, 14, 56, 18, 70

Uses = dict[str, set[str]]


def read(root: Path) -> tuple[dict[str, str], Uses]:
    """Return the group of each crate, and the crates that it uses."""
    manifests = {file.parent.name: file for file in sorted((root / "crates").glob("*/*/Cargo.toml"))}
    groups = {name: file.parents[1].name for name, file in manifests.items()}
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["dependencies"]
    packages = {
        key: row["package"].removeprefix("spinkit-")
        for key, row in workspace.items()
        if isinstance(row, dict) and "package" in row
    }
    uses = {}
    for name, file in manifests.items():
        keys = tomllib.loads(file.read_text()).get("dependencies", {})
        uses[name] = {packages.get(key, key) for key in keys} & groups.keys()
    return groups, uses


def direct(uses: Uses) -> Uses:
    """Return the dependencies that do not follow from other dependencies."""
    reached: Uses = {}

    def reach(name: str) -> set[str]:
        if name not in reached:
            reached[name] = uses[name].union(*(reach(used) for used in uses[name]))
        return reached[name]

    return {
        name: {used for used in below if not any(used in reach(other) for other in below)}
        for name, below in uses.items()
    }


def rows(groups: dict[str, str], uses: Uses) -> list[tuple[str, list[str]]]:
    """Return the rows of boxes from the bottom up: the group, and its crates of one level."""
    result = []
    place: dict[str, float] = {}
    for group in GROUPS:
        left = {name for name, its in groups.items() if its == group}
        while left:
            level = [name for name in left if not uses[name] & left]
            if not level:
                raise ValueError(f"crates use each other in a circle: {', '.join(sorted(left))}")
            level.sort(key=lambda name: (_mean([place[used] for used in uses[name]]), name))
            place |= {name: index - (len(level) - 1) / 2 for index, name in enumerate(level)}
            left -= set(level)
            result.append((group, level))
    return result


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def draw(groups: dict[str, str], uses: Uses) -> str:
    """Return the picture as SVG."""
    levels = rows(groups, uses)
    width = MARGIN + max(len(level) for _, level in levels) * (WIDTH + GAP) + GAP
    height = len(levels) * ROW + len(GROUPS) * BAND
    boxes: dict[str, tuple[float, float]] = {}
    bands, y, last = [], height, ""
    for group, level in levels:
        if group != last:
            y, last = y - BAND, group
            count = sum(1 for other, _ in levels if other == group)
            bands.append((group, y - count * ROW + BAND / 2, count * ROW))
        start = MARGIN + (width - MARGIN - len(level) * (WIDTH + GAP) + GAP) / 2
        boxes |= {name: (start + index * (WIDTH + GAP), y - ROW + GAP) for index, name in enumerate(level)}
        y -= ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for group, top, tall in bands:
        lines.append(f'<rect x="4" y="{top:g}" width="{width - 8}" height="{tall}" rx="6" fill="{COLOURS[group]}"/>')
        lines.append(f'<text x="12" y="{top + tall / 2 + 4:g}" font-weight="bold">{group}</text>')
    for name, below in sorted(direct(uses).items()):
        for used in sorted(below):
            (x1, y1), (x2, y2) = boxes[name], boxes[used]
            start, end = (x1 + WIDTH / 2, y1 + HEIGHT), (x2 + WIDTH / 2, y2)
            lines.append(
                f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" stroke="#8a8a8a"/>'
            )
    for name, (x, top) in sorted(boxes.items()):
        lines.append(
            f'<rect x="{x:g}" y="{top:g}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#ffffff" stroke="#444444"/>'
        )
        lines.append(f'<text x="{x + WIDTH / 2:g}" y="{top + 17:g}" text-anchor="middle">{escape(name)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw(*read(ROOT)))


if __name__ == "__main__":
    main()
