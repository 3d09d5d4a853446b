# SPDX-License-Identifier: Apache-2.0
"""`spinkit peers`: programs that others published, from a checkout, and their numbers as series of experiments."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from spinkit import SpinkitError
from spinkit.cli import main
from spinkit.experiments import _peers

from .conftest import CHECKOUT

PROGRAM = """\
#!/usr/bin/env python3
import json, sys
value, report = sys.argv[1:]
print("running")
with open(report, "w") as file:
    json.dump({"time": 3 * int(value), "seconds": 0.5}, file)
"""

DEFINITION = """\
title = "A test"
repository = "https://example.org/fake"
commit = "COMMIT"
axis = "size"
copied = ["program"]
keep = ["time"]
timeout_s = 20

[[run]]
name = "triple"
machine = "sc17-int"
command = ["program/triple", "{value}", "{report}"]
values = [1, 2]
"""

EXPERIMENT = """\
title = "Published numbers"
models = ["sc17"]
machines = ["int"]

[program]
sources = ["none.c"]

[sweep]
axis = "size"
label = "Size"
values = [1, 2]

[measure]
key = "time"
label = "Time"
unit = "ns"

[[series]]
name = "triple"
label = "triple"
mode = "none"
peer = "fake/triple"

[run]
timeout_s = 20

[[claim]]
name = "triple"
text = "It takes three times the size"
source = "a test"
relation = "value"
of = "triple"
values = [2]
paper = 6
at_least = 6
at_most = 6
"""

Fake = Callable[..., Path]


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def fake(home: Path, tmp_path: Path) -> Fake:
    """Return a function that makes a checkout, and a definition with changes of its text."""
    folder = tmp_path / "fake"
    (folder / "program").mkdir(parents=True)
    git(folder, "init", "-q")

    def make(*changes: tuple[str, str], program: str = PROGRAM) -> Path:
        (folder / "program" / "triple").write_text(program)
        (folder / "program" / "triple").chmod(0o755)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "--allow-empty", "-m", "Begin")
        text = DEFINITION.replace("COMMIT", git(folder, "rev-parse", "HEAD").strip())
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (home / "peers").mkdir(exist_ok=True)
        (home / "peers" / "fake.toml").write_text(text)
        return folder

    return make


def peers(folder: Path | str, name: str = "fake") -> Result:
    return CliRunner().invoke(main, ["peers", name, str(folder)])


def reproduce() -> Result:
    return CliRunner().invoke(main, ["reproduce", "published", "--check"])


@pytest.fixture
def experiment(home: Path) -> Path:
    folder = home / "experiments" / "sc17" / "published"
    folder.mkdir()
    (folder / "published.toml").write_text(EXPERIMENT)
    return folder / "published.toml"


def test_the_numbers_are_written_with_commit_and_command(fake: Fake, home: Path) -> None:
    folder = fake()
    result = peers(folder)
    assert result.exit_code == 0, result.output
    written = json.loads((home / "peers" / "fake.json").read_text())
    assert written["commit"] == git(folder, "rev-parse", "HEAD").strip()
    assert written["runs"] == [
        {
            "name": "triple",
            "machine": "sc17-int",
            "command": "program/triple {value} {report}",
            "points": [{"size": 1, "time": 3}, {"size": 2, "time": 6}],
        }
    ]
    assert str(folder) not in (home / "peers" / "fake.json").read_text()
    assert git(folder, "status", "--porcelain") == ""


def test_a_report_may_be_the_last_line_of_the_output(fake: Fake, home: Path) -> None:
    program = '#!/bin/sh\necho running\necho "{\\"time\\": $1}"\n'
    assert peers(fake((', "{report}"', ""), program=program)).exit_code == 0
    assert json.loads((home / "peers" / "fake.json").read_text())["runs"][0]["points"][1] == {"size": 2, "time": 2}


@pytest.mark.parametrize(
    ("changes", "program", "message"),
    [
        ([], "#!/bin/sh\necho no memory >&2\nexit 3\n", "program/triple 1 report.json: ended with status 3\nno memory"),
        ([], "#!/bin/sh\n", "wrote no report"),
        ([], "#!/bin/sh\necho '[1' > $2\n", "its report is no JSON object"),
        ([], "#!/bin/sh\necho '{}' > $2\n", "its report has no 'time'"),
        ([("timeout_s = 20", "timeout_s = 1")], "#!/bin/sh\nexec sleep 20\n", "did not end within 1 s"),
        ([("program/triple", "program/absent")], PROGRAM, "there is no program/absent; build it in the checkout"),
        (
            [('["program"]', '["program", "data"]')],
            PROGRAM,
            "no data, so it is no checkout of https://example.org/fake",
        ),
        (
            [("timeout_s = 20", 'timeout_s = 20\nneeds = { absent-tool = "apt-get install it" }')],
            PROGRAM,
            "absent-tool: command not found; the peer fake needs it: apt-get install it",
        ),
    ],
)
def test_failures_name_the_run_and_write_nothing(
    fake: Fake, home: Path, changes: list[tuple[str, str]], program: str, message: str
) -> None:
    result = peers(fake(*changes, program=program))
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (home / "peers" / "fake.json").exists()


def test_only_the_named_commit_is_run(fake: Fake) -> None:
    folder = fake()
    old = git(folder, "rev-parse", "HEAD").strip()
    git(folder, "commit", "-q", "--allow-empty", "-m", "Continue")
    result = peers(folder)
    assert result.exit_code == 1
    assert f"but peers/fake.toml has {old}: git -C {folder} checkout {old}" in result.stderr


def test_a_changed_checkout_is_refused(fake: Fake) -> None:
    folder = fake()
    (folder / "program" / "triple").write_text(PROGRAM.replace("3 *", "4 *"))
    result = peers(folder)
    assert result.exit_code == 1
    assert "program/triple was changed after commit" in result.stderr


def test_a_missing_checkout_has_a_remedy(fake: Fake, tmp_path: Path) -> None:
    fake()
    result = peers(tmp_path / "absent")
    assert result.exit_code == 1
    assert "absent: no such folder; get the checkout: git clone https://example.org/fake" in result.stderr
    (tmp_path / "plain" / "program").mkdir(parents=True)
    result = peers(tmp_path / "plain")
    assert result.exit_code == 1
    assert "git rev-parse failed" in result.stderr


def test_an_unknown_peer_is_wrong_usage(fake: Fake) -> None:
    result = peers(fake(), "fakes")
    assert result.exit_code == 2
    assert "fakes: no such peer; did you mean fake? There are: fake" in result.stderr


def test_experiments_have_the_numbers_as_a_published_series(fake: Fake, experiment: Path, home: Path) -> None:
    assert peers(fake()).exit_code == 0
    result = reproduce()
    assert result.exit_code == 0, result.output
    assert "triple (published)" in result.output
    written = json.loads(Path("out/published/results.json").read_text())
    assert [point["time"] for point in written["points"]] == [3, 6]
    # Other numbers of the peer replace kept ones.
    file = home / "peers" / "fake.json"
    file.write_text(file.read_text().replace('"time": 6', '"time": 7'))
    result = reproduce()
    assert result.exit_code == 1
    assert "It takes three times the size" in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fake/triple", "absent/triple", "absent.json: no such file; `spinkit peers absent FOLDER` writes it"),
        ("fake/triple", "fake/twice", "no run twice; there are: triple"),
        ("fake/triple", "fake", "series[0].peer: expected NAME/RUN, is fake"),
        ('peer = "fake/triple"', 'peer = "fake/triple"\nscript = "published.toml"', "give a peer or a script"),
        ('machines = ["int"]', 'machines = ["dis"]', "has numbers of sc17-int, not of sc17-dis"),
        ("values = [1, 2]", "values = [1, 2, 3]", "has no point at size = 3"),
    ],
)
def test_wrong_references_are_errors(fake: Fake, experiment: Path, old: str, new: str, message: str) -> None:
    assert peers(fake()).exit_code == 0
    assert old in EXPERIMENT
    experiment.write_text(EXPERIMENT.replace(old, new, 1))
    result = reproduce()
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_file_that_is_no_result_is_named(fake: Fake, experiment: Path, home: Path) -> None:
    fake()
    (home / "peers" / "fake.json").write_text('{"runs": 3}')
    result = reproduce()
    assert result.exit_code == 1
    assert "fake.json: " in result.stderr
    assert "not the numbers of a peer" in result.stderr


@pytest.mark.parametrize("name", _peers.names(CHECKOUT))
def test_committed_numbers_are_those_of_the_definition(name: str) -> None:
    """A changed command, commit or list of values needs new numbers."""
    peer = _peers.read(CHECKOUT, name)
    written = json.loads(_peers.numbers(CHECKOUT, name).read_text())
    assert written["commit"] == peer.commit
    assert [(one["name"], one["command"]) for one in written["runs"]] == [
        (one.name, " ".join(one.command)) for one in peer.run
    ]
    for run in peer.run:
        found = _peers.published(CHECKOUT, f"{name}/{run.name}")
        assert found.machine == run.machine
        assert tuple(found.points) == run.values


def test_names_of_runs_are_unique(fake: Fake, home: Path) -> None:
    fake(('name = "triple"', 'name = "triple"\nmachine = "a"\ncommand = []\nvalues = []\n[[run]]\nname = "triple"'))
    with pytest.raises(SpinkitError, match=r"run\[1\]\.name: triple occurs twice"):
        _peers.read(home, "fake")
