# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from spinkit.cli import main
from spinkit.simulate import _machines
from spinkit.simulate._machines import Assumed, Machine

from .conftest import TIMES, Program

ASSUMED = {
    "host.poll_ns": Assumed("one access to memory", range=("12", "51")),
    "accelerator.contexts": Assumed("none given", range=("4", "16"), anchor="§2"),
    "accelerator.put_blocks": Assumed("the paper says may", values=("true", "false")),
}
# They change the numbers of the claim `latency`, which is 1 − 600,120 / 1,000,160 without a change.
SLOWER = {"sc17-int": TIMES["sc17-int"] | {"stream": [900_000, 15]}}
FASTER_CPU = {"sc17-int": TIMES["sc17-int"] | {"rdma": [950_000, 20]}}


@pytest.fixture
def assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make parameters of all machines assumptions."""
    load = _machines.load

    def with_assumptions(command: Path, name: str, changes: Sequence[str] = ()) -> Machine:
        machine = load(command, name, changes)
        parameters = (replace(one, assumed=ASSUMED.get(one.key)) for one in machine.parameters)
        return replace(machine, parameters=tuple(parameters))

    monkeypatch.setattr(_machines, "load", with_assumptions)


def reproduce(*options: str) -> Result:
    return CliRunner().invoke(main, ["reproduce", "ping-pong", "--quick", "--sensitivity", "-v", *options])


@pytest.mark.usefixtures("assumed")
def test_each_assumption_takes_its_other_values(home: Path, program: Program) -> None:
    program(changed={"accelerator.put_blocks=false": SLOWER, "host.poll_ns=12": FASTER_CPU})
    result = reproduce("--check")
    assert result.exit_code == 0, result.output
    written = json.loads(Path("out/ping-pong/sensitivity.json").read_text())
    changes = [(one["parameter"], one["value"], one["changed_to"], one["anchor"]) for one in written["changes"]]
    assert changes == [
        ("accelerator.contexts", 4, 16, "§2"),
        ("accelerator.put_blocks", True, False, None),
        ("host.poll_ns", 51, 12, None),
    ]
    effects = [next(claim for claim in one["claims"] if claim["name"] == "latency") for one in written["changes"]]
    before = 1 - 600_120 / 1_000_160
    assert [effect["before"] for effect in effects] == [before] * 3
    assert [effect["after"] for effect in effects] == [before, 1 - 900_120 / 1_000_160, 1 - 600_120 / 950_160]
    assert [(effect["holds"], effect["turns"]) for effect in effects] == [(True, False), (False, True), (True, False)]
    assert "latency, sc17-int, 8: 40.0 % → 10.0 %, does not hold" in result.stdout
    page = Path("out/ping-pong/index.html").read_text()
    assert "latency, sc17-int, 8: 40.0 % → 10.0 %, does not hold" in page
    assert page.count("range over each assumed parameter") >= 1
    # Cards without handlers have no HPUs: their 4 runs stay as they were, beside 4 + 4 with other HPUs, and 8.
    assert "20/20 ping-pong: " in result.stderr
    assert result.stderr.count("(from the cache)") == 4


@pytest.mark.usefixtures("assumed")
def test_a_change_that_does_not_run_is_told(home: Path, program: Program) -> None:
    program(changed={"host.poll_ns=12": "refused"})
    result = reproduce()
    assert result.exit_code == 0, result.output
    assert "does not run: ping-pong: RDMA on sc17-int, host.poll_ns = 12 ns: spinrun ended with status 1" in " ".join(
        result.stdout.split()
    )
    last = json.loads(Path("out/ping-pong/sensitivity.json").read_text())["changes"][-1]
    assert (last["claims"], "refused" in last["error"]) == ([], True)


def test_without_assumptions_nothing_is_changed(home: Path, program: Program) -> None:
    for file in (home / "machines").glob("*.toml"):
        paragraphs = file.read_text().split("\n\n")
        file.write_text("\n\n".join(paragraph for paragraph in paragraphs if "[assumed." not in paragraph))
    assert reproduce().exit_code == 0
    assert json.loads(Path("out/ping-pong/sensitivity.json").read_text())["changes"] == []
