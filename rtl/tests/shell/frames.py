# SPDX-License-Identifier: Apache-2.0
"""Frames of Ethernet with IPv4 and their answers, by the rules of RFC 768, 791, 792 and 1071."""

import struct
from dataclasses import dataclass

ICMP, UDP = 1, 17
LEAST = 60  # bytes of a frame without its checksum
CARD, PEER = bytes.fromhex("020000000002"), bytes.fromhex("020000000001")


def checksum(data: bytes) -> int:
    """Return the Internet checksum: 0 over data that includes its own."""
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(kind: int, content: bytes) -> bytes:
    """Return a frame for the card, padded to the minimum size."""
    return (CARD + PEER + kind.to_bytes(2, "big") + content).ljust(LEAST, b"\0")


@dataclass
class Packet:
    """An IPv4 packet with UDP, ICMP or another protocol; `wrong` names the part with a wrong checksum."""

    source: int
    target: int
    protocol: int
    payload: bytes
    ports: tuple[int, int] = (40_000, 7)
    kind: int = 8  # ICMP type: an echo request
    wrong: str = ""
    has_sum: bool = True  # UDP may have none

    def inner(self) -> bytes:
        """Return the payload of the IPv4 packet."""
        if self.protocol == ICMP:
            return sealed(
                struct.pack(">BBHHH", self.kind, 0, 0, 0x1234, 1) + self.payload, 2, b"", self.wrong == "icmp"
            )
        if self.protocol == UDP:
            size = 8 + len(self.payload)
            data = struct.pack(">HHHH", *self.ports, size, 0) + self.payload
            pseudo = struct.pack(">IIBBH", self.source, self.target, 0, UDP, size)
            return sealed(data, 6, pseudo, self.wrong == "udp") if self.has_sum else data
        return self.payload

    def frame(self) -> bytes:
        """Return the frame."""
        inner = self.inner()
        ip = struct.pack(
            ">BBHHHBBHII", 0x45, 0, 20 + len(inner), 0x77, 0, 64, self.protocol, 0, self.source, self.target
        )
        return ethernet(0x0800, sealed(ip, 10, b"", self.wrong == "ip") + inner)

    def answer(self) -> bytes:
        """Return the expected answer for the network."""
        kind = 0 if self.protocol == ICMP else self.kind
        data = Packet(
            self.target, self.source, self.protocol, self.payload, self.ports[::-1], kind, "", self.has_sum
        ).frame()
        return data[6:12] + data[0:6] + data[12:]


def sealed(data: bytes, at: int, pseudo: bytes, is_wrong: bool) -> bytes:
    """Return data with its checksum, or with a wrong one."""
    value = checksum(pseudo + data) or 0xFFFF
    value ^= 0x0100 if is_wrong else 0
    return data[:at] + value.to_bytes(2, "big") + data[at + 2 :]
