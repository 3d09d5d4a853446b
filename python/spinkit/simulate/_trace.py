# SPDX-License-Identifier: Apache-2.0
"""Timelines of runs as data frames."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from spinkit._errors import SpinkitError
from spinkit.common._data_frames import pandas_module
from spinkit.simulate import _perfetto

if TYPE_CHECKING:
    import pandas as pd

_PROCESSORS = ("trace_processor_shell", "trace_processor")
"""The commands of Perfetto that answer queries."""


class Trace:
    """A timeline that `spinrun --trace` or `run(…, trace=…)` has written."""

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file)
        if not self.file.is_file():
            raise SpinkitError(f"{file}: there is no such file")

    def slices(self) -> pd.DataFrame:
        """Return everything that lasts for a time, in the order of starts.

        Columns are `process` (a rank, its card), `row` (its CPU, an HPU, DMA, a port), `name`, `start_ps`, `end_ps` and
        `duration_ps` in exact picoseconds, and one for each argument of slices, such as `bytes`; slices without an
        argument have none there.
        """
        found = _perfetto.read(self.file)
        frame = pandas_module().DataFrame(
            {
                "process": [one.process for one in found],
                "row": [one.row for one in found],
                "name": [one.name for one in found],
                "start_ps": [one.start for one in found],
                "end_ps": [one.end for one in found],
                "duration_ps": [one.end - one.start for one in found],
            }
        )
        for name in dict.fromkeys(name for one in found for name in one.arguments):
            values = [one.arguments.get(name) for one in found]
            frame[name] = pandas_module().array(values, dtype="Int64")
        return frame

    def query(self, sql: str) -> pd.DataFrame:
        """Ask Perfetto's trace processor, in SQL (https://perfetto.dev/docs/analysis/perfetto-sql-syntax).

        It needs the package `perfetto`, and its `trace_processor_shell` on PATH, or else access to the network: the
        package then downloads it. Times are in nanoseconds there; the arguments `start_ps` and `dur_ps` are exact.
        """
        try:
            from perfetto import trace_processor
        except ImportError as error:
            raise SpinkitError(f"{error}: queries need Perfetto's package: pip install perfetto pandas") from None
        pandas_module()
        found = next(filter(None, map(shutil.which, _PROCESSORS)), None)
        config = trace_processor.TraceProcessorConfig(bin_path=found)
        try:
            with trace_processor.TraceProcessor(trace=str(self.file), config=config) as processor:
                return processor.query(sql).as_pandas_dataframe()
        except Exception as error:
            # Its own errors, and whatever a download may raise.
            raise SpinkitError(f"{self.file}: Perfetto's trace processor: {type(error).__name__}: {error}") from None
