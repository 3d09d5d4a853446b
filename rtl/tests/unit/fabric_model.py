# SPDX-License-Identifier: Apache-2.0
"""Rules of DMA engines and their interconnect (crates/card/pspin-unit/src/fabric/dma.rs), and the bytes of memories."""

from collections import deque
from dataclasses import dataclass, field

BEAT = 64
L1, SPAN, HANDLER, PACKET, PROGRAM = 0x1000_0000, 0x40_0000, 0x1C00_0000, 0x1C40_0000, 0x1D00_0000


def place(address: int) -> str:
    """Return the memory of an address; L1 with its cluster."""
    if address < HANDLER:
        return f"l1 {(address - L1) // SPAN}"
    return "handler" if address < PACKET else "packet" if address < PROGRAM else "program"


@dataclass
class Copy:
    """A packet, or a copy of a handler."""

    source: int
    target: int
    size: int
    tag: int  # slot of the task, or HPU

    def words(self, start: int) -> int:
        """Return the number of words that its bytes touch at an address."""
        return (start + max(self.size, 1) - 1) // BEAT - start // BEAT + 1

    @property
    def is_behind(self) -> bool:
        """Return true if bytes move towards the start of a word, so that each word waits for the next one of the
        source.
        """
        return self.target % BEAT < self.source % BEAT

    @property
    def beats(self) -> int:
        """Return the number of beats."""
        return self.words(self.target) + self.is_behind

    def source_of(self, beat: int) -> int | None:
        """Return the address of the word read by a beat, if any."""
        return self.source // BEAT * BEAT + BEAT * beat if beat < self.words(self.source) else None

    def target_of(self, beat: int) -> int | None:
        """Return the address of the word written by a beat, if any."""
        word = beat - self.is_behind
        return self.target // BEAT * BEAT + BEAT * word if word >= 0 else None

    def channels(self, beat: int) -> set[tuple[str, str]]:
        """Return the channels used by a beat, one for each memory and direction."""
        read = (place(self.source), "read")
        reads = not read[0].startswith("l1") or self.source_of(beat) is not None
        return {(place(self.target), "write"), *([read] if reads else [])}


@dataclass
class Engine:
    """Engine of a cluster: packets, and copies of handlers."""

    queues: tuple[deque[Copy], deque[Copy]] = field(default_factory=lambda: (deque(), deque()))
    beats: list[int] = field(default_factory=lambda: [0, 0])
    turn: int = 0


class Interconnect:
    """All engines. `landed` has for each cycle the copies that have landed from then on: cluster, queue, copy."""

    def __init__(self, clusters: int, latency: int, least: int, l1_groups: int) -> None:
        self.engines = [Engine() for _ in range(clusters)]
        self.latency, self.least, self.l1_groups = latency, least, l1_groups
        self.next = 0
        self.landed: dict[int, list[tuple[int, int, Copy]]] = {}
        self.writes: dict[int, set[tuple[str, int]]] = {}  # by cycle, the banks of L1 that no beat can read
        self.moved = self.passed = 0

    def step(self, now: int, busy: dict[str, int]) -> None:
        """Move the beats of a cycle. `busy` has the busy groups of banks of L2 memories."""
        taken: set[tuple[str, str]] = set()
        first = None
        for step in range(len(self.engines)):
            cluster = (self.next + step) % len(self.engines)
            engine = self.engines[cluster]
            order = (engine.turn, 1 - engine.turn)
            ready = (q for q in order if engine.queues[q] and not engine.queues[q][0].channels(engine.beats[q]) & taken)
            queue = next(ready, None)
            if queue is None:
                continue
            copy, beat = engine.queues[queue][0], engine.beats[queue]
            if self.is_taken(now, copy.source_of(beat), busy):
                self.passed += 1
                continue
            first = cluster if first is None else first
            taken |= copy.channels(beat)
            self.move(now, cluster, queue, copy, beat)
        if first is not None:
            self.next = (first + 1) % len(self.engines)

    def is_taken(self, now: int, address: int | None, busy: dict[str, int]) -> bool:
        """Return true if the bank of a word is busy."""
        if address is None:
            return False
        memory, word = place(address), address // BEAT
        if memory in busy:
            return bool(busy[memory] >> word % (8 if memory == "packet" else 2) & 1)
        return (memory, word % self.l1_groups) in self.writes.get(now, set())

    def move(self, now: int, cluster: int, queue: int, copy: Copy, beat: int) -> None:
        """Move a beat."""
        engine = self.engines[cluster]
        engine.turn = 1 - queue
        self.moved += 1
        target = copy.target_of(beat)
        if target is not None and target < HANDLER:
            group = (place(target), target // BEAT % self.l1_groups)
            self.writes.setdefault(now + self.latency - 3, set()).add(group)
        engine.beats[queue] += 1
        if engine.beats[queue] == copy.beats:
            engine.beats[queue] = 0
            engine.queues[queue].popleft()
            at = now + self.latency + max(0, self.least - copy.beats)
            self.landed.setdefault(at, []).append((cluster, queue, copy))

    def is_idle(self, now: int) -> bool:
        """Return true if everything has landed."""
        return (
            not any(queue for engine in self.engines for queue in engine.queues) and max(self.landed, default=0) < now
        )


class Bytes:
    """Bytes of all memories; tracks unwritten ones."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}

    def write(self, address: int, data: bytes, strobe: int = -1) -> None:
        """Write some of these bytes."""
        for index, value in enumerate(data):
            if strobe >> index & 1:
                self.bytes[address + index] = value

    def read(self, address: int, size: int) -> bytes:
        """Return bytes, all of which must be written."""
        return bytes(self.bytes[address + index] for index in range(size))
