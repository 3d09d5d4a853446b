# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/use-cases: their commands run, and the change that each proposes has the effect that it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit.experiments import _reader

from .conftest import CHECKOUT

PAGES = {path.stem: path.read_text() for path in sorted((CHECKOUT / "docs" / "use-cases").glob("*.md"))}
del PAGES["README"]
FAILURES = ("--fail", "--kill-card")


def commands(text: str) -> list[list[str]]:
    """Return the commands of the console blocks of a text, without comments and the part after `&&`."""
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    steps = [step for block in blocks for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    lines = [re.match(r"(?:.*\\\n)*.*", step) for step in steps]
    return [shlex.split(line[0].replace("\\\n", " ").partition(" && ")[0], comments=True) for line in lines if line]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    name, *arguments = command
    home = {"SPINKIT_HOME": str(folder)} if name == "spincc" else {}
    return subprocess.run(
        [_paths.command(name), *arguments],
        cwd=folder,
        env=os.environ | home,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def checkout(folder: Path) -> None:
    for name in ("sdk", "experiments"):
        shutil.copytree(CHECKOUT / name, folder / name)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_page_run(page: str, tmp_path: Path) -> None:
    """Each ends with status 0, or, when a rank or card is to die, names it. "Change it" has a separate test."""
    checkout(tmp_path)
    ran = 0
    for command in commands(PAGES[page].partition("## Change it")[0]):
        if command[0] == "spinkit":
            assert command[1] == "reproduce"
            names = [word for word in command[2:] if not word.startswith("--")]
            assert set(names) <= set(_reader.available(CHECKOUT)), command
        elif command[0] == "python":
            assert (CHECKOUT / command[1]).exists(), command  # minutes; the use case's own test runs the script
        else:
            done = run(command, tmp_path)
            has_failure = any(option in command for option in FAILURES)
            assert done.returncode in ((0, 1) if has_failure else (0,)), (command, done.stderr)
            assert not has_failure or re.search(r"rank \d+: its (card|process)", done.stderr), (command, done.stderr)
            ran += command[0] == "spinrun"
    assert ran > 0


@dataclass(frozen=True)
class Change:
    """Contents of the section "Change it": a piece of a file, and its replacement; and the keys of the results."""

    file: str
    old: str
    new: str
    keys: tuple[str, ...] = ("time_ps",)


WRITE = """\
    failures |=
        PtlHandlerDMAToHostNB(p.base + sizeof *tag, tag->offset, p.length - sizeof *tag, PTL_ME_HOST_MEM, &written);
"""
COPIES = """\
    failures |= ft_broadcast_forward(b, &p, b->farthest, child, false);
    if (b->both)
        failures |= ft_broadcast_forward(b, &p, b->farthest, 0, true);
"""
CHANGES = {
    "allreduce": Change("sdk/handlers/allreduce/allreduce.h", "ALLREDUCE_LEAST = 512", "ALLREDUCE_LEAST = 4096"),
    "bfs": Change("sdk/handlers/graph/graph.h", "(__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0 &&", ""),
    "consensus": Change(
        "experiments/use-cases/consensus/consensus.c", "quorum = replicas / 2 + 1;\n#if", "quorum = replicas;\n#if"
    ),
    "reed-solomon": Change(
        "sdk/handlers/reed-solomon/reed_solomon.h",
        "words < end; words += 4) {",
        "words < end; words++) {\n        for (uint32_t left = times; left > 0; left--)\n"
        "            *words = reed_solomon_double(*words);\n        continue;",
    ),
    "conditional-read": Change(
        "sdk/handlers/conditional-read/conditional_read.h", "CONDITIONAL_READ_AHEAD = 4", "CONDITIONAL_READ_AHEAD = 1"
    ),
    "switch-allreduce": Change("", "-DSWITCH_ALLREDUCE_TYPE=double", ""),
    "ft-broadcast": Change("sdk/handlers/ft-broadcast/ft_broadcast.h", WRITE + COPIES, COPIES + WRITE),
    "kvstore": Change(
        "sdk/handlers/kvstore/table.h",
        "replaces = place->link != 0 && place->link == (place->head & KV_LINK);",
        "replaces = false;",
        keys=("served", "cpu_ps", "p99_ps"),
    ),
}
# Keys of results whose numbers are not in µs on a page.
UNITS = {"served": 1.0, "cpu_ps": 1e3}


def results(folder: Path, steps: list[list[str]], keys: tuple[str, ...]) -> list[float]:
    """Run the commands; return these numbers of the results, in the units of the page."""
    found = []
    for command in steps:
        done = run(command, folder)
        assert done.returncode == 0, (command, done.stderr)
        points = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found += [point[key] / UNITS.get(key, 1e6) for point in points for key in keys]
    return found


@pytest.mark.parametrize("page", CHANGES)
def test_the_change_has_the_effect_that_the_page_says(page: str, tmp_path: Path) -> None:
    change = CHANGES[page]
    text = PAGES[page].partition("## Change it")[2]
    steps = [step for step in commands(text) if not any(option in step for option in FAILURES)]
    checkout(tmp_path)
    if change.file == "":
        plain = [[word for word in step if word != change.old] for step in steps]
        before, after = (results(tmp_path, one, change.keys) for one in (plain, steps))
    else:
        before = results(tmp_path, steps, change.keys)
        file = tmp_path / change.file
        assert change.old in file.read_text()
        file.write_text(file.read_text().replace(change.old, change.new, 1))
        after = results(tmp_path, steps, change.keys)
    assert len(before) == len(after) > 0
    assert before != after
    for number in (*before, *after):
        shown = [f"{number:.{digits}f}" for digits in (0, 1, 2, 3) if digits > 0 or number.is_integer()]
        assert any(re.search(rf"\b{re.escape(one)}\b", text) for one in shown), f"{number}: {before} {after}"


def test_without_its_second_look_transactions_are_lost_as_the_page_says(tmp_path: Path) -> None:
    text = PAGES["transactions"].partition("## Change it")[2]
    correct = "uint64_t bytes = has_committed && client->held_writes > 0 ? transaction_drain(host) : 0;"
    replacement = re.search(r"^uint64_t bytes = 0;", text, re.MULTILINE)
    assert replacement is not None
    checkout(tmp_path)
    file = tmp_path / "sdk" / "handlers" / "transactions" / "transactions.h"
    assert file.read_text().count(correct) == 1
    file.write_text(file.read_text().replace(correct, replacement[0]))
    build, broken = (run(command, tmp_path) for command in commands(text))
    assert (build.returncode, broken.returncode) == (0, 1), broken.stdout
    [told] = re.findall(r"^rank \d+: not serializable: .*", broken.stderr, re.MULTILINE)
    assert told in text
