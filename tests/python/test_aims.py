# SPDX-License-Identifier: Apache-2.0
"""The aims of `spinkit bench` beside the measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spinkit.suites import _aims, _bench
from spinkit.suites._aims import Number


def _compared(*numbers: Number) -> dict[str, _aims.Compared]:
    return {compared.aim.name: compared for compared in _aims.compare(numbers)}


def test_a_number_is_compared_with_the_aim_of_its_name() -> None:
    halo, start = "goal/loggops/halo/1024", "ranks/start-barrier-end/1024"
    slow = _compared(Number(halo, 7.6e6, "events/s"), Number(start, 2.4, "s"))
    assert [slow[name].is_reached for name in (halo, start)] == [False, False]
    fast = _compared(Number(halo, 12e6, "events/s"), Number(start, 0.5, "s"), Number("other", 1, "s"))
    assert [fast[name].is_reached for name in (halo, start)] == [True, True]
    assert str(slow[start]) == f"{start}: 2.4, aim <= 1 s, missed"
    assert str(fast[halo]) == f"{halo}: 1.2e+07, aim >= 1.2e+07 events/s, reached; peer LogGOPSim is not packaged"


def test_what_is_not_measured_says_so_and_is_not_reached() -> None:
    traces = _compared()["goal/loggops/mpi-traces"]
    assert "not measured (needs traces of an MPI program), aim >= 1.6e+07 events/s; peer" in str(traces)
    assert not any(compared.is_reached for compared in _compared().values())


def test_units_must_be_those_of_the_aim() -> None:
    with pytest.raises(ValueError, match=r"measured in ns, its aim is in events/s"):
        _compared(Number("goal/loggops/halo/1024", 1.0, "ns"))


def test_a_peer_that_is_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "LogGOPSim"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _compared()["goal/loggops/halo/1024"].peer == f"peer LogGOPSim is at {program}, not run"


def test_the_file_has_the_machine_its_load_and_the_aims(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    _bench.write([Number("messages/stream/2", 600e3, "messages/s")], file)
    content = json.loads(file.read_bytes())
    assert len(content["machine"]["load"]) == 3
    assert "CPU time" in content["method"]
    aims = {aim["name"]: aim for aim in content["aims"]}
    assert (aims["messages/stream/2"]["measured"], aims["messages/stream/2"]["reached"]) == (600e3, True)
    assert len(aims) == len(_aims.AIMS)
