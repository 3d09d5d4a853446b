# SPDX-License-Identifier: Apache-2.0
"""The command unit: data moved by commands, their responses, and cycles."""

import struct as bytes_of
from itertools import count
from typing import Any

import cocotb
from command_model import (
    BEAT,
    COMPLETION,
    IDLE,
    KIND,
    NOTICE,
    READ_CYCLES,
    RESPONSE_CYCLES,
    Command,
    Pace,
    World,
    beats,
)
from common import Bench, shorter, start
from fabric_model import SPAN
from sv_types import enum

SIZES: dict[str, int] = {"Hpus": 2, "Contexts": 4}
RESETS = 20
PARAMETERS = [
    {
        "Clusters": 3,
        **SIZES,
        "OutboundQueue": 32,
        "HostQueue": 8,
        "L2Gap": 2,
        "PathCycles": 6,
        "CopyStart": 3,
        "CopyL2Gap": 2,
        "WriteCredit": 1,
        "ReadCredit": 3,
    },
    {"Clusters": 1, **SIZES, "OutboundQueue": 4, "HostQueue": 2},
]

L1, OTHER_L1, L2 = 0x1000_0000, 0x1040_0000, 0x1C40_0000
PLACES = count(1 << 20, 4096)  # destinations of host data
END, CAUSE = enum("end_e"), enum("cause_e")


def random_command(bench: Bench, kinds: list[int]) -> Command:
    """Return a command of any HPU. Those that read host data have private memory."""
    rng, dut = bench.rng, bench.dut
    kind = rng.choice(kinds)
    size = rng.choice([0, 1, rng.randrange(BEAT), rng.randrange(3 * BEAT), rng.randrange(30 * BEAT)])
    start_at = rng.choice([L1, OTHER_L1, L2]) + rng.randrange(1 << 16) * (BEAT if bench.happens(0.5) else 1)
    if kind == KIND.CommandFromHost:
        start_at = L2 + next(PLACES) + rng.randrange(BEAT)
    most = 8 if kind == KIND.CommandHostDirect else BEAT
    others = {
        "execution_context": rng.randrange(4),
        "host": rng.getrandbits(64),
        "node": rng.getrandbits(32),
        "flow": rng.getrandbits(32),
        "user": rng.getrandbits(32),
        "has_event": rng.getrandbits(1),
        "immediate": rng.getrandbits(64),
        "immediate_size": rng.randrange(1, most + 1),
    }
    cluster, hpu = rng.randrange(int(dut.Clusters.value)), rng.randrange(int(dut.Hpus.value))
    return Command(kind, cluster, hpu, start_at, size, others, is_orphan=bench.happens(0.2))


async def write_contexts(bench: Bench) -> list[int]:
    """Install four contexts; the last has no descriptor. Return the descriptors."""
    descriptors = [0x1000_0000_0000 + 64 * context for context in range(3)] + [0]
    for context, descriptor in enumerate(descriptors):
        bench.dut.context_write_i.value = 1
        bench.dut.context_index_i.value, bench.dut.context_descriptor_i.value = context, descriptor
        await bench.next()
    bench.dut.context_write_i.value = 0
    return descriptors


def fail(world: World, descriptors: list[int], counts: list[int]) -> dict[str, Any]:
    """Let a handler fail, or a message be given up. Return the expected event."""
    rng = world.bench.rng
    context, message = rng.randrange(4), rng.getrandbits(32)
    counts[context] += 1
    event: dict[str, Any] = {"execution_context": context, "message": message}
    if rng.random() < 0.3:
        event |= {"kind": NOTICE.NoticeIdle, "cause": CAUSE.CauseIdle, "role": 3, "user": rng.getrandbits(1)}
        bits = IDLE.pack(message=message, execution_context=context, is_free=event["user"])
        world.failures.append(("idle", bits))
    else:
        event |= {"kind": NOTICE.NoticeFailed, "cause": rng.randrange(1, 12), "role": rng.randrange(3)}
        event |= {"pc": rng.getrandbits(32), "address": rng.getrandbits(64)}
        event["hpu"] = {"cluster": rng.randrange(256), "hpu": rng.randrange(32)}
        outcome = {"kind": END.EndFaulted, **{name: event[name] for name in ("cause", "pc", "address")}}
        her = {"message": message, "execution_context": context}
        bits = COMPLETION.pack(role=event["role"], hpu=event["hpu"], outcome=outcome, her=her)
        world.failures.append(("failed", bits))
    if descriptors[context]:
        pc, address = event.get("pc", 0), event.get("address", 0)
        status = bytes_of.pack("<IIQIIQ", event["cause"], pc, address, message, event["role"], counts[context])
        world.statuses.append((descriptors[context], status))
    return event


@cocotb.test()
async def random_commands(dut) -> None:
    """Commands of all kinds, failures, refusals, orphans, and pauses on all sides."""
    bench = await start(dut)
    descriptors = await write_contexts(bench)
    world, counts, expected = World(bench, Pace()), [0] * 4, []
    commands = [random_command(bench, list(KIND)) for _ in range(shorter(600))]
    waiting = list(commands)
    while waiting or not world.is_idle:
        slow = bench.cycle // 500 % 2
        world.pace = Pace(send=0.3, host=0.3, event=0.3) if slow else Pace(command=0.95)
        while waiting and len(world.waiting[waiting[-1].cluster]) < 4:
            command = waiting.pop()
            world.waiting[command.cluster].append(command)
        if waiting and bench.happens(0.03) and len(world.failures) < 3:
            expected += [fail(world, descriptors, counts) for _ in range(bench.rng.randrange(1, 4))]
        await world.step()
    for _ in range(60):
        await world.step()
    assert dut.empty_o.value
    assert not world.written, "bytes outside of a range were written"
    assert len(world.responses) == len(commands)
    dma = (KIND.CommandToHost, KIND.CommandFromHost)
    users = [
        command.others["user"]
        for command in commands
        if command.kind in dma and not command.is_refused and command.others["has_event"]
    ]
    assert sorted(world.expected_events) == sorted(users)
    for told, event in zip(world.told, expected, strict=True):
        assert {name: told[name] for name in event} == event
    assert sum(command.is_refused for command in commands) > shorter(10)
    assert sum(command.is_orphan for command in commands if command.kind == KIND.CommandFromHost) > shorter(10)
    assert len(expected) > shorter(10)
    assert world.compared > shorter(1000)


@cocotb.test()
async def one_at_a_time(dut) -> None:
    """Without load, each kind takes the cycles of crates/card/pspin-unit/src/command/command_unit.rs."""
    bench = await start(dut)
    path, wait = int(dut.PathCycles.value), int(dut.CopyStart.value)
    world = World(bench, Pace(1, 1, 1, 1, 1), is_exact=True)
    for _ in range(shorter(150)):
        command = random_command(bench, list(KIND))
        command.is_orphan = False
        world.log.clear()
        world.waiting[command.cluster].append(command)
        while not world.is_idle or not world.responses:
            await world.step()
        (responded, _), at, engine = world.responses.pop(), command.taken, command.taken + path - 1
        words = beats(command.address, command.size)
        match command.kind:
            case KIND.CommandSend:
                done = at + path + words - 1 + READ_CYCLES
            case KIND.CommandToHost:
                done = world.when("written")[0]
                # Bytes that exceed the second-to-last beat are one cycle late.
                late = (command.size - 1) // BEAT + 1 == words and command.address % BEAT != 0 and words > 1
                assert world.when("host write 0") == [at + path + wait + words - 1 + READ_CYCLES + late]
            case KIND.CommandFromHost:
                assert world.when("host read") == [engine + READ_CYCLES]
                done = world.when("write")[-1] + 1
                first = world.when("brought")[0] + 1
                assert world.when("write") == list(range(first, first + words))
            case KIND.CommandHostDirect:
                assert world.when("host write 1") == [engine + 1]
                done = engine + 3
            case _:
                assert world.when("host read") == [engine + 1]
                done = world.when("brought")[0]
        assert responded == done + RESPONSE_CYCLES, KIND(command.kind)
        for _ in range(10):
            await world.step()


@cocotb.test()
async def sends_without_pauses(dut) -> None:
    """A beat is read in each cycle except for the gaps, and responses arrive once all of a packet is read."""
    bench = await start(dut)
    path, gaps = int(dut.PathCycles.value), [int(dut.L1Gap.value), int(dut.L2Gap.value)]
    world = World(bench, Pace(1, 1, 1, 1, 1), is_exact=True)
    commands = [random_command(bench, [KIND.CommandSend]) for _ in range(shorter(200))]
    for command in commands:
        command.address -= command.address % BEAT
        world.waiting[command.cluster].append(command)
    while not world.is_idle:
        await world.step()
    free, turned, memory, reads = 0, 0, 0, iter(world.when("read 0"))
    for command in sorted(commands, key=lambda command: command.taken):
        is_other, memory = command.address // SPAN != memory, command.address // SPAN
        first = max(command.taken + path, turned if is_other else free)
        last = first + beats(command.address, command.size) - 1
        free, turned = last + 1, last + 1 + gaps[command.address >= L2]
        # The memory is read in the cycle after the interconnect accepts a beat.
        assert [next(reads) + 1 for _ in range(first, last + 1)] == list(range(first, last + 1))
        responded = next(cycle for cycle, other in world.responses if other is command)
        assert responded == last + READ_CYCLES + RESPONSE_CYCLES
    assert next(reads, None) is None
    assert len(world.responses) == len(commands)


@cocotb.test()
async def copies_without_pauses(dut) -> None:
    """Copies to the host wait at first, and are read with a gap after each."""
    bench = await start(dut)
    path = int(dut.PathCycles.value) + int(dut.CopyStart.value)
    gaps = [int(dut.CopyL1Gap.value), int(dut.CopyL2Gap.value)]
    world = World(bench, Pace(1, 1, 1, 1, 1), is_exact=True)
    commands = [random_command(bench, [KIND.CommandToHost]) for _ in range(shorter(200))]
    for command in commands:
        command.address -= command.address % BEAT
        world.waiting[command.cluster].append(command)
    while not world.is_idle:
        await world.step()
    free, reads = 0, iter(world.when("read 1"))
    for command in sorted(commands, key=lambda command: command.taken):
        first = max(command.taken + path, free)
        last = first + beats(command.address, command.size) - 1
        free = last + 1 + gaps[command.address >= L2]
        assert [next(reads) + 1 for _ in range(first, last + 1)] == list(range(first, last + 1))
    assert next(reads, None) is None
    assert len(world.responses) == len(commands)
