"""spinkit: simulated sPIN cards, experiments, sweeps and timelines.

```python
import spinkit

result = spinkit.run("hello.c", ranks=4, set={"accelerator.hpus": 8}, trace="hello.pftrace")
print(result.end_us, result.handlers["capitals"].cycles, result.cards[0].dma_bytes)
print(spinkit.Trace("hello.pftrace").slices())
print(spinkit.sweep("./my-experiment", {"dma.L_ns": [50, 100, 250]}))
```

Schedules have a module of their own, `spinkit.goal`.
"""

from importlib.metadata import version

__version__ = version("spinkit")

from spinkit._errors import SpinkitError
from spinkit._frames import Trace, sweep
from spinkit._simulation import Card, Handler, Result, run

__all__ = ["Card", "Handler", "Result", "SpinkitError", "Trace", "__version__", "run", "sweep"]
