# SPDX-License-Identifier: Apache-2.0
"""Foundations that know nothing of simulations: files, processes, values and terminal output.

- `_progress`: progress of long commands, as a bar or as lines.
- `_terminal`: tables, notes and prose on a terminal.
- `_prose`: code spans in prose.
- `_user_cache`: the cache folder of the user, with its checks.
- `_kept`: files that are made again only when their inputs changed.
- `_output`: atomic writing of files.
- `_toml`: strict reading of TOML.
- `_json`: strict reading of JSON.
- `_digest`: digests of files and options.
- `_processes`: child processes that end together.
- `_data_frames`: the optional package pandas.
- `_values`: values of parameters.
- `_version`: version of the package.
"""
