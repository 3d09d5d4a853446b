# SPDX-License-Identifier: Apache-2.0
"""Largest inbound rate of PsPIN: the minimum of the rates of its wide paths and of its HPUs.

Arguments: values of x, the instructions of a handler; bytes of a packet; HPUs; cycles for which a packet takes an HPU
besides the x instructions; bytes that the paths carry in a cycle; Gbit/s of the network (0: no limit).
"""

import json
import sys

values, size, hpus, overhead, width, rate = sys.argv[1], *map(float, sys.argv[2:])
# A packet takes whole beats of the wide paths. A cycle is 1 ns, so bits of a cycle are Gbit/s.
paths = 8 * size / -(-size // width)
if rate:
    paths = min(paths, rate)
for x in map(int, values.split(",")):
    most = min(paths, 8 * size * hpus / (overhead + x))
    print(json.dumps({"x": x, "data_ok": True, "throughput": {"in_gbit_s": most}}))
