"""Make the pocket policy: tokenizer, warm start, checks, weights. Reads no outcome.

    python scripts/make_pocket.py [--out FOLDER] [--seed N]

Takes about ten minutes on two cores. Ends with what the policy does before any learning, and
writes nothing when that misses its targets.
"""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from futureworld.questions.facts import lookup_line
from futureworld.questions.prompts import prompt_hash, user_text
from futureworld.worlds.open import ALMANAC, open_world
from verl_tool_future.pocket import CARD, POCKET, words_hash
from verl_tool_future.pocket.checks import Checks, examine
from verl_tool_future.pocket.lessons import (
    FIRST_DAY,
    LAST_DAY,
    Known,
    Teacher,
    days_between,
    domains,
    failed_searches,
    material,
)
from verl_tool_future.pocket.model import new_model
from verl_tool_future.pocket.tokenizer import build
from verl_tool_future.pocket.warmstart import Stage, train

STAGES = (
    Stage("parts", steps=300, size=48, learning_rate=3e-3, parts_every=1),
    Stage("dialogues", steps=450, size=48, learning_rate=3e-3, parts_every=5),
    Stage("last dialogues", steps=80, size=48, learning_rate=1e-3, parts_every=None),
)
EXAMINED = 1600


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=POCKET)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:6.0f} s  {text}", flush=True)

    world = open_world(ALMANAC)
    names = domains(world, LAST_DAY)
    taught = material(world, days_between(FIRST_DAY, LAST_DAY), chosen.seed)
    say(f"{len(taught)} questions of {FIRST_DAY}..{LAST_DAY}, {len(names)} domains")
    tokenizer = build(list(texts(taught)), names)
    model = new_model(tokenizer, chosen.seed)
    say(f"{len(tokenizer)} tokens, {model.num_parameters():,} parameters")
    failures = failed_searches(world, taught, chosen.seed)
    train(model, tokenizer, Teacher(taught, names, failures, chosen.seed + 1), STAGES, say)
    asked = Teacher(taught, names, failures, chosen.seed + 2)
    checks = examine(model, tokenizer, [asked.plain() for _ in range(EXAMINED)], chosen.seed)
    say(describe(checks))
    problems = checks.problems()
    if problems:
        print("not written: " + "; ".join(problems), file=sys.stderr)
        return 1
    write(chosen.out, model, tokenizer, checks, chosen.seed)
    say(f"written to {chosen.out}")
    return 0


def texts(taught: list[Known]):
    for known in taught:
        yield user_text(known.question)
        yield lookup_line(known.question.target.code, known.question.domain, known.facts)


def describe(checks: Checks) -> str:
    lines = [
        f"{checks.n} dialogues: query {checks.query:.3f}, parse {checks.parse:.3f}, copied {checks.copied:.3f},"
        f" correlation {checks.correlation:.3f}, error {checks.error:.3f}",
        "tokens: prompt {:.0f}, call {:.0f}, observation {:.0f}, answer {:.0f}".format(*checks.tokens),
    ]
    for domain, shares in checks.shares.items():
        lines.append(f"{domain:12} " + "  ".join(f"{name} {share:.2f}" for name, share in shares.items()))
    return "\n          ".join(lines)


def write(folder: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, checks: Checks, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # written for its maker alone
    card = {
        "words_hash": words_hash(),
        "prompt_hash": prompt_hash(),
        "seed": seed,
        "parameters": model.num_parameters(),
        "vocabulary": len(tokenizer),
        "stages": [dataclasses.asdict(stage) for stage in STAGES],
        "checks": dataclasses.asdict(checks),
    }
    (folder / CARD).write_text(json.dumps(card, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
