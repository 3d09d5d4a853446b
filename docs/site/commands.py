# SPDX-License-Identifier: Apache-2.0
"""The reference of commands: what each and its subcommands print for --help, and the machines."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

_COMMANDS = ("spincc", "spinrun", "spinkit")
_WIDTH = "100"
# Its words are those of a compiler, so it has no --help of its own.
_WITHOUT_HELP = ["spinkit", "pspin", "cc"]


def helps(bin_folder: Path) -> str:
    """Run the commands with --help, and write a page of what they print."""
    page = ["# Commands", "What `--help` prints, when this site was built."]
    for name in _COMMANDS:
        _add(page, bin_folder, [name], 2)
    return "\n\n".join(page) + "\n"


def _add(page: list[str], bin_folder: Path, command: list[str], level: int) -> None:
    text = _run(bin_folder, [*command, "--help"])
    page += [f"{'#' * min(level, 4)} {' '.join(command)}", f"```text\n{text.strip()}\n```"]
    listed = re.search(r"^Commands:\n((?:  .*\n?)+)", text, re.MULTILINE)
    for line in listed[1].splitlines() if listed else ():
        found = re.match(r"  ([a-z][\w-]*)  +\S", line)
        if found and found[1] != "help" and [*command, found[1]] != _WITHOUT_HELP:
            _add(page, bin_folder, [*command, found[1]], level + 1)


def machines(bin_folder: Path) -> str:
    """Write a page of all machines, with every parameter and its source."""
    page = [
        "# Machines",
        "The files of `machines`, as `spinkit machines NAME` shows them; `--set KEY=VALUE` changes a parameter.",
    ]
    names = [
        line.split()[0].rstrip(":") for line in _run(bin_folder, ["spinkit-machines"]).splitlines() if line.strip()
    ]
    for machine in json.loads(_run(bin_folder, ["spinkit-machines", "--json", "--", *names])):
        rows = [f"| `{p['key']}` | {p['value']} {p['unit']} | {_cell(p)} |" for p in machine["parameters"]]
        page += [
            f"## {machine['name']}",
            f"{machine['description']}.",
            "\n".join(["| parameter | value | source |", "| --- | --- | --- |", *rows]),
        ]
    return "\n\n".join(page) + "\n"


def _cell(parameter: dict[str, Any]) -> str:
    words = parameter["source"]
    if assumed := parameter.get("assumed"):
        plausible = " to ".join(assumed["range"]) if assumed.get("range") else ", ".join(assumed["values"])
        words = f"{words}; plausible: {plausible}; {assumed['reason']}"
        if assumed.get("anchor"):
            words += f" ({assumed['anchor']})"
    return re.sub(r"([|*_\[\]])", r"\\\1", words).replace("<", "&lt;")


def _run(bin_folder: Path, command: list[str]) -> str:
    environment = os.environ | {"COLUMNS": _WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [bin_folder / command[0], *command[1:]], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr}")
    return done.stdout
