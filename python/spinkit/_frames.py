"""Data frames: timelines of runs, and sweeps."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinkit import _paths, _perfetto
from spinkit._errors import SpinkitError
from spinkit._grid import Value, of_mapping

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
        frame = _pandas().DataFrame(
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
            frame[name] = _pandas().array(values, dtype="Int64")
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
        _pandas()
        found = next(filter(None, map(shutil.which, _PROCESSORS)), None)
        config = trace_processor.TraceProcessorConfig(bin_path=found)
        try:
            with trace_processor.TraceProcessor(trace=str(self.file), config=config) as processor:
                return processor.query(sql).as_pandas_dataframe()
        except Exception as error:
            # Its own errors, and whatever a download may raise.
            raise SpinkitError(f"{self.file}: Perfetto's trace processor: {type(error).__name__}: {error}") from None


def sweep(
    experiment: str | Path,
    set: Mapping[str, Value | Sequence[Value]],  # noqa: A002, as the option is called
    *,
    quick: bool = False,
    jobs: int | None = None,
    scheduler: str | None = None,
    cluster_options: Mapping[str, str] | None = None,
    retries: int = 1,
    columns: Sequence[str] = (),
    out: str | Path = "out",
) -> pd.DataFrame:
    """Run an experiment at all combinations of parameters, and return a row for each point, as `spinkit sweep` does.

    Args:
        experiment: The name of an experiment, or the folder of one.
        set: For each parameter its values: `{"accelerator.hpus": [1, 2, 4], "dma.L_ns": 50}`.
        quick: Run only the quick_values of the experiment.
        jobs: Number of runs at the same time, or of a cluster's workers; by default the number of processors.
        scheduler: A Dask cluster: an address, or local, slurm or kubernetes.
        cluster_options: Arguments for the cluster that is started.
        retries: How often a run that failed is made again.
        columns: Places in the report of a run that become columns, such as `cards.1.dma_bytes`.
        out: The folder of the results; finished runs there are not repeated.

    Raises:
        SpinkitError: Runs failed or gave wrong data; those that ended well are not repeated next time.

    """
    from spinkit import _experiment, _sweep
    from spinkit._pool import Settings
    from spinkit._run import toolchain

    pandas = _pandas()
    machines = _paths.command("spinkit-machines")
    settings = Settings(_paths.home(), toolchain(), machines, Path(out), quick, jobs=jobs, retries=retries)
    read = _experiment.load(_paths.home(), str(experiment))
    outcome = _sweep.run_anywhere(read, of_mapping(set), settings, columns, scheduler, cluster_options)
    if outcome.failures or outcome.wrong:
        raise SpinkitError(_sweep.problems(outcome))
    return pandas.DataFrame(outcome.rows)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise SpinkitError(f"{error}: data frames need more packages: pip install 'spinkit[frames]'") from None
    return pandas
