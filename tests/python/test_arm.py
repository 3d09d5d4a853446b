# SPDX-License-Identifier: Apache-2.0
"""Programs on ARM HPUs: compilation with `--hpu armv7a`, the same data as on RISC-V, and refusals."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit.experiments import _model, _reader

from .conftest import CHECKOUT

PROGRAMS = CHECKOUT / "tests" / "paper"
RANKS = {"ping_pong": 2, "accumulate": 2, "broadcast": 8, "datatype": 2, "raid": 3, "appendix_b": 2}


def call(command: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([_paths.command(command), *arguments], capture_output=True, text=True, check=False)


def readme_program(folder: Path) -> Path:
    source = folder / "sum.c"
    found = re.search(r"^```c\n(.*?)^```$", (CHECKOUT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    source.write_text(found[1])
    return source


def test_the_program_of_the_readme_gives_the_same_sum(tmp_path: Path) -> None:
    program = tmp_path / "sum"
    done = call("spincc", "--hpu", "armv7a", "-g", readme_program(tmp_path), "-o", program)
    assert (done.returncode, done.stderr) == (0, "")
    done = call("spinrun", "-n", "2", "--machine", "sc17-arm-int", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sum 60000 after ")
    again = call("spinrun", "-n", "2", "--machine", "sc17-arm-int", program)
    assert again.stdout == done.stdout


def test_lines_of_the_source_have_the_instructions(tmp_path: Path) -> None:
    program, profile = tmp_path / "sum", tmp_path / "profile.json"
    call("spincc", "--hpu", "armv7a", "-O2", "-g", readme_program(tmp_path), "-o", program)
    arguments = ["profile", "-n", "2", "--machine", "sc17-arm-int", "--json", str(profile), str(program)]
    done = subprocess.run([_paths.command("spinkit"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    handlers = {one["name"]: one for one in json.loads(profile.read_text())["handlers"]}
    hottest = max(handlers["add"]["lines"], key=lambda line: line["instructions"])
    assert hottest["line"] == 6  # the loop
    assert hottest["share"] > 0.9


@pytest.mark.parametrize("machine", ["sc17-arm-int", "sc17-arm-dis"])
@pytest.mark.parametrize("name", RANKS)
def test_handlers_of_the_paper_move_the_right_data(name: str, machine: str, tmp_path: Path) -> None:
    """Each program compares the data with a plain computation on the host."""
    program = tmp_path / name
    done = call("spincc", "--hpu", "armv7a", "-O2", f"-I{PROGRAMS / 'listings'}", PROGRAMS / f"{name}.c", "-o", program)
    assert (done.returncode, done.stderr) == (0, "")
    checks = ["--fail-on-drop", "--fail-on-handler-error", "--timeout", "100"]
    done = call("spinrun", "-n", str(RANKS[name]), "--nic", "spin", "--machine", machine, *checks, program)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_for_risc_v_is_refused_with_the_remedy(tmp_path: Path) -> None:
    program = tmp_path / "sum"
    call("spincc", readme_program(tmp_path), "-o", program)
    done = call("spinrun", "-n", "2", "--machine", "sc17-arm-int", program)
    assert done.returncode == 1
    assert "the program has no device code for HPU kind armv7a" in done.stderr
    assert "recompile with spincc --hpu armv7a" in done.stderr


def test_pspin_has_no_arm_cores(tmp_path: Path) -> None:
    program = tmp_path / "sum"
    call("spincc", "--hpu", "armv7a", readme_program(tmp_path), "-o", program)
    done = call("spinrun", "-n", "2", "--machine", "pspin-400g", "--set", "hpu.kind=armv7a", program)
    assert done.returncode == 2
    assert "hpu.kind=armv7a: an HPU of PsPIN is a RISC-V core" in done.stderr


def test_an_experiment_on_arm_has_differences_of_its_model() -> None:
    base = _reader.load(CHECKOUT, "raid5")
    [talk] = [claim for claim in base.claims if claim.name == "bandwidth-talk"]
    assert {model for one in talk.expected for model in one.models} == {"sc17", "loggopsim2"}
    arm = _model.on_model(base, "sc17-arm", _paths.command("spinkit-machines"))
    assert (arm.name, arm.machine_files, arm.kinds) == (
        "raid5-sc17-arm",
        ("sc17-arm-int", "sc17-arm-dis"),
        ("armv7a",),
    )
    [talk] = [claim for claim in arm.claims if claim.name == "bandwidth-talk"]
    [vectors] = talk.expected  # only the integrated card; that of RISC-V cores on the discrete card is gone
    assert (vectors.models, vectors.machines) == (("sc17-arm",), ("int",))
    assert [run.flags for run in vectors.shown] == [("-fno-tree-vectorize",)]
    # A claim without differences of ARM has those of RISC-V.
    datatype = _model.on_model(_reader.load(CHECKOUT, "datatype"), "sc17-arm", _paths.command("spinkit-machines"))
    [lines] = [claim for claim in datatype.claims if claim.name == "rdma-within-lines"]
    assert lines.expected
    assert all(one.models == ("sc17-arm",) for one in lines.expected)


def test_the_papers_claims_hold_on_arm_or_differ_for_a_stated_reason(tmp_path: Path) -> None:
    done = call("spinkit", "reproduce", "ping-pong", "--quick", "--check", "--model", "sc17-arm", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "ping-pong-sc17-arm" / "results.json").read_text())
    [count] = [one for one in results["claims"] if one["name"] == "instructions"]
    assert {one["number"] for one in count["numbers"]} == {24}
