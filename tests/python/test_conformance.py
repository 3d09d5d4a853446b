# SPDX-License-Identifier: Apache-2.0
"""The Portals 4 tests pass, report failures, and cover every public name as listed in docs/portals4.md."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.simulate._toolchain import Toolchain
from spinkit.suites import _conformance
from spinkit.suites._conformance import Group

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = CHECKOUT / _conformance.PROGRAMS


def tools() -> Toolchain:
    spinrun = _paths.command("spinrun")
    return Toolchain(
        _paths.command("spincc"),
        spinrun,
        _paths.command("spinkit-goal"),
        _paths.command("spinkit-pspin"),
        _paths.library(spinrun),
    )


def test_everything_passes_on_both_cards() -> None:
    outcomes = _conformance.run(CHECKOUT, _conformance.groups(CHECKOUT), ("portals4", "spin"), tools())
    failed = [(outcome.case.what, outcome.failures) for outcome in outcomes if outcome.status == "failed"]
    assert not failed
    skipped = {outcome.case.group.name for outcome in outcomes if outcome.status == "skipped"}
    assert skipped == {"local"}, "only a group that needs matching interfaces may be skipped"
    assert all(outcome.checks > 10 for outcome in outcomes if outcome.status == "passed")


REFUSING = (
    "arguments",
    "atomics",
    "fetch",
    "identity",
    "interfaces",
    "iovec",
    "limits",
    "space",
    "triggered",
    "unlink",
)
"""The groups with calls that must be refused."""


def test_every_refused_call_has_a_reason(tmp_path: Path) -> None:
    told = tmp_path / "told"
    verbose = tmp_path / "spinrun"
    verbose.write_text(f'#!/bin/sh\nexec "{tools().spinrun}" -v "$@" 2>>"{told}"\n')
    verbose.chmod(0o755)
    chosen = [group for group in _conformance.groups(CHECKOUT) if group.name in REFUSING]
    outcomes = _conformance.run(CHECKOUT, chosen, ("spin",), replace(tools(), spinrun=verbose))
    assert {outcome.status for outcome in outcomes} == {"passed"}
    lines = [line for line in told.read_text().splitlines() if line.startswith("spinrun: refused: ")]
    form = r"spinrun: refused: (\w+) returns PTL_\w+ to rank \d+ at [\d.]+ ns"
    assert [line for line in lines if not re.fullmatch(f"{form}: .+", line)] == []
    assert len({re.match(form, line)[1] for line in lines}) > 50, "nearly all functions"  # type: ignore[index]


@pytest.mark.parametrize(
    ("body", "status", "check", "detail"),
    [
        ('EQUAL("sum", 1 + 1, 3); return finish();', "failed", "sum", "1 + 1: expected 3 (0x3), got 2 (0x2)"),
        ('CODE("code", PtlCTFree(ni), PTL_OK); return finish();', "failed", "code", "expected PTL_OK, got PTL_ARG"),
        ('EQUAL("fine", 1, 1); fflush(stdout); abort();', "failed", "runs to its end", "status 134"),
        ("exit(0);", "failed", "runs to its end", "nothing was checked"),
        ("skip_unless(0); return finish();", "skipped", "", ""),
        ('EQUAL("fine", 1, 1); return finish();', "passed", "", ""),
    ],
)
def test_failed_checks_are_reported(tmp_path: Path, body: str, status: str, check: str, detail: str) -> None:
    source = tmp_path / "group.c"
    source.write_text(
        f'#include "{PROGRAMS / "ring.h"}"\nint main(int argc, char **argv) {{ start(argc, argv); {body} }}\n'
    )
    [*outcomes] = _conformance.run(CHECKOUT, [Group("group", source, (2,), "")], ("portals4",), tools())
    assert [outcome.status for outcome in outcomes] == [status] * 4
    for outcome in outcomes:
        if check:
            assert {failure.check for failure in outcome.failures} == {check}
            assert all(detail in failure.detail for failure in outcome.failures)
        else:
            assert outcome.checks == (2 if status == "passed" else 0)


def test_a_program_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "group.c"
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(SpinkitError, match="does not compile"):
        _conformance.run(CHECKOUT, [Group("group", source, (1,), "")], ("spin",), tools())


def public_names() -> set[str]:
    text = (CHECKOUT / "sdk" / "include" / "portals4.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    macros = re.findall(r"^#define (PTL_\w+)", text, re.MULTILINE)
    functions = re.findall(r"^(?:PTL_CHECKED )?\w+ (Ptl\w+)\(", text, re.MULTILINE)
    constants = re.findall(r"\b(PTL_\w+) = \d", text)
    simple = re.findall(r"^typedef [^{;]*\b(\w+);", text, re.MULTILINE)
    bodies = re.findall(r"^(?:\} |typedef enum .*\} )(ptl_\w+);", text, re.MULTILINE)
    return {*macros, *functions, *constants, *simple, *bodies} - {"PTL_CHECKED"}


def test_every_public_name_has_a_test_that_mentions_it() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| .* \| ([\w, ]+) \|$", (CHECKOUT / "docs" / "portals4.md").read_text(), re.MULTILINE
    )
    names = public_names()
    assert len(names) > 200
    assert [name for name, _ in rows if name not in names] == []
    assert names - {name for name, _ in rows} == set()
    assert len({name for name, _ in rows}) == len(rows)
    texts = {file.stem: file.read_text() for file in PROGRAMS.iterdir()}
    wrong = [
        (name, test)
        for name, tests in rows
        for test in tests.split(", ")
        if not re.search(rf"\b{name}\b", texts.get(test, ""))
    ]
    assert wrong == []
