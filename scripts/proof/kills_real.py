"""The whole loop through verl and vLLM, killed at every durable place, and single processes of it.

One small run is killed at one place after another; each life goes on towards the next kill. A copy,
taken before the first update, is updated without a kill: there the weights must come out equal.
"""

import json
import re
import shutil
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from futureworld.cycle.run import replace_text
from futureworld.errors import RunError
from proof import kills_command as command
from proof.kills_command import DAYS, GROUP, MINI_BATCHES, PER_DAY, Strike
from proof.parts import Row, Rows, Task, table

RUNS = 3
KEY = "real, run"
DAILY = PER_DAY * GROUP
TRAINED = DAILY * len(DAYS)
"""Forecasts that are stored when evaluation begins."""
EVALUATED = 20 * (2 + 1 + 2)
"""Held-out questions, and the answers of versions 0, 1 and 2 to each."""
KILLED = -signal.SIGKILL
SERVERS = ("VLLM::EngineCore", "vLLMHttpServer")
"""The processes of the engine."""
LEARNED = 4
"""The life at whose start the first update is the next thing to do."""


@dataclass(frozen=True, slots=True)
class Life:
    """One process of the run: struck from outside, and then dead by itself at `place`, or to the end.

    `place` is one of futureworld.faults; `passage` counts forecasts stored over all lives at
    "predict.stored", else passages in this life.
    """

    place: str | None = None
    passage: int = 1
    strike: Strike | None = None
    words: str = ""
    """The place as a person would say it."""

    @property
    def code(self) -> int:
        """How the process ends: killed by itself, with the trainer's error, or well."""
        if self.place is not None:
            return KILLED
        return 1 if self.strike is not None else 0

    def fault(self, forecasts: int) -> str | None:
        if self.place is None:
            return None
        return f"{self.place}:{self.passage - (forecasts if self.place == 'predict.stored' else 0)}"


def lives(run: int) -> list[Life]:
    """The lives of run `run`, in order; which process of the engine is struck goes round over the runs."""
    server, other = SERVERS[run % len(SERVERS)], SERVERS[(run + 1) % len(SERVERS)]
    at = "predict.stored"
    return [
        Life("questions.inserted", words="ask"),
        Life(at, round(0.3 * DAILY), words="predict 30 %"),
        Life(at, DAILY + round(0.9 * DAILY), Strike(server, round(0.5 * DAILY)), "predict 90 %"),  # of the next day
        Life("resolve.stored", PER_DAY // 2, words="resolve"),
        Life("update.stepped", words="update.stepped"),
        Life(strike=Strike("WorkerDict.actor_update_actor")),
        Life("update.saved", words="update.saved"),
        Life(strike=Strike("UpdateActor.step")),
        Life("update.marked", words="update.marked"),
        Life("update.stored", words="update.stored"),
        Life(at, TRAINED + 50, Strike(other, TRAINED + 20), "evaluate 50 %"),
        Life(),
    ]


def tasks(short: bool) -> Sequence[Task]:
    """The short form of this is tests/end_to_end/test_real_loop.py."""
    return [] if short else [Task(f"{KEY} {i + 1}", partial(killed_run, number=i)) for i in range(RUNS)]


def killed_run(folder: Path, number: int) -> Row:
    """Run `number`, killed through all its lives; goes on with the life in which it was interrupted."""
    story = Story(folder, number)
    for i, life in enumerate(story.lives):
        if i >= len(story.done):
            story.live(i, life)
    return story.row()


class Story:
    """A run, a copy of it after every life, and what was found in each."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.number, self.lives = folder, number, lives(number)
        self.run, self.unkilled = folder / "run", folder / "unkilled" / "run"
        self.ledger = folder / "lives.json"
        self.done: list[Row] = json.loads(self.ledger.read_text()) if self.ledger.exists() else []
        for process in command.carriers(self.run) | command.carriers(self.unkilled):
            process.kill()  # left by a proof that was itself killed

    def kept(self, i: int) -> Path:
        """The run as it was before life `i`."""
        return self.folder / "kept" / str(i)

    def live(self, i: int, life: Life) -> None:
        """Live life `i` and write down how it ended."""
        shutil.rmtree(self.run, ignore_errors=True)
        if i:
            shutil.copytree(self.kept(i), self.run, symlinks=True)
        before = command.stored(self.run)
        extra = ["--seed", str(self.number)]
        ended = command.replay(self.run, *extra, fault=life.fault(before), strike=life.strike)
        if ended.code != life.code:  # not the end that was asked for: nothing of it is kept
            raise RunError(
                f"life {i + 1} of {self.run} ended with {ended.code}, expected {life.code} ({ended.last_words});"
                " run the same command again to live it again"
            )
        shutil.rmtree(self.kept(i + 1), ignore_errors=True)
        shutil.copytree(self.run, self.kept(i + 1), symlinks=True)
        self.done.append(asdict(ended) | {"forecasts": command.stored(self.run)})
        replace_text(self.ledger, json.dumps(self.done, indent=1))

    def weights_unkilled(self) -> str:
        """Weights of version 1 where nothing was killed between the predictions and the end of the update."""
        shutil.rmtree(self.unkilled, ignore_errors=True)
        shutil.copytree(self.kept(LEARNED), self.unkilled, symlinks=True)
        for stage in ("resolve", "update"):
            arguments = [stage, "--run", str(self.unkilled), "--day", DAYS[1].isoformat()]
            ended = command.command(self.unkilled, *arguments)
            if ended.code != 0:
                raise RunError(f"{stage} of {self.unkilled} failed ({ended.last_words}); run the same command again")
        return command.snapshot(self.unkilled).versions[1]

    def row(self) -> Row:
        end = command.snapshot(self.run)
        kills = [kill for i, life in enumerate(self.lives) for kill in self.kills(i, life, end)]
        steps = sorted(command.optimiser_steps(self.run, max(end.versions)))
        weights = {"killed": end.versions.get(1), "not killed": self.weights_unkilled()}
        return {
            "kills": kills,
            "updates": [[update.base_version, update.version] for update in end.updates.values()],
            "optimiser_steps": steps,
            "weights_of_version_1": weights,
            "forecasts": len(end.forecasts),
            "doubled": command.doubled(end),
            "checks": {
                "every kill took place": all(kill["died"] for kill in kills),
                "nothing that was stored was lost or changed": not any(kill["lost"] for kill in kills),
                "nothing was made twice": command.doubled(end) == 0,
                "nothing is missing": len(end.forecasts) == TRAINED + EVALUATED,
                "each update was applied once": sorted(end.updates) == [1, 2] and steps == [2 * MINI_BATCHES],
                "version 1 has the weights of an update that was not killed": len(set(weights.values())) == 1,
                "no process was left over": not any(kill["left_over"] for kill in kills),
                "the engine's death was outlived, the trainer's was told": all(kill["told"] for kill in kills),
            },
        }

    def kills(self, i: int, life: Life, end: command.Snapshot) -> list[Row]:
        """What was found of the kills in life `i`: of a process of it, of itself."""
        done = self.done[i]
        after = {
            "lost": command.lost(command.snapshot(self.kept(i + 1)), end),
            "left_over": len(done["left"]),
            "stored": done["forecasts"],
        }
        found: list[Row] = []
        if life.strike is not None:
            engine = life.strike.process in SERVERS
            message = told(done["said"], "the engine died" if engine else "a trainer process died")
            found.append(
                {
                    "place": life.strike.process,
                    "died": done["struck"],
                    "told": bool(message),
                    "message": message,
                    **after,
                }
            )
        if life.place is not None:
            found.append({"place": life.words, "died": True, "told": True, "message": "", **after})
        return found


def told(said: str, words: str) -> str:
    """The line that says `words` in what a command said, without this machine's folders; empty where none does."""
    return next((re.sub(r"/\S+/", "", line.strip()) for line in said.splitlines() if words in line), "")


def section(rows: Rows) -> str:
    """What was found at each place, over the runs; empty where none was made."""
    runs = [row for key, row in rows.items() if key.startswith(KEY)]
    if not runs:
        return ""
    kills = [kill for row in runs for kill in row["kills"]]
    places = {kill["place"]: [other for other in kills if other["place"] == kill["place"]] for kill in kills}
    equal = sum(row["weights_of_version_1"]["killed"] == row["weights_of_version_1"]["not killed"] for row in runs)
    text = (
        f"Through verl and vLLM, {len(runs)} runs of {len(DAYS)} days and {PER_DAY} questions a day, each killed at one"
        " place after another and gone on with. The servers and the trainer's processes were killed from outside: a"
        " server is replaced under the running command, a trainer's death ends it with an error and the next command"
        f" goes on. A copy of each run was updated without a kill: in {equal} of {len(runs)} it has the same weights."
    )
    head = ("killed", "kills", "died", "lost or changed", "left over")
    return text + "\n\n" + table(head, [(place, *map(str, sums(found))) for place, found in places.items()])


def sums(kills: Sequence[Row]) -> tuple[int, ...]:
    return (len(kills), *(sum(int(kill[key]) for kill in kills) for key in ("died", "lost", "left_over")))
