# SPDX-License-Identifier: Apache-2.0
"""The control registers: writes of the driver reach all units, and events there reach the driver."""

from collections import deque
from typing import Any

import cocotb
from common import Bench, start
from sv_types import constants, enum, struct

PARAMETERS = [{"Clusters": clusters, "Contexts": 8, "Events": 4, "Characters": 4, "Step": 4} for clusters in (3, 1)]

ABI = constants("pspin_abi_pkg")
CFG, CONTEXT, RANGE, EVENT = (struct(name) for name in ("cfg_t", "execution_context_t", "range_t", "driver_event_t"))
NOTICE = enum("notice_e")


class Host:
    """Driver on the host: one access at a time."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut = bench, bench.dut

    async def access(self, register: str | int, value: int | None = None) -> int:
        """Write a register, or read it."""
        dut = self.dut
        dut.ctrl_valid_i.value, dut.ctrl_we_i.value = 1, value is not None
        dut.ctrl_address_i.value = ABI[f"Control{register}"] if isinstance(register, str) else register
        dut.ctrl_wdata_i.value = value or 0
        await self.bench.next()
        dut.ctrl_valid_i.value = 0
        assert dut.ctrl_rvalid_o.value
        return int(dut.ctrl_rdata_o.value)


@cocotb.test()
async def settings_and_contexts(dut) -> None:
    """Settings persist and read back; a row of the table of contexts is written at once."""
    bench = await start(dut)
    host, rng = Host(bench), bench.rng
    assert await host.access("Id") == ABI["AbiId"]
    for name, parameter in [("Clusters", "Clusters"), ("Contexts", "Contexts"), ("L1Bytes", "L1Bytes")]:
        assert await host.access(name) == int(getattr(dut, parameter).value)
    assert await host.access("HostTimeout") == int(dut.host_timeout_o.value) == int(dut.HostTimeout.value) > 0
    await host.access("HostTimeout", 77)
    assert await host.access("HostTimeout") == int(dut.host_timeout_o.value) == 77
    names = ["Entry", "Again", "StaticAddress", "StaticBytes", "CodeAddress", "CodeBytes", "BootAddress", "BootBytes"]
    values = {name: rng.getrandbits(32) for name in names} | {"Enable": 1}
    for name, value in values.items():
        await host.access(name, value)
    assert {name: await host.access(name) for name in values} == values
    assert CFG.unpack(dut.cfg_o.value) == {
        "enable": 1,
        "drop": 0,
        "entry": values["Entry"],
        "again": values["Again"],
        "static_data": {"address": values["StaticAddress"], "size": values["StaticBytes"]},
        "code": {"address": values["CodeAddress"], "size": values["CodeBytes"]},
        "handler_data": {"address": values["BootAddress"], "size": values["BootBytes"]},
    }
    first, last = ABI["ControlContextTenant"], ABI["ControlContextCompletionBytes"]
    compared = 0
    for number in [*range(8), 8, 1 << 31]:
        row = {address: rng.getrandbits(32) for address in range(first, last + 4, 4)}
        for address, value in row.items():
            await host.access(address, value)
        assert {address: await host.access(address) for address in row} == row

        def word(name: str, row: dict[int, int] = row) -> int:
            return row[ABI[f"ControlContext{name}"]]

        await host.access("ContextWrite", number)
        assert bool(dut.context_write_o.value) == (number < 8)
        if number < 8:
            assert int(dut.context_index_o.value) == number
            found = CONTEXT.unpack(dut.context_o.value)
            handlers = found.pop("handlers")
            assert found == {
                "tenant": word("Tenant") & 255,
                "is_pinned": word("Pin") >> 31,
                "pin": word("Pin") & 255,
                "descriptor": word("DescriptorHigh") << 32 | word("Descriptor"),
                "idle_cycles": word("Idle"),
                "watchdog_cycles": word("Watchdog"),
                "host": {
                    "address": word("HostHigh") << 32 | word("Host"),
                    "size": word("HostBytesHigh") << 32 | word("HostBytes"),
                },
                "handler_memory": {"address": word("HandlerMemory"), "size": word("HandlerMemoryBytes")},
            }
            parts = [word(name) << 32 | word(f"{name}Bytes") for name in ("Header", "Payload", "Completion")]
            assert handlers == sum(part << 64 * i for i, part in enumerate(parts))
            compared += 1
        await bench.next()
        assert not dut.context_write_o.value
        pad = {"address": rng.getrandbits(32), "size": rng.getrandbits(32)}
        cluster = rng.randrange(4)
        for name, value in [("Address", pad["address"]), ("Bytes", pad["size"]), ("Cluster", cluster)]:
            await host.access(f"Scratchpad{name}", value)
        await host.access("ScratchpadWrite", number)
        assert bool(dut.scratchpad_write_o.value) == (number < 8)
        if number < 8:
            assert int(dut.scratchpad_index_o.value) == number
            assert int(dut.scratchpad_cluster_o.value) == cluster
            assert RANGE.unpack(dut.scratchpad_o.value) == pad
    assert compared == 8
    for done, free in [(1, 0), (0, 0), (1, 1)]:
        await host.access("ResetMessage", 1234)
        assert dut.reset_valid_o.value
        assert int(dut.reset_message_o.value) == 1234
        dut.reset_done_i.value, dut.reset_free_i.value, dut.idle_i.value = done, free, done
        await bench.next()
        assert not dut.reset_valid_o.value
        assert await host.access("State") == free << 2 | done << 1 | done
    await bench.reset()
    words = range(ABI["ControlContextTenant"], ABI["ControlScratchpadCluster"] + 4, 4)
    assert not any([await host.access(address) for address in [*words, *(ABI[f"Control{name}"] for name in names)]]), (
        "no window after a reset"
    )
    assert not int(dut.context_o.value)
    assert not int(dut.scratchpad_o.value)


@cocotb.test()
async def events_and_console(dut) -> None:
    """Events and characters arrive in the order of their source, or are counted as lost."""
    bench = await start(dut)
    host, rng, clusters = Host(bench), bench.rng, int(dut.Clusters.value)
    await host.access("IrqEnable", 3)
    sources: list[deque[dict[str, Any]]] = [deque() for _ in range(3)]
    sent: list[deque[dict[str, Any]]] = [deque() for _ in range(3)]
    spoken: list[deque[int]] = [deque() for _ in range(clusters)]
    terminates = [0] * clusters
    came, letters, lost = 0, 0, {"Events": 0, "Output": 0}
    for cycle in range(3000):
        quiet = cycle > 2400
        slow = cycle // 400 % 2
        for i, source in enumerate(sources):
            if not source and not quiet and bench.happens(0.05):
                fields = {"cause": rng.randrange(12), "role": rng.randrange(4), "pc": rng.getrandbits(32)}
                fields |= {"message": rng.getrandbits(32), "execution_context": rng.randrange(256)}
                fields |= {"address": rng.getrandbits(64), "user": i << 24 | rng.getrandbits(24)}
                fields |= {"hpu": {"cluster": rng.randrange(256), "hpu": rng.randrange(32)}}
                source.append({"kind": rng.choice([NOTICE.NoticeFailed, NOTICE.NoticeIdle]), **fields})
        dut.event_valid_i.value = sum(1 << i for i, source in enumerate(sources) if source)
        dut.event_i.value = sum(
            EVENT.pack(**source[0]) << i * EVENT.width for i, source in enumerate(sources) if source
        )
        ends = 0 if quiet or cycle % 97 else 1 << rng.randrange(clusters)
        dut.terminate_i.value = ends
        speaks = 0 if quiet else rng.getrandbits(clusters) & rng.getrandbits(clusters) & rng.getrandbits(clusters)
        chars, hpus = [rng.randrange(256) for _ in range(clusters)], [rng.randrange(32) for _ in range(clusters)]
        dut.console_valid_i.value = speaks
        dut.console_char_i.value = sum(char << 8 * i for i, char in enumerate(chars))
        dut.console_hpu_i.value = sum(hpu << 5 * i for i, hpu in enumerate(hpus))

        # The driver reads the front of the event queue and of the console.
        reading = "" if slow and not bench.happens(0.05) else rng.choice(["Event", "Console"])
        await bench.read()
        for i, source in enumerate(sources):
            if source and int(dut.event_ready_o.value) >> i & 1:
                sent[i].append(source.popleft())
        for i in range(clusters):
            terminates[i] += ends >> i & 1
        ready = int(dut.console_ready_o.value)
        assert ready & (ready - 1) == 0
        for i in range(clusters):
            if speaks & ready & 1 << i:
                spoken[i].append(1 << 31 | i << 16 | hpus[i] << 8 | chars[i])
        await bench.next()
        dut.event_valid_i.value = dut.terminate_i.value = dut.console_valid_i.value = 0
        if reading == "Console":
            letter = await host.access("Console")
            if letter:
                queue = spoken[letter >> 16 & 255]
                while queue[0] != letter:
                    queue.popleft()
                    lost["Output"] += 1
                queue.popleft()
                letters += 1
        elif reading == "Event" and (kind := await host.access("EventKind")):
            assert dut.irq_o.value
            user, hpu = await host.access("EventUser"), await host.access("EventHpu")
            if kind == NOTICE.NoticeTerminated:
                terminates[hpu >> 8] -= 1
            else:
                queue_of = sent[user >> 24]
                while queue_of[0]["user"] != user:
                    queue_of.popleft()
                    lost["Events"] += 1
                event = queue_of.popleft()
                cause = await host.access("EventCause")
                assert (kind, hpu) == (event["kind"], event["hpu"]["cluster"] << 8 | event["hpu"]["hpu"])
                assert cause == event["role"] << 8 | event["cause"]
                assert await host.access("EventMessage") == event["message"]
                assert await host.access("EventContext") == event["execution_context"]
                assert await host.access("EventPc") == event["pc"]
                low, high = await host.access("EventAddress"), await host.access("EventAddressHigh")
                assert high << 32 | low == event["address"]
            await host.access("EventPop", 0)
            came += 1
    assert not dut.irq_o.value
    assert not any(sources)
    lost["Events"] += sum(map(len, sent)) + sum(terminates)
    lost["Output"] += sum(map(len, spoken))
    counter = ABI["ControlCounters"]
    for name, number in lost.items():
        await host.access(counter)
        assert await host.access(counter + 8 * ABI[f"CounterLost{name}"]) == number > 0, name
    assert came > 100
    assert letters > 100


@cocotb.test()
async def counters(dut) -> None:
    """All counters belong to one cycle, that of the latest read of the first one."""
    bench = await start(dut)
    host, rng = Host(bench), bench.rng
    rows, step = ABI["CounterRows"], int(dut.Step.value)
    own = {ABI[f"Counter{name}"] for name in ("Cycles", "LostEvents", "LostOutput")}
    counts, base = [0] * rows, ABI["ControlCounters"]
    frozen: list[int] | None = None
    cycles, compared = 0, 0
    for _ in range(3000):
        index = rng.randrange(rows) if frozen else 0
        adds = [rng.randrange(1 << step) for _ in range(rows)]
        dut.counts_i.value = sum(add << i * step for i, add in enumerate(adds))
        if index == 0:
            frozen = list(counts)
            cycles = 0
        value = await host.access(base + 8 * index)
        if index in own:
            assert index == 0 or value == 0
        else:
            assert frozen
            assert value == frozen[index]
            compared += 1
        counts = [count + add for count, add in zip(counts, adds, strict=True)]
        cycles += 1
    assert compared > 1000
