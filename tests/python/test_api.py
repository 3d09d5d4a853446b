# SPDX-License-Identifier: Apache-2.0
"""The Python interface: runs, timelines, sweeps; docs/python.md and the notebook of examples/."""

from __future__ import annotations

import json
import re
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import spinkit

from .conftest import CHECKOUT

HELLO = CHECKOUT / "examples" / "hello.c"
pandas = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[spinkit.Result, Path]:
    """Run hello.c on three ranks, with a timeline."""
    file = tmp_path_factory.mktemp("hello") / "hello.pftrace"
    return spinkit.run(HELLO, 3, "sc17-dis", {"accelerator.hpus": 8, "dma.L_ns": 100.5}, trace=file), file


def test_a_run_returns_times_counters_and_handlers(traced: tuple[spinkit.Result, Path]) -> None:
    result, _ = traced
    assert (result.machine, result.nic, result.ranks) == ("sc17-dis", "spin", 3)
    assert result.end_ps == max(result.rank_end_ps) == result.end_us * 1e6
    parameters = {key: result.parameters[f"{key}"] for key in ("accelerator.hpus", "dma.L_ns", "host.shared_memory")}
    assert parameters == {"accelerator.hpus": 8, "dma.L_ns": 100.5, "host.shared_memory": False}
    assert result.parameters["accelerator.contexts"] == 8
    # Each rank greets the next one in a message of one packet, whose text the card writes to the host.
    handler = result.handlers["capitals"]
    assert (handler.calls, handler.errors, handler.dmas, handler.puts) == (3, 0, 3, 0)
    assert handler.min_instructions <= handler.instructions / 3 <= handler.max_instructions
    assert [(card.messages_sent, card.messages_received, card.packets_dropped) for card in result.cards] == [
        (1, 1, 0)
    ] * 3
    assert handler.bytes == sum(card.bytes_received for card in result.cards)
    assert result.report["cards"][1]["dma_bytes"] == result.cards[1].dma_bytes
    assert len(result.output.splitlines()) == 3
    assert result.errors == ""
    with pytest.raises(spinkit.SpinkitError, match="the program's output is not a JSON value a line"):
        result.lines()


def test_arguments_and_options_are_those_of_the_commands() -> None:
    Path("say.sh").write_text('#!/bin/sh\necho "[\\"$1\\", $2]"; echo aside >&2\n')
    Path("say.sh").chmod(0o755)
    result = spinkit.run(
        "say.sh", arguments=["a", 7], nic="rdma", options=["--set", "nic.match_cam_ns=3"], timeout_s=60
    )
    assert (result.lines(), result.errors, result.nic, result.handlers) == ([["a", 7]], "aside\n", "rdma", {})
    assert result.parameters["nic.match_cam_ns"] == 3


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        ("int main(void) { return x; }", {}, r"^own\.c does not compile:\n.*undeclared"),
        ("int main(void) { return 3; }", {}, r"^own\.c: spinrun ended with status 3"),
        ("int main(void) { return 0; }", {"dma.L": 1}, r"spinrun ended with status 2\n.*--set dma\.L=1: unknown key"),
    ],
)
def test_runs_that_fail_raise_what_was_printed(text: str, changes: dict[str, Any], message: str) -> None:
    Path("own.c").write_text(text)
    with pytest.raises(spinkit.SpinkitError, match=re.compile(message, re.DOTALL)):
        spinkit.run("own.c", set=changes)


def test_a_timeline_is_a_data_frame(traced: tuple[spinkit.Result, Path]) -> None:
    result, file = traced
    slices = spinkit.Trace(file).slices()
    assert list(slices)[:6] == ["process", "row", "name", "start_ps", "end_ps", "duration_ps"]
    assert slices["start_ps"].is_monotonic_increasing
    assert (slices["end_ps"] - slices["start_ps"] == slices["duration_ps"]).all()
    assert slices["end_ps"].max() <= result.end_ps
    calls = slices[slices["name"] == "capitals"]
    assert sorted(calls["process"]) == ["rank 0", "rank 1", "rank 2"]
    assert set(calls["row"]) == {"HPU 0"}
    assert calls["bytes"].sum() == result.handlers["capitals"].bytes
    # Columns missing in a slice are empty, not 0.
    assert str(slices["bytes"].dtype) == "Int64"
    assert slices[slices["row"] == "CPU"]["bytes"].isna().all()
    with pytest.raises(spinkit.SpinkitError, match=r"^nothing\.pftrace: there is no such file$"):
        spinkit.Trace("nothing.pftrace")
    Path("text").write_text("no timeline")
    with pytest.raises(spinkit.SpinkitError, match=r"^text: no timeline of spinrun"):
        spinkit.Trace("text").slices()


def test_queries_go_to_perfetto(traced: tuple[spinkit.Result, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in answers, because the real tool is a download outside the packages."""
    _, file = traced
    asked: list[object] = []

    class Processor:
        def __init__(self, trace: str, config: str | None) -> None:
            asked.extend((trace, config))

        def __enter__(self) -> Processor:
            return self

        def __exit__(self, *_: object) -> None:
            asked.append("closed")

        def query(self, sql: str) -> Any:
            if sql == "wrong":
                raise RuntimeError("near wrong: syntax error")
            return types.SimpleNamespace(as_pandas_dataframe=lambda: pandas.DataFrame({"sql": [sql]}))

    module = types.SimpleNamespace(TraceProcessor=Processor, TraceProcessorConfig=lambda bin_path: bin_path)
    monkeypatch.setitem(sys.modules, "perfetto", types.SimpleNamespace(trace_processor=module))
    monkeypatch.setitem(sys.modules, "perfetto.trace_processor", module)
    Path("trace_processor_shell").write_text("#!/bin/sh\n")
    Path("trace_processor_shell").chmod(0o755)
    monkeypatch.setenv("PATH", str(Path.cwd()))
    trace = spinkit.Trace(file)
    assert trace.query("select 1").to_dict("list") == {"sql": ["select 1"]}
    assert asked == [str(file), str(Path.cwd() / "trace_processor_shell"), "closed"]
    with pytest.raises(spinkit.SpinkitError, match="trace processor: RuntimeError: near wrong: syntax error"):
        trace.query("wrong")
    monkeypatch.setitem(sys.modules, "perfetto", None)
    with pytest.raises(spinkit.SpinkitError, match="queries need Perfetto's package: pip install perfetto pandas"):
        trace.query("select 1")


def test_data_frames_need_pandas(traced: tuple[spinkit.Result, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(spinkit.SpinkitError, match=r"pip install 'spinkit\[frames\]'"):
        spinkit.Trace(traced[1]).slices()


def test_the_code_of_the_page_runs(capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copy(HELLO, "hello.c")
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (CHECKOUT / "docs" / "python.md").read_text(), re.DOTALL | re.MULTILINE
    )
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert len(blocks) == 4
    assert len(names["frame"]) == 2 * 2 * 2 * 2
    # A failed run raises, and names the run and its place.
    with pytest.raises(spinkit.SpinkitError, match=r"on my-card, accelerator\.hpus = 65, [^:]*: [^:]*: [^:]*: .*is 65"):
        spinkit.sweep("./my-experiment", {"accelerator.hpus": [4, 65], "dma.L_ns": 50}, quick=True, retries=0)
    with pytest.raises(spinkit.SpinkitError, match="unknown key, did you mean"):
        spinkit.sweep("./my-experiment", {"accelerator.hpsu": 4})
    assert "spinrun: error: --set accelerator.hpus=0: must be at least 1, is 0" in capfd.readouterr().out


def test_the_cells_of_the_notebook_run_and_its_text_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.append(plt.gcf()))
    notebook = json.loads((CHECKOUT / "examples" / "sweep.ipynb").read_text())
    names: dict[str, Any] = {}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec(compile("".join(cell["source"]), f"sweep.ipynb, cell {number}", "exec"), names)
    assert [len(axes.lines) for axes in drawn[0].axes] == [3, 3]
    plt.close("all")
    times = names["frame"].set_index(["series", "accelerator.hpus", "bytes", "dma.L_ns"])["answer_ps"]
    # "Its curve is twice as steep": six latencies against three.
    assert times["host", 1, 8, 500] - times["host", 1, 8, 50] == 6 * 450_000
    assert times["card", 1, 8, 500] - times["card", 1, 8, 50] == 3 * 450_000
    # "The number of HPUs matters only for many packets."
    assert times["card", 1, 4096, 50] == times["card", 4, 4096, 50]
    assert times["card", 1, 65536, 500] > times["card", 4, 65536, 500]
