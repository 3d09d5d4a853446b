# SPDX-License-Identifier: Apache-2.0
"""spinkit: simulated sPIN cards, experiments, sweeps and timelines.

```python
import spinkit

result = spinkit.run("hello.c", ranks=4, set={"accelerator.hpus": 8}, trace="hello.pftrace")
print(result.end_us, result.handlers["capitals"].cycles, result.cards[0].dma_bytes)
print(spinkit.Trace("hello.pftrace").slices())
print(spinkit.sweep("./my-experiment", {"dma.L_ns": [50, 100, 250]}))
```

Schedules have a separate module, `spinkit.goal`. These two are the public interface; the packages below are private.
They are layers, listed top-down: a package imports only from those that follow it.

- `_manuals`, `cli`: the command `spinkit`, and its description for man pages.
- `_new`, `_doctor`: templates of new folders; checks of the installation.
- `goal`: GOAL schedules.
- `suites`: conformance tests, MPI test suites, benchmarks, peers.
- `sweeps`: experiments over grids of parameters, here or on a Dask cluster.
- `reports`: pages, figures, tables and result files.
- `experiments`: experiments as data, their claims, and the pool that runs them.
- `simulate`: single simulations, their machines, profiles and timelines.
- `common`: files, processes, values, terminal output.
- `_paths`, `_errors`: locations of files and commands; the error that users see.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from spinkit._errors import SpinkitError

if TYPE_CHECKING:
    from spinkit.common._version import __version__
    from spinkit.simulate._simulation import Card, Handler, Result, run
    from spinkit.simulate._trace import Trace
    from spinkit.sweeps._frames import sweep

__all__ = ["Card", "Handler", "Result", "SpinkitError", "Trace", "__version__", "run", "sweep"]

_PLACES = {
    "__version__": "common._version",
    **dict.fromkeys(("Card", "Handler", "Result", "run"), "simulate._simulation"),
    "Trace": "simulate._trace",
    "sweep": "sweeps._frames",
}
"""Modules of the public names, which are imported on first use: every command starts with this package."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
