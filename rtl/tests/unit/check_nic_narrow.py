# SPDX-License-Identifier: Apache-2.0
"""Beats of the unit become beats of a network port: the same bytes, without a gap."""

import cocotb
from common import Driver, Monitor, Scoreboard, start
from nic_model import beats, port_beats

PARAMETERS = [{"Width": width} for width in (64, 128, 256, 512)]
FIELDS = ["data", "keep", "last", "user"]


@cocotb.test()
async def frames(dut) -> None:
    """Frames of all sizes pass at any pace of both sides; at full pace, a part leaves in each cycle."""
    width = int(dut.Width.value)
    bench = await start(dut)
    source, sink, board = Driver(bench, "", FIELDS), Monitor(bench, "", FIELDS), Scoreboard()
    parts = 0
    for source.pace, sink.pace in ((1, 1), (0.3, 1), (1, 0.3), (0.6, 0.6)):
        for size in (1, width // 8, 63, 64, 65, 128, *(bench.rng.randrange(1, 300) for _ in range(20))):
            packet, is_bad = bench.rng.randbytes(size), bench.happens(0.3)
            for data, keep, last in beats(packet):
                source.send({"data": data, "keep": keep, "last": last, "user": int(is_bad and last)})
            for data, keep, last in port_beats(packet, width):
                board.expect((data, keep, last, is_bad and last))
                parts += source.pace == sink.pace == 1
        while source.waiting or dut.valid_o.value:
            await bench.next()
    cycles = [cycle for cycle, _ in sink.seen[:parts]]
    assert cycles == list(range(cycles[0], cycles[0] + parts)), "there is a gap"
    for _, item in sink.seen:
        mask = sum(0xFF << 8 * byte for byte in range(width // 8) if item["keep"] >> byte & 1)
        board.compare((item["data"] & mask, item["keep"], bool(item["last"]), bool(item["user"])))
    board.finish(100)
