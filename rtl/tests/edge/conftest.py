# SPDX-License-Identifier: Apache-2.0
"""Finds the modules of the tests of units."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "unit"))
