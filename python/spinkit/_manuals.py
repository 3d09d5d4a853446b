# SPDX-License-Identifier: Apache-2.0
"""Describes the commands of `spinkit` for `spinkit-manuals`, which writes man pages and completions.

`python -m spinkit._manuals` prints the description as JSON.
"""

from __future__ import annotations

import json
from typing import Any

import click

from spinkit.cli import main, sweep


def describe(name: str, command: click.Command) -> dict[str, Any]:
    """Describe a command and those below it."""
    with click.Context(command, info_name=name) as context:
        options = [one for one in command.get_params(context) if isinstance(one, click.Option) and not one.hidden]
        arguments = [one for one in command.params if isinstance(one, click.Argument)]
        inner = dict(command.commands) if isinstance(command, click.Group) else {}
        if name == "pspin":
            inner["sweep"] = sweep
        return {
            "name": name,
            "about": (command.help or "").partition("\f")[0].strip(),
            "options": [
                {
                    "flags": [*one.opts, *one.secondary_opts],
                    "value": None if one.is_flag or one.count else one.make_metavar(context),
                    "help": one.help or "",
                }
                for one in options
            ],
            "arguments": [one.human_readable_name.upper() for one in arguments],
            "commands": [describe(*one) for one in sorted(inner.items()) if not one[1].hidden],
        }


if __name__ == "__main__":
    print(json.dumps(describe("spinkit", main)))
