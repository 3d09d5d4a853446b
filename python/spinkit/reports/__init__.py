# SPDX-License-Identifier: Apache-2.0
"""Reports: result files, figures, tables and pages.

- `_reproduce`: the command `spinkit reproduce`.
- `_scoreboard`: the figures, tables and numbers of the papers in `docs/results/index.md`.
- `_validation`: the numbers in `docs/validation.md`.
- `_results`: `results.json`.
- `_timelines`: the trace diagrams of the sPIN paper's appendix.
- `_handler_costs`: the page of the handler library.
- `_run_page`: the page of one run (`spinrun --report`).
- `_view`: one page that shows timelines in a browser (`spinkit view`).
- `_report`: pages and tables of experiments.
- `_narrative`: tests of the paper's sentences about trace diagrams.
- `_gantt`: pictures of trace diagrams.
- `_timeline`: the slices of a measured interval.
- `_profile_view`: profiles on the terminal.
- `_plot`: pictures of curves and bars.
- `_curves`: data and styles of pictures.
"""
