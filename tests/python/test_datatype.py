# SPDX-License-Identifier: Apache-2.0
"""The experiments on strided datatypes: blocks that straddle packets, lists of blocks, packing by CPU and card."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

SOURCE = Path(__file__).parents[2] / "experiments" / "sc17" / "datatype" / "datatype.c"


@pytest.fixture(scope="module")
def datatype(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("datatype") / "datatype"
    subprocess.run([_paths.command("spincc"), "-Wall", "-Wextra", "-Werror", SOURCE, "-o", program], check=True)
    return program


def run(
    program: Path, nic: str, *arguments: str, options: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines that the program prints, and the report of its run."""
    report = program.with_suffix(".json")
    command: list[str | Path] = [
        _paths.command("spinrun"),
        "-n",
        "2",
        "--nic",
        nic,
        *options,
        "--json",
        report,
        program,
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()], json.loads(report.read_text())


@pytest.mark.parametrize(("mode", "handler"), [("handler", "datatype_unpack"), ("blocking", "unpack_blocking")])
def test_blocks_that_straddle_packets(datatype: Path, mode: str, handler: str) -> None:
    """Fig. 6 of the sPIN paper: eight blocks of 1.5 KiB, 2.5 KiB apart, in packets of 4 KiB."""
    [line], report = run(datatype, "spin", "--mode", mode, "--vector", "1536,2560,8")
    assert line["data_ok"] is True
    assert line["description_bytes"] == 16
    # Pieces of blocks in each packet, by hand: the third and the sixth block straddle packets.
    pieces = [[1536, 1536, 1024], [512, 1536, 1536, 512], [1024, 1536, 1536]]
    assert [sum(packet) for packet in pieces] == [4096] * 3
    assert report["handlers"][handler]["calls"] == len(pieces)
    assert report["handlers"][handler]["dmas"] == sum(map(len, pieces))
    assert report["cards"][1]["dma_bytes"] == 8 * 1536


@pytest.mark.parametrize("nic_and_mode", [("rdma", "cpu"), ("portals4", "iovec"), ("spin", "handler")])
@pytest.mark.parametrize("send", ["whole", "cpu", "iovec"])
def test_every_way_of_packing_and_unpacking_moves_the_same_data(
    datatype: Path, nic_and_mode: tuple[str, str], send: str
) -> None:
    nic, mode = nic_and_mode
    options = ["--mode", mode, "--send", send]
    for layout in (["--vector", "1536,2560,8"], ["--vector", "7,13,1000"], ["--total", "65536", "--blocks", "4,4096"]):
        lines, _ = run(datatype, nic, *options, *layout)
        assert [line["data_ok"] for line in lines] == [True] * len(lines)
        lines, _ = run(datatype, nic, *options, "--piece", "5000", *layout)
        assert [line["data_ok"] for line in lines] == [True] * len(lines)


def test_a_list_of_blocks_takes_16_bytes_for_each(datatype: Path) -> None:
    """With more blocks than a card accepts in a list, 16,384, the data is sent in several messages."""
    lines, report = run(datatype, "portals4", "--mode", "iovec", "--total", "262144", "--blocks", "4,256")
    assert [line["description_bytes"] for line in lines] == [65536 * 16, 1024 * 16]
    assert report["cards"][1]["messages_received"] == 4 + 1


def test_packing_is_charged_for_the_lines_that_it_reads(datatype: Path) -> None:
    """Blocks of 64 B, 128 B apart, in whole lines: 51 ns and one line each 5.1 ns. Of 32 B: twice the lines."""
    for block, lines in ((64, 1024), (32, 2048)):
        times = []
        for send in ("whole", "cpu"):
            [line], _ = run(
                datatype, "rdma", "--mode", "cpu", "--send", send, "--total", "65536", "--blocks", str(block)
            )
            times.append(line["time_ps"])
        assert times[1] - times[0] == 51_000 + lines * 5_100


PACK = ["--mode", "handler", "--send", "handler"]


@pytest.mark.parametrize("machine", ["sc17-int", "loggopsim2-dis"])
@pytest.mark.parametrize("vector", ["1,2,1", "7,13,1000", "1536,2560,8", "4088,4096,9", "5000,5000,13"])
def test_handlers_pack_every_layout(datatype: Path, machine: str, vector: str) -> None:
    """Each packet has 4,088 B of data behind its position; one handler packs four of them.

    On loggopsim2 reads overtake each other and a handler may reuse its buffer at once.
    """
    block, _, count = map(int, vector.split(","))
    packets = -(-block * count // 4088)
    [line], report = run(datatype, "spin", *PACK, "--vector", vector, options=["--machine", machine])
    assert line["data_ok"] is True
    assert line["description_bytes"] == 16 + 72
    assert report["handlers"]["datatype_unpack_packet"]["calls"] == packets
    assert report["handlers"]["datatype_send"]["calls"] == -(-packets // 4)
    assert report["cards"][1]["dma_bytes"] == block * count


def test_handlers_that_pack_have_a_buffer_each(datatype: Path) -> None:
    """More handlers than buffers run at the same time: 16 contexts on four HPUs, eight buffers."""
    options = ["--set", "accelerator.contexts=16"]
    lines, report = run(datatype, "spin", *PACK, "--total", "1048576", "--blocks", "64,1024", options=options)
    assert [line["data_ok"] for line in lines] == [True, True]
    assert report["handlers"]["datatype_send"]["errors"] == 0


def test_handlers_pack_by_the_reads_of_the_blocks(datatype: Path) -> None:
    """Packets of 4,088 B from eight blocks of 1.5 KiB, by hand."""
    [_], report = run(datatype, "spin", *PACK, "--vector", "1536,2560,8")
    pieces = [[1536, 1536, 1016], [520, 1536, 1536, 496], [1040, 1536, 1512], [24]]
    assert [sum(packet) for packet in pieces] == [4088, 4088, 4088, 8 * 1536 - 3 * 4088]
    assert report["handlers"]["datatype_send"]["dmas"] == sum(map(len, pieces))
    assert report["handlers"]["datatype_send"]["puts"] == len(pieces)


def test_handlers_that_pack_need_handlers_that_unpack(datatype: Path) -> None:
    options = ["--mode", "cpu", "--send", "handler", "--blocks", "64"]
    command: list[str | Path] = [_paths.command("spinrun"), "-n", "2", datatype, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--send handler is for --mode handler" in done.stderr
