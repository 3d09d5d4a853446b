# SPDX-License-Identifier: Apache-2.0
"""The libfabric provider (sdk/ofi): its interface is that of libfabric, and operations agree with plain code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

CHECKOUT = Path(__file__).resolve().parents[2]
PROVIDER = CHECKOUT / "sdk" / "ofi"
PROGRAM = CHECKOUT / "tests" / "ofi"
INCLUDE = CHECKOUT / "sdk" / "include"
LIBFABRIC = Path(sys.prefix) / "mpi" / "mpich" / "lib" / "mpich"
COUNTS = re.compile(r"^CHECKS (\d+) passed (\d+) failed$", re.MULTILINE)

# The card, and its own protocol; and the protocols of lesser cards on one that can do more.
CARDS = {"rdma": "cpu", "portals4": "portals4", "spin": "spin"}
LESSER = [("spin", "cpu"), ("spin", "portals4")]
# Groups that depend on the card, and on the protocol.
GROUPS = {
    "info": 1,
    "rma": 2,
    "atomic": 2,
    "completions": 2,
    "names": 2,
    "threads": 2,
    "room": 2,
    "memory": 1,
    "overflow": 1,
    "flood": 4,
    "burst": 3,
}
MESSAGES = {"messages": 2, "tagged": 2, "matching": 3, "multi": 2}


@dataclass(frozen=True)
class Built:
    """The folder of the provider, and the test program."""

    folder: Path

    def run(
        self, group: str, ranks: int, card: tuple[str, str], *options: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        nic, protocol = card
        command = [str(_paths.command("spinrun")), "--timeout", "120", "--nic", nic, "-n", str(ranks)]
        command += ["-x", f"FI_PROVIDER_PATH={self.folder}"]  # instead of spinrun's own
        ours = {"SPIN_FI_PROTOCOL": protocol, **environment}
        program = [str(self.folder / "operations"), "--group", group]
        return subprocess.run(
            [*command, *options, *program], env=os.environ | ours, capture_output=True, text=True, check=False
        )


def compiled(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    assert LIBFABRIC.is_dir(), "`make test` installs the MPIs of requirements-mpi.txt, which have a libfabric"
    folder = tmp_path_factory.mktemp("ofi")
    spincc = _paths.command("spincc")
    library = _paths.library(_paths.command("spinrun"))
    assert library
    flags = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
    # Only the handlers need a compiler for the card.
    host = [source for source in sorted(PROVIDER.rglob("*.c")) if source.name != "handlers.c"]
    shared = ("-fPIC", "-fvisibility=hidden")
    compiled(
        spincc, *flags, *shared, "-Wno-spin-layout", "-c", PROVIDER / "rx" / "handlers.c", "-o", folder / "handlers.o"
    )
    objects = [folder / f"{source.parent.name}-{source.stem}.o" for source in host]
    for source, target in zip(host, objects, strict=True):
        compiled("cc", *flags, *shared, f"-I{INCLUDE}", "-c", source, "-o", target)
    compiled(spincc, "-shared", *objects, folder / "handlers.o", "-o", folder / "libspin-fi.so")
    compiled(
        *("cc", *flags, f"-I{INCLUDE}", *sorted(PROGRAM.glob("*.c")), "-o", folder / "operations"),
        *(LIBFABRIC / "libfabric.so.1", f"-Wl,-rpath,{LIBFABRIC}", "-Wl,--allow-shlib-undefined"),
        *(f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-lportals", "-lpmi", "-lpthread"),
    )
    return Built(folder)


def assert_passed(done: subprocess.CompletedProcess[str], ranks: int) -> int:
    """Check that all ranks have passed, and return how many checks they made."""
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [(int(passed), int(failed)) for passed, failed in COUNTS.findall(done.stdout)]
    assert len(counts) == ranks, done.stdout + done.stderr
    assert all(passed > 10 and failed == 0 for passed, failed in counts), done.stdout
    return sum(passed for passed, _ in counts)


def names_of_interface() -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Return the numbers, fields and structures that the provider declares."""
    text = re.sub(r"/\*.*?\*/", "", (PROVIDER / "base" / "libfabric.h").read_text(), flags=re.DOTALL)
    numbers = re.findall(r"^#define (\w+) [^\n]", text, re.MULTILINE)
    for body in re.findall(r"enum\s*\w*\s*\{([^}]*)\}", text):
        numbers += [name.split("=")[0].strip() for name in body.split(",") if name.strip()]
    fields = []
    structures = re.findall(r"struct (\w+) \{(.*?)\n\};", text, re.DOTALL)
    for structure, body in structures:
        for declaration in filter(str.strip, body.split(";")):
            function = re.search(r"\(\*(\w+)\)\(", declaration)
            field = function[1] if function else re.sub(r"\[.*", "", declaration.split()[-1]).lstrip("*")
            fields.append((structure, field))
    return numbers, fields, [structure for structure, _ in structures]


def test_the_interface_is_that_of_the_installed_headers(tmp_path: Path) -> None:
    if not Path("/usr/include/rdma/providers/fi_prov.h").is_file():
        pytest.skip("libfabric's headers are not installed (Debian: libfabric-dev)")
    numbers, fields, structures = names_of_interface()
    assert len(numbers) > 150
    assert len(fields) > 200
    headers = ("fabric", "fi_atomic", "fi_cm", "fi_domain", "fi_endpoint", "fi_errno", "fi_rma", "fi_tagged")
    includes = {
        "ours": [f'#include "{PROVIDER / "base" / "libfabric.h"}"'],
        "theirs": [f"#include <rdma/{header}.h>" for header in (*headers, "providers/fi_prov")],
    }
    lines = [f'printf("{name} %llx\\n", (unsigned long long)({name}));' for name in numbers]
    for structure, field in fields:
        place = f"offsetof(struct {structure}, {field}), sizeof(((struct {structure} *)0)->{field})"
        lines.append(f'printf("{structure}.{field} %zx %zx\\n", {place});')
    lines += [f'printf("{name} %zx\\n", sizeof(struct {name}));' for name in structures]
    printed = {}
    for whose, head in includes.items():
        source = tmp_path / f"{whose}.c"
        body = ["#include <stddef.h>", "#include <stdio.h>", *head, "int main(void) {", *lines, "return 0;", "}"]
        source.write_text("\n".join(body) + "\n")
        compiled("cc", "-w", source, "-o", tmp_path / whose)
        done = subprocess.run([tmp_path / whose], capture_output=True, text=True, check=True)
        printed[whose] = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert printed["ours"].keys() == printed["theirs"].keys()
    different = {name for name, ours in printed["ours"].items() if ours != printed["theirs"][name]}
    # A table of operations begins with its size, and may end early; of these attributes only the beginning is read.
    shorter = {name for name in different if name.startswith("fi_ops") or name == "fi_mr_attr"}
    assert all(int(printed["ours"][name], 16) < int(printed["theirs"][name], 16) for name in shorter)
    assert different == shorter


@pytest.mark.parametrize("nic", CARDS)
@pytest.mark.parametrize("group", [*MESSAGES, *GROUPS])
def test_each_card_with_its_own_protocol(built: Built, group: str, nic: str) -> None:
    ranks = (MESSAGES | GROUPS)[group]
    assert_passed(built.run(group, ranks, (nic, CARDS[nic])), ranks)


@pytest.mark.parametrize("card", LESSER, ids="-".join)
@pytest.mark.parametrize("group", MESSAGES)
def test_a_card_with_the_protocol_of_another(built: Built, group: str, card: tuple[str, str]) -> None:
    assert_passed(built.run(group, MESSAGES[group], card), MESSAGES[group])


@pytest.mark.parametrize("group", ["tagged", "matching", "rma", "atomic"])
def test_a_rank_communicates_with_itself(built: Built, group: str) -> None:
    assert_passed(built.run(group, 1, ("spin", "spin")), 1)


def test_more_receives_than_the_card_has_entries(built: Built) -> None:
    assert_passed(built.run("entries", 1, ("portals4", "portals4")), 1)


@pytest.mark.parametrize("eager", ["0", "300", "32768"])
def test_what_is_long_does_not_matter(built: Built, eager: str) -> None:
    for nic, protocol in CARDS.items():
        assert_passed(built.run("matching", 2, (nic, protocol), SPIN_FI_EAGER=eager), 2)


@pytest.mark.parametrize("group", ["tagged", "multi"])
def test_lost_packets_change_no_result(built: Built, group: str) -> None:
    done = built.run(group, 2, ("spin", "spin"), "--drop", "*:0.01")
    checks = assert_passed(done, 2)
    assert re.search(r"cards sent a packet again \d+ times", done.stderr)
    assert checks == assert_passed(built.run(group, 2, ("spin", "spin")), 2)


@pytest.mark.parametrize("nic", CARDS)
@pytest.mark.parametrize(("group", "option"), [("ended_rank", "--fail"), ("stopped_card", "--kill-card")])
def test_operations_with_a_rank_that_is_gone_fail(built: Built, group: str, option: str, nic: str) -> None:
    assert_passed(built.run(group, 3, (nic, CARDS[nic]), option, "1@10ms"), 2)


def test_runs_are_the_same_in_simulated_time(built: Built, tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = []
    for turn in range(2):
        report = tmp_path / f"{turn}.json"
        assert_passed(built.run("matching", 2, ("spin", "spin"), "--json", str(report)), 2)
        reports.append(json.loads(report.read_text()))
    assert reports[0] == reports[1]
