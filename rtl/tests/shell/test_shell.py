# SPDX-License-Identifier: Apache-2.0
"""A card with the unit of pspin-tiny between a network and a host; all edges of the unit are AXI."""

import random
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pcap
import pytest
import shell
from frames import ICMP, UDP, Packet, checksum, ethernet
from nic_model import Rule
from sv_types import constants

ME, OTHER = 0x0A00_0002, 0x0A00_0003
PEERS = [0x0A00_0001, 0xC0A8_0105, 0x0A00_00FE]
SEED = 1
QUEUES = constants("pspin_cfg_pkg")["MpqQueues"]
# Pings and UDP echo, each packet alone; and UDP packets in messages of four, with handlers for their start and end.
RULES = [*shell.rules(ME, 7), Rule(UDP, 9, ME, 1, 4, 2048)]


def ping(rng: random.Random, size: int, **other: object) -> Packet:
    return Packet(rng.choice(PEERS), ME, ICMP, rng.randbytes(size), **other)


def echo(rng: random.Random, size: int, port: int = 7, **other: object) -> Packet:
    return Packet(rng.choice(PEERS), ME, UDP, rng.randbytes(size), (rng.randrange(1024, 65_536), port), **other)


def same(frames: list[tuple[int, bytes]], expected: list[bytes]) -> None:
    """Frames of different messages may leave in any order."""
    assert Counter(frame for _, frame in frames) == Counter(expected)


def test_pings_and_udp(tmp_path: Path) -> None:
    """Captures with all kinds of traffic: the output captures have the right answers and the host's frames."""
    rng = random.Random(SEED)
    frames: list[bytes] = []
    answers: list[bytes] = []
    for_host: list[bytes] = []
    rejected: Counter[str] = Counter()
    for size in (0, 1, 2, 17, 18, 19, 56, 63, 200, 1472, *(rng.randrange(300) for _ in range(20))):
        for packet in (ping(rng, size), echo(rng, size), echo(rng, size, has_sum=False)):
            frames.append(packet.frame())
            answers.append(packet.answer())
    for size in (0, 33, 1472):
        for packet in (ping(rng, size, wrong="icmp"), ping(rng, size, wrong="ip"), echo(rng, size, wrong="udp")):
            frames.append(packet.frame())
            rejected["wrong_sum"] += 1
    for kind in (0, 3, 13):  # an echo reply, an error, a request for the time
        frames.append(ping(rng, 20, kind=kind).frame())
        rejected["no_request"] += 1
    short = echo(rng, 200).frame()
    frames += [short[:100], ping(rng, 100).frame()[:41], short[:38]]  # the packet has more bytes than the frame
    rejected["malformed"] += 3
    unfit = bytearray(echo(rng, 30).frame())
    unfit[38:40] = (4).to_bytes(2, "big")  # the length of UDP is less than its header
    frames.append(bytes(unfit))
    rejected["malformed"] += 1
    for frame in (
        ethernet(0x0806, struct.pack(">HHBBH6sI6sI", 1, 0x0800, 6, 4, 1, bytes(6), PEERS[0], bytes(6), ME)),  # ARP
        ethernet(0x86DD, rng.randbytes(60)),  # IPv6
        Packet(PEERS[0], ME, 6, rng.randbytes(40)).frame(),  # TCP
        Packet(PEERS[0], OTHER, ICMP, bytes(30)).frame(),  # for another card
        echo(rng, 30, port=80).frame(),
        ping(rng, 20).frame()[:20],
        b"\1",
    ):
        frames.append(frame)
        for_host.append(frame)
    rng.shuffle(frames)
    for_host.sort(key=frames.index)
    capture, out, host = (tmp_path / f"{name}.pcap" for name in ("in", "out", "host"))
    pcap.write(capture, enumerate(frames))
    result = shell.play((frame for _, frame in pcap.read(capture)), out, host, shell.Card(RULES))
    same(list(pcap.read(out)), answers)
    assert [frame for _, frame in pcap.read(host)] == for_host
    assert result.rejected == rejected
    assert all(checksum(frame[14:34]) == 0 for _, frame in result.sent)
    assert result.count("other") == len(for_host)
    assert result.count("stored") == result.count("done") == len(answers) + rejected.total()
    assert result.count("faulted") == result.count("event") == 0
    assert len(answers) == 90


def test_frames_that_are_bad_or_too_long_leave_no_trace() -> None:
    """A frame marked bad by the network is dropped, and the next frame reuses its slot."""
    rng = random.Random(SEED)
    card = shell.Card(RULES)
    answers, bad = [], 0
    for number in range(45):
        packet = echo(rng, 1472 if number == 1 else rng.choice((10, 60, 200)))
        is_bad = number % 3 == 1
        card.receive(packet.frame(), is_bad=is_bad)
        bad += is_bad
        if not is_bad:
            answers.append(packet.answer())
    for size in (2006, 2007, 4000):  # a slot has 2048 bytes
        packet = echo(rng, size)
        card.receive(packet.frame())
        answers += [packet.answer()] if size == 2006 else []
    result = card.play()
    same(result.sent, answers)
    assert result.count("dropped") == bad + 2
    assert result.count("accepted") == len(answers)


@pytest.mark.parametrize("pace", [100, 60, 15])
def test_bursts_of_more_messages_than_queues(pace: int) -> None:
    """Messages of one packet and of four, back to back, with pauses on all streams, and frames of the host."""
    rng = random.Random(SEED + pace)
    greeting = rng.randbytes(shell.RECORD)
    card = shell.Card(RULES, greeting)
    card.lines.append(f"pace {SEED:x} {pace}")
    answers, for_host, from_host, kinds = [], [], [], Counter()
    for number in range(8 * QUEUES):
        packet = rng.choice((echo(rng, 18), ping(rng, 56), echo(rng, 100, port=9), echo(rng, 20, port=80)))
        if number >= 8 * QUEUES - 3:  # the last message is complete
            packet = echo(rng, 18, port=9 if kinds[9] % 4 else 7)
        kinds[packet.ports[1]] += packet.protocol == UDP
        card.receive(packet.frame())
        if packet.ports[1] == 80:
            for_host.append(packet.frame())
        else:
            answers.append(packet.answer())
        if rng.random() < 0.3:
            from_host.append(echo(rng, 30, port=5000).frame())
            card.send(from_host[-1])
    result = card.play()
    same(result.sent, answers + from_host)
    assert [frame for _, frame in result.sent if frame in from_host] == from_host
    assert [frame for _, frame in result.for_host] == for_host
    assert result.count("faulted") == 0
    messages = kinds[9] // 4
    records = bytes.fromhex(result.values["records"])
    for message in range(messages):
        record = records[shell.RECORD * (1 + message) :][: shell.RECORD]
        assert record == greeting[:-4] + struct.pack("<I", message)
    assert messages >= 2
    assert len(answers) > 4 * QUEUES


def test_resets_in_the_middle() -> None:
    """A card that is reset at any time, with anything in flight, works like a new one."""
    rng = random.Random(SEED)
    card = shell.Card(RULES, rng.randbytes(shell.RECORD))
    setup, card.lines = card.lines, []
    for _ in range(20):
        card.lines += setup
        for _ in range(12):
            card.receive(
                rng.choice((echo(rng, 200), ping(rng, 56), echo(rng, 100, port=9), echo(rng, 20, port=80))).frame()
            )
        card.lines += [f"run {rng.randrange(10, 400)}", "reset"]
    card.lines += setup
    answers = []
    for number in range(12):
        packet = echo(rng, 60, port=9) if number % 3 else ping(rng, 60)
        card.receive(packet.frame())
        answers.append(packet.answer())
    result = card.play()
    assert Counter(frame for _, frame in result.sent[-len(answers) :]) == Counter(answers)
    assert result.count("accepted") == result.count("done") == len(answers)


def test_the_command(tmp_path: Path) -> None:
    """The command of the guide on a capture of another byte order, and on unusable files."""
    frame = Packet(PEERS[0], OTHER, ICMP, b"hello").frame()
    record = struct.pack(">4I", 3, 141_592, len(frame), len(frame)) + frame
    capture = tmp_path / "in.pcap"
    head = struct.pack(">IHHiIII", pcap.MICROSECONDS, 2, 4, 0, 0, 65_535, pcap.ETHERNET)
    capture.write_bytes(head + record)
    assert list(pcap.read(capture)) == [(3_141_592_000, frame)]

    def call(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, shell.__file__, path, tmp_path / "out.pcap", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = call(capture)
    assert "1 frames in " in done.stdout
    assert ": 1 answered, 0 for the host" in done.stdout
    assert call(capture, "--address", "10.0.0.2").stdout.endswith("0 no request\n")
    assert list(pcap.read(tmp_path / "out.pcap")) == []
    for content, why in (
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "is no capture of libpcap"),
        (head[:20] + (101).to_bytes(4, "big"), "link type 101"),
        (head + record[:-1], "ends in the middle of a frame"),
        (head + struct.pack(">4I", 0, 0, 20, 60) + bytes(20), "only 20 of 60 bytes"),
    ):
        capture.write_bytes(content)
        done = call(capture)
        assert done.returncode == 2
        assert why in done.stderr
    assert call(tmp_path / "none.pcap").returncode == 2
