from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spinkit import _experiment, _pool
from spinkit._errors import SpinkitError
from spinkit._machines import Machine, Parameter

from .conftest import CHECKOUT, Program


def test_ping_pong_is_the_papers_grid_and_more() -> None:
    experiment = _experiment.load(CHECKOUT, "ping-pong")
    assert experiment.machines == ("int", "dis")
    assert [(s.name, s.nic, s.mode) for s in experiment.series] == [
        ("rdma", "rdma", "rdma"),
        ("portals4", "portals4", "triggered"),
        ("spin-store", "spin", "store"),
        ("spin-stream", "spin", "stream"),
    ]
    assert experiment.values(quick=False) == tuple(2**n for n in range(2, 23))
    assert set(experiment.values(quick=True)) < set(experiment.values(quick=False))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('relation = "speedup"', 'relation = "fast"', "claim[1].relation: invalid value 'fast'"),
        ("ranks = 2", "ranks = 0", "program.ranks: expected at least 1"),
        ("ranks = 2", "ranks = true", "program.ranks: expected an integer or a string, found true or false"),
        ("ranks = 2", "ranks = 2\nrank = 1", "program.rank: unknown key"),
        ('"ping-pong.c"', '"pong.c"', "program.sources[0]: there is no file pong.c"),
        ('axis = "bytes"', "axis = 3", "sweep.axis: expected a string, found an integer"),
        ("    4, 8,", "    8, 4,", "sweep.values: expected increasing numbers"),
        ('axis = "bytes"', 'axis = "bytes"\nnames = ["four"]', "sweep.names: expected one for each of the 17 values"),
        ("timeout_s = 120", "", "run.timeout_s: missing"),
        ("quick_values = [8,", "quick_values = [9,", "run.quick_values[0]: 9 is not in sweep.values"),
        (
            "quick_values = [8,",
            "quick_values = [",
            "claim[0].values: run.quick_values contains no value that this claim tests",
        ),
        ('name = "portals4"', 'name = "rdma"', "series[1].name: rdma occurs twice"),
        ('name = "large-order"', 'name = "latency"', "claim[4].name: latency occurs twice"),
        ('machine = "sc17-int"', 'machine = "sc18"', "figure[0].machine: sc18 is not in machines"),
        ('key = "half_rtt_ps"', 'key = "half_rtt_ps"\nbytes = 0', "measure.bytes: expected at least 1, and a key"),
        ('key = "half_rtt_ps"', 'key = "count"\nbytes = 64', "measure.bytes: expected at least 1, and a key"),
        ("[measure]", "[measures]", "measures: unknown key"),
        ('title = "Ping-pong latency"', "title =", "Invalid value"),
        ("timeout_s = 120", f"timeout_s = {'9' * 5000}", "Exceeds the limit"),
        (
            "timeout_s = 120",
            "timeout_s = 9223372036854775808",
            "run.timeout_s: expected an integer <= 9223372036854775807",
        ),
        ("timeout_s = 120", f"timeout_s = 0x{'f' * 5000}", "run.timeout_s: expected an integer <= 9223372036854775807"),
        ('axis = "bytes"', f"axis = 0x{'f' * 5000}", "sweep.axis: expected a string, found an integer"),
        ('axis = "bytes"', f"axis = [0x{'f' * 5000}]", "sweep.axis: expected a string, found a list"),
        ("timeout_s = 120", f"timeout_s = {'[' * 5000}{']' * 5000}", "arrays or tables are nested too deeply"),
        ("at_least = 0.30", "at_least = nan", "claim[0].at_least: expected a number >= -1.79"),
    ],
)
def test_mistakes_name_file_and_key(home: Path, program: Program, old: str, new: str, message: str) -> None:
    file = home / "experiments" / "ping-pong" / "experiment.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(SpinkitError) as error:
        _experiment.load(home, "ping-pong")
    assert str(error.value).startswith(f"{file}: {message}")


def test_bytes_that_are_not_utf8_name_their_line(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_bytes(b'title = "x"\npaper = "\xa74"\n')
    with pytest.raises(SpinkitError) as error:
        _experiment.read(file)
    assert str(error.value) == f"{file}:2: byte 0xa7 is not UTF-8"


@contextmanager
def suppress_errors_that_name(file: Path) -> Iterator[None]:
    try:
        yield
    except SpinkitError as error:
        if not str(error).startswith(f"{file}:"):
            raise AssertionError(str(error)) from error


SAMPLE = (CHECKOUT / "experiments" / "ping-pong" / "experiment.toml").read_bytes()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.integers(0, len(SAMPLE)),
    cut=st.integers(0, 40),
    new=st.binary(max_size=40)
    | st.sampled_from(
        [b"inf", b"-1", b"1e400", b"0x" + b"f" * 30, b"[" * 2000, b"{}", b"1979-05-27", b"[[claim]]\n", b'"\\u0000"']
    ),
)
def test_whatever_is_in_the_file_an_error_names_it(tmp_path: Path, start: int, cut: int, new: bytes) -> None:
    file = tmp_path / "experiment.toml"
    (tmp_path / "ping-pong.c").touch()
    file.write_bytes(SAMPLE[:start] + new + SAMPLE[start + cut :])
    with suppress_errors_that_name(file):
        _experiment.read(file)


def describe(machine: str, changes: tuple[str, ...]) -> Machine:
    parameters = {"network.radix": "36"} | dict(change.split("=", 1) for change in changes)
    return Machine(machine, "", (), tuple(Parameter(key, value, "", "") for key, value in parameters.items()))


def test_arguments_may_hold_parameters_of_the_machine(home: Path, program: Program) -> None:
    file = home / "experiments" / "ping-pong" / "experiment.toml"
    text = file.read_text()
    for mode, more in (("rdma", ""), ("triggered", '\nset = ["network.radix=16"]')):
        text = text.replace(f'mode = "{mode}"', f'mode = "{mode}"\nargs = ["{{network.radix}}-{{max}}"]{more}', 1)
    file.write_text(text)
    jobs = _pool.jobs(_experiment.read(file), quick=True, describe=describe)
    assert [job.arguments[-1] for job in jobs[:2]] == ["36-262144", "16-262144"]
    assert jobs[1].options[-2:] == ["--set", "network.radix=16"]
    file.write_text(text.replace("{network.radix}", "{network.width}"))
    job = _pool.jobs(_experiment.read(file), quick=True, describe=describe)[0]
    message = (
        r"'\{network.width\}-\{max\}' may contain only \{values\}, \{max\}, \{mode\} and parameters of the machine"
    )
    with pytest.raises(SpinkitError, match=message):
        _ = job.arguments


def test_series_of_one_card_share_a_run() -> None:
    experiment = _experiment.read(CHECKOUT / "experiments" / "broadcast" / "experiment.toml")
    jobs = _pool.jobs(experiment, quick=True, describe=describe)
    # The series of sPIN with one HPU has other parameters, and so a run of its own.
    assert [(job.machine, len(job.series)) for job in jobs[:4]] == [("sc17-dis", count) for count in (3, 3, 4, 1)]
    assert len(jobs) == 16
    assert jobs[0].options == ["-n", "128", "--machine", "sc17-dis", "--nic", "rdma"]
    pairs = [("rdma", "8"), ("rdma", "65536"), ("rdma-segments", "65536")]
    given = [word for mode, size in pairs for word in ("--mode", mode, "--bytes", size)]
    assert jobs[0].arguments == ["--ranks", "2,8,64,128", *given]


def test_measures_are_shown_as_times_bandwidths_and_counts() -> None:
    time, count = _experiment.Measure(key="x_ps", label="X"), _experiment.Measure(key="hpus", label="HPUs")
    bandwidth = _experiment.Measure(key="x_ps", label="X", bytes=1 << 30)
    assert (time.heading, time.shown(1_500_000), time.text(1_500_000)) == ("X [µs]", 1.5, "1.5000")
    assert (bandwidth.heading, bandwidth.shown(10**12), bandwidth.text(10**12)) == ("X [GiB/s]", 1.0, "1.00")
    assert (count.heading, count.shown(8), count.text(8)) == ("HPUs", 8, "8")
