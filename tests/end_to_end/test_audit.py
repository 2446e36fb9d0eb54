"""The audit of scripts/audit.py finds nothing on real days, and finds what is planted."""

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

import pytest
from cycle_parts import opened as cycle
from cycle_parts import play as cycle_play
from cycle_parts import small_config

from futureworld.agents.sanitize import sanitize
from futureworld.agents.scripted import ScriptedEngine, search_then
from futureworld.cycle.evaluate import evaluate
from futureworld.records import Question, TargetKind, ToolCall, Trajectory

ROOT = Path(__file__).parents[2]
RECORDING = ROOT.parent / "shared/worlds/2026"
START, PER_DAY = date(2026, 5, 4), 40

sys.path.insert(0, str(ROOT / "scripts"))  # scripts are no package
from audit import main, opened, play, report, tally  # noqa: E402
from audit_checks import audit_call, audit_question, audit_trajectory, lookup  # noqa: E402
from audit_raw import cut, read_raw  # noqa: E402
from audit_stored import asked, audit_run  # noqa: E402


@pytest.fixture(scope="module")
def almanac() -> Iterator[tuple]:
    """The almanac's raw files, and a played run of one day on it."""
    with as_file(files("futureworld.worlds") / "almanac") as folder:
        raw = read_raw(folder)
        with opened(folder, START, 1, PER_DAY) as (run, clock):
            play(run, clock, raw)
            yield raw, run


@pytest.fixture(scope="module")
def pairs(almanac: tuple) -> list[tuple[Question, Trajectory]]:
    _, run = almanac
    questions = {question.id: question for question in asked(run, START)}
    made = run.store.forecasts(question_ids=questions)
    return [(questions[t.question_id], t) for t in run.store.trajectories([forecast.id for forecast in made])]


def changed(trajectory: Trajectory, text: str) -> Trajectory:
    """The rollout with another result of its first call, in its messages too."""
    call = trajectory.calls[0]
    messages = list(trajectory.messages)
    at = next(i for i, message in enumerate(messages) if message.role == "tool")
    messages[at] = replace(messages[at], text=text)
    return replace(trajectory, messages=tuple(messages), calls=(replace(call, text=text), *trajectory.calls[1:]))


def test_nothing_of_the_almanac_was_shown_or_used_too_early(almanac):
    raw, run = almanac
    found, counts = audit_run(run, raw), tally(run)
    assert found.violations == []
    assert found.checked["questions"] == counts.asked.total() == PER_DAY
    assert found.checked["rollouts"] == found.checked["visit without a result"] == 2 * PER_DAY  # the later bulletin
    assert found.checked["observations"] == 5 * 2 * PER_DAY
    assert found.checked["questions asked again without later rows"] == PER_DAY
    for what in ("lookup lines", "hits of bulletin", "visits of series", "visits of event"):
        assert found.checked[what] > 0, what
    assert counts.first.total() <= counts.resolved.total() <= PER_DAY
    assert counts.resolved.total() + counts.never.total() == PER_DAY


def test_k8_a_question_made_of_a_later_row_is_found(almanac, pairs):
    raw, _ = almanac
    question = next(q for q, _ in pairs if q.target.id.startswith("fuel."))
    later = next(row for row in raw.rows[question.target.id] if row.published_at > question.asked_at)
    planted = replace(question, last_values=(*question.last_values[1:], later.value))
    (violation,) = audit_question(raw, planted).violations
    assert f"{later.value}], known were" in violation


def test_k8_a_question_whose_answer_was_out_is_found(almanac, pairs):
    raw, _ = almanac
    question = next(q for q, _ in pairs if q.target.kind is TargetKind.SERIES)
    row = next(row for row in raw.rows[question.target.id] if row.published_at <= question.asked_at)
    planted = replace(question, target=replace(question.target, date=row.date))
    assert "already published" in audit_question(raw, planted).violations[0]


def test_k8_an_event_that_had_started_is_found(almanac, pairs):
    raw, _ = almanac
    question = next(q for q, _ in pairs if q.target.kind is TargetKind.EVENT)
    day = timedelta(days=1)
    planted = replace(
        question,
        asked_at=question.asked_at + day,
        closes_at=question.closes_at + day,
        resolves_at=question.resolves_at + day,
    )
    assert any("had started" in violation for violation in audit_question(raw, planted).violations)
    assert any("was decided" in violation for violation in audit_question(raw, planted).violations)


def test_k8_a_later_row_in_a_lookup_line_is_found(almanac, pairs):
    raw, _ = almanac
    planted = 0
    for question, trajectory in pairs:
        values = raw.values(question.target, question.domain, question.asked_at)
        after = raw.values(question.target, question.domain, question.asked_at + timedelta(days=3))
        line, late = lookup(question, values), lookup(question, after)
        if trajectory.calls[0].text.startswith(line) and line.splitlines()[0] != late.splitlines()[0]:
            shown = changed(trajectory, late + trajectory.calls[0].text[len(line) :])
            (violation,) = audit_trajectory(raw, question, shown).violations
            assert late.splitlines()[0] in violation
            planted += 1
    assert planted > PER_DAY


def test_k8_a_later_bulletin_among_the_hits_is_found(almanac, pairs):
    raw, _ = almanac
    question, trajectory = pairs[0]
    url, page = raw.first_after(question.asked_at)
    hit = f"[9] {page.title} ({page.published_at:%Y-%m-%d}, {url}): {page.text[:100]}"
    planted = changed(trajectory, f"{trajectory.calls[0].text}\n{hit}")
    assert len(audit_trajectory(raw, question, planted).violations) == 1


def test_k8_a_visit_that_shows_a_later_page_is_found(almanac, pairs):
    raw, _ = almanac
    question, trajectory = pairs[0]
    (refused,) = [call for call in trajectory.calls if call.text == "No such document."]
    url, page = raw.first_after(question.asked_at)
    assert url in refused.arguments
    shown: ToolCall = replace(refused, text=f"{page.title} ({page.published_at:%Y-%m-%d})\n{page.text}")
    assert len(audit_call(raw, question, shown).violations) == 1


def test_a_tool_result_that_no_call_names_is_found(almanac, pairs):
    raw, _ = almanac
    question, trajectory = pairs[0]
    planted = replace(trajectory, calls=trajectory.calls[:-1])
    assert len(audit_trajectory(raw, question, planted).violations) == 1


def test_a_call_that_did_not_work_may_say_fixed_sentences_only(almanac, pairs):
    raw, _ = almanac
    question, trajectory = pairs[0]
    call = trajectory.calls[0]
    for said in (
        "The call could not be read: not valid JSON.",
        sanitize("The call could not be read: <tool_call> without </tool_call>."),
        "No such tool. Tools: search, visit.",
        '"query" has 201 characters, at most 200 are allowed.',
    ):
        found = audit_call(raw, question, replace(call, text=said))
        assert (found.violations, found.checked["calls that did not work"]) == ([], 1)
        assert audit_call(raw, question, replace(call, text=f"{said} Tomorrow 4.81.")).violations != []


def test_a_finished_run_is_audited_in_training_and_evaluation(tmp_path, capsys):
    small = ("days=1", "evaluate.days=2", "evaluate.per_day=6", "evaluate.end_samples=2", "evaluate.bootstrap=100")
    with cycle(tmp_path, small_config(tmp_path, *small)) as (run, clock, learner):
        cycle_play(run, clock, learner)
        evaluate(run, lambda: ScriptedEngine(search_then(lambda _: 0.7)))
    assert main([str(tmp_path / "run"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["violations"] == []
    assert said["checked"]["questions"] == said["checked"]["questions asked again without later rows"] == 12 + 12
    assert said["checked"]["observations"] == said["checked"]["rollouts"] == 12 * 3 + 12 * 2 * 2  # two checkpoints


def test_the_control_that_shows_other_facts_is_refused(tmp_path, capsys):
    with cycle(tmp_path, small_config(tmp_path, "control=shuffled-observations")):
        pass
    assert main([str(tmp_path / "run")]) == 1
    assert "facts of other questions" in capsys.readouterr().err


@pytest.mark.timeout(300)
def test_one_day_of_the_recording(capsys):
    if not RECORDING.is_dir():
        pytest.skip("../shared/worlds/2026 is not beside this checkout")
    assert main([str(RECORDING), "--days", "1", "--per-day", str(PER_DAY), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["violations"] == [] and said["checked"]["questions"] == sum(said["asked"].values()) == PER_DAY
    assert said["checked"]["hits of document"] > 0


def test_a_missing_world_is_a_sentence(capsys):
    assert main(["no-such-folder"]) == 1
    said = capsys.readouterr().err
    assert said == "world 'no-such-folder' does not exist; name `almanac`, the folder of a world, or that of a run\n"


def test_the_table_counts_every_question(almanac):
    raw, run = almanac
    table = report("almanac", tally(run), audit_run(run, raw)).splitlines()
    assert ["all", str(PER_DAY)] in [line.split()[:2] for line in table]
    assert "         0  violations" in table


def test_days_without_questions_are_no_passed_audit(capsys):
    assert main(["almanac", "--start", "2027-05-04", "--days", "1"]) == 1
    assert "nothing was asked" in capsys.readouterr().err


def test_what_was_not_yet_knowable_is_cut_from_the_files(tmp_path):
    rows = "series_id,date,value,published_at\na,2026-05-03,1,2026-05-04T12:00:00Z\n"
    late = "a,2026-05-04,2,2026-05-04T12:00:01Z\n"
    (tmp_path / "series.jsonl").write_text('{"id": "a"}\n')
    (tmp_path / "observations.csv.gz").write_bytes(gzip.compress((rows + late).encode()))
    event = {"known_from": "2026-05-01T00:00:00Z", "resolved_at": "2026-05-04T13:00:00Z", "outcome": "x"}
    events = [event, {**event, "known_from": "2026-05-05T00:00:00Z"}]
    text = "".join(json.dumps(item) + "\n" for item in events)
    (tmp_path / "events.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    there = tmp_path / "cut"
    cut(tmp_path, there, datetime(2026, 5, 4, 12, tzinfo=UTC))
    assert gzip.decompress((there / "observations.csv.gz").read_bytes()).decode() == rows
    (left,) = gzip.decompress((there / "events.jsonl.gz").read_bytes()).splitlines()
    assert json.loads(left) == {"known_from": "2026-05-01T00:00:00Z", "status": "scheduled"}
