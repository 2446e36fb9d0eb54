"""`futureworld world`: look into a recorded world, and check one."""

from typing import Annotated

import typer

from futureworld.cli.options import DayOption, JsonOption

app = typer.Typer(no_args_is_help=True, help="Check a recorded world, or show what was knowable on a day.")


@app.command()
def check(
    folder: Annotated[str, typer.Argument(help="almanac, or a world's folder.")], as_json: JsonOption = False
) -> None:
    """List what is wrong in a world's folder, by file and row; exit code 1 when there is something."""
    from futureworld.cli.console import print_json
    from futureworld.clock import SystemClock
    from futureworld.records import as_json as plain
    from futureworld.worlds.check import check as check_world
    from futureworld.worlds.open import world_folder

    with world_folder(folder) as found:
        problems = check_world(found, SystemClock().now())
    if as_json:
        print_json(plain(list(problems)))
    else:
        for problem in problems:
            print(problem)
        print(f"{folder}: " + (f"{len(problems)} problems" if problems else "nothing wrong"))
    raise typer.Exit(1 if problems else 0)


@app.command()
def show(folder: Annotated[str, typer.Argument(help="almanac, or a world's folder.")], day: DayOption) -> None:
    """What could be known when the questions of a day are asked."""
    from futureworld.clock import Schedule
    from futureworld.worlds.open import open_world
    from futureworld.worlds.show import show as show_world

    print(show_world(open_world(folder), day.date(), Schedule()))
