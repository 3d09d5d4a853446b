# SPDX-License-Identifier: Apache-2.0
"""Properties of units that hold in every reachable state. tests/mutations has the defects that violate them."""

from pathlib import Path

import pytest
from proofs import proofs, prove


@pytest.mark.parametrize("name", proofs())
def test_proof(tmp_path: Path, name: str) -> None:
    if log := prove(name, tmp_path):
        pytest.fail(log, pytrace=False)
