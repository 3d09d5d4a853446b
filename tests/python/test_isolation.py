# SPDX-License-Identifier: Apache-2.0
"""Ranks as threads of the simulator: equal to processes in output, report and timeline, also when they fail."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest
from spinkit import _paths

ROOT = Path(__file__).resolve().parents[2]
# A run that takes longer hangs, on any machine.
LIMIT_S = 600
MODES = ["process", "thread"]
# Addresses of host memory in messages: a process has others.
ADDRESS = re.compile(rb"0x[0-9a-f]{8,}")

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="ranks are threads on x86-64 only")

FAILING = r"""
#include <assert.h>
#include <portals4.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile int stop;
int zero;
static int recurse(int n) {
    volatile char frame[4096];
    frame[0] = n;
    return recurse(n + 1) + frame[0];
}
int main(int argc, char **argv) {
    if (PtlInit() != PTL_OK) return 3;
    spin_barrier();
    printf("rank %d has begun\n", spin_rank());
    const char *name = argv[argc - 1];
#define CASE(text) if (spin_rank() == 1 && strcmp(name, text) == 0)
    CASE("store") *(volatile int *)8 = 1;
    CASE("constant") *(volatile char *)main = 1;
    CASE("read") puts((char *)8 + zero);
    CASE("abort") abort();
    CASE("exit") exit(7);
    CASE("exit-now") _Exit(0);
    CASE("recursion") return recurse(0);
    CASE("trap") __builtin_trap();
    CASE("assertion") assert(zero == 1);
    CASE("endless") for (;;) stop++;
    CASE("polls") while (!stop) ;
    CASE("free-twice") { char *volatile p = malloc(100); free(p); free(p); }
    CASE("free-inside") { char *volatile p = malloc(100); free(p + 8); }
    CASE("leaves") return 0;
    spin_barrier();
    PtlFini();
    puts("ended");
    return 0;
}
"""

STATE = r"""
#include <errno.h>
#include <portals4.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char large[1 << 30];
static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = 41 + atoi(getenv("SPIN_RANK")); }
__attribute__((destructor)) static void destruct(void) { printf("%d destructed\n", constructed); }
static void last(void) { printf("%d last\n", spin_rank()); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
    if (PtlInit() != PTL_OK || argc != 2) return 3;
    atexit(last);
    int rank = spin_rank();
    srand(rank + 1);
    errno = rank;
    char words[] = "a b c d";
    char *word = strtok(words, " ");
    large[rank << 16] = (char)rank;
    int *numbers = malloc(100 * sizeof *numbers);
    for (int round = 0; word; round++, word = strtok(NULL, " ")) {
        for (int k = 0; k < 25; k++) numbers[25 * round + k] = rand() % 1000;
        large[rank << 16] = (char)(large[rank << 16] + 1);
        spin_barrier();
        printf("%d/%d %s %s, ", rank, round, word, argv[1]);
    }
    qsort(numbers, 100, sizeof *numbers, compare);
    numbers = realloc(numbers, 1 << 20);
    char *copy = strdup(getenv("SPIN_RANK"));
    printf("%d: %d %d %d, %d, %d, %d, %s\n", rank, numbers[0], numbers[50], numbers[99], errno, large[rank << 16],
           constructed, copy);
    fprintf(stderr, "errors of %d\n", rank);
    free(copy);
    free(numbers);
    PtlFini();
    return 0;
}
"""


def build(folder: Path, text: str, *options: str) -> Path:
    source, program = folder / "program.c", folder / "program"
    source.write_text(text)
    command = [_paths.command("spincc"), "-O1", "-w", "-o", program, source, *options]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    return program


def run(mode: str, program: Path, *arguments: str, ranks: int = 3, options: tuple = ()) -> subprocess.CompletedProcess:
    command = [_paths.command("spinrun"), "-n", str(ranks), "--isolation", mode, *options, program, *arguments]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)


def seen(run: subprocess.CompletedProcess) -> tuple:
    return run.returncode, ADDRESS.sub(b"ADDRESS", run.stdout), ADDRESS.sub(b"ADDRESS", run.stderr)


CASES = {
    "store": 139,
    "constant": 139,
    "read": 139,
    "abort": 134,
    "exit": 7,
    "exit-now": 1,
    "recursion": 139,
    "trap": 132,
    "assertion": 134,
    "endless": 124,
    "polls": 1,
    "leaves": 1,
    "none": 0,
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("failing"), FAILING)


@pytest.mark.parametrize("case", CASES)
def test_a_rank_fails_as_a_process(failing: Path, case: str) -> None:
    options = ("--timeout", "2") if case == "endless" else ()
    process, thread = (seen(run(mode, failing, case, options=options)) for mode in MODES)
    assert thread == process
    assert thread[0] == CASES[case]


@pytest.mark.parametrize(
    ("case", "message"), [("free-twice", b"double free"), ("free-inside", b"free(): invalid pointer")]
)
def test_wrong_frees_end_the_rank(failing: Path, case: str, message: bytes) -> None:
    for mode in MODES:
        ended = run(mode, failing, case)
        assert ended.returncode == 134
        assert message in ended.stderr
        assert b"rank 1 was ended by signal 6 (SIGABRT)" in ended.stderr


@pytest.mark.parametrize("options", [(), ("--tag-output",), ("--post-ahead", "128")])
def test_each_rank_has_its_state(tmp_path: Path, options: tuple) -> None:
    program = build(tmp_path, STATE)
    process, thread = (run(mode, program, "argument", options=options) for mode in MODES)
    assert seen(thread) == seen(process)
    assert thread.returncode == 0
    for rank in range(3):
        assert f", {rank}, {rank + 4}, {41 + rank}, {rank}\n".encode() in thread.stdout
        assert f"errors of {rank}\n".encode() in thread.stderr
        assert f"{41 + rank} destructed\n".encode() in thread.stdout


def test_many_ranks_have_a_gigabyte_of_globals_each(tmp_path: Path) -> None:
    program = build(tmp_path, STATE)
    ended = run("thread", program, "many", ranks=1000)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    for rank in (0, 500, 999):
        # A char wraps.
        count = (rank + 4 + 128) % 256 - 128
        assert any(f", {rank}, {count}, {41 + rank}, {rank}".encode() in line for line in lines), rank


PROGRAMS = [
    *(f"examples/{name}.c" for name in ["hello", "allreduce", "counter", "filter", "flow_control", "scatter"]),
    *(f"examples/{name}.c" for name in ["kvstore", "request_reply"]),
    *(f"tests/programs/{name}.c" for name in ["alltoall", "broadcast_tree", "channels", "drops", "graph", "incast"]),
    *(f"tests/programs/{name}.c" for name in ["message_order", "p4spin_calls", "p4spin_gets", "posting", "talk"]),
]


@pytest.mark.parametrize("source", PROGRAMS)
def test_output_report_and_timeline_are_equal(tmp_path: Path, source: str) -> None:
    program = tmp_path / "program"
    include = ("-I", ROOT / "examples", "-I", ROOT / "tests" / "programs")
    command = [_paths.command("spincc"), "-O2", "-w", *include, "-o", program, ROOT / source, "-lm"]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    results = []
    for mode in MODES:
        report, timeline = tmp_path / f"{mode}.json", tmp_path / f"{mode}.pftrace"
        ended = run(mode, program, ranks=4, options=("--json", report, "--trace", timeline))
        results.append((*seen(ended), report.read_bytes(), timeline.read_bytes()))
    assert results[0] == results[1]


UNFIT = {
    "#include <pthread.h>\nint main(void) { return !pthread_self(); }": "it uses pthread_self",
    "#include <unistd.h>\nint main(void) { return fork(); }": "it uses fork",
    "#include <dlfcn.h>\nint main(void) { return !dlopen(0, RTLD_NOW); }": "it uses dlopen",
    "#include <signal.h>\nint main(void) { return raise(0); }": "it uses raise",
    "_Thread_local int t;\nint main(int n, char **a) { return t + n - 1; }": "it has thread-local variables",
}


@pytest.mark.parametrize("text", UNFIT, ids=UNFIT.values())
def test_programs_that_need_processes_get_them(tmp_path: Path, text: str) -> None:
    program = build(tmp_path, text, "-pthread", "-ldl")
    told = run("auto", program, ranks=1, options=("-v", "--timeout", "60"))
    assert f"ranks are processes (--isolation process): {UNFIT[text]}".encode() in told.stderr
    refused = run("thread", program, ranks=1)
    assert refused.returncode == 2
    assert b"--isolation thread: ranks of" in refused.stderr
    assert UNFIT[text].encode() in refused.stderr


@pytest.mark.parametrize("options", [("--clock", "simulated"), ("--compute", "measured:1")])
def test_measured_and_simulated_clocks_need_processes(failing: Path, options: tuple) -> None:
    told = run("auto", failing, "none", options=("-v", *options))
    assert b"ranks are processes" in told.stderr
    assert run("thread", failing, "none", options=options).returncode == 2
