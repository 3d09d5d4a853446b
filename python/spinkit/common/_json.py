# SPDX-License-Identifier: Apache-2.0
"""Strict JSON."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def parse_json(text: str) -> Any:
    """Parse strict JSON: NaN and Infinity, which Python accepts, are errors, and all errors are `ValueError`."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("arrays or objects are nested too deeply") from None
