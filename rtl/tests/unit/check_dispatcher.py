# SPDX-License-Identifier: Apache-2.0
"""The dispatcher's choice, as in crates/card/pspin-unit/src/schedule/dispatch.rs."""

import random

import cocotb
from cocotb.triggers import Timer

PARAMETERS = [{"Clusters": clusters, "Tasks": 20, "UsesHome": 1, "UsesOthers": 1} for clusters in (4, 6, 1)]
PARAMETERS += [
    {"Clusters": 4, "Tasks": 20, "UsesHome": home, "UsesOthers": others} for home, others in ((1, 0), (0, 1))
]


@cocotb.test()
async def choices(dut) -> None:
    clusters, most = int(dut.Clusters.value), int(dut.Tasks.value)
    uses_home, uses_others = bool(dut.UsesHome.value), bool(dut.UsesOthers.value)
    width = most.bit_length()
    rng = random.Random(cocotb.RANDOM_SEED)
    chosen, waits = set(), 0
    for _ in range(2000):
        room = rng.getrandbits(clusters) & rng.getrandbits(clusters)
        tasks = [rng.randrange(most + 1) for _ in range(clusters)]
        home, valid = rng.randrange(clusters), rng.random() < 0.9
        dut.has_room_i.value, dut.home_i.value, dut.valid_i.value = room, home, valid
        dut.tasks_i.value = sum(count << width * index for index, count in enumerate(tasks))
        await Timer(1, unit="ns")
        with_room = [index for index in range(clusters) if room >> index & 1]
        if uses_home and home in with_room:
            choice = home
        elif not uses_others or not with_room:
            choice = None
        else:
            choice = min(with_room, key=lambda index: tasks[index])
        assert bool(dut.ready_o.value) == (choice is not None)
        sends = 1 << choice if valid and choice is not None else 0
        assert int(dut.send_o.value) == sends
        chosen.add(choice)
        waits += choice is None
    assert chosen == {None, *range(clusters)}
    assert waits > 100
