# SPDX-License-Identifier: Apache-2.0
"""A sample of tests/soak/looking.py: observation does not change a program's run."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

from .conftest import CHECKOUT

SPEC = importlib.util.spec_from_file_location("looking", CHECKOUT / "tests" / "soak" / "looking.py")
assert SPEC is not None
assert SPEC.loader is not None
looking = importlib.util.module_from_spec(SPEC)
sys.modules["looking"] = looking
SPEC.loader.exec_module(looking)

# Each at another level; paths once differed most in the first.
SAMPLE = [
    ("examples/counter.c", "-O0", "ooo-a15", ("sanitize", "gdb-first", "profile", "quiet")),
    ("examples/allreduce.c", "-O1", "inorder", ("sanitize", "trace")),
    ("tests/programs/debugging.c 6000 race", "-O2", "ooo-a15", ("sanitize", "gdb-last")),
    ("examples/kvstore.c", "-Os", "ooo-a15", ("sanitize", "print-free")),
    ("sdk/handlers/cost.c", "-O3", "inorder", ("sanitize", "profile")),
]


@pytest.mark.parametrize(("name", "level", "timing", "paths"), SAMPLE)
def test_nobody_who_looks_changes_a_run(
    tmp_path: Path, name: str, level: str, timing: str, paths: tuple[str, ...]
) -> None:
    (case,) = (looking.replace(one, timings=(timing,)) for one in looking.OWN if one.name == name)
    found = looking.Looking(tmp_path, Counter())
    assert found.compare(case, level, paths) == []
    assert found.counts["comparisons"] == len(paths)
    assert found.counts["debuggers"] == sum(path.startswith("gdb") for path in paths)


def test_differences_are_found() -> None:
    plain = looking.Outcome("", 0, b"1", "", {"end_ps": 5, "cards": [1, 2]})
    for other, told in [
        (looking.replace(plain, status=3), "status 0 and 3"),
        (looking.replace(plain, output=b"2"), "output"),
        (looking.replace(plain, report={"end_ps": 6, "cards": [1, 3]}), "report: cards[1] 2 and 3, end_ps 5 and 6"),
    ]:
        assert looking.difference("profile", plain, other).startswith(told)
    failed = looking.replace(plain, status=1, errors="spinrun: sanitizer: rank 0: data race")
    assert looking.difference("sanitize", plain, failed) is None
    assert looking.difference("profile", plain, failed) is not None


def test_each_experiment_with_handlers_has_cases() -> None:
    names = {one.name.split()[0] for one in looking.of_experiments()}
    assert {"ping-pong", "accumulate", "kvstore", "transactions"} <= names
    assert not {name for name in names if name.startswith("pspin-")}
