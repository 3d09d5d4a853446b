# SPDX-License-Identifier: Apache-2.0
"""PEP 517 backend: collects the files that a sPIN program needs for the wheel, then runs maturin.

A wheel puts them under `<prefix>/share/spinkit` and `<prefix>/lib`, where spincc, spinrun and `spinkit` look
(crates/tools/command/src/sdk.rs and `spinkit._paths`); headers lie under `<prefix>/include` and the file of
`pkg-config portals4` under `<prefix>/lib/pkgconfig`, so that Portals programs build as with any other
implementation.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import maturin

# maturin provides the rest of the interface unchanged.
from maturin import get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "target" / "spinkit.data"
FOLDERS = ("sdk", "machines", "experiments", "peers", "examples", "tests/portals")
# The hardware, from which `spinkit pspin run --engine rtl` makes a simulator.
HARDWARE = ("rtl/src", "rtl/core", "rtl/observe", "rtl/tests/harness")

# Name recorded in programs (crates/guest/libportals/build.rs), and the file. `make install` makes links with shorter
# names; a wheel has no links.
SONAME = "libportals.so.4"
LIBRARY = "libportals.so.4.3.0"

# Script of an editable wheel. pip writes the path of its Python into the first line.
COMMAND = """#!python
from spinkit.cli import main

if __name__ == "__main__":  # the workers of a local cluster import this file too
    main()
"""

Settings = dict[str, Any] | None


def _libraries() -> dict[str, Path]:
    """Build the libraries of the workspace, and return their files by name.

    All in one call, as `make build` makes them: a crate alone would have its dependencies built with other features.
    """
    select = ("--workspace", "--exclude", "spinkit-benches", "--exclude", "spinkit-fuzzing")
    command = ["cargo", "build", "--release", "--locked", "--message-format=json-render-diagnostics", *select]
    messages = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    artifacts = (json.loads(line) for line in messages.splitlines())
    files = (Path(file) for artifact in artifacts for file in artifact.get("filenames", ()))
    return {file.name: file for file in files if file.suffix in (".so", ".a")}


def _link_portals(archive: Path, output: Path) -> None:
    """Link libportals.so with versioned symbols, which cargo cannot do."""
    versions = ROOT / "crates" / "guest" / "libportals" / "portals.map"
    options = ["-shared", "-o", str(output), f"-Wl,-soname,{SONAME}", f"-Wl,--version-script={versions}"]
    whole = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
    trim = ["-Wl,--gc-sections", "-Wl,--strip-debug", "-Wl,-z,defs"]
    system = ["-lgcc_s", "-lpthread", "-ldl", "-lm"]
    subprocess.run([os.environ.get("CC", "cc"), *options, *whole, *trim, *system], check=True)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Make the source distribution: the files from which pip builds the same wheel."""
    # maturin insists on the folder, whose files belong to the wheel alone.
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    return str(maturin.build_sdist(sdist_directory, config_settings))


def lay_out(prefix: Path) -> None:
    """Write everything that an installation has besides commands and Python modules below `prefix`."""
    for folder in (*FOLDERS, *HARDWARE):
        target = prefix / "share" / "spinkit" / folder
        shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "rtl" / "requirements.txt", prefix / "share" / "spinkit" / "rtl")
    shutil.copytree(ROOT / "sdk" / "include", prefix / "include")
    libraries = prefix / "lib"
    (libraries / "pkgconfig").mkdir(parents=True)
    built = _libraries()
    for name in ("libsimclock.so", "libsimpmix.so", "libpmi.so", "libpspin.so"):
        shutil.copy2(built[name], libraries)
    _link_portals(built["libportals.a"], libraries / LIBRARY)
    for name in (SONAME, "libportals.so"):
        shutil.copy2(libraries / LIBRARY, libraries / name)
    # Relative, so that the prefix may be moved.
    places = {"PREFIX": "${pcfiledir}/../..", "LIBDIR": "${prefix}/lib", "INCLUDEDIR": "${prefix}/include"}
    description = (ROOT / "sdk" / "portals4.pc.in").read_text()
    for name, place in places.items():
        description = description.replace(f"@{name}@", place)
    (libraries / "pkgconfig" / "portals4.pc").write_text(description)


def _empty_data() -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    (DATA / "data").mkdir(parents=True)


def _stage() -> None:
    """Write the files of an installation to maturin's data folder."""
    _empty_data()
    lay_out(DATA / "data")


def build_wheel(directory: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build the wheel with everything in it."""
    _stage()
    return finish(Path(directory), str(maturin.build_wheel(directory, settings, metadata)))


def finish(directory: Path, name: str) -> str:
    """Add the entry point of `spinkit` to a wheel, and name the oldest C library that it needs; return its new name.

    maturin writes no entry points beside executables. A script would not start from a folder with a space in its name.
    """
    old = directory / name
    with zipfile.ZipFile(old) as archive:
        files = [(entry, archive.read(entry)) for entry in archive.infolist()]
    minor = max((glibc(content) for _, content in files), default=0)
    tag = f"manylinux_2_{minor}_x86_64"
    info = next(entry.filename.partition("/")[0] for entry, _ in files if entry.filename.endswith(".dist-info/WHEEL"))
    points = zipfile.ZipInfo(f"{info}/entry_points.txt")
    points.external_attr = 0o100644 << 16
    files.append((points, b"[console_scripts]\nspinkit = spinkit.cli:main\n"))
    files = [
        (entry, content.replace(b"linux_x86_64", tag.encode()) if entry.filename == f"{info}/WHEEL" else content)
        for entry, content in files
        if not entry.filename.endswith("/RECORD")
    ]
    lines = [
        f"{entry.filename},sha256={urlsafe_b64encode(sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n"
        for entry, content in files
    ]
    record = zipfile.ZipInfo(f"{info}/RECORD")
    record.external_attr = 0o100644 << 16
    new = directory / name.replace("linux_x86_64", tag)
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in [*files, (record, "".join([*lines, f"{record.filename},,\n"]).encode())]:
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    if new != old:
        old.unlink()
    return new.name


def glibc(content: bytes) -> int:
    """Return the minor version of the C library that an executable or library needs: 34 for GLIBC_2.34."""
    if not content.startswith(b"\x7fELF"):
        return 0
    return max((int(version) for version in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", content)), default=0)


def prepare_metadata_for_build_wheel(directory: str, settings: Settings = None) -> str:
    """Write the wheel's metadata."""
    _empty_data()
    return str(maturin.prepare_metadata_for_build_wheel(directory, settings))


def build_editable(directory: str, settings: Settings = None, metadata: str | None = None) -> str:  # noqa: ARG001
    """Write a wheel that refers to this checkout, where cargo and `make build` write all other files."""
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
