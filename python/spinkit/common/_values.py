# SPDX-License-Identifier: Apache-2.0
"""Values of parameters, as options of commands and as Python values."""

from __future__ import annotations

import re

Value = bool | int | float | str


def written(value: Value) -> str:
    """Write a value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed(text: str) -> Value:
    """Return a value as a number or truth value, if it is one."""
    if text in ("true", "false"):
        return text == "true"
    plain = text.replace("_", "")
    if re.fullmatch(r"[+-]?\d+", plain):
        return int(plain)
    return float(plain) if re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", plain) else text
