# SPDX-License-Identifier: Apache-2.0
"""The handler library: its costs, and the parts that can be tested without a card."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.reports import _handler_costs
from spinkit.simulate._toolchain import Toolchain

ROOT = Path(__file__).parents[2]


def compiled(name: str, folder: Path) -> str:
    program = str(folder / name)
    source = ROOT / "tests" / "programs" / f"{name}.c"
    includes = (f"-I{ROOT / 'sdk'}", f"-I{ROOT / 'sdk' / 'include'}")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", *includes, str(source), "-o", program], check=True)
    return program


def test_the_table_of_costs_is_what_a_run_gives() -> None:
    tools = Toolchain(*(_paths.command(name) for name in ("spincc", "spinrun", "spinkit-goal", "spinkit-pspin")))
    fresh = _handler_costs.page(_handler_costs.measure(ROOT, tools))
    assert fresh == (ROOT / "sdk" / "handlers" / "README.md").read_text(), "spinkit handlers > sdk/handlers/README.md"


def test_a_write_that_loses_packets_is_an_error(tmp_path: Path) -> None:
    program = str(tmp_path / "raid5")
    subprocess.run([_paths.command("spincc"), ROOT / "experiments/sc17/raid5/raid5.c", "-o", program], check=True)
    options = ["-n", "6", "--set", "accelerator.packet_buffer_bytes=8192", "--timeout", "100"]
    command = [_paths.command("spinrun"), *options, program, "--mode", "spin", "--bytes", "65536"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "completion handler 'raid5_write_completion' returned FAIL" in done.stderr
    assert "no packet buffer was free" in done.stderr


@pytest.fixture(scope="module")
def raid5(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = str(tmp_path_factory.mktemp("raid5") / "raid5")
    subprocess.run([_paths.command("spincc"), ROOT / "experiments/sc17/raid5/raid5.c", "-o", program], check=True)
    return program


@pytest.mark.parametrize("mode", ["spin", "listing"])
def test_nodes_wait_for_the_end_of_messages(raid5: str, mode: str) -> None:
    """The client is done before the parity node's card has reported its last message across a slow DMA path."""
    options = ["-n", "6", "--fail-on-drop", "--fail-on-handler-error", "--set", "dma.L_ns=1250", "--timeout", "100"]
    command = [_paths.command("spinrun"), *options, raid5, "--mode", mode, "--bytes", "64,4096,65536"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count('"data_ok":true')) == (0, 3), done.stderr


def test_a_size_is_measured_as_if_alone(raid5: str) -> None:
    """The branch predictors of the HPUs have not seen the sizes before it."""

    def last(sizes: str) -> str:
        command = [_paths.command("spinrun"), "-n", "6", raid5, "--mode", "spin", "--bytes", sizes]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]

    assert last("4096,8192") == last("8192")


@pytest.mark.parametrize(
    ("reads", "time_ns"),
    [
        # Post, path and match of the request; DMA read, injection; path, match of a reply, DMA write, poll.
        ("get", 65 + 116.8 + 30 + (100 + 27.443) + 81.92 + 116.8 + 2 + (50 + 27.443) + 51),
        # The end of the empty request is written to host memory; CPUs poll, match, post, and in the end poll and match.
        ("served", 65 + 116.8 + 30 + 50 + 146 + (100 + 27.443) + 81.92 + 116.8 + 30 + (50 + 27.443) + 81),
    ],
)
def test_reads_take_the_sum_of_their_terms(raid5: str, reads: str, time_ns: float, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("0,0,4096,r,0\n")
    command = [_paths.command("spinrun"), "-n", "6", "--nic", "rdma", raid5, "--mode", "rdma", "--reads", reads]
    done = subprocess.run([*command, "--file", trace], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["time_ps"] / 1000 == pytest.approx(time_ns, abs=0.01)


def test_an_array_that_hpu_memory_keeps_is_flushed(tmp_path: Path) -> None:
    """The last sizes are larger than what HPU memory keeps, 64 chunks of 4 KiB; the program checks every number."""
    program = str(tmp_path / "accumulate")
    subprocess.run(
        [_paths.command("spincc"), ROOT / "experiments/sc17/accumulate/accumulate.c", "-o", program], check=True
    )
    sizes = ["16", "4112", "262144", "262160", "1048576"]
    command = [_paths.command("spinrun"), "-n", "2", program, "--mode", "cached", "--sizes", ",".join(sizes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count('"data_ok":true') == len(sizes), done.stdout


def test_descriptions_of_handlers_are_taken_from_the_comments_above_them() -> None:
    header = "/* Payload handler: adds\n * one. Slow. */\n__handler int one(const ptl_payload_t p, void *state) {"
    assert _handler_costs.described(f"/* Other. */\nint f(void);\n{header}") == {"one": "adds one"}
    with pytest.raises(SpinkitError, match="two: no comment"):
        _handler_costs.described(f"{header}\n}}\n__handler int two(")


def test_broadcast_reaches_every_rank_once(tmp_path: Path) -> None:
    assert subprocess.run([compiled("broadcast_tree", tmp_path)], capture_output=True, text=True).stdout == ""


@pytest.fixture(scope="module")
def spc(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled("spc_traces", tmp_path_factory.mktemp("spc"))


def test_traces_are_read(spc: str, tmp_path: Path) -> None:
    file = tmp_path / "t.spc"
    file.write_text("0,20941264,8192,W,0.551706\n\n3,7,512,r,0.554041,more\n")
    assert subprocess.check_output([spc, str(file)], text=True) == "0,20941264,8192,w,0\n3,7,512,r,0\n"


RECORDS = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**55 - 1),
    st.integers(1, 2**32 - 1),
    st.sampled_from("rwRW"),
    st.floats(0, 1e6).map(str),
    st.sampled_from(["", ",", ",more", "\r"]),
)
ALWAYS_THE_SAME = settings(max_examples=100, derandomize=True, database=None, deadline=None)


@ALWAYS_THE_SAME
@given(records=st.lists(RECORDS, min_size=1, max_size=20))
def test_arbitrary_traces_in_the_format_are_read_unchanged(spc: str, records: list[tuple[object, ...]]) -> None:
    text = "".join(f"{asu},{lba},{size},{op},{time}{rest}\n" for asu, lba, size, op, time, rest in records)
    read = subprocess.run([spc, "/dev/stdin"], input=text, capture_output=True, text=True, check=True).stdout
    assert read == "".join(f"{asu},{lba},{size},{str(op).lower()},0\n" for asu, lba, size, op, *_ in records)


@ALWAYS_THE_SAME
@given(text=st.binary(max_size=40) | st.text("0123456789,rw.-\n \0", max_size=60).map(str.encode))
def test_anything_else_is_an_error_with_its_line(spc: str, text: bytes) -> None:
    run = subprocess.run([spc, "/dev/stdin"], input=text, capture_output=True, check=False)
    assert run.returncode in (0, 1)
    assert run.returncode == 0 or re.fullmatch(rb"/dev/stdin:[1-9]\d*: .+\n", run.stderr)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x,1,512,r,0", "expected an ASU (a number), then a comma"),
        ("0,-1,512,r,0", "expected an LBA (a number), then a comma"),
        ("0,1,99999999999,r,0", "expected a size in bytes, then a comma"),
        ("0,1,0,r,0", "a request of 0 bytes"),
        ("0,1,512,x,0", "expected r or w, then a comma"),
        ("0,1,512,,0", "expected r or w, then a comma"),
        ("0,1,512,r", "expected r or w, then a comma"),
        ("0,1,512,r,soon", "expected a timestamp in seconds"),
        ("0,1,512,r,0," + 300 * "9", "this line is too long"),
    ],
)
def test_mistakes_in_traces_name_their_line(spc: str, tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "t.spc"
    file.write_text(f"0,1,512,r,0\n{line}\n")
    run = subprocess.run([spc, str(file)], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (1, f"{file}:2: {message}\n")


@pytest.mark.parametrize(
    ("number", "writes", "kib"),
    [(1, 0.768, 3.4), (2, 0.176, 2.4), (3, 0.0002, 15.1), (4, 0.0002, 15.1), (5, 0.0003, 15.4)],
)
def test_synthetic_traces_have_the_documented_shares(spc: str, number: int, writes: float, kib: float) -> None:
    count = 20_000
    lines = subprocess.check_output([spc, str(number), str(count)], text=True).splitlines()
    fields = [line.split(",") for line in lines]
    assert len(lines) == count
    assert sum(field[3] == "w" for field in fields) / count == pytest.approx(writes, rel=0.03, abs=0.0005)
    assert sum(int(field[2]) for field in fields) / count / 1024 == pytest.approx(kib, rel=0.06)
    assert subprocess.check_output([spc, str(number), str(count)], text=True).splitlines() == lines
