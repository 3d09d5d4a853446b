# SPDX-License-Identifier: Apache-2.0
"""The pages are correct: their programs compile and run, and the sums of docs/validation.md are those of a run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit.experiments import _reader

CHECKOUT = Path(__file__).resolve().parents[2]
NICS = {"rdma": "rdma", "triggered": "portals4", "store": "spin", "stream": "spin"}


def page(name: str) -> str:
    return (CHECKOUT / name).read_text()


def blocks(name: str, language: str, below: str = "") -> list[str]:
    """Return the blocks in a language, below a heading."""
    text = page(name).partition(below)[2] if below else page(name)
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found
    return found


def run(command: str, *arguments: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run(
        [_paths.command(command), *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{command} {arguments}"
    return done.stdout


@pytest.mark.parametrize(
    ("name", "expected_statuses"),
    [("README.md", [0, 0, 0]), ("docs/overview.md", [0, 0, 0, 1, 0])],  # the overview shows a run with too many senders
)
def test_the_program_of_a_page_prints_what_the_page_says(
    name: str, expected_statuses: list[int], tmp_path: Path
) -> None:
    [program] = blocks(name, "c")
    (tmp_path / "sum.c").write_text(program)
    statuses = []
    for session in blocks(name, "console"):
        for step in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            line, _, expected = step.partition("\n")
            command, *arguments = line.split()
            if command not in ("spincc", "spinrun"):
                continue
            done = subprocess.run(
                [_paths.command(command), *arguments],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.stdout == expected
            statuses.append(done.returncode)
    assert statuses == expected_statuses


def test_the_readme_is_short_and_its_commands_run(tmp_path: Path) -> None:
    """All words count, those of the program too; the program has 25 lines, as the README says."""
    assert 700 <= len(page("README.md").split()) <= 800
    [program] = blocks("README.md", "c")
    assert len(program.splitlines()) == 25
    assert "25 lines below" in page("README.md")
    (tmp_path / "sum.c").write_text(program)
    run("spincc", "-g", "-Wall", "-Wextra", "-Werror", "sum.c", "-o", "sum", folder=tmp_path)
    shown = [line for block in blocks("README.md", "sh", "## See it")[:1] for line in block.splitlines()]
    for line in shown:
        command, *arguments = shlex.split(line, comments=True)
        expected = "sum.html\n" if arguments[0] == "view" else "sum 60000 after 4.8 us\n"
        assert run(command, *arguments, folder=tmp_path).startswith(expected)
    assert len(shown) >= 4
    assert (tmp_path / "sum.pftrace").stat().st_size > 1000


def test_the_numbers_of_the_readme_are_those_of_the_tree() -> None:
    text = page("README.md")
    assert f"**run** it bit-reproducibly on {len(list((CHECKOUT / 'machines').glob('*.toml')))} " in text
    assert f"**reproduce** {len(_reader.available(CHECKOUT))} " in text
    badges = page("docs/img/badges.svg")
    versions = {
        "version": tomllib.loads(page("Cargo.toml"))["workspace"]["package"]["version"],
        "Rust": tomllib.loads(page("Cargo.toml"))["workspace"]["package"]["rust-version"],
        "Python": tomllib.loads(page("pyproject.toml"))["project"]["requires-python"].removeprefix(">="),
    }
    for name, value in versions.items():
        assert f">{name}</text>" in badges
        assert f">{value}</text>" in badges
        assert value in text


def test_the_overview_lists_every_experiment_and_machine() -> None:
    listed = set(re.findall(r"`([\w-]+)`", page("docs/overview.md")))
    machines = {file.stem for file in (CHECKOUT / "machines").glob("*.toml")}
    assert {*_reader.available(CHECKOUT), *machines} - listed == set()


def test_the_program_of_the_overview_never_prints_a_wrong_sum(tmp_path: Path) -> None:
    [program] = blocks("docs/overview.md", "c")
    (tmp_path / "sum.c").write_text(program)
    run("spincc", "-Wall", "-Wextra", "-Werror", "sum.c", "-o", "sum", folder=tmp_path)
    for ranks in (2, 16, 40, 64):
        command = [_paths.command("spinrun"), "-n", str(ranks), "./sum"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == 0:
            assert done.stdout.startswith(f"sum {10000 * ranks * (ranks - 1) // 2} after ")
        else:
            assert (done.returncode, done.stdout) == (1, "")
            assert "messages lost" in done.stderr
        assert (done.returncode == 0) == (ranks <= 16)


def test_handlers_of_the_guide_compile(tmp_path: Path) -> None:
    for number, block in enumerate([*blocks("docs/handler-guide.md", "c"), *blocks("docs/debugging.md", "c")]):
        source = tmp_path / f"block{number}.c"
        include = "" if "#include <spin.h>" in block else "#include <spin.h>\n"
        source.write_text(include + block + "\nint main(void) { return 0; }\n")
        run("spincc", "-Wall", "-Wextra", "-Werror", source, "-o", tmp_path / "program")


def test_python_of_the_goal_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    program, expected = (blocks("docs/goal.md", language, "## From Python")[0] for language in ("python", "text"))
    exec(program, {})
    assert capsys.readouterr().out == expected


def test_the_handlers_of_the_pspin_page_print_what_the_page_says(tmp_path: Path) -> None:
    [program] = blocks("docs/pspin.md", "c")
    [rules] = blocks("docs/pspin.md", "toml")
    (tmp_path / "count.c").write_text(program)
    (tmp_path / "rules.toml").write_text(rules)
    session = blocks("docs/pspin.md", "console")[0]
    line, _, expected = session.removeprefix("$ ").partition("\n")
    command, *arguments = line.split()
    assert run(command, *arguments, folder=tmp_path) == expected
    # The packets of the generator match the first rule.
    told = run(command, *arguments, "--rules", "rules.toml", folder=tmp_path)
    assert "100 arrived, 100 done" in told
    assert "[0,0] 49200 bytes" in told


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
@pytest.mark.parametrize("size", ["8", "8192"])
def test_sums_by_hand_are_those_of_a_run(machine: str, size: str, tmp_path: Path) -> None:
    _, _, rest = page("docs/validation.md").partition(f"| {machine} {size} | {' | '.join(NICS)} |\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rest.partition("\n\n")[0].splitlines()[1:]]
    columns = dict(zip(NICS, list(zip(*rows, strict=True))[1:], strict=True))
    run("spincc", CHECKOUT / "experiments/sc17/ping-pong/ping-pong.c", "-o", tmp_path / "ping-pong")
    for mode, cells in columns.items():
        *terms, round_trip, half = [Decimal(cell.replace("–", "0")) for cell in cells]
        assert sum(terms) == round_trip == 2 * half, mode
        options = ["-n", "2", "--machine", machine, "--nic", NICS[mode]]
        point = json.loads(run("spinrun", *options, tmp_path / "ping-pong", "--mode", mode, "--sizes", size))
        assert point == {"mode": mode, "bytes": int(size), "half_rtt_ps": int(half * 1000), "data_ok": True}


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    texts = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


def test_links_lead_to_files_and_headings() -> None:
    pages = [
        page
        for page in CHECKOUT.rglob("*.md")
        if not {".venv", "target", "out"} & set(page.relative_to(CHECKOUT).parts)
    ]
    broken, found = [], 0
    for page in pages:
        for target in re.findall(
            r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        ):
            if target.startswith(("http:", "https:")):
                continue
            found += 1
            name, _, anchor = target.partition("#")
            file = page.parent / name if name else page
            if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file.read_text())):
                broken.append(f"{page.relative_to(CHECKOUT)}: {target}")
    assert (broken, found > 100) == ([], True)
