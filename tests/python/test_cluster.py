"""Sweeps on Dask clusters: of local workers, one of which is killed, and of SLURM, for whose commands scripts stand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from spinkit import _cluster, _new, _paths, _worker
from spinkit._errors import SpinkitError
from spinkit.cli import main

distributed = pytest.importorskip("distributed")
# Dask closes its event loops late.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

POINTS = ("--set", "accelerator.hpus=1:4", "--set", "dma.L_ns=50,100,150")
WORKERS = 3


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an experiment with one series and two sizes, and with two machines, of which one is based on the other."""
    monkeypatch.chdir(tmp_path)
    _new.make("experiment", Path("answers"))
    file = Path("answers/experiment.toml")
    text = file.read_text().partition("# What you expect")[0].replace("[8, 512, 4096, 65536]", "[8, 4096]")
    host, card = text.index('[[series]]\nname = "host"'), text.index('[[series]]\nname = "card"')
    file.write_text(text[:host] + text[card:])
    own = Path("answers/my-card.toml")
    own.rename("answers/below.toml")
    own.write_text('base = "below"\n')
    return tmp_path / "answers"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    made = distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    with made:
        yield made


def test_nothing_is_lost_when_a_worker_is_killed(experiment: Path, cluster: Any) -> None:
    words = ["sweep", "./answers", *POINTS, "--out", "there", "--scheduler", cluster.scheduler_address]
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


def test_schedules_run_on_clusters_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any) -> None:
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
    remote = ["--scheduler", cluster.scheduler_address, "--out", "there"]
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
            'cp "$1" job.sh; setsid bash job.sh > job.log 2>&1 & echo $! >> jobs; echo "Submitted batch job $!"',
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


def test_a_cluster_of_kubernetes_gets_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def cluster(**options: Any) -> None:
        asked.update(options)
        raise RuntimeError("no such namespace")

    module = types.SimpleNamespace(KubeCluster=cluster)
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", module)
    with (
        pytest.raises(SpinkitError, match=r"^--scheduler kubernetes: no such namespace$"),
        _cluster.connect("kubernetes", 7, {"image": "us/spinkit", "namespace": "lab"}, ""),
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
        ("local", {}, "distributed", r"pip install 'spinkit\[cluster\]'"),
        ("kubernetes", {}, "dask_kubernetes.operator", r"pip install 'spinkit\[kubernetes\]'"),
    ],
)
def test_clusters_that_cannot_be_used_are_told(
    monkeypatch: pytest.MonkeyPatch, scheduler: str, options: dict[str, str], missing: str | None, message: str
) -> None:
    monkeypatch.setattr(_cluster, "_CONNECT_S", 0.5)
    if missing is not None:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SpinkitError, match=message), _cluster.connect(scheduler, 1, options, ""):
        pass


def test_a_worker_runs_what_it_is_sent_if_it_is_of_the_same_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spinrun = _paths.command("spinrun")
    tools = _worker.tools_digest(spinrun, _paths.library(spinrun))
    for name in ("own", "base"):
        (tmp_path / f"{name}.toml").write_text('base = "base"\n' if name == "own" else 'base = "sc17-int"\n')
    machine = (tmp_path / "base.toml", tmp_path / "own.toml")
    script = tmp_path / "hello.sh"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    words = ("-n", "1", "--machine", "nothing", "--json", _worker.REPORT, script)
    shipped = _worker.ship(_worker.Task("spinrun", words, machine, 60), tools)
    for file in (*machine, script):
        file.unlink()
    done = _worker.perform(shipped)
    assert (done.status, done.output, done.errors) == (0, "hello\n", "")
    assert done.report is not None
    assert json.loads(done.report)["machine"] == "own"
    with pytest.raises(SpinkitError, match=r"the spinkit of this worker \(.*spinrun\) is another build"):
        _worker.perform(replace(shipped, tools="another"))
    # A file that is too large to be sent is read by its path, if it is the same there.
    monkeypatch.setattr(_worker, "MOST_BYTES", 10)
    machine[0].write_text('base = "sc17-int"')
    machine[1].write_text('base = "base"')
    script.write_text("#!/bin/sh\necho hi\n")
    script.chmod(0o755)
    large = _worker.ship(_worker.Task("spinrun", words, machine, 60), tools)
    assert _worker.perform(large).output == "hi\n"
    script.write_text("#!/bin/sh\necho changed\n")
    with pytest.raises(SpinkitError, match=r"hello\.sh is larger than 0 MiB, and the worker does not see the same"):
        _worker.perform(large)
    with pytest.raises(SpinkitError, match="a folder cannot be sent to a cluster"):
        _worker.ship(_worker.Task("spinkit-pspin", ("run", tmp_path, "--machine", "x"), machine, 60), tools)
