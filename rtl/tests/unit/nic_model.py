# SPDX-License-Identifier: Apache-2.0
"""Frames of Ethernet with IPv4, and the rules by which a NIC sorts them."""

import random
import struct as binary
from dataclasses import dataclass

ICMP, TCP, UDP = 1, 6, 17
BEAT = 64


def frame(protocol: int, address: int, port: int, payload: bytes, *, fragment: int = 0, options: bool = False) -> bytes:
    """Return an Ethernet frame with an IPv4 packet. The engines ignore checksums."""
    ports = binary.pack(">HHHH", 1, port, 8 + len(payload), 0) if protocol in (UDP, TCP) else b"\x08\0\0\0"
    words = 6 if options else 5
    length = 4 * words + len(ports) + len(payload)
    header = binary.pack(">BBHHHBBHII", 0x40 | words, 0, length, 0, fragment, 64, protocol, 0, 0x0A000001, address)
    return bytes(12) + b"\x08\x00" + header + bytes(4 * words - 20) + ports + payload


@dataclass
class Rule:
    """Rule for the packets of the unit: nic_rule_t."""

    protocol: int
    port: int | None
    address: int | None
    execution_context: int
    packets: int
    transfer: int
    is_used: bool = True

    def fields(self) -> dict[str, int]:
        """Return the fields of nic_rule_t."""
        return {
            "is_used": int(self.is_used),
            "protocol": self.protocol,
            "has_port": int(self.port is not None),
            "port": self.port or 0,
            "has_address": int(self.address is not None),
            "address": self.address or 0,
            "execution_context": self.execution_context,
            "packets": self.packets,
            "transfer": self.transfer,
        }

    def fits(self, packet: bytes) -> bool:
        """Return true if a frame matches."""
        if not self.is_used or len(packet) < 34 or packet[12:15] != b"\x08\x00\x45":
            return False
        fragment, protocol, address = binary.unpack_from(">HxBxx4xI", packet, 20)
        if fragment & 0x3FFF or protocol != self.protocol or self.address not in (None, address):
            return False
        return self.port is None or (len(packet) >= 38 and binary.unpack_from(">H", packet, 36)[0] == self.port)


def beats(packet: bytes) -> list[tuple[int, int, bool]]:
    """Return data, keep and last of each beat."""
    parts = [packet[at : at + BEAT] for at in range(0, len(packet), BEAT)]
    return [
        (int.from_bytes(part, "little"), (1 << len(part)) - 1, index == len(parts) - 1)
        for index, part in enumerate(parts)
    ]


def random_rules(rng: random.Random, count: int) -> list[Rule]:
    """Return rules that match many frames of `random_frame`, some of them with several rules."""
    return [
        Rule(
            rng.choice((ICMP, UDP, UDP)),
            rng.choice((None, 7, 9)),
            rng.choice((None, 0x0A000002)),
            rng.randrange(64),
            rng.choice((1, 1, 2, 5)),
            rng.choice((64, 128, 2048)),
            rng.random() < 0.9,
        )
        for _ in range(count)
    ]


def random_frame(rng: random.Random, most: int) -> bytes:
    """Return a frame that may or may not be for the unit."""
    packet = frame(
        rng.choice((ICMP, UDP, UDP, UDP, TCP)),
        rng.choice((0x0A000002, 0x0A000003)),
        rng.choice((7, 9, 80)),
        rng.randbytes(rng.choice((0, 20, rng.randrange(100), rng.randrange(max(1, most - 42))))),
        fragment=rng.choice((0, 0, 0, 0, 0, 0, 0x2000, 5, 0x4000)),
        options=rng.random() < 0.05,
    )
    if rng.random() < 0.1:
        packet = packet[: rng.randrange(14, len(packet))]
    if rng.random() < 0.05:
        packet = packet[:12] + rng.choice((b"\x08\x06", b"\x86\xdd")) + packet[14:]
    return packet
