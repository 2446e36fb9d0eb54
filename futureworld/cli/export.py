"""`futureworld export`: trajectories joined with outcomes and rewards, as Parquet."""

from pathlib import Path
from typing import Annotated

import typer

from futureworld.cli.options import JsonOption, RunOption


def export(
    run: RunOption,
    to: Annotated[Path, typer.Option("--to", help="Folder for the Parquet files.")],
    as_json: JsonOption = False,
) -> None:
    """Write every trajectory with its question, outcome and reward; `datasets` loads the result."""
    from futureworld.cli.console import print_summary
    from futureworld.cycle.run import open_run, read_config
    from futureworld.evaluation.scores import reward
    from futureworld.store.export import export as write

    config = read_config(run)
    with open_run(run, config, holder="export") as opened:
        paid = config.reward
        summary = write(
            opened.store, to, lambda trajectory, y: reward(trajectory.probability, y, paid.missing, paid.score)
        )
    print_summary("export", summary, as_json)
