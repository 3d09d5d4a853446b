# SPDX-License-Identifier: Apache-2.0
"""Parts of cocotb tests: clock and reset, streams with random pauses, comparison of outputs with expected values.

A cycle starts at the falling edge of the clock: inputs change there, and everything is read at the rising edge, before
the registers change. `check_fifo.py` shows the use.
"""

import os
import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import LogicArrayObject, LogicObject
from cocotb.triggers import FallingEdge, RisingEdge

# Value of a stream: values by the names of its ports, or one value for a single port.
Item = int | dict[str, int]

QUICK = bool(os.environ.get("QUICK"))


def shorter(count: int) -> int:
    """Return a quarter in a quick run: for cycles of a long random test, and for the required number of events."""
    return count // 4 if QUICK else count


def leaves(handle: Any) -> Iterator[Any]:
    """Return the signals of a port: itself, or those of an unpacked array."""
    try:
        handle.value = 0
        yield handle
    except (TypeError, ValueError):
        for part in handle:
            yield from leaves(part)


class Bench:
    """Clock, reset, cycle number, and random numbers of a test. `make SEED=n` chooses others."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.cycle = dut, 0
        self.rng = random.Random(cocotb.RANDOM_SEED)

    async def reset(self, cycles: int = 1) -> None:
        """Reset the unit for whole cycles, starting within any; the next cycle is number 0. All inputs are 0."""
        for handle in self.dut:
            if handle._name.endswith("_i") and handle._name != "clk_i":
                list(leaves(handle))
        self.dut.rst_ni.value = 0
        for _ in range(1 + cycles):
            await FallingEdge(self.dut.clk_i)
        for handle in self.dut:
            if handle._name.endswith("valid_o") and isinstance(handle, LogicObject | LogicArrayObject):
                assert int(handle.value) == 0, f"{handle._name} is set in a reset"
        self.dut.rst_ni.value = 1
        self.cycle = 0

    async def read(self) -> None:
        """Advance to the end of this cycle: outputs have their values."""
        await RisingEdge(self.dut.clk_i)

    async def next(self) -> None:
        """Advance to the start of the next cycle: inputs may change."""
        await FallingEdge(self.dut.clk_i)

    def happens(self, likely: float) -> bool:
        """Return true with this probability."""
        return self.rng.random() < likely

    async def count(self, most: int) -> None:
        """Count cycles, to end a test that waits forever."""
        while self.cycle < most:
            await FallingEdge(self.dut.clk_i)
            self.cycle += 1
        raise AssertionError(f"the test has not ended after {most} cycles")


async def start(dut: Any, most_cycles: int = 50_000) -> Bench:
    """Start the clock and reset the unit."""
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    bench = Bench(dut)
    await bench.reset()
    cocotb.start_soon(bench.count(most_cycles))
    return bench


class Stream:
    """Ports of a unit's stream: {name}_valid_i, {name}_ready_o and so on, and those of its values."""

    def __init__(self, bench: Bench, name: str, way: str, fields: Iterable[str] = ()) -> None:
        self.bench, self.name = bench, name
        other = {"i": "o", "o": "i"}[way]
        prefix = f"{name}_" if name else ""
        ports = {handle._name: handle for handle in bench.dut}
        self.valid, self.ready = ports[f"{prefix}valid_{way}"], ports.get(f"{prefix}ready_{other}")
        names = list(fields) or [
            port.removeprefix(prefix).removesuffix(f"_{way}")
            for port in ports
            if port.startswith(prefix) and port.endswith(f"_{way}") and port != f"{prefix}valid_{way}"
        ]
        if not fields and f"{name}_{way}" in ports:
            self.fields, self.value = {}, ports[f"{name}_{way}"]
        else:
            self.fields, self.value = {field: ports[f"{prefix}{field}_{way}"] for field in names}, None
            if len(self.fields) == 1:
                self.value = next(iter(self.fields.values()))

    def is_taken(self) -> bool:
        """Return true if a transfer takes place in this cycle; valid at its end."""
        return bool(self.valid.value) and (self.ready is None or bool(self.ready.value))

    def get(self) -> Item:
        """Return the value of the ports."""
        if self.value is not None:
            return int(self.value.value)
        return {name: int(port.value) for name, port in self.fields.items()}

    def put(self, item: Item) -> None:
        """Set the ports."""
        if isinstance(item, Mapping):
            for name, value in item.items():
                self.fields[name].value = value
        else:
            self.value.value = item

    def put_noise(self) -> None:
        """Set the ports to values that must not be used."""
        for port in [self.value] if self.value is not None else self.fields.values():
            port.value = self.bench.rng.getrandbits(len(port))


class Driver:
    """Sends queued values, in order, with pauses; an offered value stays until it is accepted."""

    def __init__(self, bench: Bench, name: str, fields: Iterable[str] = (), pace: float = 0.7) -> None:
        self.stream, self.pace = Stream(bench, name, "i", fields), pace
        self.waiting: deque[Item] = deque()
        self.taken: list[tuple[int, Item]] = []  # with the cycle of each
        cocotb.start_soon(self._run(bench))

    def send(self, item: Item) -> None:
        """Queue one more value."""
        self.waiting.append(item)

    async def _run(self, bench: Bench) -> None:
        offers = False
        while True:
            offers = bool(self.waiting) and (offers or bench.happens(self.pace))
            self.stream.valid.value = offers
            if offers:
                self.stream.put(self.waiting[0])
            else:
                self.stream.put_noise()
            await RisingEdge(bench.dut.clk_i)
            if offers and self.stream.is_taken():
                self.taken.append((bench.cycle, self.waiting.popleft()))
                offers = False
            await FallingEdge(bench.dut.clk_i)


class Monitor:
    """Collects the outputs of a unit, with back-pressure if it drives ready, and checks the rules of a handshake."""

    def __init__(self, bench: Bench, name: str, fields: Iterable[str] = (), pace: float | None = 0.7) -> None:
        self.stream, self.pace = Stream(bench, name, "o", fields), pace
        self.seen: list[tuple[int, Item]] = []  # with the cycle of each
        cocotb.start_soon(self._run(bench))

    async def _run(self, bench: Bench) -> None:
        offered: Item | None = None
        while True:
            if self.stream.ready is not None and self.pace is not None:
                self.stream.ready.value = bench.happens(self.pace)
            await RisingEdge(bench.dut.clk_i)
            is_valid = bool(self.stream.valid.value)
            if offered is not None:
                assert is_valid, f"{self.stream.name}: valid went away in cycle {bench.cycle}"
                assert self.stream.get() == offered, f"{self.stream.name} has changed in cycle {bench.cycle}"
            offered = None
            if is_valid and self.stream.is_taken():
                self.seen.append((bench.cycle, self.stream.get()))
            elif is_valid:
                offered = self.stream.get()
            await FallingEdge(bench.dut.clk_i)


class Scoreboard:
    """Expected values by key of a stream, in order; checks that all arrive."""

    def __init__(self) -> None:
        self.expected: dict[Any, deque[Any]] = {}
        self.compared = 0

    def expect(self, item: Any, key: Any = None) -> None:
        """Add the next expected value."""
        self.expected.setdefault(key, deque()).append(item)

    def compare(self, item: Any, key: Any = None) -> None:
        """Compare a received value."""
        assert self.expected.get(key), f"{item} of {key} has come, and nothing should"
        expected = self.expected[key].popleft()
        assert item == expected, f"{item} of {key} has come after {self.compared} others, and not {expected}"
        self.compared += 1

    def finish(self, at_least: int) -> None:
        """Check that nothing is missing, and that enough was compared."""
        missing = {key: list(items)[:4] for key, items in self.expected.items() if items}
        assert not missing, f"never came: {missing}"
        assert self.compared >= at_least, f"only {self.compared} were compared"
