"""Runs commands on a Dask cluster: one that is there already, or one that is started for a sweep.

Workers need spinkit, in the same build as here, and no files of ours: each run gets its program and its machine. A run
whose worker dies is given to another.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from spinkit import _worker
from spinkit._errors import EndingError, SpinkitError
from spinkit._worker import Done, Task

NAMES = ("local", "slurm", "kubernetes")
"""What `--scheduler` takes besides an address."""

_CONNECT_S = 10

_NEEDS = {"distributed": "cluster", "dask_jobqueue": "cluster", "dask_kubernetes.operator": "kubernetes"}
"""The extra of spinkit that installs a module."""


class Cluster:
    """A connection to a scheduler."""

    def __init__(self, client: Any, tools: str) -> None:
        self._client = client
        self._tools = tools
        self._closed = False

    @property
    def workers(self) -> int:
        """The number of workers that are there now."""
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def perform(self, task: Task) -> Done:
        """Run a command on some worker, and wait for its end."""
        if self._closed:
            raise EndingError("interrupted")
        # Not pure: the same command that failed is really run again.
        future = self._client.submit(_worker.perform, _worker.ship(task, self._tools), pure=False)
        try:
            done: Done = future.result()
        except SpinkitError:
            raise
        except Exception as error:
            if self._closed:
                raise EndingError("interrupted") from None
            # Whatever a worker or the connection to it may raise; the name of its class tells what it is.
            raise SpinkitError(f"on the cluster: {type(error).__name__}: {error}") from None
        finally:
            future.release()
        return done

    def cancel(self) -> None:
        """End the connection; those who wait for a result get an error."""
        self._closed = True
        self._client.close(timeout=1)


@contextmanager
def connect(scheduler: str, jobs: int, options: Mapping[str, str], tools: str) -> Iterator[Cluster]:
    """Connect to a scheduler, or start one with `jobs` workers; close what was started.

    `options` are those of the kind of cluster: arguments of `dask_jobqueue.SLURMCluster` or of
    `dask_kubernetes.operator.KubeCluster`.
    """
    with ExitStack() as opened:
        distributed = _module("distributed")
        if scheduler in NAMES:
            address = opened.enter_context(_started(scheduler, jobs, options))
        else:
            if options:
                raise SpinkitError(f"--cluster-option has no meaning for a scheduler that runs already, {scheduler}")
            address = scheduler
        try:
            client = opened.enter_context(distributed.Client(address, timeout=_CONNECT_S, set_as_default=False))
        except (OSError, ValueError) as error:
            raise SpinkitError(f"{scheduler}: no Dask scheduler answers: {error}") from None
        yield Cluster(client, tools)


def _started(kind: str, jobs: int, options: Mapping[str, str]) -> Any:
    """Start a cluster of workers with a thread each, which end with the block that it is for."""
    try:
        if kind == "local":
            if options:
                raise SpinkitError("--cluster-option has no meaning for --scheduler local")
            distributed = _module("distributed")
            return distributed.LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        if kind == "slurm":
            queue = _module("dask_jobqueue")
            # What neither the user nor Dask's own configuration says.
            asked = {"cores": 1, "processes": 1, "memory": "4 GB", **_of_configuration(kind), **_numbers(options)}
            cluster = queue.SLURMCluster(**asked)
            cluster.scale(jobs=jobs)
            return cluster
        operator = _module("dask_kubernetes.operator")
        asked = {"name": "spinkit-sweep", **_of_configuration(kind), **_numbers(options)}
        return operator.KubeCluster(n_workers=jobs, **asked)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise SpinkitError(f"--scheduler {kind}: {error}") from None


def _of_configuration(kind: str) -> dict[str, Any]:
    """Return what Dask's configuration says of the defaults that spinkit has itself."""
    dask = _module("dask")
    place, names = (
        ("jobqueue.slurm", ("cores", "processes", "memory")) if kind == "slurm" else ("kubernetes", ("name",))
    )
    found = {name: dask.config.get(f"{place}.{name}", None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _numbers(options: Mapping[str, str]) -> dict[str, Any]:
    return {name: int(value) if value.isdecimal() else value for name, value in options.items()}


def _module(name: str) -> Any:
    """Import a module that spinkit needs only for clusters."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra = _NEEDS.get(name, "cluster")
        raise SpinkitError(f"{error}: clusters need more packages: pip install 'spinkit[{extra}]'") from None
