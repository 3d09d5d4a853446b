# SPDX-License-Identifier: Apache-2.0
"""Runs before the tests of a unit with RESETS: resets it that often, in the middle of its tests."""

import os
from importlib import import_module

import cocotb
from cocotb.triggers import Timer
from common import Bench

CHECK = import_module(os.environ["CHECK"])


@cocotb.test()
async def resets_in_the_middle(dut) -> None:
    """Start the first test and abort it by a reset; the following tests find a unit without any trace of it."""
    test = next(test for test in vars(CHECK).values() if hasattr(test, "func"))
    start_soon = cocotb.start_soon
    for _ in range(CHECK.RESETS):
        tasks = []

        def record(task, tasks=tasks):
            tasks.append(start_soon(task))
            return tasks[-1]

        cocotb.start_soon = record
        tasks.append(start_soon(test.func(dut)))
        await Timer(2 * Bench(dut).rng.randrange(5, 120), unit="ns")
        for task in tasks:
            task.cancel()
        cocotb.start_soon = start_soon
