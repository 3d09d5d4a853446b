# SPDX-License-Identifier: Apache-2.0
"""Inputs of kept runs and programs: a change of one that matters repeats them, and no other change does."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit.common._processes import Processes
from spinkit.experiments import _pool, _reader
from spinkit.experiments._handlers import Builder, Handlers
from spinkit.experiments._includes import Includes, files_below, imported_from_package
from spinkit.experiments._jobs import jobs
from spinkit.experiments._runners import prepare
from spinkit.experiments._workshop import Settings, Workshop
from spinkit.simulate._tasks import tools_digest
from spinkit.simulate._toolchain import Toolchain

from .conftest import CHECKOUT, FAKES, TOOLS, Program

SDK = CHECKOUT / "sdk"
PROGRAMS = {
    tuple((one.folder / source).resolve() for source in one.program.sources)
    for one in (_reader.load(CHECKOUT, name) for name in _reader.available(CHECKOUT))
    if one.program.sources and not one.program.mpi
}


@pytest.mark.parametrize("sources", sorted(PROGRAMS), ids=lambda sources: sources[0].stem)
def test_all_files_that_the_compiler_reads_are_found(sources: tuple[Path, ...]) -> None:
    command = ["cc", "-MM", "-I", SDK / "include", "-I", SDK, *sources]
    rules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace("\\\n", " ")
    read = {Path(word).resolve() for word in rules.split() if not word.endswith(":")}
    found = Includes().closure(sources, [SDK / "include", SDK], [SDK / "include", SDK / "device"])
    assert found is not None
    assert set(sources) < read <= set(found)


def closure(tmp_path: Path, *folders: str) -> list[str] | None:
    found = Includes().closure([tmp_path / "a.c"], [tmp_path / folder for folder in folders])
    return found and sorted(str(file.relative_to(tmp_path)) for file in found)


def test_a_file_that_may_be_included_counts(tmp_path: Path) -> None:
    (tmp_path / "sdk").mkdir()
    lines = [
        "#if 0",
        '#  include "b.h"',
        "#endif",
        "# include <d.h> /* c */",
        "#inc\\",
        'lude "e.h"',
        "#include <none.h>",
    ]
    (tmp_path / "a.c").write_text("\n".join(lines))
    (tmp_path / "b.h").write_text('#include "c.h"\n#include "a.c"\n')
    for name in ("c.h", "e.h", "other.h", "sdk/d.h", "sdk/other.h"):
        (tmp_path / name).touch()
    known = ["a.c", "b.h", "c.h", "e.h", "sdk/d.h"]
    assert closure(tmp_path, "sdk") == known
    # A new file may be found before the present one, or decide what a source asks for.
    (tmp_path / "sdk" / "c.h").touch()
    (tmp_path / "c.h").write_text('#if __has_include("f.h")\n#endif\n')
    assert closure(tmp_path, "sdk") == sorted([*known, "sdk/c.h"])
    (tmp_path / "f.h").touch()
    assert closure(tmp_path, "sdk") == sorted([*known, "sdk/c.h", "f.h"])


@pytest.mark.parametrize(
    "line", ["#include NAME", "#include_next MACRO(x)", '__asm__(".incbin \\"data\\"");', "#embed X"]
)
def test_names_that_are_computed_are_unknown(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.c").write_text('#include "b.h"\n')
    (tmp_path / "b.h").write_text(f"{line}\n")
    assert closure(tmp_path) is None
    covered = Includes().closure([tmp_path / "a.c"], [], [tmp_path])
    assert covered == [tmp_path / "a.c", tmp_path / "b.h"]


def settings(home: Path, **changes: Path) -> Settings:
    return Settings(
        home, replace(TOOLS, **changes), _paths.command("spinkit-machines"), home.parent / "out", quick=True
    )


def key(home: Path, **changes: Path) -> list[list[str]]:
    """Return the inputs of each run of the experiment; compile what it needs."""
    experiment = _reader.load(home, "ping-pong")
    with _pool._opened(settings(home, **changes)) as (workshop, _):
        runners = prepare(experiment, workshop)
        return [runners[job.series[0].name].inputs(job) for job in jobs(experiment, True, workshop.describe)]


def compiled(home: Path) -> int:
    """Return the time at which the only program was compiled."""
    key(home)
    [made] = [file for file in (home.parent / "out" / "programs").iterdir() if file.suffix != ".key"]
    return made.stat().st_mtime_ns


def test_a_program_depends_on_its_headers_and_on_no_other_file(home: Path, program: Program) -> None:
    program(note="#include <handlers/ours/ours.h>")
    for name in ("ours/ours.h", "ours/inner.h", "ours/README.md", "other/other.h"):
        file = home / "sdk" / "handlers" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (home / "sdk" / "handlers" / "ours" / "ours.h").write_text('#include "inner.h"\n')
    (home / "sdk" / "device").mkdir()
    beside = home / "experiments" / "sc17" / "ping-pong"
    first = compiled(home)
    for name in (
        "docs/page.md",
        "rtl/unit.sv",
        "tests/test.py",
        "sdk/handlers/ours/README.md",
        "sdk/handlers/ours/new.h",
        "sdk/handlers/other/other.h",
        "sdk/ofi/fi/ep.c",
        "experiments/sc17/other/other.c",
        str(beside / "another.c"),
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("changed\n")
        assert compiled(home) == first, name
    for name in (
        "sdk/handlers/ours/inner.h",
        "sdk/handlers/ours/ours.h",
        "sdk/include/portals4.h",
        "sdk/device/runtime.c",
        "sdk/handlers/inner.h",
        str(beside / "ping-pong.c"),
    ):
        if name.endswith("/ours.h"):
            (home / name).write_text('#include "inner.h"\n#include "../inner.h"\n')
        elif name.endswith(".c") and "ping-pong" in name:
            program(note="#include <handlers/ours/ours.h> and more")
        else:
            (home / name).write_text("changed\n")
        again = compiled(home)
        assert again > first, name
        first = again


def test_a_macro_makes_a_program_depend_on_all_of_them(home: Path, program: Program) -> None:
    program(note="#include HEADER")
    (home / "sdk" / "handlers" / "other").mkdir(parents=True)
    first = compiled(home)
    (home / "sdk" / "handlers" / "other" / "other.h").write_text("changed\n")
    second = compiled(home)
    (home / "experiments" / "sc17" / "ping-pong" / "beside.h").write_text("changed\n")
    assert first < second < compiled(home)


def test_a_run_depends_on_what_spinrun_starts(home: Path, program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    shutil.copy(FAKES / "spinrun", folder)
    others = ("spinkit-goal", "spinkit-pspin", "libsimpmix.so", "libpmi.so", "libpspin.so")
    for name in ("libportals.so", "libsimclock.so", *others):
        (folder / name).touch()
    own = {name: folder / f"spinkit-{name}" for name in ("goal", "pspin")}

    def now() -> list[list[str]]:
        return key(home, spinrun=folder / "spinrun", library=folder / "libportals.so", **own)

    first = now()
    for name in others:
        with (folder / name).open("a") as file:
            file.write("# changed\n")
        assert now() == first, name
    for name in ("spinrun", "libportals.so", "libsimclock.so"):
        with (folder / name).open("a") as file:
            file.write("# changed\n")
        again = now()
        assert all(one != other for one, other in zip(again, first, strict=True)), name
        first = again
    before = tools_digest(folder / "spinrun", folder / "libportals.so")
    (folder / "libsimpmix.so").write_text("of an MPI")
    assert tools_digest(folder / "spinrun", folder / "libportals.so") != before


def test_a_run_depends_on_the_files_that_its_arguments_name(home: Path, program: Program, tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("one")
    file = home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    text = file.read_text()
    assert 'args = ["' in text
    file.write_text(text.replace('args = ["', f'args = ["{trace}", "', 1))
    first = key(home)
    assert key(home) == first
    trace.write_text("two")
    assert all(one != other for one, other in zip(key(home), first, strict=True))


def test_handlers_for_pspin_depend_on_their_files(tmp_path: Path) -> None:
    shutil.copytree(SDK / "handlers" / "pspin", tmp_path / "sdk" / "handlers" / "pspin")
    shutil.copytree(SDK / "pspin", tmp_path / "sdk" / "pspin")
    pspin, library = tmp_path / "spinkit-pspin", tmp_path / "libpspin.so"
    pspin.touch()
    library.touch()
    handlers = tmp_path / "sdk" / "handlers" / "pspin"
    source = handlers / "instructions" / "handlers" / "instructions.c"
    flags = ("-DX=1", "-I", str(handlers / "common"))

    def digest(one: Handlers) -> str:
        return Builder(pspin, library, tmp_path / "sdk", tmp_path / "out", Processes().execute).digest([one])

    of_folder, of_source = Handlers(handlers / "filtering", ()), Handlers(source, flags)
    for name, folder_changes, source_changes in (
        ("sdk/handlers/pspin/filtering/README.md", False, False),
        ("sdk/handlers/pspin/histogram/histogram.h", False, False),
        ("sdk/handlers/pspin/instructions/README.md", False, False),
        ("sdk/handlers/pspin/filtering/filtering.h", True, False),
        ("sdk/handlers/pspin/filtering/driver/driver.c", True, False),
        ("sdk/handlers/pspin/generic_driver/gdriver.c", True, False),
        ("libpspin.so", True, False),
        ("sdk/handlers/pspin/instructions/handlers/instructions.c", False, True),
        ("sdk/handlers/pspin/common/card.h", True, True),
        ("sdk/pspin/rt/runtime/include/new.h", True, True),
        ("spinkit-pspin", True, True),
    ):
        before = digest(of_folder), digest(of_source)
        with (tmp_path / name).open("a") as file:
            file.write("/* changed */\n")
        after = digest(of_folder), digest(of_source)
        assert [one != other for one, other in zip(after, before, strict=True)] == [folder_changes, source_changes], (
            name
        )
    assert digest(of_source) != digest(Handlers(source, ("-DX=2", *flags[1:])))


SCRIPT = """
[program]

[[series]]
name = "formula"
label = "formula"
mode = "formula"
script = "formula.py"
args = ["{values}"]
"""


def test_a_script_depends_on_the_files_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    head = 'title = "t"\nmachines = ["sc17-int"]\n'
    rest = '[sweep]\naxis = "x"\nlabel = "x"\nvalues = [1]\n[measure]\nkey = "n"\nlabel = "n"\n[run]\ntimeout_s = 5\n'
    (folder / "experiment.toml").write_text(head + SCRIPT + rest)
    (folder / "formula.py").write_text("print(1)\n")
    (folder / "data.json").write_text("{}")
    (folder / "README.md").touch()
    library = tmp_path / "libportals.so"
    library.touch()
    tools = Toolchain(*(FAKES / name for name in ("spincc", "spinrun", "spinkit-goal", "spinkit-pspin")), library)

    def inputs() -> list[str]:
        experiment = _reader.read(folder / "experiment.toml")
        workshop = Workshop(Settings(CHECKOUT, tools, _paths.command("spinkit-machines"), tmp_path), tmp_path)
        runner = prepare(experiment, workshop)["formula"]
        return runner.inputs(jobs(experiment, False, workshop.describe)[0])

    first = inputs()
    (folder / "README.md").write_text("changed")
    library.write_text("changed")
    assert inputs() == first
    (folder / "data.json").write_text("[]")
    second = inputs()
    assert second != first
    # A script that uses this package may start the simulator.
    (folder / "formula.py").write_text("from spinkit import _paths\n")
    third = inputs()
    assert third != second
    library.write_text("changed again")
    assert inputs() != third


@pytest.mark.parametrize(
    ("script", "modules"),
    [
        ("import json\n", []),
        ("def:\n", []),
        ("from spinkit import _paths\n", ["_errors.py", "_paths.py"]),
        ("import beside\n", ["_errors.py", "_paths.py"]),
        ("from beside import x\n", ["_errors.py", "_paths.py"]),
        ("def f():\n    from spinkit.common._json import parse_json\n", ["common/_json.py"]),
        ("import spinkit\n", None),
        ("from spinkit import run\n", None),
    ],
)
def test_a_script_depends_on_the_modules_that_it_imports(
    tmp_path: Path, script: str, modules: list[str] | None
) -> None:
    package = CHECKOUT / "python" / "spinkit"
    (tmp_path / "beside.py").write_text("from spinkit import _paths\n")
    (tmp_path / "script.py").write_text(script)
    wanted = [package / name for name in modules] if modules is not None else sorted(package.rglob("*.py"))
    assert imported_from_package(tmp_path / "script.py") == wanted


def test_build_results_and_pages_are_no_inputs(tmp_path: Path) -> None:
    for name in ("b.c", "a/x.h", "a/build/y.o", "a/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [os.path.relpath(file, tmp_path) for file in files_below(tmp_path)] == ["a/x.h", "b.c"]
