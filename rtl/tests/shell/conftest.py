# SPDX-License-Identifier: Apache-2.0
"""Import paths of the shell's tests: its parts, and those of the units' tests."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit")]
