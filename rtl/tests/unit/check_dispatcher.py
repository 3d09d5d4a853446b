"""The dispatcher's choice, as crates/accel/src/pspin/schedule/dispatch.rs makes it."""

import random

import cocotb
from cocotb.triggers import Timer

PARAMETERS = [{"Clusters": clusters, "Tasks": 20, "Width": 8} for clusters in (1, 4, 6)]


@cocotb.test()
async def choices(dut) -> None:
    clusters, most = int(dut.Clusters.value), int(dut.Tasks.value)
    rng = random.Random(clusters)
    chosen, waits = set(), 0
    for _ in range(2000):
        room = rng.getrandbits(clusters) & rng.getrandbits(clusters)
        tasks = [rng.randrange(most + 1) for _ in range(clusters)]
        home, pinned, valid, task = rng.randrange(clusters), rng.random() < 0.2, rng.random() < 0.9, rng.getrandbits(8)
        dut.has_room_i.value, dut.home_i.value, dut.pinned_i.value = room, home, pinned
        dut.valid_i.value, dut.task_i.value = valid, task
        for index, count in enumerate(tasks):
            dut.tasks_i[index].value = count
        await Timer(1, unit="ns")
        with_room = [index for index in range(clusters) if room >> index & 1]
        if home in with_room:
            choice = home
        elif pinned or not with_room:
            choice = None
        else:
            choice = min(with_room, key=lambda index: tasks[index])
        assert bool(dut.ready_o.value) == (choice is not None)
        sends = 1 << choice if valid and choice is not None else 0
        assert int(dut.send_o.value) == sends
        assert int(dut.task_o.value) == task
        chosen.add(choice)
        waits += choice is None
    assert chosen == {None, *range(clusters)}
    assert waits > 100
