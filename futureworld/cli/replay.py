"""`futureworld replay`: the main job."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from futureworld.cli.options import (
    ConfigOption,
    ControlOption,
    DaysOption,
    JsonOption,
    PolicyOption,
    SeedOption,
    SetOption,
    StartOption,
    WorldOption,
    configuration,
)

if TYPE_CHECKING:
    from futureworld.config import Config


def replay(
    run: Annotated[Path, typer.Option("--run", help="The run's folder.")] = Path("runs/replay"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in this folder.")] = False,
    days: DaysOption = None,
    start: StartOption = None,
    world: WorldOption = None,
    policy: PolicyOption = None,
    seed: SeedOption = None,
    control: ControlOption = None,
    config: ConfigOption = None,
    override: SetOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and print the resolved configuration, and stop.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay days of a recorded world: ask, predict, resolve, update; then evaluate every checkpoint.

    The run's folder keeps everything. Stopped or killed, the same command with --resume goes on
    where it was: nothing asked twice, no forecast lost or doubled, no update made twice.
    """
    from futureworld.config import check_training, to_yaml

    chosen = configuration(
        config, override, days=days, start=start, world=world, policy=policy, seed=seed, control=control
    )
    check_training(chosen)
    if dry_run:
        check_verl(chosen)
        print(to_yaml(chosen), end="")
        return
    refuse_old_run(run, resume)

    from futureworld.cli.console import RichReporter, print_json
    from futureworld.cli.table import closing_table
    from futureworld.clock import FakeClock
    from futureworld.cycle.heldout import held_out_days
    from futureworld.cycle.plots import draw
    from futureworld.cycle.replay import replay as replay_run
    from futureworld.cycle.run import open_run
    from futureworld.worlds.open import open_world

    held_out_days(chosen, open_world(chosen.world))  # what could not be evaluated is refused before it begins
    clock = FakeClock(chosen.schedule.schedule().asked_at(chosen.start))
    reporter = RichReporter()
    with open_run(run, chosen, clock=clock, reporter=reporter, holder="replay") as opened:
        replayed = replay_run(opened, clock)
        plots = draw(opened, replayed)
    if as_json:
        print_json(replayed.summary)
        return
    print(closing_table(replayed))
    print(f"\nsummary  {run / 'summary.json'}\nmetrics  {run / 'metrics.jsonl'}")
    for plot in plots:
        print(f"plot     {plot}")


def check_verl(config: "Config") -> None:
    """Refuse with ConfigError what verl would refuse of its own keys; where there are none, nothing is loaded."""
    from futureworld.policies import plugin

    if config.verl:
        plugin("engines").check(config)


def refuse_old_run(run: Path, resume: bool) -> None:
    """A folder that holds a run is only used again when asked for."""
    from futureworld.cycle.run import CONFIG_FILE
    from futureworld.errors import RunError

    if (run / CONFIG_FILE).exists() and not resume:
        raise RunError(f"{run} already holds a run; add --resume to go on with it, or choose another folder with --run")
