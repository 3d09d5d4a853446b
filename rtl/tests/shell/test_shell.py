# SPDX-License-Identifier: Apache-2.0
"""pspin_nic with the unit of pspin-tiny between a network and a host, with two clocks."""

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
from nic_model import Rule, flow
from sv_types import constants

ME, OTHER = 0x0A00_0002, 0x0A00_0003
PEERS = [0x0A00_0001, 0xC0A8_0105, 0x0A00_00FE]
SEED = 1
QUEUES = constants("pspin_cfg_pkg")["MpqQueues"]
# Pings and UDP echo, each packet alone; and UDP packets in messages of four, with handlers for their start and end.
# The last packet of a message starts with LAST, which is in the lower half of word 10 of the frame.
LAST, FIRST = b"EM", b"--"
END = Rule(10, 0xFFFF, int.from_bytes(LAST, "big"), int.from_bytes(LAST, "big"))
RULES = [*shell.rulesets(ME, 7), flow(UDP, 9, ME, 1, END)]
# Periods of the clocks of network and unit.
CLOCKS = ((2, 2), (6, 14), (14, 6), (10, 22), (34, 10))


def ping(rng: random.Random, size: int, **other: object) -> Packet:
    return Packet(rng.choice(PEERS), ME, ICMP, rng.randbytes(size), **other)


def echo(rng: random.Random, size: int, port: int = 7, **other: object) -> Packet:
    return Packet(rng.choice(PEERS), ME, UDP, rng.randbytes(size), (rng.randrange(1024, 65_536), port), **other)


def part(rng: random.Random, size: int, number: int) -> Packet:
    """Return packet `number` of those in messages of four."""
    packet = echo(rng, size, port=9)
    packet.payload = (LAST if number % 4 == 3 else FIRST) + packet.payload[2:]
    return packet


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
    assert result.count("bypassed") == len(for_host)
    assert result.count("matched") == result.count("done") == len(answers) + rejected.total()
    assert result.count("faulted") == result.count("event") == 0
    assert len(answers) == 90


def test_frames_that_are_bad_or_too_long_leave_no_trace() -> None:
    """A frame marked bad by the network is dropped, and the next frame reuses its slot. The counts of drops add up."""
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
    assert result.count("matched") == bad + 2 + len(answers)
    assert result.count("accepted") == len(answers)


@pytest.mark.parametrize(("width", "clocks"), [(512, clocks) for clocks in CLOCKS] + [(64, (6, 14)), (64, (14, 6))])
def test_line_rate(tmp_path: Path, width: int, clocks: tuple[int, int]) -> None:
    """A capture in bursts at line rate: every frame is answered or bypasses the unit. A burst with a message for each
    queue never makes the network wait if the unit's clock carries its rate."""
    rng = random.Random(SEED)
    frames, answers, for_host = [], [], []
    for number in range(3 * QUEUES):
        size = (18, 100, 500, 1472)[number % 4]
        packet = (ping(rng, size), echo(rng, size), echo(rng, size, port=80))[number % 3]
        frames.append(packet.frame())
        (for_host if number % 3 == 2 else answers).append(packet.frame() if number % 3 == 2 else packet.answer())
    capture, out, host = (tmp_path / f"{name}.pcap" for name in ("in", "out", "host"))
    pcap.write(capture, enumerate(frames))
    card = shell.Card(RULES, width=width, clocks=clocks)
    for index, (_, frame) in enumerate(pcap.read(capture)):
        card.receive(frame)
        if index % QUEUES == QUEUES - 1:
            card.lines.append(f"play {shell.ABI['NicState']:x} 1000000")
    result = shell.play([], out, host, card)
    same(list(pcap.read(out)), answers)
    assert [frame for _, frame in pcap.read(host)] == for_host
    assert (result.count("matched"), result.count("bypassed")) == (len(answers), len(for_host))
    assert result.count("dropped") == result.count("faulted") == 0
    if width * clocks[1] <= 512 * clocks[0]:
        assert result.count("stalls") == 0


def test_bypass_does_not_wait_for_the_unit() -> None:
    """Frames without a ruleset pass at line rate beside a unit with a slow clock, in both directions."""
    rng = random.Random(SEED)
    card = shell.Card(RULES, clocks=(2, 6))
    frames = [echo(rng, rng.randrange(18, 1400), port=80).frame() for _ in range(60)]
    for frame in frames:
        card.receive(frame)
        card.send(frame)
    result = card.play()
    assert [frame for _, frame in result.for_host] == [frame for _, frame in result.sent] == frames
    assert result.count("stalls") == 0
    cycles = [cycle for cycle, _ in result.for_host]
    assert cycles[-1] - cycles[0] == sum(-(-len(frame) // 64) for frame in frames[1:]), "a beat in each cycle"
    assert result.count("forwarded") == result.count("bypassed") == len(frames)


@pytest.mark.parametrize("is_waited_for", [False, True])
def test_interrupt_as_a_message(is_waited_for: bool) -> None:
    """Events of the unit send one message until it is acknowledged, and another one if events are left."""
    card = shell.Card(RULES, bytes(shell.RECORD))
    card.set("IrqEnable", 1)
    card.register("NicMsiEnable", 1)
    rng = random.Random(SEED)
    packets = [part(rng, 60, number) for number in range(8)]
    for packet in packets:
        card.receive(packet.frame())
    card.lines.append(f"play {shell.ABI['NicState']:x} 1000000")
    if is_waited_for:
        card.register("NicMsiAck", 1)
    result = card.play()
    same(result.sent, [packet.answer() for packet in packets])
    assert result.count("event") == shell.ABI["EventCommand"]
    assert result.count("msi") == 1 + is_waited_for
    assert result.count("state") >> 1 & 1


def test_window_outside_of_memory() -> None:
    """An access outside of the memories is refused, once; the next one succeeds."""
    card = shell.Card(RULES)
    card.register("NicMemoryAddress", 0x5000_0000)
    card.register("NicMemoryWrite", 1)
    for name in ("data", "refused", "then"):
        card.lines.append(f"get {name} {shell.ABI['NicMemoryData' if name == 'data' else 'NicState']:x}")
    result = card.play()
    assert result.count("refused") >> 2 & 1
    assert not result.count("then") >> 2 & 1
    assert result.rejected == dict.fromkeys(shell.REJECTED, 0)


@pytest.mark.parametrize("pace", [100, 60, 15])
def test_bursts_of_more_messages_than_queues(pace: int) -> None:
    """Messages of one packet and of four, back to back, with pauses on all streams, and frames of the host."""
    rng = random.Random(SEED + pace)
    greeting = rng.randbytes(shell.RECORD)
    card = shell.Card(RULES, greeting, clocks=CLOCKS[pace % 3])
    card.lines.append(f"pace {SEED:x} {pace}")
    answers, for_host, from_host, kinds = [], [], [], Counter()
    for number in range(8 * QUEUES):
        packet = rng.choice((echo(rng, 18), ping(rng, 56), part(rng, 100, kinds[9]), echo(rng, 20, port=80)))
        if number >= 8 * QUEUES - 3:  # the last message is complete
            packet = part(rng, 18, kinds[9]) if kinds[9] % 4 else echo(rng, 18)
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
            card.receive(rng.choice((echo(rng, 200), ping(rng, 56), part(rng, 100, 0), echo(rng, 20, port=80))).frame())
        card.lines += [f"run {rng.randrange(10, 400)}", "reset"]
    card.lines += setup
    answers = []
    for number in range(12):
        packet = part(rng, 60, number // 3 * 2 + number % 3 - 1) if number % 3 else ping(rng, 60)
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
