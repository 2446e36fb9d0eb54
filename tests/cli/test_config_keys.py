"""The listing of configuration keys: complete, and from the classes themselves."""

import yaml
from typer.testing import CliRunner

from futureworld.cli.keys import described
from futureworld.cli.main import app
from futureworld.config import Config, known_keys


def test_every_key_is_listed_once_with_its_default() -> None:
    rows = described(Config, Config().model_dump(mode="json"))
    keys = [key for key, _ in rows]
    sections = {key.partition(".")[0] for key in known_keys() if "." in key}
    assert keys == [key for key in known_keys() if key not in sections]
    tree = Config().model_dump(mode="json")
    for key, text in rows:
        section, dot, name = key.partition(".")
        default = tree[section][name] if dot else tree[key]
        said = text.partition("\n")[0].removeprefix(f"{key} = ").partition("  (")[0]
        assert yaml.safe_load(said) == default


def test_a_key_shows_its_bounds_and_what_it_means() -> None:
    shown = CliRunner().invoke(app, ["config", "rollout.n"]).output
    assert shown == "rollout.n = 8  (>= 1, <= 1024)\n    Rollouts per question: the GRPO group.\n"
    shown = CliRunner().invoke(app, ["config", "correction"]).output
    assert shown.startswith("update.correction = bypass  (bypass | decoupled)\n    bypass: the ratio is taken")


def test_a_word_that_no_key_holds_lists_nothing() -> None:
    assert CliRunner().invoke(app, ["config", "nonsense"]).output == ""
