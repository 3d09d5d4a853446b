# SPDX-License-Identifier: Apache-2.0
"""Where the tests of the shell find its parts, and those of the units' tests."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit")]
