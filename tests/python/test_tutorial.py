# SPDX-License-Identifier: Apache-2.0
"""The tutorial is correct: its files compile as they stand, and its commands print what it says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

from spinkit import _paths

from .conftest import CHECKOUT

PAGE = (CHECKOUT / "docs" / "tutorial.md").read_text()
STRICT = ["-Wall", "-Wextra", "-Werror"]


def execute(line: str, folder: Path) -> tuple[int, str]:
    """Run a command of the page; return its status, and what it prints with its errors."""
    status, told = 0, ""
    for command in line.split(" && "):
        name, *arguments = shlex.split(command)
        if name == "cp":
            shutil.copy(folder / arguments[0], folder / arguments[1])
            continue
        done = subprocess.run(
            [_paths.command(name), *arguments, *(STRICT if name == "spincc" else [])],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        status, told = done.returncode, told + done.stdout
    return status, told


def says(expected: str, told: str) -> bool:
    """Return true if the output matches the page's, where an ellipsis matches anything."""
    return re.fullmatch(re.escape(expected).replace("…\n", "…").replace("…", "(?s:.*)"), told) is not None


def test_the_steps_print_what_the_page_says(tmp_path: Path) -> None:
    failed, ran, written = [], 0, set()
    for language, body in re.findall(r"^```(c|console)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        if language == "c":
            [name] = re.findall(r"\A/\* (\w+\.[ch]): ", body)
            (tmp_path / name).write_text(body)
            written.add(name)
            continue
        for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, expected = step.partition("\n")
            status, told = execute(line, tmp_path)
            assert says(expected, told), f"{line}: {told}"
            failed += [line] * (status != 0)
            ran += line.startswith("spinrun")
    # The sanitizer finds mistakes, and the filter that discards what the host waits for ends as a deadlock.
    assert failed == ["spinrun -n 2 --sanitize ./tutorial", "spinrun -n 4 ./tutorial"]
    assert ran > 12
    assert written == {"tutorial.c", "handlers.h", "sum.h"}


def test_there_are_ten_steps() -> None:
    steps = re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)
    assert steps == [str(number) for number in range(1, 11)]
    parts = re.split(r"^## \d+\. ", PAGE, flags=re.MULTILINE)[1:]
    assert all("```console\n" in part for part in parts), "each step is something to do"


def test_an_ellipsis_stands_for_anything_and_nothing_else_does() -> None:
    assert says("a …\nc\n", "a b\nx\nc\n")
    assert says("…\nc\n", "a\nc\n")
    assert not says("a …\nc\n", "a b\nd\n")
    assert not says("after 1.4 us\n", "after 1x4 us\n")
