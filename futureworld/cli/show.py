"""`futureworld show`: a day, a question, or a trajectory with policy and masked tokens told apart."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from futureworld.cli.options import RunOption

if TYPE_CHECKING:
    from futureworld.cycle.run import Run
    from futureworld.records import Trajectory


def show(
    run: RunOption,
    what: Annotated[str, typer.Argument(help="A day (2026-05-04), a question's id, or a trajectory's id.")],
    tokens: Annotated[bool, typer.Option("--tokens", help="A row for every token of a trajectory.")] = False,
) -> None:
    """Print a day, a question with its forecasts, or one trajectory token by token."""
    from futureworld.cycle.run import open_run, read_config
    from futureworld.errors import RunError

    with open_run(run, read_config(run), holder="show") as opened:
        for found in (day_text(opened, what), question_text(opened, what), trajectory_text(opened, what, tokens)):
            if found is not None:
                print(found)
                return
    raise RunError(
        f"{what!r} is no day, question or trajectory of {run}; `show --run {run} DAY` lists a day's questions"
    )


def day_text(run: "Run", what: str) -> str | None:
    from datetime import date

    from futureworld.cycle.ask import train_set
    from futureworld.errors import RunError

    try:
        day = date.fromisoformat(what)
    except ValueError:
        return None
    questions = run.store.question_set(train_set(day))
    if questions is None:
        asked = [str(one) for one in run.days if run.store.question_set(train_set(one)) is not None]
        raise RunError(f"{day} was not asked in {run.folder}; asked so far: {', '.join(asked) or 'nothing'}")
    states = run.store.states([question.id for question in questions])
    domains = Counter(question.domain for question in questions)
    lines = [f"{day}: {len(questions)} questions, " + ", ".join(f"{name} {n}" for name, n in sorted(domains.items()))]
    lines += [f"{question.id}  {states[question.id].value:8}  {question.text}" for question in questions]
    return "\n".join(lines)


def question_text(run: "Run", what: str) -> str | None:
    from futureworld.clock import iso

    question = run.store.questions([what]).get(what)
    if question is None:
        return None
    outcome = run.store.outcomes([what]).get(what)
    said = (
        "waiting for the world"
        if outcome is None
        else f"void: {outcome.reason}"
        if outcome.value is None
        else outcome.value
    )
    lines = [
        f"{question.text}",
        f"domain {question.domain}, family {question.family}, source {question.source}",
        f"asked {iso(question.asked_at)}, closes {iso(question.closes_at)}, resolves {iso(question.resolves_at)}",
        f"outcome {said}",
    ]
    for forecast in run.store.forecasts(question_ids=[what]):
        p = "none" if forecast.probability is None else f"{forecast.probability:.3f}"
        lines.append(
            f"{forecast.id}  {forecast.purpose.value:9} v{forecast.policy_version} #{forecast.sample}"
            f"  {p}  {forecast.status.value}"
        )
    return "\n".join(lines)


def trajectory_text(run: "Run", what: str, tokens: bool) -> str | None:
    from futureworld.errors import StoreError

    try:
        trajectory = run.store.trajectories([what])[0]
    except StoreError:
        return None
    p = trajectory.probability
    head = (
        f"trajectory {trajectory.id} of question {trajectory.question_id}: {trajectory.purpose.value},"
        f" v{trajectory.policy_version}, sample {trajectory.sample}, {trajectory.answer_status.value}"
        + ("" if p is None else f", p = {p}")
    )
    return head + "\n" + (token_rows(run, trajectory) if tokens else marked_text(run, trajectory))


def marked_text(run: "Run", trajectory: "Trajectory") -> str:
    """The prompt, then each span: `[P]` policy (in the loss), `[E]` environment (masked)."""
    if not trajectory.ids:
        return "\n".join(f"{message.role}: {message.text}" for message in trajectory.messages)
    tokenizer = _tokenizer(run)
    lines = ["[E] " + tokenizer.decode(list(trajectory.prompt_ids))]
    for span in trajectory.spans:
        mark = "P" if span.role.value == "policy" else "E"
        lines.append(f"[{mark}] " + tokenizer.decode(list(trajectory.ids[span.start : span.end])))
    return "\n".join(lines)


def token_rows(run: "Run", trajectory: "Trajectory") -> str:
    tokenizer = _tokenizer(run)
    rows = [
        f"{i:5}  prompt       {token:6}            {tokenizer.decode([token])!r}"
        for i, token in enumerate(trajectory.prompt_ids)
    ]
    for i, (token, masked, log_prob) in enumerate(
        zip(trajectory.ids, trajectory.mask, trajectory.log_probs, strict=True)
    ):
        said = "           " if log_prob is None else f"{log_prob:11.5f}"
        rows.append(
            f"{i:5}  {'policy     ' if masked else 'environment'}  {token:6} {said}  {tokenizer.decode([token])!r}"
        )
    return "\n".join(rows)


def _tokenizer(run: "Run"):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(run.policy))
