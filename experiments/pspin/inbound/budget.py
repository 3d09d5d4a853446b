# SPDX-License-Identifier: Apache-2.0
"""The longest that handlers may take at line rate: HPUs x bits of a packet / line rate.

Arguments: sizes of packets, Gbit/s, HPUs.
"""

import json
import sys

sizes, rate, hpus = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
for size in map(int, sizes.split(",")):
    point = {"size": size, "data_ok": True, "throughput": {"in_gbit_s": rate}, "budget_ns": hpus * size * 8 / rate}
    # Tasks are assigned to four clusters of eight HPUs in turn.
    print(json.dumps(point | {"cluster_budget_ns": 4 * size * 8 / rate}))
