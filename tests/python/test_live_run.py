# SPDX-License-Identifier: Apache-2.0
"""`spinrun --live`: the programs of simulations in real time, their ends, and the state of the computer afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit.simulate._toolchain import Toolchain
from spinkit.suites import _conformance

HOME = Path(__file__).resolve().parents[2]
HEAD = """
#include <errno.h>
#include <portals4.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define OK(call) do { if ((call) != PTL_OK) { printf("line %d fails\\n", __LINE__); exit(9); } } while (0)
static ptl_handle_ni_t ni;
static void begin(void) {
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
}
"""
LEFT = Path("/dev/shm")


def compiled(folder: Path, body: str, name: str = "program") -> Path:
    """Compile a Portals program with the C compiler."""
    library = _paths.library(_paths.command("spinrun"))
    assert library is not None
    source, program = folder / f"{name}.c", folder / name
    source.write_text(HEAD + body)
    where = library.parent
    flags = [f"-I{HOME / 'sdk' / 'include'}", f"-L{where}", "-lportals", f"-Wl,-rpath,{where}", "-pthread"]
    subprocess.run([os.environ.get("CC", "cc"), "-O1", str(source), "-o", str(program), *flags], check=True)
    return program


def with_handlers(folder: Path, source: Path) -> Path:
    """Compile a program with handlers."""
    program = folder / source.stem
    subprocess.run([_paths.command("spincc"), "-g", source, "-o", program], check=True)
    return program


def run(*words: str | Path, live: bool = True) -> subprocess.CompletedProcess[str]:
    """Run spinrun with these words."""
    command = [str(_paths.command("spinrun")), *(["--live"] if live else []), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@contextmanager
def started(program: Path, ranks: int, *words: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a live run whose ranks print `pid N`; yield it with the processes of the ranks."""
    before = set(LEFT.iterdir())
    command = [str(_paths.command("spinrun")), "--live", "--timeout", "240", "-n", str(ranks), str(program), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline().split()[1]) for _ in range(ranks)]
        yield process, pids
    assert all(has_ended(pid) for pid in pids)
    assert set(LEFT.iterdir()) == before


def has_ended(pid: int) -> bool:
    """Wait until a process has ended, or is a zombie of another parent."""
    for _ in range(600):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("name", ["hello", "counter", "filter", "scatter", "kvstore", "request_reply", "allreduce"])
def test_examples_print_the_same(tmp_path: Path, name: str) -> None:
    program = with_handlers(tmp_path, HOME / "examples" / f"{name}.c")
    simulated, live = run("-n", "2", program, live=False), run("-n", "2", program)
    assert (live.returncode, simulated.returncode) == (0, 0), live.stderr
    assert sorted(live.stdout.splitlines()) == sorted(simulated.stdout.splitlines())


def test_the_program_of_the_readme(tmp_path: Path) -> None:
    text = re.search(r"```c\n(.*?)```", (HOME / "README.md").read_text(), re.DOTALL)
    assert text is not None
    source = tmp_path / "sum.c"
    source.write_text(text[1])
    done = run("-n", "2", with_handlers(tmp_path, source))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"sum 60000 after [\d.]+ us\n", done.stdout)


def test_time_is_real(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        """
        static uint64_t clock_ns(void) {
            struct timespec now;
            clock_gettime(CLOCK_MONOTONIC, &now);
            return now.tv_sec * 1000000000ull + now.tv_nsec;
        }
        int main(void) {
            begin();
            uint64_t a = clock_ns(), from = spin_time_ps(), b = clock_ns();
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            spin_host_compute(20000000);
            ptl_handle_ct_t ct;
            ptl_ct_event_t value;
            ptl_size_t one = 1;
            unsigned int which;
            OK(PtlCTAlloc(ni, &ct));
            if (PtlCTPoll(&ct, &one, 1, 20, &value, &which) != PTL_CT_NONE_REACHED) return 2;
            uint64_t c = clock_ns(), to = spin_time_ps(), d = clock_ns();
            uint64_t span = (to - from) / 1000;
            printf("%d %d %d\\n", span + 1 >= c - b, span <= d - a + 1, span >= 60000000);
            return 0;
        }
        """,
    )
    done = run("-n", "1", program)
    assert (done.returncode, done.stdout) == (0, "1 1 1\n"), done.stderr


def test_a_rank_polls_its_memory_without_calls(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        """
        static volatile uint64_t target;
        static uint64_t source = 42;
        int main(void) {
            begin();
            OK(spin_set_map(ni));
            ptl_pt_index_t pt;
            ptl_handle_me_t entry;
            ptl_handle_md_t md;
            OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
            ptl_me_t me = {.start = (void *)&target, .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                           .options = PTL_ME_OP_PUT, .match_id.rank = PTL_RANK_ANY};
            OK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry));
            ptl_md_t memory = {.start = &source, .length = 8, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            OK(PtlMDBind(ni, &memory, &md));
            spin_barrier();
            ptl_process_t other = {.rank = 1 - spin_rank()};
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, other, pt, 0, 0, NULL, 0));
            while (target == 0) {}
            printf("%d\\n", (int)target);
            spin_barrier();
            return 0;
        }
        """,
    )
    done = run("--timeout", "200", "-n", "2", program)
    assert (done.returncode, done.stdout) == (0, "42\n42\n"), done.stderr


WAITING = """
int main(int count, char **words) {
    begin();
    ptl_handle_ct_t ct;
    ptl_ct_event_t value;
    OK(PtlCTAlloc(ni, &ct));
    printf("pid %d\\n", getpid());
    fflush(stdout);
    spin_barrier();
    for (;;) {
        if (count > 1 && spin_rank() == 0) pause();
        OK(PtlCTWait(ct, 1, &value));
    }
}
"""


def test_a_deadlock_is_reported(tmp_path: Path) -> None:
    with started(compiled(tmp_path, WAITING), 2) as (process, _):
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert re.search(r"deadlock at [\d.]+ s of the run", errors)
    assert re.search(r"each of ranks 0-1 waits in PtlCTWait for counter \w+ to reach 1, which is 0", errors)


def test_a_rank_outside_of_the_library_is_no_deadlock(tmp_path: Path) -> None:
    program = compiled(tmp_path, WAITING)
    done = run("--timeout", "4", "-n", "2", program, "pause")
    assert done.returncode == 124
    assert re.search(r"time limit reached at [\d.]+ s of the run\n", done.stderr)


def test_a_killed_rank_ends_the_run(tmp_path: Path) -> None:
    with started(compiled(tmp_path, WAITING), 3, "pause") as (process, pids):
        os.kill(pids[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGKILL
    assert re.search(r"rank \d was ended by signal 9 \(SIGKILL\) at [\d.]+ s of the run", errors)


def test_ranks_end_with_a_killed_card(tmp_path: Path) -> None:
    with started(compiled(tmp_path, WAITING), 3, "pause") as (process, _):
        process.kill()
        process.communicate(timeout=300)


def test_a_signal_ends_the_run(tmp_path: Path) -> None:
    with started(compiled(tmp_path, WAITING), 2, "pause") as (process, _):
        process.terminate()
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM
    assert re.search(r"interrupted by signal 15 \(SIGTERM\) at [\d.]+ s of the run\n", errors)


def test_an_endless_handler_is_killed(tmp_path: Path) -> None:
    source = tmp_path / "endless.c"
    source.write_text("""
        #include <spin/connect.h>
        __handler int ph(const ptl_payload_t p, void *state) {
            for (;;) __atomic_fetch_add((int *)state, 1, __ATOMIC_RELAXED);
            return SUCCESS;
        }
        int main(void) {
            static int32_t numbers[100];
            struct channel_options memory = {.start = numbers, .length = sizeof numbers};
            channel_id_t peer = connect(1 - spin_rank(), &memory, NULL, &ph, NULL);
            if (spin_rank() == 0 ? channel_send(peer, 0, sizeof numbers) : channel_wait(peer, 1)) return 1;
            return spin_barrier();
        }
    """)
    done = run("--timeout", "200", "-n", "2", with_handlers(tmp_path, source))
    assert done.returncode == 1
    assert "payload handler 'ph' was killed after 1000000 cycles (accelerator.watchdog_cycles)" in done.stderr


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_mpi_programs(tmp_path: Path, name: str) -> None:
    compiler = HOME / ".venv" / "mpi" / name / "bin" / "mpicc"
    if not compiler.exists():
        pytest.skip(f"{name} is not installed (requirements-mpi.txt)")
    source, program = tmp_path / "ring.c", tmp_path / "ring"
    source.write_text("""
        #include <mpi.h>
        #include <stdio.h>
        #include <string.h>
        static char out[300000], in[300000];
        int main(void) {
            int rank, ranks, right = 1;
            long mine, sum;
            MPI_Init(NULL, NULL);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            MPI_Comm_size(MPI_COMM_WORLD, &ranks);
            int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
            mine = rank + 1;
            MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            memset(out, rank + 1, sizeof out);
            MPI_Sendrecv(out, sizeof out, MPI_CHAR, next, 3, in, sizeof in, MPI_CHAR, previous, 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            for (unsigned i = 0; i < sizeof in; i++) right &= in[i] == previous + 1;
            printf("%d %ld %d\\n", rank, sum, right);
            return MPI_Finalize();
        }
    """)
    subprocess.run([compiler, source, "-o", program], check=True)
    done = run("--timeout", "250", "-n", "3", program)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 6 1", "1 6 1", "2 6 1"]


@pytest.mark.parametrize(
    "words",
    [
        ["--compute", "measured:1"],
        ["--clock", "simulated"],
        ["--fail", "0@1us"],
        ["--drop", "*:0.5"],
        ["--noise", "periodic:1000:10"],
        ["--isolation", "thread"],
        ["--start", "fork"],
        ["--post-ahead", "8"],
        ["--patience", "8"],
    ],
)
def test_options_of_simulations_are_refused(words: list[str]) -> None:
    done = run(*words, "true")
    assert done.returncode == 2
    assert "the argument '--live' cannot be used with" in done.stderr
    assert words[0] in done.stderr


def test_times_of_the_machine_are_told(tmp_path: Path) -> None:
    done = run("--set", "network.g_ns=100", compiled(tmp_path, "int main(void) { begin(); return 0; }"))
    assert done.returncode == 0
    assert "times of the machine order the events of the cards, and do not pass in real time" in done.stderr


def test_conformance_holds_in_real_time() -> None:
    spinrun = _paths.command("spinrun")
    tools = Toolchain(
        _paths.command("spincc"),
        spinrun,
        _paths.command("spinkit-goal"),
        _paths.command("spinkit-pspin"),
        _paths.library(spinrun),
    )
    outcomes = _conformance.run(HOME, _conformance.groups(HOME), ("portals4", "spin"), tools, live=True)
    assert [(o.case.what, o.failures) for o in outcomes if o.status == "failed"] == []
    assert {o.case.group.name for o in outcomes if o.status == "skipped"} == {"local"}
    left_out = {(o.case.group.name, check) for o in outcomes for check in o.timed}
    assert left_out == {
        ("abort", "one event wakes one waiter"),
        ("counting", "count poll with time 0 returns at once"),
        ("events", "event poll with time 0 returns at once"),
        ("portals", "disable waits"),
        ("unlink", "unlink during a message"),
    }
