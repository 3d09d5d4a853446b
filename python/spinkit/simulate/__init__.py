# SPDX-License-Identifier: Apache-2.0
"""Single simulations: programs, machines, profiles and timelines.

- `_simulation`: `spinkit.run`, with its typed result.
- `_trace`: `spinkit.Trace`, a timeline as a data frame.
- `_perfetto`: reader of the timelines that `spinrun --trace` writes.
- `_profile`: profiles of handlers by `spinrun --profile`.
- `_mpi_trace`: traces of MPI programs, the command `spinkit trace`.
- `_otf2`: OTF2 traces as files of `spinkit trace`.
- `_machines`: machines with all parameters.
- `_tasks`: commands of runs, executed here or sent to a worker of a Dask cluster.
- `_toolchain`: the commands that compile and simulate.
"""
