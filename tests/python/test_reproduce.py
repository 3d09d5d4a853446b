# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.cli import main
from spinkit.common._terminal import styled
from spinkit.experiments import _outcome, _reader
from spinkit.reports import _report
from spinkit.reports._report import TimeTable
from spinkit.reports._reproduce import _time_tables
from spinkit.simulate import _machines

from .conftest import CHECKOUT, TIMES, Program

MACHINES = sorted(file.stem for file in (CHECKOUT / "machines").glob("*.toml"))


def spinkit(*args: str) -> Result:
    """Run a command; `reproduce` prints everything."""
    command, *rest = args
    return CliRunner().invoke(main, [command, *(["-v"] if command == "reproduce" else []), *rest])


def test_a_brief_run_prints_six_lines_and_the_paths_of_page_and_figures(home: Path, program: Program) -> None:
    program(times=TIMES | {"sc17-int": TIMES["sc17-int"] | {"stream": [900_000, 15]}})
    result = CliRunner().invoke(main, ["reproduce", "ping-pong", "--quick"])
    assert result.stderr == "8 runs\n"
    title, _, heading, *rest = result.stdout.splitlines()
    assert title.startswith("Ping-pong latency · ")
    assert re.split(" {2,}", heading) == [
        " Half round-trip time [µs]",
        "RDMA",
        "Portals 4",
        "sPIN (store)",
        "sPIN (stream)",
    ]
    assert [line.split()[:3] for line in rest[:4]] == [
        [f"{machine},", *value.split()] for machine in ("sc17-int", "sc17-dis") for value in ("8 B", "256 KiB")
    ]
    assert rest[0].split()[3:] == ["1.0002", "0.9002", "0.6001", "0.9001"]
    claims = json.loads(Path("out/ping-pong/results.json").read_text())["claims"]
    assert (sum(claim["holds"] for claim in claims), sum(claim["fails"] for claim in claims)) == (2, 5)
    assert rest[4:] == [
        "",
        "7 verdicts on the paper's statements: 2 hold, 5 fail",
        "",
        "out/ping-pong/index.html",
        "out/ping-pong/integrated.png",
        "out/ping-pong/discrete.png",
    ]
    again = CliRunner().invoke(main, ["reproduce", "ping-pong", "--quick"])
    assert (again.stderr, again.stdout) == ("8 runs, 8 from the cache\n", result.stdout)


def test_whole_experiment_holds_and_writes_everything(home: Path, program: Program) -> None:
    result = spinkit("reproduce", "ping-pong", "--check", "--json", "points.json")
    assert result.exit_code == 0, result.output
    written = json.loads(Path("points.json").read_text())
    assert len(written["points"]) == 2 * 4 * 17
    assert written["points"][1] == {
        "machine": "sc17-int",
        "series": "rdma",
        "nic": "rdma",
        "mode": "rdma",
        "bytes": 8,
        "half_rtt_ps": 1_000_160,
        "data_ok": True,
    }
    claims = {claim["name"]: claim for claim in written["claims"]}
    assert claims["latency"]["here"] == 1 - 600_120 / 1_000_160
    assert claims["latency"]["ratio"] == claims["latency"]["here"] / 0.35
    # (1,000,000 + 20·2^18) / (600,000 + 15·2^18) is less than the discrete card's quotient.
    assert claims["bandwidth"]["here"] == (1_000_000 + 20 * 2**18) / (600_000 + 15 * 2**18)
    assert all(claim["holds"] for claim in claims.values())
    assert written["runs"][3]["report"]["handlers"]["pong"]["calls"] == 4
    for name in ("index.html", "results.json", "integrated.png", "integrated.svg", "discrete.png", "discrete.svg"):
        assert (Path("out/ping-pong") / name).stat().st_size > 0
        assert f"out/ping-pong/{name}" in result.output
    assert "1.0002" in result.output  # µs, RDMA with 8 B
    assert Path("points.json").read_bytes() == Path("out/ping-pong/results.json").read_bytes()
    assert not list(Path("out").glob(".run-*"))


@pytest.mark.parametrize("words", [["reproduce", "ping-pong"], ["sweep", "ping-pong", "--set", "dma.L_ns=50"]])
def test_json_is_alone_on_standard_output(
    home: Path, program: Program, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    result = spinkit(*words, "--quick", "--json", "-")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "sPIN (stream)" in result.stderr
    written = json.loads(capfd.readouterr().out)
    assert len(written["points"] if isinstance(written, dict) else written) == 2 * 4 * 5
    assert not Path("-").exists()


def test_page_is_self_contained(home: Path, program: Program) -> None:
    result = spinkit("reproduce", "ping-pong", "--quick")
    assert result.exit_code == 0
    page = Path("out/ping-pong/index.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 2
    assert "http" not in page.replace("http://www.w3.org", "")
    for expected in ("35.0 %", "40.0 %", "1.14", "accelerator.put_blocks", ">18<", "25.0 (20–40)", "quick run"):
        assert expected in page
    # Claims name the sizes of this run: the full one tests the modes of a single packet from 4 B to 4 KiB.
    words = " ".join(result.stdout.split())
    for sizes in ("at 8 B, 64 B, 4 KiB", "at 8 KiB, 256 KiB"):
        assert sizes in page
        assert f"quick run, {sizes}" in words


def test_same_inputs_same_bytes(home: Path, program: Program) -> None:
    for folder in ("a", "b"):
        assert spinkit("reproduce", "ping-pong", "--quick", "--out", folder).exit_code == 0
    first, second = ({f.name: f.read_bytes() for f in Path(x, "ping-pong").rglob("*") if f.is_file()} for x in "ab")
    assert len(first) == 6 + 8 + 1  # with the kept runs and the digests of the written files
    assert first == second


def test_pictures_and_pages_are_made_again_only_when_they_changed(
    home: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    real = _report.draw
    monkeypatch.setattr(_report, "draw", lambda plot: drawn.append(plot.arguments["title"]) or real(plot))
    folder = Path("out/ping-pong")
    titles = [figure.title for figure in _reader.load(home, "ping-pong").figures]

    def written() -> dict[str, tuple[int, bytes]]:
        drawn.clear()
        assert spinkit("reproduce", "ping-pong", "--quick").exit_code == 0
        return {f.name: (f.stat().st_ino, f.read_bytes()) for f in folder.iterdir() if f.is_file()}

    first = written()
    assert drawn == titles
    assert written() == first
    assert drawn == []
    # A damaged or lost file is made again with the same bytes, and no other one.
    for name in ("discrete.png", "index.html", "results.json"):
        (folder / name).write_bytes(b"damaged")
        again = written()
        assert {file: content for file, (_, content) in again.items()} == {
            f: content for f, (_, content) in first.items()
        }
        assert [file for file in again if again[file][0] != first[file][0] and file != ".made.json"] == [name]
        first = again
    (folder / "integrated.svg").unlink()
    assert written()["integrated.svg"][1] == first["integrated.svg"][1]
    assert drawn == [title for title in titles if "integrated" in title]
    (folder / ".made.json").write_text("[]")
    assert written()["index.html"][1] == first["index.html"][1]
    assert drawn == titles
    # Other times on one machine change its figure, the page and the results.
    before = written()
    program(times=TIMES | {"sc17-int": TIMES["sc17-int"] | {"stream": [610_000, 15]}})
    after = written()
    same = {file for file in after if after[file] == before[file]}
    assert same == {"discrete.png", "discrete.svg"}
    # So does another title in the experiment's file.
    file = home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    file.write_text(file.read_text().replace(f'title = "{titles[0]}"', 'title = "another one"'))
    assert written()["index.html"][1] != after["index.html"][1]
    assert drawn == ["another one"]


def test_a_claim_that_does_not_hold_fails_the_check(home: Path, program: Program) -> None:
    program(times=TIMES | {"sc17-int": TIMES["sc17-int"] | {"stream": [900_000, 15]}})
    result = spinkit("reproduce", "ping-pong", "--quick", "--check")
    assert result.exit_code == 1
    assert "ping-pong: does not hold: 35 % lower latency than RDMA (sc17-int, 8: 10.0 %)" in result.stderr


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("crash", "sPIN (store) on sc17-int: spinrun ended with status 1\nspinrun: rank 1 was killed by signal 11"),
        ("missing", "sPIN (store) on sc17-dis: no result for bytes = 8"),
        ("no report", "sPIN (store) on sc17-int: spinrun's report: "),
    ],
)
def test_failed_run_is_named_and_writes_nothing(home: Path, program: Program, fault: str, message: str) -> None:
    program(fault=fault, fault_mode="store")
    result = spinkit("reproduce", "ping-pong", "--quick")
    assert result.exit_code == 1
    assert message in result.stderr
    assert not Path("out/ping-pong/results.json").exists()


GOOD = {"mode": "store", "bytes": 8, "half_rtt_ps": 5, "data_ok": True}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([GOOD, GOOD], "output line 2: bytes = 8 occurs twice"),
        ([GOOD | {"bytes": 9}], "output line 1: bytes = 9 was not requested"),
        ([GOOD | {"mode": "stream"}], "output line 1: mode: expected store, found 'stream'"),
        ([GOOD | {"half_rtt_ps": 0}], "output line 1: half_rtt_ps: expected at least 1, found 0"),
        ([GOOD | {"half_rtt_ps": 1.5}], "output line 1: half_rtt_ps: expected int, found 1.5"),
        ([GOOD | {"half_rtt_ps": float("nan")}], "output line 1 is not JSON"),
        ([GOOD | {"data_ok": 1}], "output line 1: data_ok: expected bool, found 1"),
        ([GOOD | {"data_ok": None}], "output line 1: data_ok: expected bool, found None"),
        ([[GOOD]], "output line 1 is not a JSON object"),
        ([], "no result for bytes = 8, 16"),
    ],
)
def test_lines_that_are_no_results(home: Path, program: Program, lines: list[Any], message: str) -> None:
    experiment = _reader.load(home, "ping-pong")
    output = "".join(f"{json.dumps(line)}\n" for line in lines)
    with pytest.raises(SpinkitError) as error:
        _outcome.read_points(experiment, "sc17-int", experiment.series[2:3], (8, 16), output)
    assert str(error.value).startswith(message)


def test_series_that_run_together_print_one_after_the_other(home: Path, program: Program) -> None:
    experiment = _reader.load(home, "ping-pong")
    store, stream = experiment.series[2:]
    lines = [{**GOOD, "mode": mode, "bytes": size} for mode in ("store", "stream") for size in (16, 8)]
    output = [json.dumps(line) for line in lines]
    points = _outcome.read_points(experiment, "sc17-int", (store, stream), (8, 16), "\n".join(output))
    assert [(p.series, p.value) for p in points] == [(store, 8), (store, 16), (stream, 8), (stream, 16)]
    for kept, message in (
        (output[:3], "no result of sPIN (stream) for bytes = 8"),
        (output[1:], "mode: expected store"),
    ):
        with pytest.raises(SpinkitError, match=re.escape(message)):
            _outcome.read_points(experiment, "sc17-int", (store, stream), (8, 16), "\n".join(kept))
    with pytest.raises(SpinkitError, match="line 5: bytes = 8 occurs twice"):
        _outcome.read_points(experiment, "sc17-int", (store, stream), (8, 16), "\n".join([*output, output[3]]))


def test_wrong_data_always_fails_but_claims_only_the_check(home: Path, program: Program) -> None:
    times = TIMES | {"sc17-int": TIMES["sc17-int"] | {"store": [900_000, 16]}}
    program(times=times, fault={"data_ok": False}, fault_mode="stream")
    result = spinkit("reproduce", "ping-pong", "--quick")
    assert result.exit_code == 1
    assert "ping-pong: wrong data: sPIN (stream) on sc17-int, bytes = 8" in result.stderr
    assert "(wrong data)" in result.output
    assert "does not hold" not in result.stderr
    assert "differs (" in result.output


def test_finished_runs_are_cached_until_an_input_changes(home: Path, program: Program) -> None:
    def cached(*options: str) -> int:
        result = spinkit("reproduce", "ping-pong", "--quick", *options)
        assert result.exit_code == 0, result.output
        assert result.stderr.count("ping-pong: ") == 8
        return result.stderr.count("(from the cache)")

    assert cached() == 0
    first = Path("out/ping-pong/results.json").read_bytes()
    assert cached() == 8
    assert Path("out/ping-pong/results.json").read_bytes() == first
    assert cached("--fresh") == 0
    # A change of a machine file affects the machine that is based on it too; a change of the latter only itself.
    for machine, left in (("sc17-dis", 4), ("sc17-int", 0)):
        with (home / "machines" / f"{machine}.toml").open("a") as file:
            file.write("# changed\n")
        assert cached() == left
    program(note="another program")
    assert cached() == 0
    # A damaged file in the cache means that the run is repeated.
    Path("out/ping-pong/runs/sc17-int.rdma.quick.json").write_text("{")
    assert cached() == 7
    # A full run has another key than a quick one.
    assert "(from the cache)" not in spinkit("reproduce", "ping-pong").stderr
    assert cached() == 8


def test_programs_are_compiled_once_until_something_changes(home: Path, program: Program) -> None:
    other = home / "experiments" / "sc17" / "other"
    other.mkdir()
    text = (home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml").read_text()
    source = 'sources = ["ping-pong.c"]'
    assert source in text
    (other / "other.toml").write_text(text.replace(source, 'sources = ["../ping-pong/ping-pong.c"]'))

    def compiled(*options: str) -> int:
        """Return the modification time of the compiled program, which must exist with a note of its inputs."""
        assert spinkit("reproduce", "ping-pong", "other", "--quick", *options).exit_code == 0
        [made] = [file for file in Path("out/programs").iterdir() if file.suffix != ".key"]
        return made.stat().st_mtime_ns

    first = compiled()
    assert compiled() == first
    (home / "sdk" / "include" / "portals4.h").write_text("/* changed */\n")
    changed = compiled()
    assert first < changed == compiled()
    fresh = compiled("--fresh")
    assert changed < fresh
    (home / "experiments" / "sc17" / "ping-pong" / "ping-pong.c").write_text("#error")
    assert "does not compile" in spinkit("reproduce", "other", "--quick").stderr
    assert "does not compile" in spinkit("reproduce", "other", "--quick").stderr


def test_failed_runs_keep_the_results_of_finished_ones(home: Path, program: Program) -> None:
    # The quick sizes of a series are one run, so only that of the series with the fault is missing.
    (home / "machines" / "sc17-dis.toml").rename(home / "machines" / "hidden")
    program(times={"sc17-int": TIMES["sc17-int"]})
    assert spinkit("reproduce", "ping-pong", "--quick").exit_code == 1
    assert len(list(Path("out/ping-pong/runs").iterdir())) == 4


def test_all_writes_one_report(home: Path, program: Program) -> None:
    broken = home / "experiments" / "sc17" / "broken"
    shutil.copytree(home / "experiments" / "sc17" / "ping-pong", broken)
    text = (broken / "ping-pong.toml").read_text()
    (broken / "ping-pong.toml").unlink()
    (broken / "broken.toml").write_text(text.replace("Ping-pong latency", "Broken one"))
    (broken / "ping-pong.c").write_text("#error")
    result = spinkit("reproduce", "--all", "--quick")
    assert result.exit_code == 1
    assert "broken does not compile" in result.stderr
    assert "out/report.html" in result.stdout
    page = Path("out/report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")
    for expected in (
        'href="#ping-pong"',
        'id="ping-pong"',
        "Broken one",
        "as it says",
        "did not run to its end",
        "All 7 statements of the paper hold here.",
        "accelerator.put_blocks",
        "SHA-256",
    ):
        assert expected in page
    assert page.count("data:image/svg+xml;base64,") == 2
    assert Path("out/ping-pong/index.html").exists()


def test_code_is_set_as_code(home: Path, program: Program) -> None:
    file = home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    text = file.read_text().replace('summary = """\n', 'summary = """\nRun `ping-pong\n<8>` & see: ` alone. ', 1)
    file.write_text(text.replace("35 % lower latency", "35 % lower `max(rtt)`", 1))
    result = spinkit("reproduce", "ping-pong", "--quick")
    page = Path("out/ping-pong/index.html").read_text()
    assert "<p>Run <code>ping-pong\n&lt;8&gt;</code> &amp; see: ` alone. " in page
    assert "<td>35 % lower <code>max(rtt)</code> than RDMA</td>" in page
    assert "35 % lower max(rtt) than RDMA (talk" in result.stdout
    program(times=TIMES | {"sc17-int": TIMES["sc17-int"] | {"stream": [900_000, 15]}})
    result = spinkit("reproduce", "ping-pong", "--quick", "--check")
    assert "does not hold: 35 % lower max(rtt) than RDMA (" in result.stderr


def test_tables_of_many_series_are_cut_into_parts_that_fit() -> None:
    series = [f"Series {number}, with a long name" for number in range(10)]
    rows = [[value, *(f"{value[0]}{number}.25 µs" for number in range(10))] for value in ("1 KiB", "2 KiB", "4 KiB")]
    times = TimeTable("sc17-int", ["Message size", *series], rows)

    def headings(width: int) -> list[list[str]]:
        out = Console(width=width)
        tables = _time_tables("Times", times, out)
        assert all(out.measure(table).maximum <= width for table in tables)
        return [[str(column.header) for column in table.columns] for table in tables]

    assert headings(500) == [["Message size", *series]]
    assert headings(100) == [["Message size", "1 KiB", "2 KiB", "4 KiB"]]
    assert headings(55) == [["Message size", "1 KiB", "2 KiB"], ["Message size", "4 KiB"]]
    file = StringIO()
    out = Console(width=55, file=file)
    out.print(_time_tables("Times", times, out)[1])
    printed = file.getvalue().splitlines()
    assert [line.split() for line in printed if "Series 3" in line] == [
        ["Series", "3,", "with", "a", "long", "name", "43.25", "µs"]
    ]


def test_on_a_terminal_code_has_a_colour() -> None:
    text = styled("see `max(rtt)`, `n`")
    assert (text.plain, [(part.start, part.end, part.style) for part in text.spans]) == (
        "see max(rtt), n",
        [(4, 12, "cyan"), (14, 15, "cyan")],
    )


EXPECTED = """
[[claim.expected]]
at_least = 0.2
at_most = 0.22
reason = "the paper's CPU is slower"

[[claim]]
name = "bandwidth"
"""


def test_expected_differences_do_not_fail(home: Path, program: Program) -> None:
    file = home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    file.write_text(file.read_text().replace('\n[[claim]]\nname = "bandwidth"\n', EXPECTED, 1))
    slower = TIMES | {"sc17-int": TIMES["sc17-int"] | {"stream": [790_000, 15], "store": [790_008, 15, 900_000, 20]}}
    program(times=slower)
    result = spinkit("reproduce", "ping-pong", "--quick", "--check")
    assert result.exit_code == 0, result.output
    assert "differs (unexplained)" in result.output
    assert "why: the paper's CPU is slower" in result.output
    page = Path("out/ping-pong/index.html").read_text()
    assert "6 of 7 statements of the paper hold here." in page
    assert "1 differs for a stated reason." in page
    assert "expected here: 20.0 to 22.0 %, because: the paper&#39;s CPU is slower" in page
    [latency] = [c for c in json.loads(Path("out/ping-pong/results.json").read_text())["claims"] if c["reason"]]
    assert (latency["name"], latency["holds"], latency["fails"]) == ("latency", False, False)

    program()
    result = spinkit("reproduce", "ping-pong", "--quick", "--check")
    assert result.exit_code == 1
    assert "ping-pong: holds, though expected to differ: 35 % lower latency than RDMA (sc17-int, 8: " in result.stderr


def test_compile_error_is_shown(home: Path, program: Program) -> None:
    (home / "experiments" / "sc17" / "ping-pong" / "ping-pong.c").write_text("#error")
    result = spinkit("reproduce", "ping-pong")
    assert result.exit_code == 1
    assert "ping-pong does not compile" in result.stderr
    assert "ping-pong.c:1: error: as it says" in result.stderr


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        ((), 2, "name experiments or give --all; there are:\n  sc17: ping-pong"),
        (("ping-pong", "--all"), 2, "name experiments or give --all"),
        (("ping-pong", "--fast"), 2, "No such option"),
        (("pong",), 1, "pong: no such experiment; there are: ping-pong"),
    ],
)
def test_exit_status(home: Path, program: Program, args: tuple[str, ...], status: int, message: str) -> None:
    result = spinkit("reproduce", *args)
    assert result.exit_code == status
    assert message in result.stderr


def machines(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(_paths.command("spinkit-machines")), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_machines_lists_names_and_descriptions(home: Path) -> None:
    lines = machines().stdout.splitlines()
    described = dict(line.split(maxsplit=1) for line in lines)
    assert list(described) == MACHINES
    assert described["sc17-int"] == "SC'17 sPIN card on the CPU's memory controller"


def test_machines_shows_values_with_their_sources(home: Path) -> None:
    done = machines("sc17-dis", "--set", "hpu.count=2")
    rows = [line.split(maxsplit=3) for line in done.stdout.splitlines()]
    assert ["dma.L_ns", "250", "ns", '§4.3 "a latency of L = 250ns"'] in rows
    assert ["accelerator.hpus", "2", "--set", "hpu.count=2"] in rows
    assert done.stderr == "spinkit machines: note: --set: hpu.count is now accelerator.hpus\n"
    done = machines("sc19")
    message = f"spinkit machines: error: sc19: no such machine; known are: {', '.join(MACHINES)}\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert "sc17dis: no such machine; did you mean `sc17-dis`? Known are: " in machines("sc17dis").stderr


def test_machines_are_described_with_changes(home: Path) -> None:
    found = _machines.load(_paths.command("spinkit-machines"), "sc17-dis", ["network.radix=16"])
    assert (found.name, [file.name for file in found.files]) == ("sc17-dis", ["sc17-int.toml", "sc17-dis.toml"])
    radix = _machines.Parameter("network.radix", "16", "", "--set network.radix=16")
    assert radix in found.parameters
    with pytest.raises(SpinkitError, match=r"^--set radix=16: unknown key, did you mean `network.radix`\?$"):
        _machines.load(_paths.command("spinkit-machines"), "sc17-dis", ["radix=16"])


def test_a_folder_that_is_no_home_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPINKIT_HOME", str(tmp_path))
    assert "sdk/include/portals4.h" in machines().stderr
    result = spinkit("reproduce", "--all")
    assert result.exit_code == 1
    assert "sdk/include/portals4.h" in result.stderr
