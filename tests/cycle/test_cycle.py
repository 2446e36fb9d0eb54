"""The cycle over real days of the almanac: the same rows however often, and wherever it was killed."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cycle_parts import NotebookLearner, make_policy, opened, play, small_config

from futureworld import faults
from futureworld.agents.base import Sampling
from futureworld.agents.scripted import ScriptedEngine, ScriptedPolicy, search_then
from futureworld.config import load
from futureworld.cycle.ask import ask, train_set
from futureworld.cycle.controls import FEW, permuted, shuffled
from futureworld.cycle.day import Workers, do, do_day, moments, update_next
from futureworld.cycle.predict import answer, predict
from futureworld.cycle.resolve import resolve
from futureworld.cycle.run import Run, check_config, open_run
from futureworld.cycle.update import make_batch
from futureworld.errors import ConfigError, RunError
from futureworld.records import AnswerStatus, Observation, Purpose, QuestionState

DAY = date(2026, 5, 4)
ASKED = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def rows(run: Run) -> dict[str, Any]:
    """What must be equal however the run came about."""
    questions = [q for day in run.days for q in run.store.question_set(train_set(day)) or ()]
    ids = [question.id for question in questions]
    return {
        "questions": questions,
        "outcomes": {name: outcome.value for name, outcome in run.store.outcomes(ids).items()},
        "forecasts": [(f.id, f.probability) for f in run.store.forecasts(purpose=Purpose.TRAIN)],
        "updates": [(update.version, update.trajectory_ids, update.ages) for update in run.store.updates()],
        "checkpoints": [(checkpoint.version, checkpoint.weight_hash) for checkpoint in run.store.checkpoints()],
    }


def test_two_days_make_two_updates(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        play(run, clock, learner)
        kept = rows(run)
        assert [version for version, _ in kept["checkpoints"]] == [0, 1, 2]
        assert len(kept["questions"]) == 24
        assert len(kept["forecasts"]) == 24 * 3
        first, second = learner.batches
        # The first day's batch holds only its own questions; each trajectory is trained once.
        assert {member.trajectory.day for member in first.members} == {DAY}
        assert {member.age for member in first.members} == {1}
        used = [member.trajectory.id for batch in learner.batches for member in batch.members]
        assert len(used) == len(set(used))
        # Sampled by version 0 on both days: the update of the first day came after the second was asked.
        assert {member.trajectory.policy_version for member in second.members} == {0}


def test_rewards_are_minus_the_squared_error(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=1")) as (run, clock, learner):
        play(run, clock, learner, answer=lambda _: 0.9)
        outcomes = run.store.outcomes([m.trajectory.question_id for m in learner.batches[0].members])
        for member in learner.batches[0].members:
            expected = -0.01 if outcomes[member.trajectory.question_id].value == 1.0 else -0.81
            assert member.reward == pytest.approx(expected)


def test_rewards_follow_the_score_of_the_run(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "reward.score=spherical")) as (run, clock, learner):
        play(run, clock, learner)
        paid = {round(member.reward, 6) for batch in learner.batches for member in batch.members}
        root = (0.7**2 + 0.3**2) ** 0.5
        assert paid == {round(0.7 / root, 6), round(0.3 / root, 6)}


def test_a_run_without_searches_shows_nothing_and_punishes_no_answer(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "rollout.search=false")) as (run, clock, learner):
        play(run, clock, learner)
        trajectories = [member.trajectory for batch in learner.batches for member in batch.members]
        assert {t.answer_status for t in trajectories} == {AnswerStatus.OK}
        shown = {message.text for t in trajectories for message in t.messages if message.role == "tool"}
        assert shown == {"Searching is off in this run."}


def test_a_folder_made_before_a_key_existed_still_opens(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    with opened(tmp_path, config):
        pass
    path = tmp_path / "run" / "config.yaml"
    tree = yaml.safe_load(path.read_text())
    del tree["update"]["kl"], tree["rollout"]["search"], tree["reward"]["score"]
    path.write_text(yaml.safe_dump(tree))
    check_config(tmp_path / "run", config)


def test_a_repeat_changes_nothing(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    with opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner)
        before, jobs = rows(run), run.store.jobs()
        play(run, clock, learner)
        assert (rows(run), run.store.jobs(), len(learner.batches)) == (before, jobs, 2)
    with opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner)
        assert rows(run) == before
        assert learner.batches == []


@pytest.mark.parametrize(
    ("place", "passage"),
    [
        ("predict.stored", 1),
        ("predict.stored", 11),
        ("predict.stored", 36),
        ("predict.stored", 65),
        ("resolve.stored", 1),
        ("resolve.stored", 20),
        ("update.learned", 1),
        ("update.stored", 1),
        ("update.stored", 2),
    ],
)
def test_e9_killed_anywhere_ends_the_same(tmp_path: Path, place: str, passage: int) -> None:
    config = small_config(tmp_path)
    with opened(tmp_path / "whole", config) as (run, clock, learner):
        play(run, clock, learner)
        expected = rows(run)
    faults.arm(place, KeyboardInterrupt(place), passage=passage)
    with pytest.raises(BaseException, match=place), opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner)
    with opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner)
        assert rows(run) == expected


class Late:
    """The almanac with every value of one domain published `days` later than it was."""

    def __init__(self, world: Any, domain: str, days: int) -> None:
        self._world, self._domain, self._delay = world, domain, timedelta(days=days)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def observations(self, series_id: str, as_of: datetime) -> list[Observation]:
        late = self._world.series()[series_id].domain == self._domain
        return self._world.observations(series_id, as_of - self._delay if late else as_of)


def late_run(run: Run, days: int) -> Run:
    """The same run whose domain with most questions on the first day turns late after asking."""
    counts = Counter(
        question.domain for question in run.store.question_set(train_set(DAY)) or () if "-" not in question.id
    )
    series = {s.domain for s in run.world.series().values()}
    domain = max((name for name in counts if name in series), key=lambda name: (counts[name], name))
    return replace(run, world=Late(run.world, domain, days))


def play_late(run: Run, clock: Any, learner: NotebookLearner, days: int) -> Run:
    ask(run, DAY)
    later = late_run(run, days)
    play(later, clock, learner)
    return later


def test_late_outcomes_join_a_later_update_with_their_age(tmp_path: Path) -> None:
    config = small_config(tmp_path, "days=4", "schedule.retry_days=3")
    with opened(tmp_path, config) as (run, clock, learner):
        play_late(run, clock, learner, days=2)
        ages = {member.age for batch in learner.batches for member in batch.members if member.trajectory.day == DAY}
        assert ages == {1, 3}
        states = run.store.states([q.id for q in run.store.question_set(train_set(DAY)) or ()])
        assert set(states.values()) == {QuestionState.RESOLVED}


def test_retry_days_zero_throws_late_questions_away(tmp_path: Path) -> None:
    config = small_config(tmp_path, "days=4", "schedule.retry_days=0")
    with opened(tmp_path, config) as (run, clock, learner):
        play_late(run, clock, learner, days=2)
        states = Counter(run.store.states([q.id for q in run.store.question_set(train_set(DAY)) or ()]).values())
        assert states[QuestionState.EXPIRED] > 0
        assert states[QuestionState.PENDING] == 0
        assert {member.age for batch in learner.batches for member in batch.members} == {1}


def test_d4_a_failure_outside_the_policy_leaves_its_group(tmp_path: Path) -> None:
    class Breaking(ScriptedPolicy):
        """Its first sample of every question always fails; the others do not."""

        def open(self, messages: Any, tools: Any, sampling: Sampling, request_id: str) -> Any:
            if request_id.rsplit("-", 1)[0] in broken:
                raise RuntimeError("the socket closed")
            return super().open(messages, tools, sampling, request_id)

    from futureworld.records import forecast_id

    with opened(tmp_path, small_config(tmp_path, "days=1")) as (run, clock, learner):
        ask(run, DAY)
        questions = run.store.question_set(train_set(DAY)) or ()
        broken = {forecast_id(q.id, run.agent, 0, Purpose.TRAIN, 0) for q in questions}

        class Engine(ScriptedEngine):
            def policy(self) -> Any:
                return Breaking(search_then(lambda _: 0.7))

        engine = Engine(search_then(lambda _: 0.7))
        for moment in moments(run):
            clock.move_to(moment.at)
            do(run, moment, Workers(lambda: engine, lambda: learner))
        (batch,) = learner.batches
        assert {member.trajectory.sample for member in batch.members} == {1, 2}
        assert batch.dropped["failed outside the policy"] == 12
        failed = [f for f in run.store.forecasts(purpose=Purpose.TRAIN) if f.sample == 0]
        assert {f.status for f in failed} == {AnswerStatus.ERROR}
        assert {f.attempt for f in failed} == {2}  # tried three times, kept once


def test_d3_a_group_of_one_is_dropped_and_counted(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=1", "rollout.n=2")) as (run, clock, learner):
        play(run, clock, learner)
    config = small_config(tmp_path, "rollout.n=1")
    with opened(tmp_path / "one", config) as (run, _, _), pytest.raises(ConfigError, match="group of one"):
        predict(run, DAY, ScriptedEngine(search_then(lambda _: 0.7)))


def test_permuted_outcomes_keep_each_domain_and_the_store(tmp_path: Path) -> None:
    config = small_config(tmp_path, "days=1", "questions.per_day=120", "control=permuted-outcomes")
    with opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner, answer=lambda _: 1.0)
        questions = {q.id: q for q in run.store.question_set(train_set(DAY)) or ()}
        true = {name: o.value for name, o in run.store.outcomes(questions).items() if o.value is not None}
        joined = {m.trajectory.question_id: 1.0 + m.reward for m in learner.batches[0].members}
        assert joined != true
        sizes = Counter(questions[name].domain for name in true)
        assert min(sizes.values()) < FEW <= max(sizes.values())
        for domains in [{domain} for domain in sizes if sizes[domain] >= FEW] + [{d for d in sizes if sizes[d] < FEW}]:
            names = [name for name in true if questions[name].domain in domains]
            assert sorted(true[name] for name in names) == sorted(joined[name] for name in names)
        assert permuted(true, questions, seed=0) == permuted(true, questions, seed=0)


def test_shuffled_observations_come_from_another_question(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, _, _):
        ask(run, DAY)
        questions = run.store.question_set(train_set(DAY)) or ()
        other = shuffled(questions, seed=3)
        assert all(other[question.id].id != question.id for question in questions)
        assert {question.id for question in other.values()} == {question.id for question in questions}


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)):
        pass
    changed = small_config(tmp_path, "rollout.n=4")
    with pytest.raises(RunError, match=r"rollout\.n: 3 there, 4 given"), opened(tmp_path, changed):
        pass


def test_a_busy_run_names_its_holder(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    with opened(tmp_path, config), pytest.raises(Exception, match="futureworld"), opened(tmp_path, config):
        pass


def test_predict_before_ask_says_what_to_do(tmp_path: Path) -> None:
    with (
        opened(tmp_path, small_config(tmp_path)) as (run, _, _),
        pytest.raises(RunError, match=r"futureworld ask --run .* --day 2026-05-04"),
    ):
        predict(run, DAY, ScriptedEngine(search_then(lambda _: 0.7)))


def test_a_day_does_what_the_clock_allows(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        workers = Workers(lambda: ScriptedEngine(search_then(lambda _: 0.5)), lambda: learner)
        assert list(do_day(run, DAY, workers)) == ["collect", "ask", "predict"]
        assert do_day(run, DAY + timedelta(days=1), workers) == {}
        clock.move_to(run.schedule.resolves_at(DAY))
        assert list(do_day(run, DAY + timedelta(days=1), workers)) == ["collect", "ask", "predict", "resolve", "update"]


def test_e6_batch_names_its_base(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        play(run, clock, learner)
        assert [(batch.base.version, batch.step) for batch in learner.batches] == [(0, 1), (1, 2)]
        assert make_batch(run, DAY + timedelta(days=9)).members == ()


def test_a_policy_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = make_policy(tmp_path / "p")
    (folder / "tokenizer_config.json").unlink()
    with (
        pytest.raises(Exception, match=r"lacks tokenizer_config\.json"),
        open_run(tmp_path / "run", load(None, [f"policy={folder}"])),
    ):
        pass


def test_a9_a_rollout_longer_than_a_turn_is_kept_whole(tmp_path: Path) -> None:
    config = small_config(tmp_path, "days=1", "rollout.max_turn_tokens=48")
    with opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner)
        trajectories = run.store.trajectories([f.id for f in run.store.forecasts(purpose=Purpose.TRAIN)])
        assert all(len(trajectory.ids) > 48 for trajectory in trajectories)
        assert all(trajectory.spans[-1].end == len(trajectory.ids) for trajectory in trajectories)


def test_a11_another_attempt_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    asked: list[str] = []

    class Flaky(ScriptedPolicy):
        def open(self, messages: Any, tools: Any, sampling: Sampling, request_id: str) -> Any:
            asked.append(request_id)
            if request_id.endswith("-0"):
                raise RuntimeError("the connection was reset")
            return super().open(messages, tools, sampling, request_id)

    class Engine(ScriptedEngine):
        def policy(self) -> Any:
            return Flaky(search_then(lambda _: 0.7))

    with opened(tmp_path, small_config(tmp_path, "days=1", "questions.per_day=4")) as (run, _, _):
        ask(run, DAY)
        predict(run, DAY, Engine(search_then(lambda _: 0.7)))
        forecasts = run.store.forecasts(purpose=Purpose.TRAIN)
        assert {(f.attempt, f.status) for f in forecasts} == {(1, AnswerStatus.OK)}
        assert len(asked) == len(set(asked)) == 2 * len(forecasts)
        for trajectory in run.store.trajectories([f.id for f in forecasts]):
            assert [message.role for message in trajectory.messages].count("tool") == 1


def test_d11_an_empty_day_makes_no_update(tmp_path: Path) -> None:
    config = small_config(tmp_path, "days=1", "schedule.retry_days=0")
    with opened(tmp_path, config) as (run, clock, learner):
        ask(run, DAY)
        nothing = replace(run, world=Silent(run.world))
        done = play(nothing, clock, learner)
        assert done[-1]["update"]["trained"] == 0
        assert "no resolved group" in done[-1]["update"]["skipped"]
        assert learner.batches == []
        assert [checkpoint.version for checkpoint in run.store.checkpoints()] == [0]


class Silent:
    """A world that says nothing more after the first day was asked."""

    def __init__(self, world: Any) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def observations(self, series_id: str, as_of: datetime) -> Any:
        return self._world.observations(series_id, min(as_of, ASKED))

    def events(self, as_of: datetime) -> Any:
        return self._world.events(min(as_of, ASKED))


def test_shuffled_observations_are_shown_in_evaluation_only(tmp_path: Path) -> None:
    config = small_config(tmp_path, "days=1", "control=shuffled-observations")
    with opened(tmp_path, config) as (run, _, _):
        ask(run, DAY)
        questions = run.store.question_set(train_set(DAY)) or ()
        engine, samples = ScriptedEngine(search_then(lambda _: 0.7)), {}
        for purpose in (Purpose.TRAIN, Purpose.EVALUATE):
            answer(run, questions, engine, run.newest_checkpoint(), purpose, 1, "test")
            forecasts = run.store.forecasts(purpose=purpose)
            samples[purpose] = {
                t.question_id: t.calls[0].text for t in run.store.trajectories([f.id for f in forecasts])
            }
        other = shuffled(questions, run.config.seed)
        for question in questions:
            true, shown = samples[Purpose.TRAIN][question.id], samples[Purpose.EVALUATE][question.id]
            values = samples[Purpose.TRAIN][other[question.id].id].split("\n")[0].split(": ")[1]
            assert true.startswith(f"{question.target.code}: ")
            assert shown.split("\n")[0] == f"{question.target.code}: {values}"


def test_weights_that_changed_under_a_run_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=1")) as (run, _, _):
        ask(run, DAY)
        (run.policy / "model.safetensors").write_text("other weights")
        with pytest.raises(RunError, match=r"checkpoint 0: the weights in .* are"):
            predict(run, DAY, ScriptedEngine(search_then(lambda _: 0.7)))


def test_an_update_before_predict_is_refused_and_not_taken_for_an_empty_day(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=1")) as (run, _, learner):
        ask(run, DAY)
        resolve(run, DAY + timedelta(days=1))
        workers = Workers(lambda: ScriptedEngine(search_then(lambda _: 0.7)), lambda: learner)
        with pytest.raises(RunError, match=r"stage predict of 2026-05-04 was not done yet"):
            update_next(run, DAY + timedelta(days=1), workers)
        assert run.store.finished("update", "2026-05-05") is None


def test_a_day_resolved_in_two_starts_is_summed_up_whole(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        faults.arm("resolve.stored", RuntimeError("killed"))
        with pytest.raises(RuntimeError, match="killed"):
            play(run, clock, learner)
        done = resolve(run, DAY + timedelta(days=1))
        assert (done["due"], done["resolved"]) == (12, 12)
        asked = [question.id for question in run.store.question_set(train_set(DAY)) or ()]
        assert [len(run.store.outcome_history(name)) for name in asked] == [1] * 12
