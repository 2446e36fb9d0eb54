"""The pocket policy: the tiny Llama that the package ships, and what it was warm-started on."""

import json
from pathlib import Path

from futureworld.errors import PolicyError
from futureworld.questions.facts import Facts, lookup_line
from futureworld.questions.prompts import prompt_hash
from futureworld.records import content_id

POCKET: Path = Path(__file__).parent / "weights"
CARD = "pocket.json"
"""Beside the weights: what they were made of."""


def words_hash() -> str:
    """Names the words that the warm start taught: the prompt's and the lookup line's."""
    shown = [lookup_line("kamo", "fuel", Facts((1.5, 2.0), count, yes, 0.25)) for count, yes in ((1, True), (0, False))]
    return content_id(prompt_hash(), shown)


def check(folder: Path) -> None:
    """Refuse pocket weights that were taught other words than those in use.

    A folder without `pocket.json` holds another policy, to which nothing was promised. Raises
    PolicyError on a mismatch.
    """
    card = folder / CARD
    if not card.exists():
        return
    try:
        taught = json.loads(card.read_text())["words_hash"]
    except (OSError, ValueError, KeyError) as error:
        raise PolicyError(f"{card} cannot be read: {error!r}; make it again with scripts/make_pocket.py") from None
    if taught != words_hash():
        raise PolicyError(
            f"{folder} was taught the words {taught}, but prompts and lookup lines now read {words_hash()};"
            " warm it up again with scripts/make_pocket.py"
        )
