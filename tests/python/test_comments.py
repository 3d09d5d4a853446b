# SPDX-License-Identifier: Apache-2.0
"""Checks that comments of all languages begin with a noun or a verb, and that every source has a licence line."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("crates", "sdk", "python", "rtl", "tests", "experiments", "examples", "fuzz", "docs/site")
MARKERS = {
    ".rs": r"//[/!]?",
    ".c": r"/\*+|//",
    ".h": r"/\*+|//",
    ".cpp": r"/\*+|//",
    ".sv": r"//",
    ".py": r'#|r?"""',
}
REFUSED = re.compile(r"(What|Whether|Who|Whom|How|Where|When|There|Those|Of|By|So many|The same)\b(?!')")
SECTION = re.compile(r"# (Errors|Panics|Safety)")
"""Headings of Rust's documentation, after which "When …" gives the condition."""
UNMARKED = ("crates/card/hpu/tests/hpu/mix.c", "tests/spincc/", "tests/programs/", "tests/portals/", "examples/")
"""Sources whose first lines are compared, or shown in pages."""


def sources() -> list[Path]:
    """Return all sources, relative to the checkout, except generated and hidden folders."""
    found = [
        path.relative_to(CHECKOUT)
        for folder in FOLDERS
        for path in sorted((CHECKOUT / folder).rglob("*"))
        if path.suffix in MARKERS and path.is_file()
    ]
    skipped = {"target", "build", "venv", "node_modules"}
    return [path for path in found if not any(part in skipped or part.startswith(".") for part in path.parts)]


def bare_beginnings(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the first line of each comment that begins with a refused word."""
    marker = re.compile(rf"\s*({MARKERS[suffix]})\s*(.*)")
    inside, before = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        match = marker.match(line)
        kind = match[1] if match else ""
        continues = kind == inside and not kind.startswith(("/*", '"', "r"))
        if match and not continues and REFUSED.match(match[2]) and not SECTION.search(before):
            yield number, match[2]
        inside, before = kind, line


def test_the_check_finds_the_beginning_of_each_comment() -> None:
    rust = "//! What is it?\n//! Of two.\n\n/// Bytes.\n/// What of it\n// Whether.\n"
    assert list(bare_beginnings("/// # Errors\n/// When it fails.\n", ".rs")) == []
    assert list(bare_beginnings(rust, ".rs")) == [(1, "What is it?"), (6, "Whether.")]
    assert list(bare_beginnings("/* How it works. */\nint whenever; /* Where. */\n", ".c")) == [(1, "How it works. */")]
    assert list(bare_beginnings('"""Who calls."""\n# Whole words.\n# By hand.\n', ".py")) == [(1, 'Who calls."""')]


def test_comments_begin_with_a_noun_or_a_verb() -> None:
    files = sources()
    assert len(files) > 1000
    found = [
        f"{path}:{number}: {text}"
        for path in files
        for number, text in bare_beginnings((CHECKOUT / path).read_text(encoding="utf-8"), path.suffix)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("suffix", MARKERS)
def test_every_source_names_its_licence(suffix: str) -> None:
    missing = [
        str(path)
        for path in sources()
        if path.suffix == suffix
        and not str(path).startswith(UNMARKED)
        and "SPDX-License-Identifier: Apache-2.0" not in (CHECKOUT / path).read_text(encoding="utf-8")[:300]
    ]
    assert not missing, "\n".join(missing)
