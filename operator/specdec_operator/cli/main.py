"""Entry of the command line: one module for each subcommand, imported when it is run.

A subcommand's module has `command`, a click command that returns the exit code.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Final

import click

from specdec_operator.cli.errors import CommandLineError
from specdec_operator.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNUSABLE: Final = 2
INTERRUPTED: Final = 130
_SUBCOMMANDS: Final[Mapping[str, str]] = {
    "render": "Print everything that the operator would apply.",
    "validate": "Find everything that is wrong with manifests.",
}


class _Subcommands(click.Group):
    """Subcommands whose modules are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _SUBCOMMANDS:
            return None
        module = importlib.import_module(f"specdec_operator.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = difflib.get_close_matches(args[0], _SUBCOMMANDS, n=1)
        if args[0] not in _SUBCOMMANDS and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _SUBCOMMANDS[name]) for name in self.list_commands(ctx)])


def _version(context: click.Context, _option: click.Parameter, asked: bool) -> None:  # noqa: FBT001  click's signature
    if asked:
        click.echo(f"specdec {metadata.version('specdec-operator')}")
        context.exit()


@click.group(
    cls=_Subcommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="specdec COMMAND --help tells more of a command, and what its exit codes mean.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def specdec() -> None:
    """Speculative decoding on Kubernetes, without a cluster: what the operator would say and do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments after the program's name; the process's own if left out.

    Returns:
        The exit code, as the subcommand documents it; 2 where the command can't be carried out.
    """
    try:
        code = specdec.main(argv, prog_name="specdec", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except CommandLineError as error:
        say(*str(error).splitlines(), error=True)
        return UNUSABLE
    except BrokenPipeError:
        raise
    except OSError as error:
        click.echo(f"the output can't be written: {error.strerror}", err=True)
        _drop_output()
        return UNUSABLE
    return int(code or 0)


def _drop_output() -> None:
    """Send what is still buffered nowhere: the interpreter would try to write it at its end, and fail with a 120."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
