# SPDX-License-Identifier: Apache-2.0
"""Areas and longest paths of small netlists, against values computed by hand."""

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

RTL = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(RTL / "synth"))
import fpga  # noqa: E402
import gates  # noqa: E402
import netlist  # noqa: E402

# Two flip-flops, an inverter, and two NAND2, one with twice the drive:
#   a_q -> INV -> NAND2 (with b_i) -> NAND2_X2 (with b_i) -> b_q and y_o
CELLS = {
    "a": ("DFF", {"C": [2], "D": [9], "Q": [3]}),
    "b": ("DFFR", {"C": [2], "D": [6], "Q": [7], "R": [8]}),
    "inv": ("INV_X1", {"A": [3], "Y": [4]}),
    "nand": ("NAND2_X1", {"A": [4], "B": [9], "Y": [5]}),
    "wide": ("NAND2_X2", {"A": [5], "B": [9], "Y": [6]}),
}
PORTS = {"clk_i": ("input", [2]), "rst_ni": ("input", [8]), "b_i": ("input", [9]), "y_o": ("output", [6])}
NAMES = {"a_q": [3], "b_q": [7]}


def write(folder: Path, cells: dict[str, tuple[str, dict[str, list[Any]]]]) -> Path:
    """Write a netlist as yosys does."""
    module = {
        "ports": {name: {"direction": way, "bits": bits} for name, (way, bits) in PORTS.items()},
        "cells": {name: {"type": kind, "connections": pins} for name, (kind, pins) in cells.items()},
        "netnames": {name: {"bits": bits} for name, bits in NAMES.items()},
    }
    file = folder / "netlist.json"
    file.write_text(json.dumps({"modules": {"top": module}}), encoding="utf-8")
    return file


def test_area(tmp_path: Path) -> None:
    found = netlist.measure(write(tmp_path, CELLS), "top")
    # DFF 17/3, DFFR 20/3; INV 2/3, NAND2 1, and 1 + 2/3 with twice the drive.
    assert found["flip_flop_gates"] == round(17 / 3 + 20 / 3)
    assert found["gates"] == round(17 / 3 + 20 / 3 + 2 / 3 + 1 + 5 / 3)
    assert found["flip_flops"] == 2


def test_longest_path(tmp_path: Path) -> None:
    path = netlist.measure(write(tmp_path, CELLS), "top")["path"]
    flip_flop = 12 + 1  # to its output, and the load of an inverter's input
    inverter = 1 + 4 / 3  # its parasitic delay, and the input of a NAND2
    nand = 2 + 2 * 4 / 3  # an input of the wide one is twice a NAND2's
    wide = 2 + (4 + 1) / 2  # an output port is four inverters, and a flip-flop one; over twice the drive
    assert path == {
        "fo4": round((flip_flop + inverter + nand + wide) / 5, 1),
        "from": "a_q",
        "to": "y_o",
        "in_loops": 0,
    }


def test_wide_loads_have_trees_of_buffers() -> None:
    assert netlist.charge(8, 2) == 4
    assert netlist.charge(64, 1) == pytest.approx(4 + 5 * math.log(16, 4))


def test_loops_are_counted(tmp_path: Path) -> None:
    loop = CELLS | {"nand": ("NAND2_X1", {"A": [4], "B": [6], "Y": [5]})}
    assert netlist.measure(write(tmp_path, loop), "top")["path"]["in_loops"] == 2


def test_library() -> None:
    text = gates.library()
    assert text.count("cell(") == 3 * len(gates.GATES) + len(gates.FLIP_FLOPS)
    assert text.count("{") == text.count("}")


def test_resources_of_an_fpga() -> None:
    cells = Counter(
        {"LUT2": 3, "LUT6": 4, "FDCE": 5, "FDRE": 6, "RAM32M16": 1, "RAMB18E2": 3, "RAMB36E2": 2, "URAM288": 7}
    )
    assert fpga.resources(cells) == {
        "luts": 7,
        "memory_luts": 8,
        "flip_flops": 11,
        "block_rams": 3.5,
        "ultra_rams": 7,
        "dsps": 0,
    }
