# SPDX-License-Identifier: Apache-2.0
"""Programs with waiting loops end, and deadlocks are reported: threads of MPIs, CPU clocks, sleeps between polls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from spinkit import _paths

MPI = Path(sys.prefix) / "mpi"
SOURCES = Path(__file__).resolve().parents[1] / "mpi"
# A run that takes longer hangs, on any machine.
LIMIT_S = 600
MPIS = ["mpich", "openmpi"]

CPU_CLOCK = """
#include <mpi.h>
#include <stdio.h>
#include <time.h>
int main(void) {
    int rank, there = 0, value = 7;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        clock_t begin = clock();
        while (clock() - begin < CLOCKS_PER_SEC / 500) {}
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        while (!there) MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        value = 0;
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%d\\n", value);
    }
    MPI_Finalize();
    return 0;
}
"""
CROSSED = """
#include <mpi.h>
#include <stddef.h>
int main(void) {
    int rank, value = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Ssend(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
"""
# Each rank tests a receive to which nobody sends for a number of seconds, and a number of times.
LIMITED = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    int rank, value = 0, done = 0;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    double end = MPI_Wtime() + atof(arguments[1]);
    while (!done && MPI_Wtime() < end) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    for (int left = count > 2 ? atoi(arguments[2]) : 0; left && !done; left--)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    puts("over");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
"""
# Rank 0 waits by WAIT for a word that rank 1 puts after a millisecond; an event says that it is there.
PORTALS = r"""
#include <pthread.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define CHECK(call) do { int code = (call); if (code) { printf("%s: %d\n", #call, code); exit(9); } } while (0)
static volatile long word;
static volatile int done;
static ptl_handle_eq_t events;
static void *wait_for_main(void *unused) {
    static volatile unsigned none;
    for (unsigned k = 0; !(done | (k & none)); k++) {} /* THE LOOP */
    return unused;
}
int main(void) {
    ptl_handle_ni_t ni; ptl_pt_index_t entry; ptl_handle_le_t handle; ptl_handle_md_t md; ptl_event_t event;
    static const long one = 1;
    pthread_t thread;
    (void)thread; (void)wait_for_main; (void)event;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlEQAlloc(ni, 16, &events));
    CHECK(PtlPTAlloc(ni, 0, events, 0, &entry));
    ptl_le_t all = {.start = (void *)&word, .length = sizeof word, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                    .options = PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
    CHECK(PtlLEAppend(ni, entry, &all, PTL_PRIORITY_LIST, NULL, &handle));
    ptl_md_t data = {.start = (void *)&one, .length = sizeof one, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    CHECK(PtlMDBind(ni, &data, &md));
    CHECK(spin_barrier());
    if (spin_rank() == 0) {
        WAIT
        printf("found %ld\n", word);
    } else {
        spin_host_compute(1000000);
        CHECK(PtlPut(md, 0, sizeof one, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, entry, 0, 0, NULL, 0));
    }
    CHECK(spin_barrier());
    PtlFini();
    return 0;
}
"""
# Thousands of rounds of a sleep and a poll. Prints checks of their number, their simulated time, and the number
# of calls that have waited for the simulator (the rings of its doorbell).
COUNTED = r"""
        long rounds = 0;
        uint64_t begin, poll;
        begin = spin_time_ps();
        CHECK(PtlEQGet(events, &event) != PTL_EQ_EMPTY);
        poll = spin_time_ps() - begin;
        begin = spin_time_ps();
        const unsigned rings = doorbell();
        while (PtlEQGet(events, &event) != PTL_OK) { nanosleep(&(struct timespec){0, 100}, NULL); rounds++; }
        const unsigned waited = (doorbell() - rings) / 2;
        const uint64_t span = spin_time_ps() - begin;
        printf("%d %d %d\n", rounds > 5000, waited < 1000, span == rounds * (100000 + poll) + poll);
"""
DOORBELL = r"""
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
static unsigned doorbell(void) {
    static const volatile unsigned *header;
    char path[100];
    if (!header) {
        snprintf(path, sizeof path, "/proc/%s/fd/%s", getenv("SPIN_SIM_PID"), getenv("SPIN_SIM_FD"));
        header = mmap(NULL, 4096, PROT_READ, MAP_SHARED, open(path, O_RDONLY), 0);
    }
    return header[3] & ~1u;
}
int main(void) {"""
SLEEPS = ["usleep(5)", "nanosleep(&(struct timespec){0, 5000}, NULL)"]
THREAD = """CHECK(pthread_create(&thread, NULL, wait_for_main, NULL));
        CHECK(PtlEQWait(events, &event)); done = 1; CHECK(pthread_join(thread, NULL));"""


def spinrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(_paths.command("spinrun")), "-n", "2", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def mpi_program(mpi: str, source: Path, folder: Path) -> Path:
    program = folder / f"{source.stem}-{mpi}"
    subprocess.run([MPI / mpi / "bin" / "mpicc", "-O1", source, "-pthread", "-o", program], check=True)
    return program


def written(text: str, path: Path) -> Path:
    path.write_text(text)
    return path


def portals_program(wait: str, folder: Path) -> Path:
    return compiled(PORTALS.replace("WAIT", wait), folder)


def compiled(text: str, folder: Path) -> Path:
    source = written(text, folder / "waiting.c")
    options = ["-D_GNU_SOURCE", "-O1", "-g", "-pthread"]
    subprocess.run([_paths.command("spincc"), *options, source, "-o", folder / "waiting"], check=True)
    return folder / "waiting"


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("mpi", MPIS)
def test_threads_that_look_at_a_flag_under_a_mutex_let_time_pass(mpi: str, threads: int, tmp_path: Path) -> None:
    done = spinrun(mpi_program(mpi, SOURCES / "mutex_waiters.c", tmp_path), threads)
    assert (done.returncode, done.stdout) == (0, f"{threads} threads\n"), done.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_threads_that_wait_within_an_mpi_let_time_pass(mpi: str, tmp_path: Path) -> None:
    done = spinrun(mpi_program(mpi, SOURCES / "mprobe_threads.c", tmp_path))
    assert (done.returncode, done.stdout) == (0, "0 wrong\n"), done.stderr


@pytest.mark.parametrize("clock", ["real", "simulated"])
@pytest.mark.parametrize("mpi", MPIS)
def test_a_loop_on_cpu_time_ends_while_another_rank_polls(mpi: str, clock: str, tmp_path: Path) -> None:
    program = mpi_program(mpi, written(CPU_CLOCK, tmp_path / "cpu_clock.c"), tmp_path)
    done = spinrun("--clock", clock, program)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


def test_crossed_synchronous_sends_are_a_deadlock(tmp_path: Path) -> None:
    program = mpi_program("mpich", written(CROSSED, tmp_path / "crossed.c"), tmp_path)
    done = spinrun("--poll-limit", 10**12, program)
    assert done.returncode == 1
    assert "deadlock" in done.stderr
    assert "each of ranks 0-1 polls for events that nothing will bring" in done.stderr
    assert "were counted" not in done.stderr


@pytest.mark.parametrize(("seconds", "tries"), [(1, 0), (0, 20000)])
def test_polls_until_a_time_or_a_number_of_tries_are_no_deadlock(seconds: int, tries: int, tmp_path: Path) -> None:
    program = mpi_program("mpich", written(LIMITED, tmp_path / "limited.c"), tmp_path)
    done = spinrun("--poll-limit", 10**12, program, seconds, tries)
    assert (done.returncode, done.stdout) == (0, "over\n" * 2), done.stderr


def test_a_time_limit_that_comes_before_the_deadlock_says_since_when_ranks_only_poll(tmp_path: Path) -> None:
    program = mpi_program("mpich", written(LIMITED, tmp_path / "limited.c"), tmp_path)
    done = spinrun("--poll-limit", 10**12, "--timeout", 5, program, 1000)
    assert done.returncode == 124
    assert "; nothing has been under way since " in done.stderr
    assert ", and ranks have only polled" in done.stderr


@pytest.mark.parametrize("sleep", SLEEPS)
def test_polls_between_sleeps_find_what_comes(sleep: str, tmp_path: Path) -> None:
    wait = f"while (PtlEQGet(events, &event) != PTL_OK) {sleep};"
    done = spinrun(portals_program(wait, tmp_path))
    assert (done.returncode, done.stdout) == (0, "found 1\n"), done.stderr


def test_polls_between_sleeps_do_not_wait_for_the_simulator(tmp_path: Path) -> None:
    source = PORTALS.replace("int main(void) {", DOORBELL).replace("WAIT", COUNTED)
    program = compiled(source, tmp_path)
    done = spinrun(program)
    assert (done.returncode, done.stdout) == (0, "1 1 1\nfound 1\n"), done.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_a_rank_that_probes_while_nothing_comes_does_not_wait_for_the_simulator(mpi: str, tmp_path: Path) -> None:
    source = CPU_CLOCK.replace("CLOCKS_PER_SEC / 500", "CLOCKS_PER_SEC / 10")
    source = source.replace("#include <time.h>", "#include <stdlib.h>\n#include <time.h>").replace(
        "int main(void) {", DOORBELL
    )
    source = source.replace('printf("%d\\n", value)', 'printf("%d %d\\n", value, doorbell() / 2 < 20000)')
    done = spinrun("--clock", "simulated", mpi_program(mpi, written(source, tmp_path / "probe.c"), tmp_path))
    # A search each microsecond, or so, would be 100,000 of them.
    assert (done.returncode, done.stdout) == (0, "7 1\n"), done.stderr


def test_a_thread_that_is_not_understood_is_named_with_its_source(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = spinrun("--patience", 1, "--json", report, portals_program(THREAD, tmp_path))
    assert (done.returncode, done.stdout) == (0, "found 1\n"), done.stderr
    [thread] = json.loads(report.read_text())["not_awaited"]
    line = PORTALS[: PORTALS.index("/* THE LOOP */")].count("\n") + 1
    assert (thread["rank"], thread["thread"]) == (0, 1)
    assert thread["place"].startswith("wait_for_main+0x")
    assert thread["place"].endswith(f" in waiting (waiting.c:{line})")
    [warning] = done.stderr.splitlines()
    assert warning.startswith("spinrun: warning: rank 0: thread 1 has run for ")
    assert f" at {thread['place']}, and no longer holds simulated time back" in warning
