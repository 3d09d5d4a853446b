# SPDX-License-Identifier: Apache-2.0
"""Throughput from L1 that was measured on the published hardware, with eight messages at once.

Arguments: ping-pong or copy-to-host, and the sizes of packets.
"""

import json
import sys

GBIT_S = {"ping-pong": {64: 260, 512: 453, 1024: 483}, "copy-to-host": {64: 199, 512: 453, 1024: 481}}

program, sizes = sys.argv[1:]
for size in map(int, sizes.split(",")):
    print(json.dumps({"size": size, "data_ok": True, "throughput": {"in_gbit_s": GBIT_S[program][size]}}))
