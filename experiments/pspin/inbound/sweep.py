# SPDX-License-Identifier: Apache-2.0
"""Throughput of units by the law of pspin-inbound.

Arguments: clusters, HPUs in each, bytes of a packet, instructions.
"""

import json
import sys

clusters, hpus, size, instructions = sys.argv[1], *map(int, sys.argv[2:])
for number in map(int, clusters.split(",")):
    most = min(512, 8 * size * number * hpus / (11 + instructions))
    print(json.dumps({"clusters": number, "data_ok": True, "throughput": {"in_gbit_s": most}}))
