# SPDX-License-Identifier: Apache-2.0
"""`spinkit new`: makes a folder with a working experiment, or a working program with handlers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args

from spinkit._errors import SpinkitError
from spinkit.common._output import write_atomically

Kind = Literal["experiment", "handler"]
"""Kinds of new folders: each is a folder of templates, in whose names and texts NAME stands for the new name."""

KINDS: tuple[Kind, ...] = get_args(Kind)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def make(kind: Kind, folder: Path, vscode: bool = False) -> list[Path]:
    """Make the folder, whose last part is the name, with `vscode` also for Visual Studio Code; return its files."""
    name = folder.name
    if not _NAME.fullmatch(name):
        raise SpinkitError(f"{folder}: a name has letters, digits, - and _, and begins with a letter")
    if folder.exists():
        raise SpinkitError(f"{folder} exists already")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise SpinkitError(f"cannot make {folder}: {error.strerror}") from None
    from importlib import resources  # imported here because every command knows the kinds

    made = []
    templates = resources.files("spinkit") / "templates" / "new"
    places = [(templates / kind, folder)] + ([(templates / f"vscode-{kind}", folder / ".vscode")] if vscode else [])
    for source, target in places:
        target.mkdir(exist_ok=True)
        for template in sorted(source.iterdir(), key=lambda one: one.name):
            made.append(target / template.name.replace("NAME", name))
            write_atomically(made[-1], template.read_text(encoding="utf-8").replace("NAME", name).encode())
    return made
