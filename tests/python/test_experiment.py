from __future__ import annotations

from pathlib import Path

import pytest
from spinkit import _experiment, _pool
from spinkit._errors import SpinkitError

from .conftest import CHECKOUT, Program


def test_ping_pong_is_the_papers_grid(home: Path, program: Program) -> None:
    experiment = _experiment.load(home, "ping-pong")
    assert experiment.machines == ("sc17-int", "sc17-dis")
    assert [(s.name, s.nic, s.mode) for s in experiment.series] == [
        ("rdma", "rdma", "rdma"),
        ("portals4", "portals4", "triggered"),
        ("spin-store", "spin", "store"),
        ("spin-stream", "spin", "stream"),
    ]
    assert experiment.values(quick=False) == tuple(2**n for n in range(2, 19))
    assert set(experiment.values(quick=True)) < set(experiment.values(quick=False))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('relation = "speedup"', 'relation = "fast"', "claim[1].relation: expected one of"),
        ("ranks = 2", "ranks = 0", "program.ranks: expected at least 1"),
        ("ranks = 2", "ranks = true", "program.ranks: expected an integer, found True"),
        ("ranks = 2", "ranks = 2\nrank = 1", "program.rank: unknown key"),
        ('"ping-pong.c"', '"pong.c"', "program.sources[0]: no file pong.c"),
        ('axis = "bytes"', "axis = 3", "sweep.axis: expected a string, found 3"),
        ("    4, 8,", "    8, 4,", "sweep.values: expected increasing numbers"),
        ('axis = "bytes"', 'axis = "bytes"\nnames = ["four"]', "sweep.names: expected one for each of the 17 values"),
        ("timeout_s = 120", "", "run.timeout_s: missing"),
        ("quick_values = [8,", "quick_values = [9,", "run.quick_values[0]: 9 is not in sweep.values"),
        ("quick_values = [8,", "quick_values = [", "claim[0].values: run.quick_values leaves nothing"),
        ('name = "portals4"', 'name = "rdma"', "series[1].name: rdma is there twice"),
        ('name = "large-order"', 'name = "latency"', "claim[4].name: latency is there twice"),
        ('machine = "sc17-int"', 'machine = "sc18"', "figure[0].machine: sc18 is not in machines"),
        ('key = "half_rtt_ps"', 'key = "half_rtt_ps"\nbytes = 0', "measure.bytes: expected at least 1, and a key"),
        ('key = "half_rtt_ps"', 'key = "count"\nbytes = 64', "measure.bytes: expected at least 1, and a key"),
        ("[measure]", "[measures]", "measure: missing"),
        ('title = "Ping-pong latency"', "title =", "Invalid value"),
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


def test_series_of_one_card_run_together() -> None:
    experiment = _experiment.read(CHECKOUT / "experiments" / "broadcast" / "experiment.toml")
    jobs = _pool.jobs(experiment, quick=True)
    assert [(job.machine, len(job.series)) for job in jobs[:3]] == [("sc17-dis", 2), ("sc17-dis", 2), ("sc17-dis", 4)]
    assert len(jobs) == 6
    assert jobs[0].options == ["-n", "128", "--machine", "sc17-dis", "--nic", "rdma"]
    pairs = ("--mode", "rdma", "--bytes", "8", "--mode", "rdma", "--bytes", "65536")
    assert jobs[0].arguments == ["--ranks", "2,8,64,128", *pairs]


def test_measures_are_shown_as_times_bandwidths_and_counts() -> None:
    time, count = _experiment.Measure("x_ps", "X"), _experiment.Measure("hpus", "HPUs")
    bandwidth = _experiment.Measure("x_ps", "X", bytes=1 << 30)
    assert (time.heading, time.shown(1_500_000), time.text(1_500_000)) == ("X [µs]", 1.5, "1.5000")
    assert (bandwidth.heading, bandwidth.shown(10**12), bandwidth.text(10**12)) == ("X [GiB/s]", 1.0, "1.00")
    assert (count.heading, count.shown(8), count.text(8)) == ("HPUs", 8, "8")
