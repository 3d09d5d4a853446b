# SPDX-License-Identifier: Apache-2.0
"""Programs of experiments: each is compiled once for all experiments that share its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._output import write_atomically
from spinkit.common._processes import Execute
from spinkit.experiments._definition import Experiment
from spinkit.simulate._toolchain import Toolchain


@dataclass(frozen=True)
class Compiled:
    """A compiled program."""

    file: Path
    digest: str


class Programs:
    """Compiles programs into the folder `programs` of the results, each beside a digest of its inputs."""

    def __init__(self, home: Path, out: Path, tools: Toolchain, fresh: bool, execute: Execute) -> None:
        self._home = home
        self._folder = out.resolve() / "programs"
        self._tools = tools
        self._execute = execute
        self._lock = Lock()
        self._locks: dict[Path, Lock] = {}
        self._made: set[Path] = set()
        self._fresh = fresh

    @cached_property
    def _ingredients(self) -> str:
        """Digest of the compiler and of all files that a program may include."""
        sdk = [file for file in (self._home / "sdk").rglob("*") if file.is_file() and "build" not in file.parts]
        sources = [file for file in (self._home / "experiments").rglob("*.[ch]") if file.is_file()]
        return digest([self._tools.spincc, *sorted(sdk), *sorted(sources)], [str(self._tools.library)])

    def get(self, experiment: Experiment) -> Compiled:
        """Return the program of an experiment."""
        sources = [str((experiment.folder / source).resolve()) for source in experiment.program.sources]
        compiler = _paths.mpicc() if experiment.program.mpi else self._tools.spincc
        program = self._folder / f"{Path(sources[0]).stem}-{digest([], [str(compiler), *sources])[:12]}"
        with self._lock:
            wanted = digest(_beside(sources), [self._ingredients])
            lock = self._locks.setdefault(program, Lock())
        with lock:
            note = program.with_name(f"{program.name}.key")
            if program not in self._made and (self._fresh or not _is_current(note, wanted) or not program.is_file()):
                self._folder.mkdir(exist_ok=True)
                note.unlink(missing_ok=True)
                libraries = ["-lm"] if experiment.program.mpi else []
                command = [str(compiler), "-O3", *sources, "-o", str(program), *libraries]
                status, _, errors = self._execute(command, None)
                if status != 0:
                    raise SpinkitError(f"{experiment.name} does not compile:\n{errors.strip()}")
                write_atomically(note, wanted.encode())
            self._made.add(program)
        # Runs of MPI programs use the libfabric provider of the SDK, which is no part of the program.
        return Compiled(program, digest([program], [wanted] if experiment.program.mpi else []))


def _beside(sources: Sequence[str]) -> list[Path]:
    """Return the C and C++ files in the folders of sources, which they may include."""
    folders = dict.fromkeys(Path(source).parent for source in sources)
    kinds = {".c", ".h", ".cc", ".hh", ".cpp", ".hpp"}
    return sorted(file for folder in folders for file in folder.iterdir() if file.suffix in kinds and file.is_file())


def _is_current(note: Path, wanted: str) -> bool:
    """Return whether a program's file of its inputs has the digest `wanted`."""
    return note.is_file() and note.read_text(encoding="utf-8") == wanted
