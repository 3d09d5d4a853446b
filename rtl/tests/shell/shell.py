# SPDX-License-Identifier: Apache-2.0
"""Plays a capture to pspin_nic with the unit of pspin-tiny, and writes its answers.

    make -C rtl shell PCAP=in.pcap TO=out.pcap

The card answers pings and UDP packets for one port by handlers (echo.c); all other frames go to the plain NIC.
Frames arrive as fast as the card accepts them. A cycle of the network's clock is a nanosecond.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "unit"))
import pcap  # noqa: E402
import programs  # noqa: E402
import sv_types  # noqa: E402
import units  # noqa: E402
from nic_model import BEAT, ICMP, UDP, Ruleset, flow  # noqa: E402

ABI = sv_types.constants("pspin_abi_pkg")
# Host memory for messages of several packets: a greeting, and records behind it.
HOST, RECORD, RECORDS = 0x1_2000_0000, 64, 64
REJECTED = ("malformed", "wrong_sum", "no_request")


@dataclass
class Result:
    """Frames that left the card, with their cycles, and counts."""

    sent: list[tuple[int, bytes]] = field(default_factory=list)
    for_host: list[tuple[int, bytes]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    def count(self, name: str) -> int:
        """Return a counter or a register."""
        return int(self.values[name], 16)

    @property
    def rejected(self) -> dict[str, int]:
        """Return the number of frames not answered by the handlers, by reason."""
        return {name: self.count(f"rejected{index}") for index, name in enumerate(REJECTED)}


class Card:
    """Lines for card.cpp: actions of the driver, and frames of network and host."""

    def __init__(
        self,
        rulesets: Sequence[Ruleset],
        greeting: bytes = bytes(RECORD),
        width: int = 512,
        clocks: tuple[int, int] = (2, 2),
    ) -> None:
        self.width = width
        self.lines: list[str] = [f"clocks {clocks[0]} {clocks[1]}"]
        with tempfile.TemporaryDirectory() as folder:
            self.program = programs.build(HERE / "echo.c", Path(folder))
        symbols, code, data = self.program.symbols, self.program.code, self.program.data
        self.load(programs.PROGRAM, code)
        self.load(programs.HANDLER, data)
        handlers = {"ContextPayload": "echo", "ContextHeader": "begin", "ContextCompletion": "end"}
        registers = {
            "Entry": symbols["_start"],
            "Again": symbols["__rt_again"],
            "StaticAddress": programs.HANDLER,
            "StaticBytes": len(data),
            "CodeAddress": programs.PROGRAM,
            "CodeBytes": len(code),
            "ContextIdle": 1 << 30,
            "ContextWatchdog": 1_000_000,
            "ContextHost": HOST & 0xFFFF_FFFF,
            "ContextHostHigh": HOST >> 32,
            "ContextHostBytes": RECORD * RECORDS,
        }
        # Every window of the unit and of both contexts is written, also those that the handlers do not use.
        first, last = ABI["ControlContextTenant"], ABI["ControlScratchpadCluster"]
        for name, address in ABI.items():
            is_window = name.startswith("ControlBoot") or first <= address <= last
            if name.startswith("Control") and is_window and not name.endswith("Write"):
                self.set(name.removeprefix("Control"), 0)
        for name, value in registers.items():
            self.set(name, value)
        # Context 0 has a handler for each packet; context 1 also has those for the start and the end of messages.
        for name, symbol in handlers.items():
            self.set(name, symbols[symbol])
            self.set(f"{name}Bytes", len(code) - (symbols[symbol] - programs.PROGRAM))
            if name == "ContextPayload":
                self.set("ContextWrite", 0)
        self.set("ContextWrite", 1)
        for context, cluster in itertools.product(range(2), range(sv_types.constants("pspin_cfg_pkg")["Clusters"])):
            self.set("ScratchpadCluster", cluster)
            self.set("ScratchpadWrite", context)
        self.set("Enable", 1)
        for number, ruleset in enumerate(rulesets):
            for address, value in ruleset.registers(number, ABI).items():
                self.lines.append(f"set {address:x} {value:x}")
        self.register("NicEnable", 1)
        self.lines += [f"memory {HOST:x} {greeting.hex()}", f"boot {ABI['ControlState']:x}"]

    def set(self, register: str, value: int) -> None:
        """Write a register of the unit."""
        self.register(f"Control{register}", value)

    def register(self, name: str, value: int) -> None:
        """Write a register."""
        self.lines.append(f"set {ABI[name]:x} {value:x}")

    def load(self, address: int, data: bytes) -> None:
        """Write a memory of the unit, through the window."""
        self.register("NicMemoryAddress", address)
        for at in range(0, len(data), BEAT):
            beat = data[at : at + BEAT]
            for index in range(0, len(beat), 4):
                word = int.from_bytes(beat[index : index + 4], "little")
                self.lines.append(f"set {ABI['NicMemoryData'] + index:x} {word:x}")
            self.register("NicMemoryBytes", len(beat))
            self.register("NicMemoryWrite", 1)

    def receive(self, frame: bytes, *, is_bad: bool = False) -> None:
        """Let a frame arrive from the network; its end may mark the Ethernet checksum as wrong."""
        self.lines.append(f"rx {is_bad:x} {frame.hex()}")

    def send(self, frame: bytes) -> None:
        """Let the host send a frame."""
        self.lines.append(f"from {frame.hex()}")

    def play(self, cycles: int = 10_000_000) -> Result:
        """Run the simulator until everything is done."""
        at = self.program.symbols["rejected"]
        base = ABI["ControlCounters"]
        lines = [
            *self.lines,
            f"play {ABI['NicState']:x} {cycles}",
            f"set {ABI['NicMemoryAddress']:x} {at & -BEAT:x}",
            f"set {ABI['NicMemoryRead']:x} 1",
            *(
                f"get rejected{index} {ABI['NicMemoryData'] + at % BEAT + 4 * index:x}"
                for index in range(len(REJECTED))
            ),
            f"get event {ABI['ControlEventKind']:x}",
        ]
        lines += [f"get frozen {base:x}"]
        lines += [
            f"get {name.lower()} {base + 8 * ABI[f'Counter{name}']:x}" for name in ("Accepted", "Done", "Faulted")
        ]
        lines += [
            f"get {name.lower()} {ABI[f'Nic{name}']:x}"
            for name in ("Matched", "Bypassed", "Dropped", "Sent", "Forwarded", "State")
        ]
        lines += [f"peek records {HOST:x} {RECORD * RECORDS:x}"]
        done = subprocess.run(
            [simulator(self.width)], input="\n".join(lines), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr or done.stdout[-4000:])
        result = Result()
        for line in done.stdout.splitlines():
            name, *rest = line.split()
            if name in ("tx", "other") and len(rest) == 2:
                frames = result.sent if name == "tx" else result.for_host
                frames.append((int(rest[0]), bytes.fromhex(rest[1])))
            elif len(rest) == 1:
                result.values[name] = rest[0]
        return result


def simulator(width: int) -> Path:
    """Build the simulator for a width of the network's streams, unless it exists."""
    folder = units.OUT.parent / f"shell{'-waves' if units.WAVES else ''}-{width}"
    with units.lock(folder.with_name(f".{folder.name}")):
        units.build(units.Case("shell", "pspin_nic", {"Width": width, "Rules": 6}), folder, main=HERE / "card.cpp")
    return folder / "pspin_nic"


def rulesets(address: int | None, port: int | None) -> list[Ruleset]:
    """Return the rulesets for the packets that the card answers: pings, and UDP packets for a port."""
    return [flow(ICMP, None, address, 0), flow(UDP, port, address, 0)]


def play(frames: Iterable[bytes], out: Path, host: Path | None, card: Card) -> Result:
    """Play frames, and write the captures of the frames that left the card."""
    for frame in frames:
        card.receive(frame)
    if units.WAVES:
        card.lines.append(f"waves {os.environ['WAVES']}")
    result = card.play()
    pcap.write(out, result.sent)
    if host:
        pcap.write(host, result.for_host)
    return result


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pcap", type=Path, help="what comes from the network")
    parser.add_argument("out", type=Path, help="what goes to the network")
    parser.add_argument("--host", type=Path, help="what goes to the plain NIC: frames that no ruleset wants")
    parser.add_argument("--address", type=IPv4Address, help="the card's IPv4 address; without it, it answers for all")
    parser.add_argument("--port", type=int, default=7, help="the UDP port that it answers")
    options = parser.parse_args()
    try:
        frames = [frame for _, frame in pcap.read(options.pcap)]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    address = None if options.address is None else int(options.address)
    result = play(frames, options.out, options.host, Card(rulesets(address, options.port)))
    print(
        f"{len(frames)} frames in {result.count('cycles')} cycles: {len(result.sent)} answered, "
        f"{result.count('bypassed')} for the host, {result.count('dropped')} too long, "
        + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in result.rejected.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
