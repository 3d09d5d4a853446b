# SPDX-License-Identifier: Apache-2.0
"""Every command has a man page with all its options, and shells complete commands and options."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from spinkit import _manuals, _paths
from spinkit.cli import main


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    described = json.dumps(_manuals.describe("spinkit", main))
    command = [_paths.command("spinkit-manuals"), folder]
    done = subprocess.run(command, input=described, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def page(share: Path, name: str) -> str:
    return (share / "man" / "man1" / f"{name}.1").read_text().replace("\\-", "-")


def test_every_command_has_a_page(share: Path) -> None:
    pages = {file.stem for file in (share / "man" / "man1").iterdir()}
    assert {f"spinkit-{name}" for name in main.commands} | {"spincc", "spinrun", "spinkit"} <= pages
    assert {"spinkit-goal-gen", "spinkit-goal-run-packet", "spinkit-pspin-run", "spinkit-pspin-sweep"} <= pages
    assert not any("help" in name for name in pages)


@pytest.mark.parametrize("command", ["spincc", "spinrun", "spinkit-machines", "spinkit-goal gen", "spinkit-pspin run"])
def test_a_page_has_all_options(share: Path, command: str) -> None:
    told = subprocess.run(
        [_paths.command(command.split()[0]), *command.split()[1:], "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z][\w-]*)", told, re.MULTILINE))
    assert len(options) > 3
    text = page(share, command.replace(" ", "-"))
    assert {option for option in options if option not in text} == set()


def test_pages_of_python_commands_have_their_options(share: Path) -> None:
    for name in ("reproduce", "profile"):
        options = {flag for one in main.commands[name].params for flag in one.opts if flag.startswith("--")}
        assert len(options) > 3
        assert {option for option in options if option not in page(share, f"spinkit-{name}")} == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["spinrun", "--mach"], ["--machine"]),
        (["spincc", "--dis"], ["--disassemble"]),
        (["spinkit", "goal", "impo"], ["import"]),
        (["spinkit", "repro"], ["reproduce"]),
        (["spinrun", "--nic", "port"], ["portals4"]),
    ],
)
def test_bash_completes(share: Path, words: list[str], expected: list[str]) -> None:
    file = share / "bash-completion" / "completions" / words[0]
    script = f"""source {file}
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
_{words[0]} {words[0]} {words[-1]} {words[-2]}
echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_other_shells_have_their_files(share: Path) -> None:
    for name in ("spincc", "spinrun", "spinkit"):
        assert (share / "zsh" / "site-functions" / f"_{name}").read_text().startswith(f"#compdef {name}\n")
        assert f"complete -c {name} " in (share / "fish" / "vendor_completions.d" / f"{name}.fish").read_text()


def test_wrong_usage_and_descriptions_are_errors(tmp_path: Path) -> None:
    command = _paths.command("spinkit-manuals")
    assert subprocess.run([command], capture_output=True, check=False).returncode == 2
    done = subprocess.run([command, tmp_path], input="{", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
