# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site: `make docs` runs this in an environment with requirements-docs.txt."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import commands
import crate_graph
import gallery
import headers
import links
import pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "out" / "docs" / "pages"
SITE = ROOT / "out" / "site"
HEADERS = ("spin.h", "spin/types.h", "portals4.h")


def main() -> None:
    """Copy and generate the pages, build the site, and check its links."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=ROOT / ".venv" / "bin", help="folder of the commands")
    parser.add_argument("--crates", type=Path, help="folder of the pages that cargo doc has made")
    options = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    pages.copy(ROOT, PAGES)
    reference = PAGES / "reference"
    reference.mkdir()
    shutil.copy(Path(__file__).with_name("site.css"), PAGES)
    (PAGES / crate_graph.PICTURE.relative_to(ROOT)).write_text(crate_graph.draw(*crate_graph.read(ROOT)))
    include = ROOT / "sdk" / "include"
    read = [headers.read(include / name, include) for name in HEADERS]
    names = {name: f"{header.name}.md#{name}" for header in read for name in header.names()}
    for header in read:
        (reference / f"{header.name}.md").write_text(headers.markdown(header, names))
    gallery.write(ROOT, PAGES)
    (reference / "commands.md").write_text(commands.helps(options.bin))
    (reference / "machines.md").write_text(commands.machines(options.bin))
    (reference / "python.md").write_text(python())
    (reference / "crates.md").write_text(crates(options.crates is not None))
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean"]
    subprocess.run([*command, "--config-file", Path(__file__).with_name("mkdocs.yml")], env=environment, check=True)
    if options.crates is not None:
        shutil.copytree(options.crates, SITE / "rust", ignore=shutil.ignore_patterns("*.lock"))
    count, broken = links.broken(SITE, ("rust",))
    if broken:
        raise SystemExit("links that lead nowhere:\n  " + "\n  ".join(broken))
    built = sum(1 for _ in SITE.rglob("*.html"))
    site = SITE.relative_to(ROOT)
    print(f"{site}/index.html: {built} pages, {count} links checked")
    print(f"search needs a server: python3 -m http.server --directory {site}")


def python() -> str:
    """Write the page of the public Python modules, which mkdocstrings fills in."""
    folder = ROOT / "python" / "spinkit"
    modules = sorted(file.stem for file in folder.glob("[!_]*.py") if file.stem != "cli")
    entries = "\n\n".join(f"::: {name}" for name in ["spinkit", *(f"spinkit.{module}" for module in modules)])
    return f"# Python\n\nThe modules that programs may import; all others begin with `_` and may change.\n\n{entries}\n"


def crates(are_built: bool) -> str:
    """Write the list of the engine's crates, with links to the pages of cargo doc."""
    lines = [
        "# Rust crates",
        "The engine; [Architecture](../docs/architecture.md) says what each crate is for, and which may use which.",
        "",
    ]
    for file in sorted((ROOT / "crates").glob("*/*/src/lib.rs")):
        name = file.parents[1].name
        summary = re.match(r"((?://! .+\n)+)", file.read_text())
        if name in ("benches", "fuzzing") or summary is None:
            continue
        library = tomllib.loads((file.parents[1] / "Cargo.toml").read_text()).get("lib", {}).get("name", name)
        label = f'<a href="../rust/{library}/index.html"><code>{name}</code></a>' if are_built else f"`{name}`"
        lines.append(f"- {label}: {' '.join(line.removeprefix('//! ') for line in summary[1].splitlines())}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
