# SPDX-License-Identifier: Apache-2.0
"""Captures in the format of libpcap: frames of Ethernet, each with its time in nanoseconds."""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

MICROSECONDS, NANOSECONDS = 0xA1B2_C3D4, 0xA1B2_3C4D
ETHERNET = 1


def read(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield time and bytes of each frame.

    Raises ValueError for a file of another format, and for a truncated one.
    """
    data = path.read_bytes()
    order = next((order for order in "<>" if data[:4] in magics(order)), None)
    if order is None or len(data) < 24:
        raise ValueError(f"{path} is no capture of libpcap; `editcap -F pcap` makes one of other captures")
    unit = 1 if data[:4] == struct.pack(f"{order}I", NANOSECONDS) else 1000
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    if link & 0xFFFF != ETHERNET:
        raise ValueError(f"{path} has frames of link type {link & 0xFFFF}, and not of Ethernet ({ETHERNET})")
    at = 24
    while at < len(data):
        if at + 16 > len(data):
            raise ValueError(f"{path} ends in the middle of a frame")
        seconds, fraction, size, whole = struct.unpack_from(f"{order}4I", data, at)
        at += 16
        if at + size > len(data):
            raise ValueError(f"{path} ends in the middle of a frame")
        if size != whole:
            raise ValueError(f"{path} has only {size} of {whole} bytes of a frame; capture with `tcpdump -s 0`")
        yield seconds * 1_000_000_000 + fraction * unit, data[at : at + size]
        at += size


def magics(order: str) -> list[bytes]:
    """Return the possible magic numbers of a file of this byte order."""
    return [struct.pack(f"{order}I", magic) for magic in (MICROSECONDS, NANOSECONDS)]


def write(path: Path, frames: Iterable[tuple[int, bytes]]) -> None:
    """Write frames, each with its time."""
    data = bytearray(struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, 65_535, ETHERNET))
    for time, frame in frames:
        data += struct.pack("<4I", *divmod(time, 1_000_000_000), len(frame), len(frame)) + frame
    path.write_bytes(data)
