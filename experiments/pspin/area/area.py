# SPDX-License-Identifier: Apache-2.0
"""Area and power of PsPIN in 22 nm, as printed in Table III, and numbers derived from its rows."""

import json
import sys

# Component: area of one, count, total area, total power, share of the parent's area and power in percent.
TABLE = {
    1: ("PsPIN", 18.47, 1, 18.47, 6.08, 100.0, 100.0),
    2: ("L2 memories", 9.48, 1, 9.48, 1.10, 51.3, 18.1),
    3: ("interconnect", 0.57, 1, 0.57, 0.71, 3.0, 11.7),
    4: ("clusters", 1.99, 4, 7.95, 3.77, 43.0, 62.0),
    5: ("L1 of a cluster", 1.65, 1, 1.65, 0.52, 82.9, 55.3),
    6: ("cores of a cluster", 0.01, 8, 0.08, 0.14, 4.0, 15.3),
    7: ("instruction cache of a cluster", 0.08, 1, 0.08, 0.14, 4.0, 15.1),
    8: ("interconnect of a cluster", 0.06, 1, 0.06, 0.11, 3.0, 11.3),
}
PARTS_OF_UNIT, PARTS_OF_CLUSTER = (2, 3, 4), (5, 6, 7, 8)
# Table IV: die area in mm2, processing elements, and area of an element as printed: its own, and scaled to the process
# and the memory of PsPIN.
CHIPS = {"ault": (485.0, 18, 17.978, 35.956), "zynq": (3.27, 4, 0.876, 1.752), "pspin": (18.5, 32, 0.578, 0.578)}


def derived(row: int, clusters: int, hpus: int) -> dict[str, float]:
    """Compute the numbers of a component, or of the whole, of a unit with `clusters` clusters of `hpus` HPUs."""
    _, one_area, number, _, _, printed_area, printed_power = TABLE[row]
    area = {key: one[3] for key, one in TABLE.items()}
    power = {key: one[4] for key, one in TABLE.items()}
    whole, cluster_area, cluster_power = TABLE[1], TABLE[4][1], power[4] / TABLE[4][2]
    parent_area, parent_power = (cluster_area, cluster_power) if row in PARTS_OF_CLUSTER else (whole[3], whole[4])
    return {
        "area_off": one_area * number - area[row],
        "area_share_off": 100 * area[row] / parent_area - printed_area,
        "power_share_off": 100 * power[row] / parent_power - printed_power,
        "scheduler_area": area[1] - sum(area[part] for part in PARTS_OF_UNIT),
        "scheduler_power": power[1] - sum(power[part] for part in PARTS_OF_UNIT),
        "cluster_area": sum(area[part] for part in PARTS_OF_CLUSTER),
        "memory_area_share": 100 * (area[2] + TABLE[4][2] * area[5]) / area[1],
        "memory_power_share": 100 * (power[2] + TABLE[4][2] * power[5]) / power[1],
        "hpu_area": CHIPS["pspin"][0] / (clusters * hpus),
        "hpu_power": 1000 * power[1] / (clusters * hpus),
        "zynq_element": CHIPS["zynq"][0] / CHIPS["zynq"][1],
        "ault_scale": CHIPS["ault"][3] / CHIPS["ault"][2],
        "zynq_scale": CHIPS["zynq"][3] / CHIPS["zynq"][2],
        "ault_dies": CHIPS["ault"][0] / CHIPS["pspin"][0],
    }


rows, *cores = sys.argv[1:]
for row in map(int, rows.split(",")):
    line = {"component": row, "data_ok": True, "area_mm2": TABLE[row][3], "power_w": TABLE[row][4]}
    print(json.dumps(line | derived(row, *map(int, cores))))
