# SPDX-License-Identifier: Apache-2.0
"""Timeline of one round of a program: its slices, and queries on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spinkit.simulate._perfetto import Slice

CPU = {"post": "#D55E00", "poll": "#E69F00", "match": "#F0E442"}
WORK, PACKET, DMA, HANDLER, WAIT = "#a05195", "#0072B2", "#009E73", "#CC79A7", "#f3d9e7"
KEY: Mapping[str, str] = {
    **{f"{name} (CPU)": color for name, color in CPU.items()},
    "computation and copies (CPU)": WORK,
    "packet leaves or arrives": PACKET,
    "DMA transfer": DMA,
    "handler": HANDLER,
    "handler waits": WAIT,
}
"""The colours of slices."""


def ns(time_ps: int) -> str:
    """Write a time in nanoseconds."""
    return f"{time_ps / 1000:,.1f} ns"


@dataclass(frozen=True)
class Timeline:
    """The interval that a program measures; it begins at 0."""

    slices: Sequence[Slice]
    """In the order of their starts; times are in picoseconds."""
    length: int
    """Picoseconds."""
    parameters: Mapping[str, str]
    """Values of the machine's parameters."""

    @property
    def ranks(self) -> list[int]:
        """Ranks with slices."""
        return sorted({rank_of(one) for one in self.slices})

    def of(self, rank: int | None = None, row: str | None = None, name: str | None = None) -> list[Slice]:
        """Return slices of a rank, of a row (`HPU` means any HPU), with a name."""
        return [
            one
            for one in self.slices
            if (rank is None or rank_of(one) == rank)
            and (row is None or one.row == row or (row == "HPU" and one.row.startswith("HPU ")))
            and (name is None or one.name == name)
        ]

    def cpu(self, rank: int | None = None, name: str | None = None) -> list[Slice]:
        """Return work of CPUs."""
        return self.of(rank, "CPU", name)

    def sent(self, rank: int) -> list[Slice]:
        """Return the packets that a rank has sent."""
        return self.of(rank, "NIC out")

    def received(self, rank: int, sender: int | None = None) -> list[Slice]:
        """Return the packets that a rank has received, from one sender or all."""
        return [one for one in self.of(rank, "NIC in") if sender is None or one.arguments["sender"] == sender]

    def handlers(self, rank: int, part: str = "") -> list[Slice]:
        """Return the runs of the handlers whose names end in `part`."""
        runs = self.of(rank, "HPU")
        return [one for one in runs if one.name.endswith(part) and not one.name.startswith("wait")]

    def notices(self, *further: str) -> list[str]:
        """Return the names of a CPU's work on the arrival of a message that takes time, then `further`."""
        costs = {"poll": "host.poll_ns", "match": "host.match_ns"}
        return [*(name for name, key in costs.items() if self.ps(key) > 0), *further]

    @property
    def shows_deposits(self) -> bool:
        """True if the data of messages crosses the DMA engine, so that a slice shows it."""
        return self.parameters["dma.messages"] == "transfers"

    def deposited(self, rank: int) -> int:
        """Return the end of a rank's last deposit, or the arrival of its last packet if deposits are not shown."""
        return max(one.end for one in (self.of(rank, "DMA", "deposit") if self.shows_deposits else self.received(rank)))

    def in_memory(self, rank: int) -> int:
        """Return the earliest time at which all received data of a rank is in its host memory."""
        return self.deposited(rank) + self.ps("dma.L_ns")

    def ps(self, key: str) -> int:
        """Return a parameter of the machine that is a time in ns, in picoseconds."""
        return round(float(self.parameters[key]) * 1000)

    def dma(self, size: int) -> int:
        """Return the time for which a transfer of `size` bytes occupies the DMA engine."""
        return round(float(self.parameters["dma.G_ps_per_byte"]) * size)


def rank_of(one: Slice) -> int:
    """Return the rank to which a slice belongs."""
    return int(one.process.removeprefix("rank "))


def packet(one: Slice) -> tuple[int, int, int]:
    """Return the identity of a packet: sender, message and offset."""
    arguments = one.arguments
    return arguments["sender"], arguments["message"], arguments["offset"]


def follow(slices: Sequence[Slice]) -> bool:
    """Return whether each slice begins when the one before it ends."""
    return all(later.start == earlier.end for earlier, later in pairwise(slices))
