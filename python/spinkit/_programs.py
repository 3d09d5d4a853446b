"""The programs of experiments: each is compiled once for all that have its sources, again when something changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

from spinkit import _paths, _pspin
from spinkit._cache import digest
from spinkit._errors import SpinkitError
from spinkit._experiment import Experiment
from spinkit._output import write_atomically
from spinkit._run import Toolchain


@dataclass(frozen=True)
class Program:
    """A compiled program, the folder of the schedules, or what builds handlers for PsPIN's interface."""

    file: Path
    digest: str
    builder: _pspin.Builder | None = None


class Programs:
    """Compiles programs into the folder `programs` of the results, each with a file that says of what it is made."""

    def __init__(self, home: Path, out: Path, tools: Toolchain, fresh: bool, execute: _pspin.Execute) -> None:
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
        """A digest of the compiler and of all that a program may include."""
        sdk = [file for file in (self._home / "sdk").rglob("*") if file.is_file() and "build" not in file.parts]
        sources = [file for file in (self._home / "experiments").rglob("*.[ch]") if file.is_file()]
        return digest([self._tools.spincc, *sorted(sdk), *sorted(sources)], [str(self._tools.library)])

    def get(self, experiment: Experiment) -> Program:
        """Return the program of an experiment."""
        sources = [str((experiment.folder / source).resolve()) for source in experiment.program.sources]
        compiler = _paths.mpicc() if experiment.program.mpi else self._tools.spincc
        program = self._folder / f"{Path(sources[0]).stem}-{digest([], [str(compiler), *sources])[:12]}"
        with self._lock:
            wanted = digest(_beside(sources), [self._ingredients])
            lock = self._locks.setdefault(program, Lock())
        with lock:
            note = program.with_name(f"{program.name}.key")
            if program not in self._made and (self._fresh or not _says(note, wanted) or not program.is_file()):
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
        return Program(program, digest([program], [wanted] if experiment.program.mpi else []))


def _beside(sources: Sequence[str]) -> list[Path]:
    """Return the C and C++ files in the folders of sources, which they may include."""
    folders = dict.fromkeys(Path(source).parent for source in sources)
    kinds = {".c", ".h", ".cc", ".hh", ".cpp", ".hpp"}
    return sorted(file for folder in folders for file in folder.iterdir() if file.suffix in kinds and file.is_file())


def _says(note: Path, wanted: str) -> bool:
    return note.is_file() and note.read_text(encoding="utf-8") == wanted
