# SPDX-License-Identifier: Apache-2.0
"""Programs of experiments: each is compiled once for all experiments that share its sources."""

from __future__ import annotations

import os
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
from spinkit.experiments._includes import Includes, files_below
from spinkit.simulate._tasks import tools_digest
from spinkit.simulate._toolchain import Toolchain, compilers


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
        self._includes = Includes()
        self._covered = (home / "sdk" / "include", home / "sdk" / "device")

    @cached_property
    def _common(self) -> str:
        """Digest of everything that spincc may use for any program: compilers, common headers, the device runtime."""
        sdk = self._home / "sdk"
        files = files_below(*self._covered)
        names = [str(file.relative_to(sdk)) for file in files]
        return digest([self._tools.spincc, *files], [str(self._tools.library), *compilers(), *names])

    def _inputs(self, sources: Sequence[str], mpi: bool, compiler: Path) -> str:
        """Return a digest of the inputs of a program."""
        sdk = self._home / "sdk"
        files = self._includes.closure(map(Path, sources), [sdk / "include", sdk], self._covered)
        if files is None:  # a macro names a file: any of these may be it
            beside = [file for folder in {Path(source).parent for source in sources} for file in folder.iterdir()]
            files = [*files_below(sdk, self._home / "experiments"), *sorted(file for file in beside if file.is_file())]
        mpicc = _mpi_files(compiler) if mpi else []
        start = Path(sources[0]).parent
        return digest([*files, *mpicc], [self._common, *(os.path.relpath(file, start) for file in files)])

    @cached_property
    def _mpi(self) -> str:
        """Digest of everything besides a program that its runs under an MPI use."""
        sdk = self._home / "sdk"
        # spinrun compiles the provider with spincc; its headers are among these.
        provider = files_below(sdk / "ofi", sdk / "include", sdk / "device")
        tools = tools_digest(self._tools.spinrun, self._tools.library)
        names = [str(file.relative_to(sdk)) for file in provider]
        return digest([self._tools.spincc, *provider, *_mpi_files(_paths.mpicc())], [tools, *compilers(), *names])

    def get(self, experiment: Experiment) -> Compiled:
        """Return the program of an experiment."""
        sources = [str((experiment.folder / source).resolve()) for source in experiment.program.sources]
        compiler = _paths.mpicc() if experiment.program.mpi else self._tools.spincc
        kinds = ["--hpu", ",".join(experiment.kinds)] if experiment.kinds and not experiment.program.mpi else []
        flags = (*experiment.program.flags, *experiment.flags)
        name = digest([], [str(compiler), *sources, *kinds, *flags])[:12]
        program = self._folder / f"{Path(sources[0]).stem}-{name}"
        with self._lock:
            wanted = self._inputs(sources, experiment.program.mpi, compiler)
            lock = self._locks.setdefault(program, Lock())
        with lock:
            note = program.with_name(f"{program.name}.key")
            if program not in self._made and (self._fresh or not _is_current(note, wanted) or not program.is_file()):
                self._folder.mkdir(exist_ok=True)
                note.unlink(missing_ok=True)
                libraries = ["-lm"] if experiment.program.mpi else []
                command = [str(compiler), "-O3", *kinds, *flags, *sources, "-o", str(program), *libraries]
                status, _, errors = self._execute(command, None)
                if status != 0:
                    raise SpinkitError(f"{experiment.name} does not compile:\n{errors.strip()}")
                write_atomically(note, wanted.encode())
            self._made.add(program)
        return Compiled(program, digest([program], [self._mpi] if experiment.program.mpi else []))


def _mpi_files(compiler: Path) -> list[Path]:
    """Return the files of an MPI on which its programs and their runs depend."""
    prefix = compiler.resolve().parent.parent
    places = (compiler, prefix / "include" / "mpi.h", *sorted((prefix / "lib").glob("libmpi.so*")))
    return [file for file in places if file.is_file()]


def _is_current(note: Path, wanted: str) -> bool:
    """Return whether a program's file of its inputs has the digest `wanted`."""
    return note.is_file() and note.read_text(encoding="utf-8") == wanted
