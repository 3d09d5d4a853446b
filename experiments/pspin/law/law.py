# SPDX-License-Identifier: Apache-2.0
"""Little's law for the packet buffer: bytes needed for a latency at a line rate, and longest time of handlers.

Arguments: the latencies, Gbit/s, and the HPUs that belong to 400 Gbit/s.
"""

import json
import sys

latencies, rate, hpus = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
# "HCTs are computed by scaling the number of cores together with the line rate."
cores = hpus * rate / 400
critical = {f"hct_{size}_ns": cores * size * 8 / rate for size in (256, 1024, 4096)}
for latency in map(int, latencies.split(",")):
    # Gbit/s are bits in a nanosecond.
    point = {"latency": latency, "data_ok": True, "buffer_kib": rate * latency / 8 / 1024}
    print(json.dumps(point | {"l2_peak_bytes": rate * latency / 8} | critical))
