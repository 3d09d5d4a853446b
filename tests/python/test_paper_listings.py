# SPDX-License-Identifier: Apache-2.0
"""Programs with the listings of the sPIN paper's appendix C.3 and <spin/paper.h>: each listing as the paper prints it,
where its text is at hand, and as handlers of ours with the same constructs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from spinkit import _paths

from . import paper_listings

PROGRAMS = Path(__file__).parents[1] / "paper"
RANKS = {"ping_pong": 2, "accumulate": 2, "broadcast": 8, "datatype": 2, "raid": 3, "appendix_b": 2}
LISTINGS = [name for name in RANKS if name != "appendix_b"]

needs_paper = pytest.mark.skipif(not paper_listings.PAPER.exists(), reason="the paper's text is not at hand")


def compiled(folder: Path, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [_paths.command("spincc"), *options, f"-I{PROGRAMS}", str(source), "-o", str(folder / "program")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ran(folder: Path, ranks: int, *options: str) -> tuple[int, str]:
    command = [
        _paths.command("spinrun"),
        "-n",
        str(ranks),
        "--nic",
        "spin",
        "--fail-on-handler-error",
        "--fail-on-drop",
    ]
    command += ["--timeout", "100", *options, str(folder / "program")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def printed(name: str, folder: Path, mark: str) -> None:
    """Writes a listing of the paper, with `mark` before each handler."""
    text = re.sub(r"^int (?=\w+_handler)", f"{mark}int ", paper_listings.listing(name), flags=re.MULTILINE)
    (folder / f"listing_{name}.h").write_text(text)


@needs_paper
@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
@pytest.mark.parametrize("name", LISTINGS)
def test_the_printed_listings_move_the_right_data(name: str, machine: str, tmp_path: Path) -> None:
    printed(name, tmp_path, "__handler ")
    done = compiled(tmp_path, PROGRAMS / f"{name}.c", f"-I{tmp_path}")
    assert (done.returncode, done.stderr) == (0, "")
    assert ran(tmp_path, RANKS[name], "--machine", machine) == (0, "")


@needs_paper
@pytest.mark.parametrize("name", LISTINGS)
def test_a_printed_listing_without_marks_is_refused_with_the_remedy(name: str, tmp_path: Path) -> None:
    printed(name, tmp_path, "")
    done = compiled(tmp_path, PROGRAMS / f"{name}.c", f"-I{tmp_path}")
    handlers = re.findall(r"^int (\w+_handler)", paper_listings.listing(name), flags=re.MULTILINE)
    assert done.returncode == 1
    for handler in handlers:
        assert f"'__handler int {handler}(...)'" in done.stderr, done.stderr


@needs_paper
def test_the_paper_has_sixteen_handlers() -> None:
    assert sum(paper_listings.listing(name).count("_handler (") for name in LISTINGS) == 16


@pytest.mark.parametrize("name", LISTINGS)
def test_handlers_with_the_same_constructs_move_the_right_data(name: str, tmp_path: Path) -> None:
    done = compiled(tmp_path, PROGRAMS / f"{name}.c", f"-I{PROGRAMS / 'listings'}", "-Wall", "-Werror")
    assert (done.returncode, done.stderr) == (0, "")
    assert ran(tmp_path, RANKS[name], "--machine", "sc17-int") == (0, "")


def test_the_declarations_of_appendix_b(tmp_path: Path) -> None:
    done = compiled(tmp_path, PROGRAMS / "appendix_b.c", "-Wall", "-Wextra", "-Werror")
    assert (done.returncode, done.stderr) == (0, "")
    for machine in ("sc17-int", "sc17-dis"):
        assert ran(tmp_path, RANKS["appendix_b"], "--machine", machine) == (0, "")


def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    """The comparison of each program can fail: handlers with a wrong operation."""
    for name, right, wrong in [
        ("ping_pong", "p.base, p.length, 1", "p.base, p.length - 1, 1"),
        ("accumulate", "pair[0] - factor[1]", "pair[0] + factor[1]"),
        ("broadcast", "info->offset, info->length,", "info->offset + 1, info->length,"),
        ("datatype", "+ inside, size", "+ 1 + inside, size"),
        ("raid", "to[i] ^=", "to[i] |="),
    ]:
        text = (PROGRAMS / "listings" / f"listing_{name}.h").read_text()
        assert right in text
        (tmp_path / f"listing_{name}.h").write_text(text.replace(right, wrong))
        done = compiled(tmp_path, PROGRAMS / f"{name}.c", f"-I{tmp_path}")
        assert (done.returncode, done.stderr) == (0, ""), name
        assert ran(tmp_path, RANKS[name], "--machine", "sc17-int")[0] == 1, name


def test_double_free_and_exhaustion_end_in_words(tmp_path: Path) -> None:
    source = tmp_path / "heap.c"
    source.write_text(
        """
#include <spin/paper.h>
__handler int pingpong_header_handler(const ptl_header_t h, void *state) {
    void *block = malloc(8);
    (void)h, (void)state;
    free(block);
    free(block);
    return PROCEED;
}
#include "job.h"
int main(void) {
    char memory[8] = "x";
    begin();
    ptl_me_t me = entry(1, memory, sizeof memory);
    me.header_handler = pingpong_header_handler;
    append(me, &memory, 8);
    send_to(0, 1, memory, 8, 0);
    (void)await, (void)end;
    ptl_event_t event;
    REQUIRE(PtlEQWait(eq, &event) == PTL_OK && event.ni_fail_type == PTL_NI_HANDLER_FAIL);
    return end();
}
"""
    )
    done = compiled(tmp_path, source)
    assert (done.returncode, done.stderr) == (0, "")
    status, messages = ran(tmp_path, 1)
    assert status == 1
    assert "assertion 'block is allocated' does not hold in free" in messages


@pytest.mark.parametrize("machine", ["sc17-dis", "pspin-400g"])
def test_fetching_atomics_that_fail(machine: str, tmp_path: Path) -> None:
    done = compiled(tmp_path, PROGRAMS / "fetch_errors.c", "-g")
    assert (done.returncode, done.stderr) == (0, "")
    command = [_paths.command("spinrun"), "-n", "1", "--machine", machine, str(tmp_path / "program")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "results -2 -1 -1, 7 7" in ended.stderr
    assert "issued a fetching atomic of 8 bytes at 0x4, which are not its own" in ended.stderr
    assert "1 message lost 1 packet" in ended.stderr
