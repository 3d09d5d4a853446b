# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spinkit._errors import SpinkitError
from spinkit.cli import main
from spinkit.experiments import _claims, _definition, _outcome, _reader
from spinkit.experiments._jobs import jobs as jobs_of
from spinkit.experiments._runners import ProgramRun
from spinkit.simulate._machines import Machine, Parameter

from .conftest import CHECKOUT, Program


def test_ping_pong_is_the_papers_grid_and_more() -> None:
    experiment = _reader.load(CHECKOUT, "ping-pong")
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
        ('name = "integrated"', 'name = "../x"', "figure[0].name: files are named by it: expected 1 to 200 bytes"),
        ('name = "integrated"', 'name = ".x"', "figure[0].name: files are named by it"),
        ('name = "integrated"', 'name = ""', "figure[0].name: files are named by it"),
        ('name = "integrated"', 'name = "x\\u0000"', "figure[0].name: files are named by it"),
        ('name = "integrated"', 'name = "discrete"', "figure[1].name: discrete occurs twice"),
        ('name = "portals4"', f'name = "{"x" * 201}"', "series[1].name: files are named by it"),
        ('mode = "rdma"', f'mode = "rdma"\nscript = "{"x" * 5000}"', "series[0].script: there is no file xxx"),
        ('"ping-pong.c"', f'"{"x" * 5000}"', "program.sources[0]: there is no file xxx"),
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
    file = home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(SpinkitError) as error:
        _reader.load(home, "ping-pong")
    assert str(error.value).startswith(f"{file}: {message}")


def test_bytes_that_are_not_utf8_name_their_line(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_bytes(b'title = "x"\npaper = "\xa74"\n')
    with pytest.raises(SpinkitError) as error:
        _reader.read(file)
    assert str(error.value) == f"{file}:2: byte 0xa7 is not UTF-8"


@contextmanager
def suppress_errors_that_name(file: Path) -> Iterator[None]:
    try:
        yield
    except SpinkitError as error:
        if not str(error).startswith(f"{file}:"):
            raise AssertionError(str(error)) from error


SAMPLE = (CHECKOUT / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml").read_bytes()


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
        _reader.read(file)


def describe(machine: str, changes: tuple[str, ...]) -> Machine:
    parameters = {"network.radix": "36"} | dict(change.split("=", 1) for change in changes)
    return Machine(machine, "", (), tuple(Parameter(key, value, "", "") for key, value in parameters.items()))


def test_arguments_may_hold_parameters_of_the_machine(home: Path, program: Program) -> None:
    file = home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    text = file.read_text()
    for mode, more in (("rdma", ""), ("triggered", '\nset = ["network.radix=16"]')):
        text = text.replace(f'mode = "{mode}"', f'mode = "{mode}"\nargs = ["{{network.radix}}-{{max}}"]{more}', 1)
    file.write_text(text)
    jobs = jobs_of(_reader.read(file), quick=True, describe=describe)
    assert [ProgramRun.arguments(job)[-1] for job in jobs[:2]] == ["36-262144", "16-262144"]
    assert ProgramRun.options(jobs[1])[-2:] == ["--set", "network.radix=16"]
    file.write_text(text.replace("{network.radix}", "{network.width}"))
    job = jobs_of(_reader.read(file), quick=True, describe=describe)[0]
    message = (
        r"'\{network.width\}-\{max\}' may contain only \{values\}, \{max\}, \{mode\} and parameters of the machine"
    )
    with pytest.raises(SpinkitError, match=message):
        ProgramRun.arguments(job)


def test_series_of_one_card_share_a_run() -> None:
    experiment = _reader.read(CHECKOUT / "experiments" / "sc17" / "broadcast" / "broadcast.toml")
    jobs = jobs_of(experiment, quick=True, describe=describe)
    # The series of sPIN with one HPU has other parameters, and so a separate run.
    assert [(job.machine, len(job.series)) for job in jobs[:4]] == [("sc17-dis", count) for count in (3, 3, 6, 1)]
    assert len(jobs) == 16
    assert ProgramRun.options(jobs[0]) == ["-n", "1024", "--machine", "sc17-dis", "--nic", "rdma"]
    pairs = [("rdma", "8"), ("rdma", "65536"), ("rdma-segments", "65536")]
    given = [word for mode, size in pairs for word in ("--mode", mode, "--bytes", size)]
    assert ProgramRun.arguments(jobs[0]) == ["--ranks", "2,8,128,1024", *given]


def test_measures_are_shown_as_times_bandwidths_and_counts() -> None:
    time, count = _definition.Measure(key="x_ps", label="X"), _definition.Measure(key="hpus", label="HPUs")
    bandwidth = _definition.Measure(key="x_ps", label="X", bytes=1 << 30)
    assert (time.heading, time.shown(1_500_000), time.text(1_500_000)) == ("X [µs]", 1.5, "1.5000")
    assert (bandwidth.heading, bandwidth.shown(10**12), bandwidth.text(10**12)) == ("X [GiB/s]", 1.0, "1.00")
    assert (count.heading, count.shown(8), count.text(8)) == ("HPUs", 8, "8")


def documented(heading: str) -> set[str]:
    """Return the keys in the first column of the table below a heading of docs/experiments.md."""
    text = (CHECKOUT / "docs" / "experiments.md").read_text()
    [_, section] = re.split(rf"^### {re.escape(heading)}$", text, flags=re.MULTILINE)
    rows = [line for line in re.split("^##", section, flags=re.MULTILINE)[0].splitlines() if line.startswith("| `")]
    return {key.strip("[]") for row in rows for key in re.findall("`([^`]+)`", row.split("|")[1])}


def keys(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("The whole file", _definition.File),
        ("`[program]`", _definition.Program),
        ("`[sweep]`", _definition.Sweep),
        ("`[[axis]]`", _definition.Axis),
        ("`[[series]]`", _definition.Series),
        ("`[measure]`", _definition.Measure),
        ("`[run]`", _definition.RunTable),
        ("`[[figure]]`", _definition.Figure),
    ],
)
def test_every_key_is_documented(heading: str, kind: type[msgspec.Struct]) -> None:
    assert documented(heading) == keys(kind)


def test_every_key_of_claims_is_documented() -> None:
    text = (CHECKOUT / "docs" / "experiments.md").read_text()
    relations = {line.split("`")[1]: line for line in text.splitlines() if re.match(r"\| `[a-z]+` \|.*\| `o", line)}
    tables = get_args(_claims.ClaimTable)
    common = set.intersection(*map(keys, tables))
    assert {one.rpartition(".")[2] for one in documented("`[[claim]]`")} == common | {"relation"}
    assert set(relations) == {table.__struct_config__.tag for table in tables}
    for table in tables:
        named = set(re.findall("`([a-z]+)`", relations[table.__struct_config__.tag].split("|")[3]))
        assert named == keys(table) - common
    [expected] = [field.type for field in msgspec.structs.fields(tables[0]) if field.encode_name == "expected"]
    expected_table = get_args(expected)[0]
    assert {one.rpartition(".")[2] for one in documented("`[[claim.expected]]`")} == keys(expected_table)
    [shown] = [field.type for field in msgspec.structs.fields(expected_table) if field.encode_name == "shown"]
    of_runs = {"flags", "reverse", "one_way"}
    assert keys(get_args(shown)[0]) == keys(expected_table) - {"reason", "shown"} | {"set"} | of_runs
    assert all(f"| `{key}` |" in text for key in of_runs)


AXES = """
[sweep]
axis = "accelerator.hpus"
label = "HPUs"
unit = ""
values = [1, 2, 4]

[[axis]]
set = { "dma.L_ns" = [50, 250.5] }
labels = ["integrated", "discrete"]

[[axis]]
set = { "network.G_ps_per_byte" = [20, 8], "nic.match_overlaps" = ["gap", "reception"] }
"""


def of_own(folder: Path, axes: str = AXES, old: str = "", new: str = "") -> Path:
    """Write an experiment without claims, figures, paper and summary, with these axes."""
    text = f"""
title = "Mine"
machines = ["sc17-int"]
[program]
sources = ["mine.c"]
ranks = 2
args = ["--hpus", "{{values}}", "--latency", "{{dma.L_ns}}"]
{axes}
[[series]]
name = "spin"
label = "sPIN"
mode = "stream"
[measure]
key = "time_ps"
label = "Time"
[run]
timeout_s = 60
"""
    assert old in text
    folder.mkdir(exist_ok=True)
    (folder / "mine.c").touch()
    (folder / "experiment.toml").write_text(text.replace(old, new, 1))
    return folder / "experiment.toml"


def test_parameters_of_the_machine_are_axes(tmp_path: Path) -> None:
    experiment = _reader.read(of_own(tmp_path / "mine"))
    assert [(one.name, one.label) for one in experiment.series] == [
        (
            f"spin@dma.L_ns={latency},network.G_ps_per_byte={byte},nic.match_overlaps={overlaps}",
            f"sPIN, {where}, network.G_ps_per_byte = {byte}, nic.match_overlaps = {overlaps}",
        )
        for latency, where in (("50", "integrated"), ("250.5", "discrete"))
        for byte, overlaps in (("20", "gap"), ("8", "reception"))
    ]
    jobs = jobs_of(experiment, quick=True, describe=describe)
    assert [job.value for job in jobs] == [1, 2, 4] * 4
    assert len({job.key for job in jobs}) == 12
    assert ProgramRun.arguments(jobs[-1]) == ["--hpus", "4", "--latency", "250.5"]
    axes = ("dma.L_ns=250.5", "network.G_ps_per_byte=8", "nic.match_overlaps=reception", "accelerator.hpus=4")
    assert jobs[-1].changes == axes
    # The program's output has no value; the run has it.
    output = '{"time_ps": 7, "data_ok": true}\n'
    [point] = _outcome.read_points(experiment, "sc17-int", experiment.series[:1], (4,), output)
    assert (point.value, point.measured) == (4, 7)
    with pytest.raises(SpinkitError, match=r"output line 2: accelerator\.hpus = 4 occurs twice"):
        _outcome.read_points(experiment, "sc17-int", experiment.series[:1], (4,), 2 * output)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[50, 250.5]", "[]", "axis[0].set: expected parameters with equally many values, at least one"),
        ("[20, 8]", "[20]", "axis[1].set: expected parameters with equally many values, at least one"),
        ('"dma.L_ns"', '"L_ns"', "axis[0].set: L_ns is no parameter of a machine"),
        ('"dma.L_ns"', '"accelerator.hpus"', "axis[0].set: accelerator.hpus is an axis already"),
        ('"nic.match_overlaps"', '"dma.L_ns"', "axis[1].set: dma.L_ns is an axis already"),
        ('"integrated", ', "", "axis[0].labels: expected one for each of the 2 values"),
        ('axis = "accelerator.hpus"', 'axis = "hpus"\nvalues2 = 1', "sweep.values2: unknown key"),
        ("[1, 2, 4]", "[1, 2, 2]", "sweep.values: expected increasing numbers"),
        ("sources = [", 'schedules = ["gen a", "gen b"]\n#', "program.schedules: expected only one"),
    ],
)
def test_wrong_axes_name_their_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = of_own(tmp_path / "mine", old=old, new=new)
    with pytest.raises(SpinkitError) as error:
        _reader.read(file)
    assert str(error.value).startswith(f"{file}: {message}")


def test_only_parameters_have_fractions(tmp_path: Path) -> None:
    axes = '[sweep]\naxis = "bytes"\nlabel = "Size"\nvalues = [1, 2.5]\n'
    file = of_own(tmp_path / "mine", axes)
    with pytest.raises(SpinkitError, match=r"sweep.values\[1\]: expected an integer, as the axis is no parameter"):
        _reader.read(file)
    of_own(tmp_path / "mine", axes.replace('"bytes"', '"network.g_ns"'))
    assert _reader.read(file).values(quick=True) == (1, 2.5)


def test_experiments_are_found_by_name_and_by_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_own(tmp_path / "mine")
    for name in ("mine", "./mine", str(tmp_path / "mine")):
        found = _reader.load(home, name)
        assert (found.name, found.folder, found.claims, found.figures) == ("mine", tmp_path / "mine", (), ())
    # A name of our own takes precedence.
    (home / "experiments" / "sc17" / "ping-pong" / "ping-pong.c").touch()
    of_own(tmp_path / "ping-pong")
    assert _reader.load(home, "ping-pong").folder == home / "experiments" / "sc17" / "ping-pong"
    assert _reader.load(home, "./ping-pong").folder == tmp_path / "ping-pong"
    with pytest.raises(SpinkitError, match=r"^\./nothing: there is no experiment.toml in this folder"):
        _reader.load(home, "./nothing")
    with pytest.raises(
        SpinkitError, match=r"^nothing: no such experiment; there are: ping-pong; an experiment of your"
    ):
        _reader.load(home, "nothing")
    with pytest.raises(SpinkitError, match=r"^pingpong: no such experiment; did you mean ping-pong\? There are: ping"):
        _reader.load(home, "pingpong")


def test_machines_beside_an_experiment_are_its_own(tmp_path: Path) -> None:
    experiment = _reader.read(of_own(tmp_path / "mine"))
    assert experiment.place("sc17-int") == "sc17-int"
    own = tmp_path / "mine" / "sc17-int.toml"
    own.touch()
    assert experiment.place("sc17-int") == str(own)
    assert ProgramRun.options(jobs_of(experiment, quick=True, describe=describe)[0])[:4] == [
        "-n",
        "2",
        "--machine",
        str(own),
    ]


def test_names_that_the_system_does_not_take_are_errors(tmp_path: Path) -> None:
    long = "x" * 5000
    for words in (["sweep", f"./{long}", "--set", "dma.L_ns=1"], ["new", "experiment", str(tmp_path / long)]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 1, done
        assert isinstance(done.exception, SystemExit)
        assert "xxx: " in done.stderr
        assert done.stderr.count("\n") == 1


def test_our_experiments_are_files_of_groups() -> None:
    groups = _reader.by_group(CHECKOUT)
    assert list(groups) == list(_reader.GROUPS)
    assert sorted(name for names in groups.values() for name in names) == _reader.available(CHECKOUT)
    assert "hpu-sweeps" in groups["sc17"]
    experiment = _reader.load(CHECKOUT, "hpu-sweeps")
    assert experiment.folder == CHECKOUT / "experiments" / "sc17" / "accumulate"
    assert _reader.load(CHECKOUT, str(experiment.file)) == experiment


def test_a_name_is_unique_in_all_groups(home: Path, program: Program) -> None:
    folder = home / "experiments" / "beyond" / "other"
    folder.mkdir(parents=True)
    (folder / "ping-pong.toml").touch()
    with pytest.raises(SpinkitError, match=r"ping-pong\.toml has the same name"):
        _reader.available(home)
