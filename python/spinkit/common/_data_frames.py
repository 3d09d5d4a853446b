# SPDX-License-Identifier: Apache-2.0
"""The optional package for data frames."""

from __future__ import annotations

from typing import Any

from spinkit._errors import SpinkitError


def pandas_module() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise SpinkitError(f"{error}: data frames need more packages: pip install 'spinkit[frames]'") from None
    return pandas
