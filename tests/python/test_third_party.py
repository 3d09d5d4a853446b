# SPDX-License-Identifier: Apache-2.0
"""Third-party software: its licences are listed, and installed files are pinned by hashes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CHECKOUT

LISTS = ["requirements.txt", "requirements-docs.txt", "requirements-mpi.txt", "rtl/requirements.txt"]


def test_the_page_of_licences_is_up_to_date() -> None:
    script = CHECKOUT / "python" / "build_backend" / "third_party.py"
    page = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout
    assert page == (CHECKOUT / "THIRD-PARTY.md").read_text(encoding="utf-8"), "make licences"
    assert "| rustix | " in page
    assert "Permission is hereby granted, free of charge" in page


@pytest.mark.parametrize("name", LISTS)
def test_every_package_is_pinned_with_its_hashes(name: str) -> None:
    """Without hashes for one package, pip would install all without."""
    text = re.sub(r"\\\n", "", (CHECKOUT / name).read_text(encoding="utf-8"))
    packages = [line for line in text.splitlines() if not line.startswith("#")]
    assert packages
    for package in packages:
        assert re.fullmatch(r"[a-z0-9.-]+==\S+ +(--hash=sha256:[0-9a-f]{64} *)+", package.strip()), package
    asked = (CHECKOUT / name).with_suffix(".in").read_text(encoding="utf-8").splitlines()
    pinned = {package.partition("==")[0] for package in packages}
    for line in asked:
        if line and not line.startswith("#"):
            assert re.split(r"[=\[]", line)[0].lower().replace("_", "-") in pinned, line


def test_the_wheel_has_the_licences() -> None:
    text = Path(CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'license-files = ["LICENSE", "THIRD-PARTY.md"]' in text
