# SPDX-License-Identifier: Apache-2.0
"""Each defect of these lists is found: by a test of its unit, by a proof, or by both, as listed.

A defect is one change of one file. Its text must occur exactly once, so that an outdated list fails; `make rtl` tests
that, and leaves the rest to `make rtl-mutations`.
"""

import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RTL = HERE.parents[1]
sys.path[:0] = [str(RTL / "tests" / "unit"), str(RTL / "tests" / "formal")]
from proofs import proofs, prove  # noqa: E402
from units import cases, run  # noqa: E402


@dataclass(frozen=True)
class Mutation:
    """Defect, and the test or proof that finds it."""

    name: str
    text: str
    file: str
    old: str
    new: str
    test: str | None = None  # one of the parameter sets of this check_*.py finds it
    proof: str | None = None
    assertion: str | None = None  # assertion of rtl/sva, which fails in this test


def mutations() -> dict[str, Mutation]:
    """Return all defects by list and name."""
    found = {}
    for path in sorted(HERE.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]:
            mutation = Mutation(**table)
            assert f"{path.stem}-{mutation.name}" not in found, f"{path.name} has {mutation.name} twice"
            found[f"{path.stem}-{mutation.name}"] = mutation
    return found


MUTATIONS = mutations()


def mutated(mutation: Mutation, folder: Path) -> Path:
    """Copy the sources, with the defect."""
    for name in ("src", "sva", "formal", "tests/unit"):
        if (RTL / name).exists():
            shutil.copytree(RTL / name, folder / name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    text = (folder / mutation.file).read_text(encoding="utf-8")
    (folder / mutation.file).write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return folder


@pytest.mark.parametrize("mutation", [pytest.param(one, id=name) for name, one in MUTATIONS.items() if one.test])
def test_a_test_finds(mutation: Mutation, tmp_path: Path) -> None:
    rtl = mutated(mutation, tmp_path / "rtl")
    tests = [case for case in cases() if case.check == f"check_{mutation.test}"]
    logs = (run(case, tmp_path / case.name, rtl) for case in tests)
    log = next((log for log in logs if log), None)
    assert log, f"not found: {mutation.text}"
    assert mutation.assertion is None or f".{mutation.assertion}:" in log, f"another one has failed:\n{log[-4000:]}"


@pytest.mark.parametrize("mutation", [pytest.param(one, id=name) for name, one in MUTATIONS.items() if one.proof])
def test_a_proof_finds(mutation: Mutation, tmp_path: Path) -> None:
    rtl = mutated(mutation, tmp_path / "rtl")
    assert prove(mutation.proof, tmp_path, rtl), f"not found: {mutation.text}"


def test_each_proof_can_fail() -> None:
    assert {one.proof for one in MUTATIONS.values() if one.proof} == set(proofs())


def test_each_mutation_is_tested() -> None:
    checks = {case.check for case in cases()}
    assert all(one.proof or f"check_{one.test}" in checks for one in MUTATIONS.values())


def test_each_text_is_there_once() -> None:
    counts = {name: (RTL / one.file).read_text(encoding="utf-8").count(one.old) for name, one in MUTATIONS.items()}
    assert {name: count for name, count in counts.items() if count != 1} == {}
