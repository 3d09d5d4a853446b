# SPDX-License-Identifier: Apache-2.0
"""The pages of the site: the project's Markdown files, and the sources to which they link."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

_LANGUAGES = {
    ".c": "c", ".h": "c", ".cpp": "cpp", ".py": "python", ".rs": "rust", ".sv": "systemverilog", ".toml": "toml",
    ".json": "json", ".yml": "yaml", ".sh": "sh", ".ys": "text",
}  # fmt: skip
_README, _HOME = Path("README.md"), Path("docs/site/home.md.in")
_PICTURES = {".svg", ".png"}
_LINK = re.compile(r"(\]\()([^)\s#]*)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def copy(root: Path, site: Path) -> None:
    """Copy all pages of the project, and make pages of the sources to which they link.

    The home page is home.md.in in place of the README.
    """
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True).stdout
    sources: set[Path] = set()
    for name in tracked.split():
        page = Path(name)
        source = root / _HOME if page == _README else root / page
        text = _outside_code(source.read_text(), partial(_adapt, root, page, sources))
        _write(site / _place(page), text)
    done: set[Path] = set()
    while sources - done:
        for source in sorted(sources - done):
            done.add(source)
            _source_page(root, site, source)


def _place(page: Path) -> Path:
    return Path("index.md") if page == _README else page


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if part.startswith("```") else change(part) for part in _FENCE.split(text))


def _adapt(root: Path, page: Path, sources: set[Path], text: str) -> str:
    """Let links lead to pages of the site, and write lists and tables as Python's Markdown reads them."""

    def target(found: re.Match[str]) -> str:
        begin, name, end = found.groups()
        if not name or re.match(r"[a-z]+:", name):
            return found[0]
        file = Path(*_normal((page.parent / name).parts))
        where = _on_site(root, file, sources)
        return begin + relative(where, _place(page)) + end

    text = _LINK.sub(target, text)
    text = re.sub(r"`[^`\n]*`", lambda code: code[0].replace(r"\|", "|"), text)
    return re.sub(r"^ {2,3}(?=\S)", "    ", text, flags=re.MULTILINE)


def _on_site(root: Path, file: Path, sources: set[Path]) -> Path:
    """Return the page of a file or folder of the project."""
    if (root / file).is_dir():
        readme = file / "README.md"
        if (root / readme).is_file():
            return _place(readme)
        sources.add(file)
        return file / "index.md"
    if file.suffix == ".md":
        return _place(file)
    sources.add(file)
    return file if file.suffix in _PICTURES else file.with_name(f"{file.name}.md")


def _source_page(root: Path, site: Path, source: Path) -> None:
    place = root / source
    if source.suffix in _PICTURES:
        (site / source).parent.mkdir(parents=True, exist_ok=True)
        (site / source).write_bytes(place.read_bytes())
    elif place.is_dir():
        listed = subprocess.run(["git", "ls-files", str(source)], cwd=root, capture_output=True, text=True, check=True)
        items = "\n".join(f"- `{name}`" for name in listed.stdout.split())
        _write(site / source / "index.md", f"# {source}\n\n{items}\n")
    else:
        text = place.read_text()
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
        language = _LANGUAGES.get(source.suffix, "text")
        _write(
            site / source.with_name(f"{source.name}.md"), f"# {source}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"
        )


def _normal(parts: tuple[str, ...]) -> list[str]:
    result: list[str] = []
    for part in parts:
        if part == "..":
            result.pop()
        elif part != ".":
            result.append(part)
    return result


def relative(target: Path, page: Path) -> str:
    """Return the link from a page to a target."""
    up = [".."] * len(page.parent.parts)
    return "/".join([*up, *target.parts])


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
