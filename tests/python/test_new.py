# SPDX-License-Identifier: Apache-2.0
"""`spinkit new`: the new experiment runs at once, with the real commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from spinkit import _paths
from spinkit.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spinkit(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def test_a_new_experiment_runs_and_its_claim_holds(here: Path) -> None:
    made = spinkit("new", "experiment", "answers").stdout.split()
    assert set(made) == {f"answers/{name}" for name in ("README.md", "answers.c", "experiment.toml", "my-card.toml")}
    assert not [file for file in Path("answers").iterdir() if "NAME" in file.read_text()]
    result = spinkit("reproduce", "./answers", "--check", "--json", "points.json")
    assert result.exit_code == 0, result.output
    written = json.loads(Path("points.json").read_text())
    assert [(point["series"], point["bytes"]) for point in written["points"]] == [
        (series, size) for series in ("host", "card") for size in (8, 512, 4096, 65536)
    ]
    assert all(point["data_ok"] and point["machine"] == "my-card" for point in written["points"])
    # The machine of the folder was used: it has 8 HPUs, and so 8 contexts.
    parameters = written["runs"][1]["report"]["parameters"]
    assert [parameters[f"accelerator.{key}"]["value"] for key in ("hpus", "contexts")] == ["8", "8"]
    assert {file.name for file in Path("out/answers").iterdir()} == {
        ".made.json",
        "answer.png",
        "answer.svg",
        "index.html",
        "results.json",
        "runs",
    }


def test_an_experiment_without_claims_has_results_and_a_page(here: Path) -> None:
    assert spinkit("new", "experiment", "answers").exit_code == 0
    file = Path("answers/experiment.toml")
    text = file.read_text()
    file.write_text(text[: text.index("# Expected results")])
    result = spinkit("reproduce", "answers", "--quick", "--check", "--out", "results")
    assert result.exit_code == 0, result.output
    assert "Paper and here" not in result.output
    page = Path("results/answers/index.html").read_text()
    assert "Paper and here" not in page
    assert "All 4 points have correct data." in page
    assert not Path("out").exists()


def test_a_new_handler_compiles_and_runs(here: Path) -> None:
    assert spinkit("new", "handler", "pay").exit_code == 0
    beside = _paths.command("spincc").parent
    environment = os.environ | {"PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["make", "run"], cwd="pay", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # 1000 times 1, 2 and 3.
    assert "sum 6000 after " in done.stdout


@pytest.mark.parametrize(("kind", "handler"), [("handler", "add"), ("experiment", "answer")])
def test_the_launch_for_visual_studio_code_stops_in_a_handler(kind: str, handler: str) -> None:
    assert spinkit("new", kind, "pay", "--vscode").exit_code == 0
    texts = {name: (Path("pay/.vscode") / name).read_text() for name in ("launch.json", "tasks.json")}
    uncommented = re.sub("^ *//.*$", "", texts["launch.json"], flags=re.MULTILINE)
    [launch] = json.loads(uncommented)["configurations"]
    tasks = {task["label"]: task for task in json.loads(texts["tasks.json"])["tasks"]}
    run = tasks[launch["preLaunchTask"]]
    beside = _paths.command("spincc").parent
    environment = os.environ | {"PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    call = partial(subprocess.run, cwd="pay", env=environment, capture_output=True, text=True, check=False)
    built = call(tasks[run["dependsOn"]]["command"].split())
    assert built.returncode == 0, built.stderr
    program = Path(launch["program"].replace("${workspaceFolder}", "pay"))
    assert program.is_file()
    if shutil.which(launch["miDebuggerPath"]) is None:
        pytest.skip("needs gdb-multiarch")
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    host, _, written = launch["miDebuggerServerAddress"].partition(":")
    words = [port if word == written else word for word in run["command"].split()]
    assert port in words
    with subprocess.Popen(words, cwd="pay", env=environment, stderr=subprocess.PIPE, text=True) as simulated:
        assert simulated.stderr is not None
        ready = run["problemMatcher"]["background"]["endsPattern"]
        assert any(re.search(ready, line) for line in simulated.stderr)
        commands = ("-ex", f"target remote {host}:{port}", "-ex", "backtrace", "-ex", "kill")
        debugger = call([launch["miDebuggerPath"], "-batch", *commands, program.name])
        simulated.wait(60)
    assert re.search(rf"#0 +{handler} \(p=.* at pay\.c:\d+", debugger.stdout), debugger


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("experiment", "taken"), 1, "spinkit: taken exists already"),
        (("handler", "9lives"), 1, "spinkit: 9lives: a name has letters, digits, - and _, and begins with a letter"),
        (("handler", "taken/file/x"), 1, "spinkit: cannot make taken/file/x: Not a directory"),
        (("card", "x"), 2, "'card' is not one of 'experiment', 'handler'"),
    ],
)
def test_mistakes_are_told_and_nothing_is_made(here: Path, words: tuple[str, ...], status: int, message: str) -> None:
    Path("taken").mkdir()
    Path("taken/file").touch()
    result = spinkit("new", *words)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr
    assert [str(file) for file in here.rglob("*")] == [str(here / "taken"), str(here / "taken" / "file")]
