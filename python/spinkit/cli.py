"""The `spinkit` command."""

from __future__ import annotations

import sys

import click

from spinkit import __version__, _doctor, _machines, _paths
from spinkit._errors import SpinkitError


class _Group(click.Group):
    """Ends with status 1 and one message when something failed; click itself ends usage errors with 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SpinkitError as error:
            click.echo(f"spinkit: {error}", err=True)
            ctx.exit(1)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spinkit")
def main() -> None:
    """Run sPIN experiments, plot them and compare them with the papers."""


@main.command()
def machines() -> None:
    """List the machines that come with spinkit."""
    found = _machines.load_all(_paths.home())
    width = max((len(machine.name) for machine in found), default=0)
    for machine in found:
        click.echo(f"{machine.name:{width}}  {machine.description}")


@main.command()
def doctor() -> None:
    """Check that compilers and commands are there."""
    checks = _doctor.examine()
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(f"{'ok     ' if check.ok else 'missing'}  {check.name:{width}}  {check.detail}")
    if not all(check.ok for check in checks):
        sys.exit(1)
