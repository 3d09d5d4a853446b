# SPDX-License-Identifier: Apache-2.0
"""The outbound engine: packets of handlers and of the host leave whole, in the order of each."""

from collections import deque

import cocotb
from common import Monitor, start
from nic_model import beats
from sv_types import struct


@cocotb.test()
async def random_packets(dut) -> None:
    """Packets are not interleaved, none is lost, and the sides alternate."""
    command_t = struct("command_t")
    bench = await start(dut)
    rng = bench.rng
    sink = Monitor(bench, "tx", ["data", "keep", "last", "dest"])
    packets: list[list[tuple[bytes, int]]] = [[], []]
    waiting: list[deque] = [deque(), deque()]
    empties = sent = 0
    offers = [False, False]
    until = 5000
    for now in range(until + 500):
        for side in range(2):
            if now < until and not waiting[side]:
                packet, node = rng.randbytes(rng.choice((0, 64, rng.randrange(1, 300)))), rng.getrandbits(32)
                if packet:
                    packets[side].append((packet, node))
                    waiting[side] += [(*beat, node) for beat in beats(packet)]
                elif side == 0:
                    waiting[side].append((0, 0, True, node))
                    empties += 1
            offers[side] = bool(waiting[side]) and (offers[side] or bench.happens((0.9, 0.3)[now // 300 % 2]))
        dut.send_valid_i.value, dut.host_valid_i.value = offers
        if offers[0]:
            data, keep, last, node = waiting[0][0]
            dut.send_data_i.value, dut.send_bytes_i.value, dut.send_last_i.value = data, keep.bit_length(), last
            noise = command_t.unpack(rng.getrandbits(command_t.width))
            dut.send_command_i.value = command_t.pack(**{**noise, "node": node})
        if offers[1]:
            data, keep, last, node = waiting[1][0]
            dut.host_data_i.value, dut.host_keep_i.value = data, keep
            dut.host_last_i.value, dut.host_dest_i.value = last, node
        sink.pace = (0.9, 0.4, 1)[now // 400 % 3]
        await bench.read()
        sent += int(dut.sent_o.value) + int(dut.host_o.value)
        for side, ready in enumerate((dut.send_ready_o, dut.host_ready_o)):
            if offers[side] and ready.value:
                waiting[side].popleft()
                offers[side] = False
        await bench.next()
    whole: list[tuple[bytes, int]] = []
    part = b""
    for _, beat in sink.seen:
        part += beat["data"].to_bytes(64, "little")[: beat["keep"].bit_length()]
        if beat["last"]:
            whole.append((part, beat["dest"]))
            part = b""
    assert not part
    assert sent == len(whole) == sum(map(len, packets))
    # Packets of each side in order; both sides are served.
    turns = ""
    queues = [deque(side) for side in packets]
    for packet in whole:
        side = next(index for index, queue in enumerate(queues) if queue and queue[0] == packet)
        queues[side].popleft()
        turns += "ab"[side]
    assert min(map(len, packets)) > 300
    assert empties > 50
    assert "aaaaaaaaaa" not in turns.strip("a")
