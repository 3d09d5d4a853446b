# SPDX-License-Identifier: Apache-2.0
"""Experiments: their definition, their claims, the ways to run them, and their outcome.

- `_sensitivity`: claims that depend on assumed parameters.
- `_demonstrations`: runs that show why a model differs from a paper.
- `_pool`: threads that run all jobs of a command.
- `_reader`: reading and checking of `experiment.toml`.
- `_runners`: `Runner`, the ways to run a job: program, schedule, PsPIN handlers, script, peer.
- `_workshop`: settings and shared state of all runs.
- `_programs`: compilation of programs.
- `_handlers`: compilation of handlers for PsPIN's own interface.
- `_model`: experiments on the machines of another model.
- `_jobs`: the runs of an experiment, with settings and arguments.
- `_cache`: cache of finished runs.
- `_includes`: files on which a compiled program depends.
- `_peers`: programs that others published, and their numbers.
- `_outcome`: points, runs and results.
- `_definition`: the tables of `experiment.toml`.
- `_claims`: claims of papers, and their tests.
"""
