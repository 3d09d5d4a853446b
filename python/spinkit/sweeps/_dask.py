# SPDX-License-Identifier: Apache-2.0
"""Runs commands on a Dask cluster: a running one, or one started for a sweep.

Workers need spinkit, in the same build as here, and no files of ours: each run gets its program and its machine. A run
whose worker dies is given to another. Whoever may speak to a scheduler or a worker of Dask runs programs as its user,
so a cluster that is started here speaks only TLS, with credentials of the sweep unless others are named.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import Any

from spinkit._errors import EndingError, SpinkitError
from spinkit.common._processes import Processes
from spinkit.common._terminal import note
from spinkit.simulate import _tasks
from spinkit.simulate._tasks import Done, Task

NAMES = ("local", "slurm", "kubernetes")
"""Values of `--scheduler` besides an address."""

_CONNECT_S = 10

_NEEDS = {"dask_kubernetes.operator": "kubernetes"}
"""The extra of spinkit that installs a module, if it is not `cluster`."""


@dataclass(frozen=True)
class Credentials:
    """Files in PEM format by which the parts of a cluster prove to each other that they belong together."""

    authority: Path
    certificate: Path
    key: Path


class Local:
    """Runs commands as workers do, in folders with the files that they are sent, but as processes of this sweep.

    It has no ports, so that no other user can reach it.
    """

    def __init__(self, jobs: int, tools: str) -> None:
        self.workers = jobs
        self._tools = tools
        self._free = Semaphore(jobs)
        self._processes = Processes()

    def perform(self, task: Task) -> Done:
        """Run a command as soon as fewer than `jobs` are running, and wait for its end."""
        with self._free:
            return _tasks.perform(_tasks.ship(task, self._tools), self._processes.execute)

    def cancel(self) -> None:
        """End all that is running."""
        self._processes.interrupt()


class DaskCluster:
    """A connection to the scheduler of a Dask cluster."""

    def __init__(self, client: Any, tools: str) -> None:
        self._client = client
        self._tools = tools
        self._closed = False

    @property
    def workers(self) -> int:
        """Present number of workers."""
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def perform(self, task: Task) -> Done:
        """Run a command on some worker, and wait for its end."""
        if self._closed:
            raise EndingError("interrupted")
        # Not pure: the same command that failed is really run again.
        future = self._client.submit(_tasks.perform, _tasks.ship(task, self._tools), pure=False)
        try:
            done: Done = future.result()
        except SpinkitError:
            raise
        except Exception as error:
            if self._closed:
                raise EndingError("interrupted") from None
            # Workers and their connections raise many classes of errors; the message names the class.
            raise SpinkitError(f"on the cluster: {type(error).__name__}: {error}") from None
        finally:
            future.release()
        return done

    def cancel(self) -> None:
        """End the connection; threads that wait for a result get an error."""
        self._closed = True
        self._client.close(timeout=1)


@contextmanager
def connect(
    scheduler: str, jobs: int, options: Mapping[str, str], tools: str, credentials: Credentials | None = None
) -> Iterator[DaskCluster | Local]:
    """Connect to a scheduler, or start one with `jobs` workers; close what was started.

    `options` are those of the kind of cluster: arguments of `dask_jobqueue.SLURMCluster` or of
    `dask_kubernetes.operator.KubeCluster`. Without `credentials` those of Dask's own configuration are used.
    """
    if options and scheduler not in ("slurm", "kubernetes"):
        what = "--scheduler local" if scheduler == "local" else f"a scheduler that runs already, {scheduler}"
        raise SpinkitError(f"--cluster-option has no meaning for {what}")
    if scheduler == "local":
        if credentials is not None:
            raise SpinkitError(
                "--tls-ca, --tls-cert and --tls-key have no meaning for --scheduler local: it has no ports"
            )
        yield Local(jobs, tools)
        return
    with ExitStack() as opened:
        distributed = _module("distributed")
        security = _security(credentials)
        address: Any = scheduler
        if scheduler == "slurm":
            security = _required(security) or _temporary()
            # The jobs start in this folder; Dask quotes no blanks in its path.
            folder = Path(opened.enter_context(TemporaryDirectory(prefix=".spinkit-tls-", dir=Path.cwd()))).name
            address = opened.enter_context(_slurm(jobs, options, security, folder))
        elif scheduler == "kubernetes":
            address = opened.enter_context(_kubernetes(jobs, options))
        elif scheduler.startswith("tcp://"):
            note(
                f"{scheduler} has no protection: whoever reaches it can run programs as the user of its workers; "
                "docs/cluster.md shows a cluster that speaks tls://"
            )
        refused = None
        try:
            made = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False, security=security)
            client = opened.enter_context(made)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            refused = str(error)
        if refused is not None:
            # The refused client is part of a cycle. If it were collected in the thread that starts the loop of another
            # client, it would wait for a lock that this other client holds while it waits for its loop.
            gc.collect()
            raise SpinkitError(f"{scheduler}: no Dask scheduler answers: {refused}")
        yield DaskCluster(client, tools)


def _security(credentials: Credentials | None) -> Any:
    """Return the `Security` of these credentials or of Dask's configuration; None if neither names any."""
    distributed = _module("distributed")
    if credentials is None:
        configured = distributed.Security()
        return configured if configured.tls_ca_file else None
    authority, certificate, key = (
        str(file.resolve()) for file in (credentials.authority, credentials.certificate, credentials.key)
    )
    files = {"tls_ca_file": authority}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_cert": certificate, f"tls_{role}_key": key}
    made = distributed.Security(require_encryption=True, **files)
    try:
        made.get_connection_args("client")
    except OSError as error:
        raise SpinkitError(f"--tls-ca {authority}, --tls-cert {certificate}, --tls-key {key}: {error}") from None
    return made


def _required(security: Any) -> Any:
    """Return the same `Security`, by which nothing is accepted that is not encrypted."""
    if security is not None:
        security.require_encryption = True
    return security


def _temporary() -> Any:
    """Make credentials that only this process and its workers have."""
    _module("cryptography")
    return _module("distributed").Security.temporary()


def _slurm(jobs: int, options: Mapping[str, str], security: Any, folder: str) -> Any:
    """Start a scheduler here and workers of a thread each as jobs, which end with the block that it is for.

    The keys of the workers are files in `folder` that only the user can read. Dashboards, which ask for no credentials,
    are off unless Dask's configuration has options of the scheduler.
    """
    queue, dask = _module("dask_jobqueue"), _module("dask")
    # Defaults for options that neither the user nor Dask's configuration sets.
    asked: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "4 GB", **_of_configuration("slurm")}
    asked |= _numbers(options)
    if dask.config.get("jobqueue.slurm.shared-temp-directory", None) is None:
        asked.setdefault("shared_temp_directory", folder)
    off: dict[str, Any] = {}
    if not dask.config.get("jobqueue.slurm.scheduler-options", None):
        off = {"distributed.scheduler.http.routes": []}
        asked["scheduler_options"] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
        more = dask.config.get("jobqueue.slurm.worker-extra-args", None) or []
        asked["worker_extra_args"] = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0", *more]
    try:
        with dask.config.set(off):
            cluster = queue.SLURMCluster(security=security, **asked)
            cluster.scale(jobs=jobs)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise SpinkitError(f"--scheduler slurm: {error}") from None
    return cluster


def _kubernetes(jobs: int, options: Mapping[str, str]) -> Any:
    operator = _module("dask_kubernetes.operator")
    asked = {"name": "spinkit-sweep", **_of_configuration("kubernetes"), **_numbers(options)}
    try:
        return operator.KubeCluster(n_workers=jobs, **asked)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise SpinkitError(f"--scheduler kubernetes: {error}") from None


def _of_configuration(kind: str) -> dict[str, Any]:
    """Return the options in Dask's configuration that replace spinkit's defaults."""
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
