"""PEP 517 backend: maturin, after the files a sPIN program needs are laid out for the wheel.

A wheel puts them under `<prefix>/share/spinkit` and `<prefix>/lib/spinkit`, where spincc, spinrun and `spinkit` look
(crates/cli/src/sdk.rs and `spinkit._paths`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import maturin

# maturin takes the rest of the interface as it is.
from maturin import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "target" / "spinkit.data"
FOLDERS = ("sdk", "machines", "experiments", "tests/portals")

# A script and no entry point, which maturin would not put beside binaries. pip names its Python in the first line.
COMMAND = """#!python
from spinkit.cli import main

main()
"""

Settings = dict[str, Any] | None


def _cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _libraries() -> list[Path]:
    """Build and return the workspace's C libraries (libportals.so and those it needs)."""
    workspace = json.loads(_cargo("metadata", "--no-deps", "--locked", "--format-version=1"))
    packages = [p["name"] for p in workspace["packages"] if any("cdylib" in t["kind"] for t in p["targets"])]
    selected = [argument for name in packages for argument in ("-p", name)]
    messages = _cargo("build", "--release", "--locked", "--message-format=json-render-diagnostics", *selected)
    artifacts = [json.loads(line) for line in messages.splitlines()]
    return [
        Path(file)
        for artifact in artifacts
        if artifact["reason"] == "compiler-artifact" and "cdylib" in artifact["target"]["kind"]
        for file in artifact["filenames"]
        if file.endswith(".so")
    ]


def _empty_data() -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    (DATA / "data").mkdir(parents=True)


def _stage() -> None:
    """Lay out what goes below the prefix in maturin's data folder."""
    _empty_data()
    prefix = DATA / "data"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, prefix / "share" / "spinkit" / folder)
    command = DATA / "scripts" / "spinkit"
    command.parent.mkdir()
    command.write_text(COMMAND)
    command.chmod(0o755)
    libraries = prefix / "lib" / "spinkit"
    libraries.mkdir(parents=True)
    for library in _libraries():
        shutil.copy2(library, libraries)


def build_wheel(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build the wheel with everything in it."""
    _stage()
    return str(maturin.build_wheel(directory, settings, metadata))


def prepare_metadata_for_build_wheel(directory: str, settings: Settings = None) -> str:
    """Write the wheel's metadata."""
    _empty_data()
    return str(maturin.prepare_metadata_for_build_wheel(directory, settings))


def build_editable(directory: str, settings: Settings = None, metadata: str | None = None) -> str:  # noqa: ARG001
    """Write a wheel that points to this checkout, where cargo and `make build` put all the rest."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    info = f"spinkit-{version}.dist-info"
    files = {
        "spinkit.pth": f"{ROOT / 'python'}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: spinkit\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: spinkit_build\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"spinkit-{version}.data/scripts/spinkit": COMMAND,
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    wheel = f"spinkit-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory, wheel), "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, text)
    return wheel
