# SPDX-License-Identifier: Apache-2.0
"""Sweeps: experiments and PsPIN units over grids of parameters.

- `_frames`: `spinkit.sweep`, a sweep as a data frame.
- `_sweep_plot`: figures of the table of `spinkit sweep`.
- `_sweep`: the command `spinkit sweep`.
- `_dask`: Dask clusters that run the tasks of a sweep.
- `_grid`: points of a grid, as options name them.
- `_pspin_sweep`: the command `spinkit pspin sweep`.
"""
