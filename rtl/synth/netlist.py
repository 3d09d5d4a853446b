# SPDX-License-Identifier: Apache-2.0
"""Gates of a netlist, and its longest path by logical effort.

The inputs of a gate of effort g and drive s have capacitance g s, so a load takes load / s for any gate.
Wires and the access times of memories are not counted.
"""

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from gates import CLOCK_TO_OUTPUT, DRIVES, FLIP_FLOPS, FO4, GATES

EFFORTS = {gate.name: (gate.effort, gate.parasitic) for gate in GATES}
REGISTERS = {name for name, _, _ in FLIP_FLOPS}
AREAS = {name: area for name, area, _ in FLIP_FLOPS}
AREAS |= {f"{gate.name}_X{drive}": gate.sized(drive) for gate in GATES for drive in DRIVES}


def measure(file: Path, top: str) -> dict[str, Any]:
    """Return a netlist's gate equivalents, those of its flip-flops and their number, and its longest path."""
    module = json.loads(file.read_text(encoding="utf-8"))["modules"][top]
    kinds = Counter(cell["type"] for cell in module["cells"].values())
    return {
        "gates": round(sum(AREAS.get(kind, 0) * number for kind, number in kinds.items())),
        "flip_flop_gates": round(sum(AREAS[kind] * number for kind, number in kinds.items() if kind in REGISTERS)),
        "flip_flops": sum(number for kind, number in kinds.items() if kind in REGISTERS),
        "path": longest_path(module),
    }


def charge(load: float, drive: float) -> float:
    """Return the delay of a load, through a tree of buffers if it exceeds four times the drive of a gate."""
    times = load / drive / 4
    return load / drive if times <= 1 else 4 + FO4 * math.log(times, 4)


def longest_path(module: dict[str, Any]) -> dict[str, Any]:
    """Return the delay in FO4 between registers, memories and ports, and the two ends of the path."""
    load: dict[int, float] = defaultdict(float)
    users: dict[int, list[str]] = defaultdict(list)
    gates: dict[str, tuple[float, int, int, list[int]]] = {}
    ends: list[tuple[int, str]] = []
    starts: dict[int, str] = {}

    for name, port in module["ports"].items():
        for bit in port["bits"]:
            if isinstance(bit, int):
                if port["direction"] == "input":
                    starts[bit] = name
                else:
                    load[bit] += 4
                    ends.append((bit, name))
    for name, cell in module["cells"].items():
        kind, _, drive = cell["type"].partition("_X")
        if kind in EFFORTS:
            effort, parasitic = EFFORTS[kind]
            pins = {pin: bits[0] for pin, bits in cell["connections"].items()}
            output = pins.pop("Y")
            inputs = [bit for bit in pins.values() if isinstance(bit, int)]
            for bit in inputs:
                load[bit] += effort * int(drive)
                users[bit].append(name)
            gates[name] = (parasitic, int(drive), output, inputs)
        else:
            for pin, bits in cell["connections"].items():
                for bit in bits:
                    if not isinstance(bit, int) or (kind in REGISTERS and pin == "C"):
                        continue
                    if pin == "Q" or pin.endswith("_o"):  # output of a flip-flop, or of one of our units
                        starts[bit] = name
                    else:
                        load[bit] += 1
                        ends.append((bit, name))

    arrival: dict[int, tuple[float, str]] = {}
    for bit, name in starts.items():
        is_port = name in module["ports"]
        arrival[bit] = (charge(load[bit], 1) + (0 if is_port else CLOCK_TO_OUTPUT), name)
    waiting = {name: len(inputs) for name, (*_, inputs) in gates.items()}
    ready = [name for name, count in waiting.items() if count == 0]
    done = list(starts)
    while done or ready:
        if ready:
            parasitic, drive, output, inputs = gates[ready.pop()]
            begin = max((arrival[bit] for bit in inputs), default=(0.0, "constant"))
            arrival[output] = (begin[0] + parasitic + charge(load[output], drive), begin[1])
            done.append(output)
            continue
        for name in users[done.pop()]:
            waiting[name] -= 1
            if waiting[name] == 0:
                ready.append(name)
    stuck = [name for name, count in waiting.items() if count > 0]
    delay, begin, end = max((*arrival[bit], name) for bit, name in ends if bit in arrival)
    return {
        "fo4": round(delay / FO4, 1),
        "from": named(module, begin),
        "to": named(module, end),
        "in_loops": len(stuck),
    }


def named(module: dict[str, Any], name: str) -> str:
    """Return the source register of a flip-flop, and the name itself for ports and memories."""
    cell = module["cells"].get(name)
    if cell is None or cell["type"] not in REGISTERS:
        return name
    (bit,) = cell["connections"]["Q"]
    names = [one for one, net in module["netnames"].items() if bit in net["bits"] and not net.get("hide_name")]
    return min(names, key=len, default=name)
