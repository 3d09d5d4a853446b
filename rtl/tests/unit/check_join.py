# SPDX-License-Identifier: Apache-2.0
"""Merged streams: packets stay whole and in order, nothing is lost, and no sender starves."""

import cocotb
from common import Bench, start

PARAMETERS = [{"Width": 16, "N": n} for n in (5, 2, 1)]


@cocotb.test()
async def random_packets(dut) -> None:
    """Senders with pauses in their packets, and a receiver with pauses."""
    bench: Bench = await start(dut)
    rng, senders = bench.rng, int(dut.N.value)
    next_beat, packet, waits = [0] * senders, [0] * senders, [0] * senders
    offers: list[int | None] = [None] * senders
    held: int | None = None  # sender of the packet in progress
    offered: tuple[int, int] | None = None
    taken = [0] * senders
    for cycle in range(4000):
        for i in range(senders):
            if offers[i] is None and bench.happens((0.9, 0.3)[cycle // 200 % 2]):
                offers[i] = i << 12 | packet[i] % 256 << 4 | next_beat[i]
        lasts = [next_beat[i] == (packet[i] + i) % 4 for i in range(senders)]
        dut.valid_i.value = sum(1 << i for i, offer in enumerate(offers) if offer is not None)
        dut.last_i.value = sum(last << i for i, last in enumerate(lasts))
        dut.data_i.value = sum(
            (rng.getrandbits(16) if offer is None else offer) << 16 * i for i, offer in enumerate(offers)
        )
        dut.ready_i.value = ready = bench.happens((0.9, 0.4)[cycle // 300 % 2])
        await bench.read()
        valid = bool(dut.valid_o.value)
        assert valid == any(offer is not None for offer in (offers if held is None else [offers[held]]))
        assert offered is None or valid
        if valid:
            data = int(dut.data_o.value)
            source = data >> 12
            assert data == offers[source]
            assert held in (None, source), "a packet is mixed with another"
            assert offered in (None, (source, data)), "what was offered has changed"
            offered = None if ready else (source, data)
            assert int(dut.ready_o.value) == (1 << source if ready else 0)
            if ready:
                offers[source] = None
                held = None if lasts[source] else source
                next_beat[source] = 0 if lasts[source] else next_beat[source] + 1
                packet[source] += lasts[source]
                taken[source] += 1
                waits = [
                    0 if i == source else wait + (lasts[source] and offers[i] is not None)
                    for i, wait in enumerate(waits)
                ]
                assert max(waits) < senders, "a sender was passed over"
        else:
            assert not dut.ready_o.value
        await bench.next()
    assert min(taken) > 100
