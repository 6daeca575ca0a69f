"""``steptp``: the group of all commands. Commands are loaded when they are used."""

import importlib
import os
import sys
from typing import Any, Final

import click

from steptp_dagster.cli.output import DEFECT, Failure

#: Command -> module with the function of the same name, in the order of ``steptp --help``.
COMMANDS: Final[dict[str, str]] = {
    "build": "build",
    "stats": "warehouse",
    "sql": "warehouse",
    "show": "show",
    "lineage": "lineage",
    "replay": "replay",
    "audit": "audit",
    "leakage": "leakage",
    "export": "warehouse",
    "report": "reporting",
    "diff": "difference",
    "sources": "catalogue",
    "strategies": "catalogue",
    "translate": "catalogue",
    "parse": "programs",
    "apply": "programs",
    "verify": "verification",
    "shrink": "verification",
    "zoo": "verification",
    "check-strategy": "checking",
    "reword": "rewording",
}
TRACEBACK_VARIABLE: Final = "STEPTP_TRACEBACK"


class Commands(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"steptp_dagster.cli.{COMMANDS[cmd_name]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is no click command")
        return command

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run; an exception that no command foresaw becomes a message and exit code 70."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE):
                raise
            what = f"{type(error).__name__}: {error}"
            hint = f"{TRACEBACK_VARIABLE}=1 shows where"
            raise Failure(f"internal error, please report it: {what} ({hint})", DEFECT) from error


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="steptp-dagster", prog_name="steptp")
def steptp() -> None:
    """Step-level training data for tensor-program optimization.

    Results go to standard output, everything else to standard error; every command takes --json.
    FILE may be - for standard input.
    """


def main() -> None:
    """Entry point of the console script."""
    try:
        steptp.main(prog_name="steptp")
    except BrokenPipeError:
        # The reader (head, less) has what it wanted; leave without Python's own complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
