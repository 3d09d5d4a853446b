# SPDX-License-Identifier: Apache-2.0
"""Sweeps on clusters: without ports, on Dask's with workers here, one of which is killed, and on one of SLURM.

Scripts stand for the commands of SLURM.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from spinkit import _new, _paths
from spinkit._errors import SpinkitError
from spinkit.cli import main
from spinkit.simulate import _tasks
from spinkit.sweeps import _dask

distributed = pytest.importorskip("distributed")
# Dask closes its event loops late.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

POINTS = ("--set", "accelerator.hpus=1:4", "--set", "dma.L_ns=50,100,150")
WORKERS = 3


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an experiment with one series and two sizes, and two machines, one based on the other."""
    monkeypatch.chdir(tmp_path)
    _new.make("experiment", Path("answers"))
    file = Path("answers/experiment.toml")
    text = file.read_text().partition("# Expected results")[0].replace("[8, 512, 4096, 65536]", "[8, 4096]")
    host, card = text.index('[[series]]\nname = "host"'), text.index('[[series]]\nname = "card"')
    file.write_text(text[:host] + text[card:])
    own = Path("answers/my-card.toml")
    own.rename("answers/below.toml")
    own.write_text('base = "below"\n')
    return tmp_path / "answers"


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Make the files of a cluster's credentials; return the options that name them."""
    made = distributed.Security.temporary()
    folder = tmp_path_factory.mktemp("credentials")
    words = []
    for name, text in (("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)):
        (folder / f"{name}.pem").write_text(text)
        words += [f"--tls-{name}", str(folder / f"{name}.pem")]
    return words


@pytest.fixture(scope="module")
def cluster(credentials: list[str]) -> Iterator[Any]:
    authority, certificate, key = credentials[1::2]
    roles = [(f"tls_{role}_cert", f"tls_{role}_key") for role in ("client", "scheduler", "worker")]
    files = {name: file for pair in roles for name, file in zip(pair, (certificate, key), strict=True)}
    security = distributed.Security(require_encryption=True, tls_ca_file=authority, **files)
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(protocol="tls://", security=security, **options) as made:
        yield made


def test_nothing_is_lost_when_a_worker_is_killed(experiment: Path, cluster: Any, credentials: list[str]) -> None:
    words = ["sweep", "./answers", *POINTS, "--out", "there", "--scheduler", cluster.scheduler_address, *credentials]
    command = [sys.executable, "-m", "spinkit", *words]
    with (
        distributed.Client(cluster, set_as_default=False) as client,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running,
    ):
        at_work = busy(client, running)
        pid = next(worker.pid for worker in cluster.workers.values() if worker.worker_address in at_work)
        os.kill(pid, signal.SIGKILL)
        _, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    assert sorted(int(line.split("/")[0]) for line in errors.splitlines() if "/12 " in line) == list(range(1, 13))
    assert pid not in {worker.pid for worker in cluster.workers.values()}
    rows = json.loads(Path("there/answers/sweep.json").read_text())
    assert [(row["accelerator.hpus"], row["dma.L_ns"], row["bytes"]) for row in rows] == [
        (hpus, latency, size) for hpus in range(1, 5) for latency in (50, 100, 150) for size in (8, 4096)
    ]
    # A run here has the same results, to the byte, and the runs of the cluster are in its cache.
    assert CliRunner().invoke(main, ["sweep", "./answers", *POINTS, "--out", "here", "--jobs", "2"]).exit_code == 0
    assert Path("here/answers/sweep.json").read_bytes() == Path("there/answers/sweep.json").read_bytes()
    again = CliRunner().invoke(main, ["sweep", "./answers", *POINTS, "--out", "there"])
    assert again.stderr.count("(from the cache)") == 12


def test_schedules_run_on_clusters_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any, credentials: list[str]
) -> None:
    """Their rows have the numbers of the report, but neither tables nor what depends on the computer."""
    monkeypatch.chdir(tmp_path)
    Path("tree").mkdir()
    Path("tree/experiment.toml").write_text(
        """
title = "Broadcast"
machines = ["sc17-int"]
[program]
schedules = ["gen bcast --ranks 4 --size 4096"]
args = ["--model", "packet"]
[sweep]
axis = "network.wire_ns"
label = "Wire"
unit = "ns"
values = [33.4, 133.4]
[[series]]
name = "tree"
label = "Broadcast"
mode = "tree"
[measure]
key = "time_ps"
label = "Time"
[run]
timeout_s = 60
"""
    )
    words = ["sweep", "./tree", "--set", "network.switch_ns=50,150", "--column", "network.packets"]
    remote = ["--scheduler", cluster.scheduler_address, *credentials, "--out", "there"]
    for more in ([], remote):
        result = CliRunner().invoke(main, [*words, *more])
        assert result.exit_code == 0, result.output
    rows = json.loads(Path("out/tree/sweep.json").read_text())
    assert json.loads(Path("there/tree/sweep.json").read_text()) == rows
    assert [(row["network.switch_ns"], row["network.wire_ns"], row["network.packets"]) for row in rows] == [
        (50, 33.4, 3),
        (50, 133.4, 3),
        (150, 33.4, 3),
        (150, 133.4, 3),
    ]
    # Two rounds of a tree, each over two wires of 100 ns more and one switch of 100 ns more.
    times = [row["time_ps"] for row in rows]
    assert [time - times[0] for time in times] == [0, 400_000, 200_000, 600_000]
    assert not {"parameters", "network", "cpu_seconds"} & set(rows[0])


def busy(client: Any, running: subprocess.Popen[str]) -> set[str]:
    """Wait until a worker runs something; return the workers that do."""
    while running.poll() is None:
        found = {worker for worker, keys in client.processing().items() if keys}
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError("the sweep ended before a worker was seen at work")


def test_a_local_cluster_has_no_ports(experiment: Path) -> None:
    """Its runs get only what workers are sent, and have the results of runs without it."""
    sweep = ["sweep", "./answers", "--set", "dma.L_ns=50,100", "--jobs", "2"]
    command = [sys.executable, "-m", "spinkit", *sweep, "--scheduler", "local", "--out", "there"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        heard = []
        while running.poll() is None:
            heard += listening(running.pid)
            time.sleep(0.01)
        _, errors = running.communicate()
    assert (running.returncode, heard) == (0, []), errors
    assert [line.split()[0] for line in errors.splitlines()] == ["1/2", "2/2"]
    assert CliRunner().invoke(main, [*sweep, "--out", "here"]).exit_code == 0
    assert Path("here/answers/sweep.json").read_bytes() == Path("there/answers/sweep.json").read_bytes()


def test_a_local_cluster_is_interrupted(tmp_path: Path) -> None:
    """The current run ends, and the waiting one never starts."""
    spinrun = _paths.command("spinrun")
    script = tmp_path / "endless.sh"
    script.write_text(f"#!/bin/sh\necho >> {tmp_path}/started\nexec sleep 1000\n")
    script.chmod(0o755)
    (tmp_path / "own.toml").write_text('base = "sc17-int"\n')
    words = ("-n", "1", "--machine", "own", script)
    task = _tasks.Task("spinrun", words, (tmp_path / "own.toml",), None)
    local = _dask.Local(1, _tasks.tools_digest(spinrun, _paths.library(spinrun)))
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(local.perform, task) for _ in range(2)]
        started = tmp_path / "started"
        while not (started.is_file() and started.read_text()):  # the shell creates the file before it writes
            assert not any(run.done() for run in runs)
            time.sleep(0.01)
        local.cancel()
        ends = [run.exception(timeout=60) or run.result().status for run in runs]
    assert started.read_text() == "\n"
    assert sorted(map(str, ends)) == ["130", "interrupted"]


def listening(pid: int) -> list[str]:
    """Return the TCP addresses at which a process or its children listen."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    places = {f"socket:[{line[9]}]": line[1] for line in lines if line[3] == "0A"}
    found = []
    pids = [pid]
    for one in pids:
        with suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                pids += map(int, (thread / "children").read_text().split())
            found += [places[name] for name in map(os.readlink, Path(f"/proc/{one}/fd").iterdir()) if name in places]
    return found


def test_strangers_reach_no_cluster(cluster: Any, credentials: list[str], tmp_path: Path) -> None:
    """A cluster requires the credentials, and the credentials a cluster; a cluster without any is reported."""
    address = cluster.scheduler_address
    ours = _dask.Credentials(*map(Path, credentials[1::2]))
    silent = f"{address}: no Dask scheduler answers"
    with pytest.raises(SpinkitError, match=silent), _dask.connect(address, 1, {}, ""):
        pass
    other = distributed.Security.temporary()
    (tmp_path / "other.pem").write_text(other.tls_ca_file)
    (tmp_path / "other.key").write_text(other.tls_client_key)
    theirs = _dask.Credentials(tmp_path / "other.pem", tmp_path / "other.pem", tmp_path / "other.key")
    with pytest.raises(SpinkitError, match=silent), _dask.connect(address, 1, {}, "", theirs):
        pass
    plain = address.replace("tls://", "tcp://")
    with (
        pytest.raises(SpinkitError, match=r"no Dask scheduler answers: .*encryption required"),
        _dask.connect(plain, 1, {}, "", ours),
    ):
        pass
    with (
        pytest.raises(SpinkitError, match=r"--tls-key .*: "),
        _dask.connect(address, 1, {}, "", replace(ours, key=tmp_path / "other.key")),
    ):
        pass


def test_an_unprotected_cluster_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dask, "_CONNECT_S", 0.5)
    with pytest.raises(SpinkitError), _dask.connect("tcp://127.0.0.1:1", 1, {}, ""):
        pass
    assert capsys.readouterr().err.startswith("spinkit: note: tcp://127.0.0.1:1 has no protection: whoever reaches it")


def test_a_cluster_of_slurm_is_started_and_ended(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sbatch` begins what it is given at once, in a group of processes that `scancel` ends."""
    pytest.importorskip("dask_jobqueue")
    commands = tmp_path / "slurm"
    commands.mkdir()
    for name, text in (
        (
            "sbatch",
            'cp "$1" job.sh; stat -c "%a %U" .spinkit-tls-* .spinkit-tls-*/.*.key.* > modes\n'
            'setsid bash job.sh > job.log 2>&1 & echo $! >> jobs; echo "Submitted batch job $!"',
        ),
        ("scancel", 'echo "$1" >> cancelled; kill -- "-$1"'),
    ):
        (commands / name).write_text(f"#!/bin/bash\n{text}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    words = ["--scheduler", "slurm", "--jobs", "1", "--cluster-option", "queue=short", "--cluster-option", "cores=2"]
    command = [sys.executable, "-m", "spinkit", "sweep", "./answers", "--set", "dma.L_ns=50,100", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(Path("out/answers/sweep.json").read_text())) == 4
    script = Path("job.sh").read_text()
    assert "#SBATCH -p short" in script
    assert "#SBATCH --cpus-per-task=2" in script
    assert Path("jobs").read_text() == Path("cancelled").read_text()
    # Only this user has the key of the connections, as long as the sweep lasts; no page tells strangers what runs.
    assert " tls://" in script
    assert " --tls-key .spinkit-tls-" in script
    assert " --no-dashboard " in script
    user = pwd.getpwuid(os.getuid()).pw_name
    assert Path("modes").read_text() == f"700 {user}\n600 {user}\n"
    assert not list(Path.cwd().glob(".spinkit-tls-*"))


def test_a_cluster_of_kubernetes_gets_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def cluster(**options: Any) -> None:
        asked.update(options)
        raise RuntimeError("no such namespace")

    module = types.SimpleNamespace(KubeCluster=cluster)
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", module)
    with (
        pytest.raises(SpinkitError, match=r"^--scheduler kubernetes: no such namespace$"),
        _dask.connect("kubernetes", 7, {"image": "us/spinkit", "namespace": "lab"}, ""),
    ):
        pass
    assert asked == {"name": "spinkit-sweep", "n_workers": 7, "image": "us/spinkit", "namespace": "lab"}


@pytest.mark.parametrize(
    ("scheduler", "options", "missing", "message"),
    [
        ("tcp://127.0.0.1:1", {}, None, "tcp://127.0.0.1:1: no Dask scheduler answers"),
        ("nonsense://x", {}, None, "nonsense://x: no Dask scheduler answers"),
        ("tcp://127.0.0.1:1", {"queue": "x"}, None, "--cluster-option has no meaning for a scheduler that runs"),
        ("local", {"queue": "x"}, None, "--cluster-option has no meaning for --scheduler local"),
        ("slurm", {"memory": "much"}, None, "--scheduler slurm: "),
        ("tcp://127.0.0.1:1", {}, "distributed", r"pip install 'spinkit\[cluster\]'"),
        ("slurm", {}, "cryptography", r"pip install 'spinkit\[cluster\]'"),
        ("kubernetes", {}, "dask_kubernetes.operator", r"pip install 'spinkit\[kubernetes\]'"),
    ],
)
def test_clusters_that_cannot_be_used_are_told(
    monkeypatch: pytest.MonkeyPatch, scheduler: str, options: dict[str, str], missing: str | None, message: str
) -> None:
    monkeypatch.setattr(_dask, "_CONNECT_S", 0.5)
    if missing is not None:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SpinkitError, match=message), _dask.connect(scheduler, 1, options, ""):
        pass


def test_a_worker_runs_what_it_is_sent_if_it_is_of_the_same_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spinrun = _paths.command("spinrun")
    tools = _tasks.tools_digest(spinrun, _paths.library(spinrun))
    for name in ("own", "base"):
        (tmp_path / f"{name}.toml").write_text('base = "base"\n' if name == "own" else 'base = "sc17-int"\n')
    machine = (tmp_path / "base.toml", tmp_path / "own.toml")
    script = tmp_path / "hello.sh"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    words = ("-n", "1", "--machine", "nothing", "--json", _tasks.REPORT, script)
    shipped = _tasks.ship(_tasks.Task("spinrun", words, machine, 60), tools)
    for file in (*machine, script):
        file.unlink()
    done = _tasks.perform(shipped)
    assert (done.status, done.output, done.errors) == (0, "hello\n", "")
    assert done.report is not None
    assert json.loads(done.report)["machine"] == "own"
    with pytest.raises(SpinkitError, match=r"the spinkit of this worker \(.*spinrun\) is another build"):
        _tasks.perform(replace(shipped, tools="another"))
    # A file that is too large to be sent is read by its path, if it is the same there.
    monkeypatch.setattr(_tasks, "MOST_BYTES", 10)
    machine[0].write_text('base = "sc17-int"')
    machine[1].write_text('base = "base"')
    script.write_text("#!/bin/sh\necho hi\n")
    script.chmod(0o755)
    large = _tasks.ship(_tasks.Task("spinrun", words, machine, 60), tools)
    assert _tasks.perform(large).output == "hi\n"
    script.write_text("#!/bin/sh\necho changed\n")
    with pytest.raises(SpinkitError, match=r"hello\.sh is larger than 0 MiB, and the worker does not see the same"):
        _tasks.perform(large)
    with pytest.raises(SpinkitError, match="a folder cannot be sent to a cluster"):
        _tasks.ship(_tasks.Task("spinkit-pspin", ("run", tmp_path, "--machine", "x"), machine, 60), tools)
