"""The command `futureworld`: parse arguments, call the cycle, print.

Heavy imports stay inside the commands, so that `--help` answers at once.
"""

import sys

import typer

from futureworld.cli import export, keys, replay, show, stages, world
from futureworld.errors import FutureWorldError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Ask about tomorrow, let a policy search and answer, learn the outcome a day later, update, repeat.",
    epilog="Start with `futureworld replay`: eight days of a recorded world, then the evaluation of every checkpoint.",
)
app.command()(replay.replay)
for command in (
    stages.collect,
    stages.ask,
    stages.predict,
    stages.resolve,
    stages.update,
    stages.evaluate,
    stages.day,
    show.show,
    export.export,
    keys.config,
):
    app.command()(command)
app.add_typer(world.app, name="world")


def main() -> None:
    """Run the command line; an expected failure is a sentence on standard error and exit code 1."""
    try:
        app()
    except FutureWorldError as error:
        print(f"futureworld: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("futureworld: stopped; run the same command again to go on", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        if error.errno is None or error.filename is None:
            raise
        print(f"futureworld: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(1)
