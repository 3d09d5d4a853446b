# SPDX-License-Identifier: Apache-2.0
"""The scheduler of a cluster against the rules of crates/card/pspin-unit/src/hpu_cluster/scheduler.rs, in every cycle.

The test plays DMA engine and drivers: packets land in any order, HPUs run for any time and keep an ended task for any
time.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from check_l1_ring import Piece, Ring
from common import start
from sv_types import Struct, struct

RESETS = 20
PARAMETERS = [
    {"Tasks": 20, "Hpus": 8, "BufferBytes": 8192, "SlotBytes": 64, "AssignCycles": 1},
    {"Tasks": 4, "Hpus": 2, "BufferBytes": 1024, "SlotBytes": 64, "AssignCycles": 1},
    {"Tasks": 5, "Hpus": 3, "BufferBytes": 2304, "SlotBytes": 256, "AssignCycles": 3},
]

TASK, RANGE = struct("task_t"), struct("range_t")
OUTCOME, COMPLETION = struct("outcome_t"), struct("completion_t")


@dataclass
class Task:
    """A task of the cluster."""

    fields: dict[str, Any]
    place: int
    piece: Piece
    landed: bool


@dataclass
class Hpu:
    """An HPU and its driver, which buffers one ended task."""

    task: Task | None = None
    left: int = 0  # cycles left to run
    is_idle: bool = True
    ended: deque[tuple[Task, dict[str, Any], int]] = field(default_factory=deque)  # and earliest cycle of release


def noise(rng, kind: Struct) -> dict[str, Any]:
    """Return any value of a type."""
    return kind.unpack(rng.getrandbits(kind.width))


def random_task(rng, largest: int) -> dict[str, Any]:
    """Return a task with random values, and with a transfer of any size up to `largest`."""
    fields = noise(rng, TASK)
    fields["her"]["transfer"] = rng.choice([0, 1, 64, 65, rng.randrange(largest + 1)])
    return fields


@cocotb.test()
async def random_traffic(dut) -> None:
    """Each cycle follows the rules, from an empty cluster to an empty one, many times."""
    tasks, hpus, slot = int(dut.Tasks.value), int(dut.Hpus.value), int(dut.SlotBytes.value)
    units, delay = int(dut.BufferBytes.value) // slot, int(dut.AssignCycles.value)
    bench = await start(dut)
    rng = bench.rng
    buffer, cluster = 0x1040_2000, 5
    dut.buffer_i.value, dut.cluster_i.value = buffer, cluster
    ring, places, waiting = Ring(units), [None] * tasks, deque()
    drivers, given = [Hpu() for _ in range(hpus)], {}
    flying: list[Task] = []
    turn = compared = fulls = blocked = skipped = empties = 0
    offered = random_task(rng, units * slot // 2)
    for cycle in range(6_000):
        busy = cycle // 300 % 4
        runs = (20, 4, 60, 4)[busy]
        # The dispatcher offers a task until it is accepted.
        free = [place for place, task in enumerate(places) if task is None]
        transfer = offered["her"]["transfer"]
        size = -(-transfer // slot)
        spot = ring.place(size) if size else 0
        has_room = bool(free) and size <= units and spot is not None
        sends = has_room and bench.happens((0.9, 0.3, 0.9, 0.02)[busy])
        dut.offer_transfer_i.value, dut.send_i.value, dut.send_valid_i.value = transfer, TASK.pack(**offered), sends
        # One of the packets in flight lands.
        lands = flying.pop(rng.randrange(len(flying))) if flying and bench.happens(0.3) else None
        dut.landed_valid_i.value = lands is not None
        dut.landed_place_i.value = lands.place if lands else rng.randrange(tasks)
        # The drivers.
        dut.idle_i.value = sum(driver.is_idle << index for index, driver in enumerate(drivers))
        offers = [bool(driver.ended) and driver.ended[0][2] <= cycle for driver in drivers]
        dut.done_valid_i.value = sum(offer << index for index, offer in enumerate(offers))
        for index, driver in enumerate(drivers):
            if offers[index]:
                task, outcome, _ = driver.ended[0]
                dut.done_place_i[index].value, dut.done_outcome_i[index].value = task.place, OUTCOME.pack(**outcome)
        ready = bench.happens((0.9, 0.9, 0.5, 0.2)[busy])
        dut.done_ready_i.value = ready
        await bench.read()

        assert bool(dut.has_room_o.value) == has_room, cycle
        assert int(dut.tasks_o.value) == tasks - len(free), cycle
        fulls += not free
        blocked += bool(free) and not has_room
        # The feedback of the first requesting driver, in round-robin order.
        order = [index % hpus for index in range(turn, turn + hpus)]
        choice = next((index for index in order if offers[index]), None)
        assert bool(dut.done_valid_o.value) == (choice is not None), cycle
        leaves = None
        if choice is not None:
            task, outcome, _ = drivers[choice].ended[0]
            expected = {**task.fields, "outcome": outcome, "hpu": {"cluster": cluster, "hpu": choice}}
            assert COMPLETION.unpack(int(dut.done_o.value)) == expected, cycle
            if ready:
                assert int(dut.done_ready_o.value) == 1 << choice, cycle
                turn, leaves = (choice + 1) % hpus, drivers[choice].ended.popleft()[0]
                compared += 1
        # Inputs of a driver.
        assert int(dut.assign_valid_o.value) == sum(1 << index for index, (at, _) in given.items() if at == cycle), (
            cycle
        )
        for index, (at, task) in list(given.items()):
            if at == cycle:
                assert int(dut.assign_place_o.value) == task.place
                assert TASK.unpack(int(dut.assign_task_o.value)) == task.fields
                expected = {"address": buffer + task.piece.start * slot, "size": task.fields["her"]["transfer"]}
                assert RANGE.unpack(int(dut.assign_packet_o.value)) == expected
                drivers[index].task, drivers[index].left, drivers[index].is_idle = task, rng.randrange(1, runs), False
        if lands:
            lands.landed = True
        # First waiting task, and first idle HPU without a task in flight to it.
        idle = [index for index, driver in enumerate(drivers) if driver.is_idle and index not in given]
        if waiting and waiting[0].landed and idle:
            given[idle[0]] = (cycle + delay, waiting.popleft())
        given = {index: entry for index, entry in given.items() if entry[0] > cycle}
        # Handlers run, and end if the driver has no other ended task.
        for driver in drivers:
            if driver.task and driver.left <= 1 and not driver.ended:
                driver.ended.append((driver.task, noise(rng, OUTCOME), cycle + 1 + rng.choice([0, 0, 0, 10])))
                driver.task, driver.is_idle = None, True
            elif driver.task:
                driver.left -= 1
        # A task arrives. Released room is available in the next cycle.
        assert bool(dut.dma_valid_o.value) == (sends and size > 0), cycle
        if sends:
            assert int(dut.send_place_o.value) == free[0], cycle
            piece = ring.allocate(spot, size) if size else Piece(0, 0, True)
            if size:
                assert int(dut.dma_place_o.value) == free[0]
                assert int(dut.dma_from_o.value) == offered["her"]["address"]
                assert int(dut.dma_to_o.value) == buffer + spot * slot
                assert int(dut.dma_size_o.value) == transfer
                skipped += spot == 0 and len(ring.pieces) > 1
            task = Task(offered, free[0], piece, size == 0)
            places[free[0]] = task
            waiting.append(task)
            if size:
                flying.append(task)
        if sends or not bench.happens(0.9):
            offered = random_task(rng, units * slot // 2)
        if leaves:
            leaves.piece.free = True
            places[leaves.place] = None
            ring.leave()
            if not ring.pieces:
                ring.tail = 0
        empties += not any(places)
        await bench.next()
    assert compared > 400
    assert min(fulls, blocked, skipped, empties) > 20, (fulls, blocked, skipped, empties)
