"""Each stage as its own command: repeatable, in any process, after a crash, or late."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from futureworld.cli.options import (
    ConfigOption,
    DayOption,
    DaysOption,
    JsonOption,
    PolicyOption,
    RunOption,
    SeedOption,
    SetOption,
    StartOption,
    WorldOption,
    as_day,
    configuration,
)

if TYPE_CHECKING:
    from futureworld.config import Config
    from futureworld.cycle.day import Workers
    from futureworld.cycle.run import Run

Summary = dict[str, Any]


def collect(
    run: RunOption,
    day: DayOption,
    config: ConfigOption = None,
    override: SetOption = None,
    world: WorldOption = None,
    policy: PolicyOption = None,
    start: StartOption = None,
    days: DaysOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count what could be known when the day is asked. Makes the run's folder on first use."""
    from futureworld.cycle.ask import collect as stage

    named = {"world": world, "policy": policy, "start": start, "days": days, "seed": seed}
    chosen = _configuration(run, config, override, named)
    _run_stage("collect", run, chosen, day.date(), lambda opened, _: stage(opened, as_day(day)), as_json)


def ask(
    run: RunOption,
    day: DayOption,
    config: ConfigOption = None,
    override: SetOption = None,
    world: WorldOption = None,
    policy: PolicyOption = None,
    start: StartOption = None,
    days: DaysOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build, filter, resample and store the day's questions. Makes the run's folder on first use."""
    from futureworld.cycle.ask import ask as stage

    named = {"world": world, "policy": policy, "start": start, "days": days, "seed": seed}
    chosen = _configuration(run, config, override, named)
    _run_stage("ask", run, chosen, day.date(), lambda opened, _: stage(opened, as_day(day)), as_json)


def predict(run: RunOption, day: DayOption, as_json: JsonOption = False) -> None:
    """Roll out the day's questions with the newest checkpoint; only missing forecasts are made."""
    from futureworld.cycle.day import predict_newest as stage

    _run_stage("predict", run, _kept(run), day.date(), lambda opened, crew: stage(opened, as_day(day), crew), as_json)


def resolve(run: RunOption, day: DayOption, as_json: JsonOption = False) -> None:
    """Read every outcome due at the day's resolve time: yesterday's questions, and late ones."""
    from futureworld.cycle.resolve import resolve as stage

    _run_stage("resolve", run, _kept(run), day.date(), lambda opened, _: stage(opened, as_day(day)), as_json)


def update(run: RunOption, day: DayOption, as_json: JsonOption = False) -> None:
    """Make the next checkpoint from everything resolved and not yet trained on."""
    from futureworld.cycle.day import update_next as stage

    _run_stage("update", run, _kept(run), day.date(), lambda opened, crew: stage(opened, as_day(day), crew), as_json)


def day(run: RunOption, day: DayOption, as_json: JsonOption = False) -> None:
    """Everything that is due on a calendar day, in order."""
    from futureworld.cycle.day import do_day

    def all_stages(opened: "Run", crew: "Workers") -> Summary:
        return do_day(opened, as_day(day), crew)

    _run_stage("day", run, _kept(run), day.date(), all_stages, as_json)


def evaluate(run: RunOption, as_json: JsonOption = False) -> None:
    """Let every checkpoint answer the fixed held-out set, and score it; only missing answers are made."""
    from futureworld.cli.console import RichReporter, print_json
    from futureworld.cli.table import closing_table
    from futureworld.cycle.replay import evaluate_run
    from futureworld.cycle.run import open_run

    with open_run(run, _kept(run), reporter=RichReporter(), holder="evaluate") as opened:
        replayed = evaluate_run(opened)
    if as_json:
        print_json(replayed.summary)
    else:
        print(closing_table(replayed))


def _configuration(run: Path, config: Path | None, override: list[str] | None, named: dict[str, Any]) -> "Config":
    """The run's own configuration unless something is given; a run that exists refuses another one."""
    from futureworld.cycle.run import CONFIG_FILE, read_config

    given = config is not None or override or any(value is not None for value in named.values())
    if (run / CONFIG_FILE).exists() and not given:
        return read_config(run)
    return configuration(config, override, **named)


def _kept(run: Path) -> "Config":
    from futureworld.cycle.run import read_config

    return read_config(run)


def _run_stage(
    name: str, run: Path, config: "Config", day: date, stage: Callable[["Run", "Workers"], Summary], as_json: bool
) -> None:
    """Open the run with a clock at the end of `day`'s schedule, do the stage, print its summary."""
    from futureworld.cli.console import RichReporter, print_summary
    from futureworld.clock import FakeClock
    from futureworld.cycle.day import check_day
    from futureworld.cycle.replay import workers
    from futureworld.cycle.run import open_run

    check_day(config, name, day)
    schedule = config.schedule.schedule()
    clock = FakeClock(max(schedule.asked_at(day), schedule.resolves_at(date.fromordinal(day.toordinal() - 1))))
    with open_run(run, config, clock=clock, reporter=RichReporter(), holder=name) as opened, workers(opened) as crew:
        summary = stage(opened, crew)
    print_summary(name, summary, as_json)
