# SPDX-License-Identifier: Apache-2.0
"""The aims of `spinkit bench` beside the measurements."""

from __future__ import annotations

import json
import sys
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


def test_a_comparison_of_one_thread_with_one_says_so_and_reaches_no_aim() -> None:
    name = "goal/loggops/halo/1024/two-threads"
    number = Number(name, 1.6, "times-as-fast", "one thread was used, as two would be slower")
    assert str(number) == f"{name} 1.6 times-as-fast (one thread was used, as two would be slower)"
    compared = _compared(number)[name]
    assert str(compared) == (
        f"{name}: not measured (one thread was used, as two would be slower), aim >= 1.5 times-as-fast"
    )
    assert (compared.is_reached, compared.as_json()["measured"]) == (False, None)
    assert _compared(Number(name, 1.6, "times-as-fast"))[name].is_reached


def _command_with_threads(folder: Path, used: dict[int, int], seconds: dict[int, float]) -> list[str]:
    """Write a program that reports a run like `spinkit-goal`: for each --threads, the threads used and the time."""
    program = folder / "goal"
    program.write_text(
        f"""#!{sys.executable}
import json, sys
threads = int(sys.argv[-1])
used = {used}[threads]
report = {{"threads": used, "wall_seconds": {seconds}[used], "events": 100, "cpu_seconds": 4}}
open({str(folder / "report.json")!r}, "w").write(json.dumps(report))
""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return [str(program)]


def test_two_threads_are_compared_with_one_only_if_two_were_used(tmp_path: Path) -> None:
    times, report = {1: 3.0, 2: 2.0}, tmp_path / "report.json"
    two, one = _bench._two_threads(_command_with_threads(tmp_path, {1: 1, 2: 2}, times), report)
    assert (two, one["best_events_per_cpu_second"]) == ((1.5, "times-as-fast", ""), 25)
    two, _ = _bench._two_threads(_command_with_threads(tmp_path, {1: 1, 2: 1}, times), report)
    assert two == (1.0, "times-as-fast", "one thread was used, as two would be slower")


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
