# SPDX-License-Identifier: Apache-2.0
"""Prints THIRD-PARTY.md: licences of code linked into the wheel's commands and libraries, and of installed packages.

`make licences` runs it, and a test compares its output with the file.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = (
    "spinkit",
    "spinkit-libpmi",
    "spinkit-libportals",
    "spinkit-libpspin",
    "spinkit-libsimclock",
    "spinkit-libsimpmix",
)
"""The crates whose commands and libraries are in the wheel."""

_TEXT = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|UNLICENSE)", re.IGNORECASE)
"""The beginning of the names of files with a licence."""

_FENCE = "~~~~"


@dataclass(frozen=True, order=True)
class Crate:
    """A crate of others."""

    name: str
    version: str
    licence: str
    source: str

    def texts(self) -> list[str]:
        """Return the texts of its licence files, and of those of sources that it contains."""
        home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
        folder = next(home.glob(f"registry/src/*/{self.name}-{self.version}"))
        files = sorted(file for file in folder.rglob("*") if file.is_file() and _is_licence(file))
        texts = (file.read_text(encoding="utf-8", errors="replace") for file in files)
        return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in texts]


def _is_licence(file: Path) -> bool:
    return bool(_TEXT.match(file.name)) or file.parent.name == "LICENSES"


def crates() -> list[Crate]:
    """Return the external crates linked into shipped files, by name and version."""
    command = ["cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--no-dedupe"]
    select = [word for name in SHIPPED for word in ("--package", name)]
    told = subprocess.run(
        [*command, *select, "--format", "{p}\t{l}\t{r}"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    found = set()
    for line in filter(None, told.splitlines()):
        package, _, rest = line.partition("\t")
        licence, _, source = rest.partition("\t")
        name, version, *more = package.split()
        if not any(word.startswith("(/") for word in more):
            found.add(Crate(name, version.removeprefix("v"), licence or "see its text", source or "–"))
    return sorted(found)


def distributions() -> Iterator[Distribution]:
    """Return the Python packages that requirements.txt and requirements-mpi.txt pin, as they are installed."""
    for listed, places in (
        ("requirements.txt", [Path(sys.prefix)]),
        ("requirements-mpi.txt", sorted((Path(sys.prefix) / "mpi").iterdir())),
    ):
        folders = [folder for place in places for folder in place.glob("lib/python*/site-packages")]
        there = {_canonical(found.name): found for found in Distribution.discover(path=[str(f) for f in folders])}
        for line in (ROOT / listed).read_text(encoding="utf-8").splitlines():
            if match := re.match(r"([\w.-]+)==(\S+)", line):
                found = there.get(_canonical(match[1]))
                if found is None or found.version != match[2]:
                    raise SystemExit(f"{listed}: {match[1]} {match[2]} is not installed: make build test")
                yield found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _licence(found: Distribution) -> str:
    """Return the licence that a package's metadata names."""
    metadata = found.metadata
    named = metadata.get("License-Expression") or ""
    classifiers = [
        one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier") or () if one.startswith("License")
    ]
    first = (metadata.get("License") or "").strip().splitlines()
    text = named or " / ".join(one for one in classifiers if one != "OSI Approved") or (first[0] if first else "")
    return text or "see its files"


def page() -> str:
    """Return the text of THIRD-PARTY.md."""
    linked = crates()
    lines = [
        "# Software of others",
        "",
        "`make licences` writes this page (python/build_backend/third_party.py); spinkit itself has the licence in",
        "[LICENSE](LICENSE).",
        "",
        "## In the commands and libraries",
        "",
        "These crates, and the standard library of Rust (MIT OR Apache-2.0), are linked into them.",
        "",
        "| crate | version | licence | source |",
        "| --- | --- | --- | --- |",
    ]
    lines += [f"| {one.name} | {one.version} | {one.licence} | {one.source} |" for one in linked]
    lines += [
        "",
        "## Installed beside them",
        "",
        "Python packages that `make build` and `make test` install; the wheel needs some of them (`pyproject.toml`),",
        "and contains none.",
        "",
        "| package | version | licence |",
        "| --- | --- | --- |",
    ]
    for found in sorted(distributions(), key=lambda found: _canonical(found.name)):
        lines.append(f"| {_canonical(found.name)} | {found.version} | {_licence(found)} |")
    lines += ["", "## Texts of the crates' licences", ""]
    owners: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for one in linked:
        for text in one.texts():
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(key, text)
            names = owners.setdefault(key, [])
            if one.name not in names:
                names.append(one.name)
    for key, text in texts.items():
        lines += [f"{', '.join(owners[key])}:", "", f"{_FENCE}text", text, _FENCE, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
