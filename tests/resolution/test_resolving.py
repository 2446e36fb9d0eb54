from dataclasses import replace
from itertools import accumulate

import pytest
from hand_world import DAY, ONE, at, game, past_games, rows, series, world

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.errors import WorldError
from futureworld.questions.ask import ask
from futureworld.records import EventStatus, Observation, content_id
from futureworld.resolution.resolve import Pending, Resolved, Void, resolve
from futureworld.wording import Operator

WAVE = [10.0, 12.5, 11.0] * 8
TEAMS = ("Reds", "Blues")
PAST = past_games(TEAMS, ["Reds", "Blues"] * 5)
NOW = at(DAY + ONE, 12.5)


def of_series(kind="level", values=WAVE, **changes):
    found = world([series(kind=kind)], rows("s", values))
    question = ask(found, DAY, Schedule(), QuestionsConfig(), 0).questions[0]
    return replace(question, operator=Operator.ABOVE, threshold=11.25, **changes)


def of_event(option="Reds"):
    found = world(events=[*PAST, game("g", at(DAY, 20), TEAMS)])
    (question,) = ask(found, DAY, Schedule(), QuestionsConfig(), 0).questions
    return replace(question, target=replace(question.target, option=option))


def told(value, *, day=DAY, hours=20.0, kind="level", **changes):
    new = Observation("s", day, value, at(day, hours))
    return world([series(kind=kind, **changes)], [*rows("s", WAVE), new])


@pytest.mark.parametrize(("value", "answer"), [(11.5, 1.0), (11.0, 0.0)])
def test_the_published_row_answers(value, answer):
    found = resolve(of_series(), told(value), NOW)
    evidence = content_id(["s", DAY, value, at(DAY, 20)])
    assert found == Resolved(answer, evidence)


@pytest.mark.parametrize(("operator", "answer"), [("above", 0.0), ("below", 0.0), ("at_least", 1.0), ("at_most", 1.0)])
def test_j2_equality_is_read_from_the_operator(operator, answer):
    question = replace(of_series(), operator=Operator(operator))
    found = resolve(question, told(11.25), NOW)
    assert isinstance(found, Resolved) and found.value == answer


def test_j13_late_rows_are_waited_for():
    late = told(11.5, hours=40)
    assert resolve(of_series(), late, NOW) == Pending("not published yet")
    assert isinstance(resolve(of_series(), late, NOW + ONE), Resolved)


def test_j5_a_missing_date_is_not_filled_from_its_neighbours():
    found = told(11.5, day=DAY + ONE, hours=4)
    assert resolve(of_series(), found, NOW) == Pending("date skipped by its source")


def test_j3_a_row_known_when_asked_voids():
    assert resolve(of_series(), told(11.5, hours=11), NOW) == Void("known when asked")
    assert resolve(of_series(), told(11.5, hours=12), NOW) == Void("known when asked")


def test_break_voids():
    assert resolve(of_series(), told(11.5, breaks=(DAY,)), NOW) == Void("break in the series")


def test_cumulative_series_answers_with_its_increase():
    total = [float(value) for value in accumulate(WAVE, initial=100.0)]
    question = of_series("cumulative", total)  # above 11.25
    known = rows("s", total)
    for increase, answer in ((11.5, 1.0), (11.0, 0.0)):
        new = Observation("s", DAY, total[-1] + increase, at(DAY, 20))
        found = resolve(question, world([series(kind="cumulative")], [*known, new]), NOW)
        assert found == Resolved(
            answer,
            content_id(["s", DAY - ONE, total[-1], at(DAY - ONE, 20)], ["s", DAY, new.value, at(DAY, 20)]),
        )
    gap = world([series(kind="cumulative")], [*known[:-1], Observation("s", DAY, 700.0, at(DAY, 20))])
    assert resolve(question, gap, NOW) == Void("gap in a cumulative series")


@pytest.mark.parametrize(("option", "answer"), [("Reds", 1.0), ("Blues", 0.0)])
def test_the_result_answers(option, answer):
    found = world(events=[game("g", at(DAY, 20), TEAMS, "Reds")])
    answered = resolve(of_event(option), found, NOW)
    assert answered == Resolved(answer, content_id(["g", DAY, "Reds", at(DAY, 23)]))


def test_a_draw_answers_no_to_both():
    options = ("Reds", "Draw", "Blues")
    found = world(events=[game("g", at(DAY, 20), options, "Draw")])
    for option in TEAMS:
        answered = resolve(of_event(option), found, NOW)
        assert isinstance(answered, Resolved) and answered.value == 0.0


def test_an_unfinished_game_is_waited_for():
    found = world(events=[game("g", at(DAY, 20), TEAMS, "Reds", hours=20)])
    assert resolve(of_event(), found, NOW) == Pending("no result yet")


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (game("g", at(DAY, 20), TEAMS, status=EventStatus.POSTPONED, resolved_at=at(DAY, 22)), "postponed"),
        (game("g", at(DAY + ONE, 4), TEAMS), "moved to another day"),
        (game("other", at(DAY, 20), TEAMS), "no longer listed"),
        (game("g", at(DAY, 15), TEAMS, "Reds"), "started before answers closed"),
        (game("g", at(DAY, 8), TEAMS, "Reds"), "known when asked"),
        (game("g", at(DAY, 20), TEAMS, "Greens"), "result is none of the options"),
    ],
)
def test_j3_j4_j6_j8_events_that_are_no_longer_what_was_asked(event, reason):
    assert resolve(of_event(), world(events=[event]), NOW) == Void(reason)


def test_an_unknown_series_is_an_error_and_not_an_answer():
    with pytest.raises(WorldError, match="no series 's'"):
        resolve(of_series(), world([series("t")], rows("t", WAVE)), NOW)
