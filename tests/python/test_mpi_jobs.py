# SPDX-License-Identifier: Apache-2.0
"""MPI programs under spinrun: MPICH and Open MPI run, and programs that cannot use the card are refused before they
hang.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from spinkit import _paths

MPI = Path(sys.prefix) / "mpi"
SOURCES = Path(__file__).resolve().parents[1] / "mpi"
SOURCE = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, ranks, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int mine = 10 + rank, from_left = -1;
    MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % ranks, 5, &from_left, 1, MPI_INT, (rank + ranks - 1) % ranks, 5,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Reduce(&from_left, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d of %d\\n", sum, ranks);
    MPI_Finalize();
    return from_left != 10 + (rank + ranks - 1) % ranks;
}
"""
EXCHANGE = """
#include <mpi.h>
int main(int argc, char **argv) {
    enum { RANKS = 2, WORDS = 4, ROUNDS = 100 };
    int rank, wrong = 0, counts[RANKS], places[RANKS], sent[RANKS * WORDS], got[RANKS * WORDS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < RANKS; i++) { counts[i] = WORDS; places[i] = i * WORDS; }
    for (int round = 0; round < ROUNDS && !wrong; round++) {
        for (int i = 0; i < RANKS * WORDS; i++) { sent[i] = 1000 * rank + round; got[i] = -1; }
        MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < RANKS * WORDS; i++) wrong |= got[i] != 1000 * (i / WORDS) + round;
    }
    MPI_Finalize();
    return wrong;
}
"""
# One rank receives messages after the other one, which does not wait for it, has finalized.
STREAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    enum { MESSAGES = 2000 };
    int rank, value, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == 0) MPI_Send(&i, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        else MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), wrong += value != i;
    }
    if (rank == 1) printf("%d wrong\\n", wrong);
    MPI_Finalize();
    return 0;
}
"""
CARDS = ["rdma", "portals4", "spin"]
TOLD = {
    "windows": "windows: 4 ranks, sum 46",
    "threads": "threads: 3 on each of 4 ranks",
    "files": "files: 80000 bytes",
}


def spinrun(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(_paths.command("spinrun")), "--timeout", "120", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.fixture(params=["mpich", "openmpi"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Compile a program of one of the MPIs, which is the name of its folder."""
    home = MPI / request.param
    assert home.is_dir(), "`make test` installs the MPIs of requirements-mpi.txt"
    folder = tmp_path / request.param
    folder.mkdir()
    (folder / "program.c").write_text(SOURCE)
    subprocess.run([home / "bin" / "mpicc", folder / "program.c", "-o", folder / "program"], check=True)
    return folder / "program"


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def features(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the program that uses windows, threads and files."""
    compiled = tmp_path_factory.mktemp(request.param) / "features"
    source = SOURCES / "features.c"
    subprocess.run([MPI / request.param / "bin" / "mpicc", source, "-pthread", "-o", compiled], check=True)
    return compiled


APPNUM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int *number = NULL, is_set, rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &is_set);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%s: rank %d, program %d, sum %d\\n", argv[1], rank, is_set ? *number : -1, sum);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(params=["mpich", "openmpi"])
def appnum(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Compile a program that prints the number of its program in the job."""
    (tmp_path / "appnum.c").write_text(APPNUM)
    compiled = tmp_path / "appnum"
    subprocess.run([MPI / request.param / "bin" / "mpicc", tmp_path / "appnum.c", "-o", compiled], check=True)
    return compiled


def test_mpis_run_by_libfabric(program: Path) -> None:
    done = spinrun("-n", 4, program)
    assert (done.returncode, done.stdout) == (0, "46 of 4\n"), done.stderr
    # The provider is there now, and a single rank needs it, too.
    alone = spinrun("-n", 1, program)
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, "10 of 1\n", "")


def test_programs_of_a_job_know_their_numbers(appnum: Path) -> None:
    done = spinrun("-n", 2, appnum, "a", ":", appnum, "b", ":", "-np", 2, appnum, "c")
    lines = [f"{name}: rank {rank}, program {'abc'.index(name)}, sum 10" for rank, name in enumerate("aabcc")]
    assert (done.returncode, done.stderr, sorted(done.stdout.splitlines())) == (0, "", lines)


NODES = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    enum { WORDS = 5000 };
    int rank, ranks, place, places, one, sum, of_node, *counter;
    static double mine[WORDS], from_left[WORDS];
    MPI_Comm node;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &places);
    one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&one, &of_node, 1, MPI_INT, MPI_SUM, node);
    for (int i = 0; i < WORDS; i++) mine[i] = rank * WORDS + i;
    MPI_Sendrecv(mine, WORDS, MPI_DOUBLE, (rank + 1) % ranks, 0, from_left, WORDS, MPI_DOUBLE,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int i = 0; i < WORDS; i++) wrong += from_left[i] != (rank + ranks - 1) % ranks * WORDS + i;
    MPI_Win_allocate(sizeof *counter, sizeof *counter, MPI_INFO_NULL, node, &counter, &window);
    *counter = 0;
    MPI_Win_fence(0, window);
    for (int to = 0; to < places; to++) MPI_Accumulate(&one, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    printf("%d: %d of %d, sum %d, node %d, window %d, %d wrong\\n", rank, place, places, sum, of_node, *counter, wrong);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_ranks_of_a_node_find_each_other(mpi: str, card: str, tmp_path: Path) -> None:
    """Open MPI knows the ranks of a node. MPICH finds each rank alone on its node, so it uses no shared memory."""
    (tmp_path / "nodes.c").write_text(NODES)
    subprocess.run([MPI / mpi / "bin" / "mpicc", tmp_path / "nodes.c", "-o", tmp_path / "nodes"], check=True)
    for per_node in (1, 2, 4):
        report = tmp_path / f"{per_node}.json"
        options = ("-n", 4, "--ranks-per-node", per_node, "--nic", card, "--json", report)
        done = spinrun(*options, tmp_path / "nodes")
        lines = []
        for rank in range(4):
            first = rank - rank % per_node if mpi == "openmpi" else rank
            local = range(first, first + (per_node if mpi == "openmpi" else 1))
            mine = sum(other + 1 for other in local)
            lines.append(f"{rank}: {rank - first} of {len(local)}, sum 10, node {mine}, window {mine}, 0 wrong")
        assert (done.returncode, done.stderr, sorted(done.stdout.splitlines())) == (0, "", lines)
        # All messages pass the cards, also those within a node: the ring alone has 40,000 bytes for each rank.
        cards = json.loads(report.read_text())["cards"]
        assert all(counts["bytes_received"] >= 40_000 for counts in cards)


def test_mpi_jobs_on_one_network_are_separate(appnum: Path, tmp_path: Path) -> None:
    jobs = [
        f'[[job]]\nname = "{name}"\nprogram = ["./appnum", "{name}"]\nranks = {ranks}'
        for name, ranks in (("a", 2), ("b", 3))
    ]
    (tmp_path / "jobs.toml").write_text("\n".join(jobs))
    done = spinrun("--jobs", tmp_path / "jobs.toml")
    lines = [
        *(f"a: rank {rank}, program 0, sum 1" for rank in range(2)),
        *(f"b: rank {rank}, program 0, sum 3" for rank in range(3)),
    ]
    assert (done.returncode, done.stderr, sorted(done.stdout.splitlines())) == (0, "", lines)
    # A job that fails ends alone.
    (tmp_path / "jobs.toml").write_text("\n".join([*jobs, '[[job]]\nname = "c"\nprogram = ["sh", "-c", "exit 5"]']))
    done = spinrun("--jobs", tmp_path / "jobs.toml")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (5, lines)
    assert done.stderr == "spinrun: job c (sh): rank 0 exited with status 5 at 0.000 ns of simulated time\n"


@pytest.mark.parametrize("card", CARDS)
def test_units_for_a_sender_that_has_finalized_are_no_lost_messages(card: str, tmp_path: Path) -> None:
    (tmp_path / "stream.c").write_text(STREAM)
    subprocess.run([MPI / "mpich" / "bin" / "mpicc", tmp_path / "stream.c", "-o", tmp_path / "stream"], check=True)
    done = spinrun("-n", 2, "--nic", card, tmp_path / "stream")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_provider_is_made_for_an_mpi_that_is_loaded_later(ranks: int, tmp_path: Path) -> None:
    library = MPI / "mpich" / "lib" / "libmpi.so.12"
    script = f"import ctypes; mpi = ctypes.CDLL({str(library)!r}); print(mpi.MPI_Init(None, None)); mpi.MPI_Finalize()"
    done = spinrun("-n", ranks, sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (0, "0\n" * ranks), done.stderr
    # If it cannot be built, the run ends with the reason instead of a program without a provider.
    done = spinrun("-n", ranks, sys.executable, "-c", script, SPIN_CACHE=str(tmp_path), SPIN_ZIG="/no/zig")
    assert done.returncode == 1
    assert (
        f"{sys.executable}: rank 0: needs the libfabric provider of the simulated card, which cannot be made: spincc"
        in done.stderr
    )
    assert "SPIN_ZIG is /no/zig, which is not a file" in done.stderr


def test_the_variables_for_libfabric_are_set_unless_given(tmp_path: Path) -> None:
    done = spinrun("-x", "FI_PROVIDER=tcp", "env", SPIN_CACHE=str(tmp_path), FI_PROVIDER="udp", MPIR_CVAR_NOLOCAL="0")
    lines = done.stdout.splitlines()
    assert {"FI_PROVIDER=tcp", "MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1"} <= set(lines)
    folder = next(line.partition("=")[2] for line in lines if line.startswith("FI_PROVIDER_PATH="))
    assert Path(folder).parent == tmp_path / "ofi"
    assert not (tmp_path / "ofi").exists()  # a program without libfabric needs no provider


@pytest.mark.parametrize("program", ["mpich"], indirect=True)
def test_recorded_computation_makes_runs_of_mpi_programs_equal(program: Path, tmp_path: Path) -> None:
    times, report = tmp_path / "times.json", tmp_path / "report.json"

    def run(compute: str) -> bytes:
        done = spinrun("-n", 4, "--compute", f"{compute}:{times}", "--json", report, program)
        assert (done.returncode, done.stdout, done.stderr) == (0, "46 of 4\n", "")
        return report.read_bytes()

    recorded = run("record")
    assert [run("perf"), run("perf")] == [recorded, recorded]
    assert spinrun("-n", 4, "--json", report, program).returncode == 0
    assert report.read_bytes() != recorded
    done = spinrun("-n", 3, "--compute", f"perf:{times}", program)
    assert done.returncode == 2
    assert f"{times} has the computation of 4 ranks, and this job has 3: use -n 4, or record it again" in done.stderr


def test_ranks_that_run_as_separate_copies_cause_a_warning() -> None:
    done = spinrun("-n", 3, "/bin/true")
    told = "no rank has used Portals or PMI: 3 copies of /bin/true have run, each by itself"
    assert (done.returncode, done.stderr) == (0, f"spinrun: warning: {told} (for MPI programs see docs/mpi.md)\n")
    assert spinrun("-n", 3, "/bin/false").returncode == 1
    assert spinrun("-n", 1, "/bin/true").stderr == ""


@pytest.mark.parametrize("nic", CARDS)
@pytest.mark.parametrize("what", TOLD)
def test_windows_threads_and_files_work_on_each_card(features: Path, nic: str, what: str, tmp_path: Path) -> None:
    done = spinrun("-n", 4, "--nic", nic, "--clock", "simulated", features, what, tmp_path / "data")
    # Threads that wait inside Open MPI use CPU time, on a busy machine perhaps so much that it looks like computation.
    errors = [line for line in done.stderr.splitlines() if "has taken no simulated time" not in line]
    assert (done.returncode, errors, done.stdout.splitlines()[0]) == (0, [], TOLD[what])


@pytest.mark.parametrize("nic", CARDS)
def test_ranks_that_probe_do_not_keep_others_parked(features: Path, nic: str) -> None:
    # The clock is that of this computer: a rank that looks at the simulated one is not parked.
    done = spinrun("-n", 4, "--nic", nic, features, "probes")
    total = sum(100 * rank + number for rank in range(4) for number in range(20))
    assert (done.returncode, done.stderr, done.stdout.splitlines()[0]) == (0, "", f"probes: {total}")


@pytest.mark.parametrize("nic", CARDS)
def test_runs_of_an_mpi_are_equal_to_the_byte(features: Path, nic: str, tmp_path: Path) -> None:
    def run(report: Path) -> tuple[str, bytes]:
        done = spinrun("-n", 4, "--nic", nic, "--clock", "simulated", "--json", report, features, "windows")
        return done.stdout, report.read_bytes()

    first, second = run(tmp_path / "first"), run(tmp_path / "second")
    assert first == second
    told, time, unit = first[0].split("\n")[0], *first[0].split("\n")[1].split()
    assert (told, unit) == (TOLD["windows"], "us")
    assert 0 < float(time) < 1000  # simulated time, not this computer's


def test_processes_cannot_be_spawned(features: Path) -> None:
    done = spinrun("-n", 2, features, "spawn")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "spawn: refused")
    why = "it cannot spawn processes: a simulated job has a fixed number of ranks"
    assert sorted(done.stderr.splitlines()) == [f"spinrun: warning: rank {rank}: {why}" for rank in range(2)]


def test_an_mpi_that_aborts_or_crashes_ends_the_job(features: Path, tmp_path: Path) -> None:
    done = spinrun("-n", 3, features, "abort", TMPDIR=str(tmp_path))
    assert done.returncode == 7
    assert f"spinrun: {features}: rank 1 exited with status 7 at " in done.stderr
    done = spinrun("-n", 3, features, "crash", TMPDIR=str(tmp_path))
    assert done.returncode == 128 + signal.SIGABRT
    assert f"spinrun: {features}: rank 1 was ended by signal 6 (SIGABRT) at " in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "status"), [("end", 0), ("exit", 3), ("abort", 0), ("time-out", 124), ("interrupt", 130)]
)
def test_nothing_of_a_job_stays(features: Path, tmp_path: Path, how: str, status: int) -> None:
    limit = "8" if how == "time-out" else "120"
    command = [_paths.command("spinrun"), "--timeout", limit, "-n", "3", features, f"leave-{how}"]
    variables = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        lines = []
        if how == "interrupt":
            assert job.stdout
            lines = list(iter(job.stdout.readline, "all are there\n"))
            job.send_signal(signal.SIGINT)
        out, errors = job.communicate()
    files = [line.split()[1] for line in [*lines, *out.splitlines()] if line.startswith("shared: ")]
    assert job.returncode == status, errors
    if how != "time-out":  # which a busy machine may reach before the ranks have said anything
        assert len(files) == (3 if "mpich" in str(features) else 0)
    assert [file for file in files if Path(file).exists()] == []
    assert list(tmp_path.iterdir()) == []


def test_a_small_folder_for_shared_memory_is_named(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=600k none /dev/shm && exec "$@"'
    apart = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    (tmp_path / "program.c").write_text(SOURCE)
    program = tmp_path / "program"
    subprocess.run([MPI / "mpich" / "bin" / "mpicc", tmp_path / "program.c", "-o", program], check=True)
    command = [*apart, _paths.command("spinrun"), "-n", "2", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGBUS
    assert "ended by signal 7 (SIGBUS)" in done.stderr
    assert "/dev/shm has 600 of 600 KiB free, and writing to shared memory" in done.stderr


# Lets no process be made by clone3, as the rules of some containers do: programs are then not started by posix_spawn.
NO_CLONE3 = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rules = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 435, 0x06, 0, 0, 0x50001, 0x06, 0, 0, 0x7FFF0000)
text = ctypes.create_string_buffer(rules)
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(text))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_libraries_that_cannot_be_listed_are_an_error(program: Path) -> None:
    command = [sys.executable, "-c", NO_CLONE3, _paths.command("spinrun"), "-n", "2", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"spinrun: error: the libraries of {program} are not known, and so neither is its MPI: /"
    )
    assert done.stderr.endswith(" --list: Operation not permitted (os error 1)\n")


def test_an_interpreter_may_load_open_mpi() -> None:
    library = MPI / "openmpi" / "lib" / "openmpi" / "libpmix.so.2"
    done = spinrun("-n", 3, sys.executable, SOURCES / "pmix_values.py", library)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, [f"{rank} of 3" for rank in range(3)]), (
        done.stderr
    )
    library = MPI / "openmpi" / "lib" / "libmpi.so.40"
    script = f"""
import ctypes
mpi, mine, sum = ctypes.CDLL({str(library)!r}), ctypes.c_int(5), ctypes.c_int()
assert mpi.MPI_Init(None, None) == 0
names = ("ompi_mpi_comm_world", "ompi_mpi_int", "ompi_mpi_op_sum")
world, number, add = (ctypes.byref(ctypes.c_char.in_dll(mpi, name)) for name in names)
assert mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(sum), 1, number, add, world) == 0
print(sum.value)
mpi.MPI_Finalize()
"""
    done = spinrun("-n", 3, sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (0, "15\n" * 3), done.stderr


def test_an_open_mpi_that_cannot_use_the_card_is_refused(tmp_path: Path) -> None:
    """Version 4 needs its components for Portals 4."""
    cc, rpath = ["cc", "-x", "c"], f"-Wl,-rpath,{tmp_path}"
    for name in ("libopen-pal.so.40", "libmpi.so.40"):
        subprocess.run([*cc, "-shared", f"-Wl,-soname,{name}", "-o", tmp_path / name, "/dev/null"], check=True)
    program = tmp_path / "program"
    libraries = ["-Wl,--no-as-needed", tmp_path / "libmpi.so.40", tmp_path / "libopen-pal.so.40", rpath]
    subprocess.run(
        [*cc, "-", "-x", "none", *libraries, "-o", program], input="int main(void) { return 0; }", text=True, check=True
    )
    done = spinrun("-n", 2, program)
    why = "links libmpi.so.40, an Open MPI without components for Portals 4 (mca_mtl_portals4.so)"
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "spinrun")
    assert done.stderr.startswith(f"spinrun: error: {program} {why}: its ranks would not find each other")
    components = tmp_path / "components"
    components.mkdir()
    (components / "mca_mtl_portals4.so").touch()
    done = spinrun("-n", 2, "-x", f"OMPI_MCA_mca_base_component_path=system:{components}", program)
    assert (done.returncode, "Portals 4" in done.stderr) == (0, False)


def test_jobs_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    """A rank of MPICH sends messages to itself through shared memory, which MPICH names after the job."""
    (tmp_path / "exchange.c").write_text(EXCHANGE)
    subprocess.run([MPI / "mpich" / "bin" / "mpicc", tmp_path / "exchange.c", "-o", tmp_path / "exchange"], check=True)
    assert spinrun("-n", 2, tmp_path / "exchange").returncode == 0  # the provider is there now
    command = [_paths.command("spinrun"), "--timeout", "120", "-n", "2", tmp_path / "exchange"]
    jobs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ends = [(job.communicate()[1], job.returncode) for job in jobs]
    assert ends == [("", 0)] * 4
