"""Options that commands share, and how they become one configuration."""

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from futureworld.config import Config

RunOption = Annotated[Path, typer.Option("--run", help="The run's folder: configuration, store, checkpoints, plots.")]
DayOption = Annotated[
    datetime, typer.Option("--day", formats=["%Y-%m-%d"], help="The calendar day, for example 2026-05-04.")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="A YAML file with keys that differ from the defaults.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="One key, for example --set rollout.n=4; repeatable.")
]
WorldOption = Annotated[str | None, typer.Option("--world", help="almanac, or the folder of a recorded world.")]
PolicyOption = Annotated[str | None, typer.Option("--policy", help="pocket, or a Hugging Face model folder.")]
StartOption = Annotated[datetime | None, typer.Option("--start", formats=["%Y-%m-%d"], help="The first asked day.")]
DaysOption = Annotated[int | None, typer.Option("--days", help="Asked days.")]
SeedOption = Annotated[int | None, typer.Option("--seed")]
ControlOption = Annotated[
    str | None, typer.Option("--control", help="permuted-outcomes or shuffled-observations: learning must fail.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]


def configuration(config: Path | None, overrides: list[str] | None, **named: Any) -> "Config":
    """Defaults, then the file, then `--set`, then the options with a name of their own."""
    from futureworld.config import load

    given = [f"{key}={_text(value)}" for key, value in named.items() if value is not None]
    return load(config, [*(overrides or []), *given])


def _text(value: Any) -> str:
    return value.date().isoformat() if isinstance(value, datetime) else str(value)


def as_day(moment: datetime) -> date:
    return moment.date()
