# SPDX-License-Identifier: Apache-2.0
"""Sweeps as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common._data_frames import pandas_module
from spinkit.common._values import Value
from spinkit.sweeps._grid import of_mapping

if TYPE_CHECKING:
    import pandas as pd


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
    from spinkit.experiments import _reader
    from spinkit.experiments._workshop import Settings
    from spinkit.simulate._toolchain import toolchain
    from spinkit.sweeps import _sweep

    pandas = pandas_module()
    machines = _paths.command("spinkit-machines")
    settings = Settings(_paths.home(), toolchain(), machines, Path(out), quick, jobs=jobs, retries=retries)
    read = _reader.load(_paths.home(), str(experiment))
    outcome = _sweep.run_anywhere(read, of_mapping(set), settings, columns, scheduler, cluster_options)
    if outcome.failures or outcome.wrong:
        raise SpinkitError(_sweep.problems(outcome))
    return pandas.DataFrame(outcome.rows)
