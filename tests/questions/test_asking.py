import math
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate

import pytest
from hand_world import DAY, ONE, at, game, past_games, rows, series, world

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.questions.ask import RESAMPLED, ask
from futureworld.questions.facts import history
from futureworld.questions.filters import MAX_CHARACTERS, apply, rules
from futureworld.questions.prompts import user_text
from futureworld.records import EventStatus, Observation
from futureworld.wording import Operator

SCHEDULE = Schedule()
CONFIG = QuestionsConfig()
WAVE = [10.0, 12.5, 11.0] * 8
TOTAL = [float(value) for value in accumulate(WAVE, initial=100.0)]
"""Its increases are WAVE."""
TEAMS = ("Reds", "Blues")


def asked(found, seed=0, **changes):
    return ask(found, DAY, SCHEDULE, CONFIG.model_copy(update=changes), seed)


def one_event(event):
    winners = ["Reds", "Blues", "Blues", "Reds", "Reds", "Blues", "Reds", "Blues"]
    return asked(world(events=[*past_games(TEAMS, winners), event])).questions


def test_question_of_a_series_word_by_word():
    found = world([series(title="the price of tea", unit="EUR per kg")], rows("s", WAVE))
    first, second = sorted(asked(found).questions, key=lambda q: q.threshold)
    for question in (first, second):
        limit = f"{question.threshold:g}"
        assert question.text == f"Will the price of tea on 2026-06-10 be {question.operator} {limit} EUR per kg?"
        assert question.asked_at == at(DAY, 12)
        assert question.closes_at == at(DAY, 16)
        assert question.resolves_at == at(DAY + ONE, 12.5)
        assert question.target.date == DAY
        assert question.last_values == tuple(WAVE[-7:])
        assert question.description not in user_text(question)
    assert first.threshold != second.threshold


def test_cumulative_series_is_asked_as_its_increase():
    found = world([series(kind="cumulative", title="the number of stars")], rows("s", TOTAL))
    questions = asked(found).questions
    assert len(questions) == 2
    for question in questions:
        assert question.text.startswith("Will the daily increase of the number of stars on 2026-06-10 be ")
        assert question.last_values == tuple(WAVE[-7:])
        points = history(found, question.target, "d", question.asked_at)
        assert [point.value for point in points] == WAVE


def test_cumulative_series_with_a_missing_row_before_is_not_asked():
    late = rows("s", TOTAL, last=DAY - ONE, lag=4)  # today's row is overdue, so tomorrow's increase cannot be told
    assert asked(world([series(kind="cumulative")], late)).questions == ()
    assert asked(world([series(kind="level")], late)).questions != ()


def test_breaks_are_not_crossed():
    found = world([series(breaks=(DAY,))], rows("s", WAVE))
    assert asked(found).questions == ()


def test_history_and_movement_are_needed():
    assert asked(world([series()], rows("s", WAVE[:11]))).questions == ()
    assert len(asked(world([series()], rows("s", WAVE[:12]))).questions) == 2
    assert asked(world([series()], rows("s", [3.0] * 20))).questions == ()


def test_j8_answers_close_before_the_row_can_appear():
    found = world([series()], rows("s", WAVE, lag=13.5))
    assert {question.closes_at for question in asked(found).questions} == {at(DAY, 13.5)}


def test_j13_a_row_that_settles_late_is_not_asked_about():
    found = world([series(timing="after_day")], rows("s", WAVE, last=DAY - 2 * ONE, lag=48))
    assert asked(found).questions == ()


def test_d5_j11_ids_name_the_question_and_not_the_seed():
    found = world([series("a"), series("b")], rows("a", WAVE) + rows("b", WAVE))
    seen = [question for seed in range(30) for question in asked(found, seed).questions]
    content = {(q.target.id, q.operator, q.threshold) for q in seen}
    assert len({q.id for q in seen}) == len(content) < len(seen)
    assert len({q.id for q in asked(found).questions}) == 4
    other = world([series("a")], rows("a", WAVE))
    other._id = "elsewhere"
    assert not {q.id for q in asked(other).questions} & {q.id for q in seen}
    assert all("_" not in q.id for q in seen)


def test_the_same_day_is_asked_the_same_way_and_another_namespace_another():
    found = world([series(name) for name in "abc"], [row for name in "abc" for row in rows(name, WAVE)])
    assert asked(found) == asked(found)
    assert asked(found) != asked(found, 1)
    assert ask(found, DAY, SCHEDULE, CONFIG, 0, namespace="held-out") != asked(found)


def test_sides_and_words_are_balanced_in_a_domain():
    names = [f"s{i:02}" for i in range(40)]
    found = world([series(n) for n in names], [row for n in names for row in rows(n, WAVE)])
    for size in (40, 80):
        sides = Counter(
            (q.operator, q.operator.holds(q.last_values[-1], q.threshold)) for q in asked(found, per_day=size).questions
        )
        assert set(sides.values()) == {size // 4}


def test_everything_dropped_is_counted():
    found = world([series(name) for name in "abc"], [row for name in "abc" for row in rows(name, WAVE)])
    result = asked(found, per_day=4)
    assert result.candidates == len(result.questions) + sum(result.dropped.values()) == 6
    assert result.dropped == {RESAMPLED: 2}


def test_question_of_an_event():
    (question,) = one_event(game("g", at(DAY, 20), TEAMS))
    assert question.text == f"Will {question.target.option} win Reds v Blues (Cup) on 2026-06-10?"
    assert (question.operator, question.threshold) == (Operator.WINS, 0.5)
    assert question.closes_at == at(DAY, 16)
    assert question.last_values in ((0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0), (1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0))


def test_j8_an_event_closes_at_its_start():
    (question,) = one_event(game("g", at(DAY, 13), TEAMS))
    assert question.closes_at == at(DAY, 13)


@pytest.mark.parametrize(
    "event",
    [
        game("g", at(DAY, 12), TEAMS),  # starts when asked
        game("g", at(DAY + ONE, 10), TEAMS),  # ends at 13:00, past 12:30
        game("g", at(DAY, 17), TEAMS, minute_known=False),  # date only, and no such game is known to compare with
        game("g", at(DAY, 9), TEAMS, "Reds"),  # j3: decided
        game("g", at(DAY, 20), TEAMS, known_from=at(DAY, 13)),  # j10: not announced yet
        game("g", at(DAY, 20), ("Greens", "Greys")),  # nothing known of them
    ],
)
def test_j3_j10_events_that_are_not_asked_about(event):
    assert one_event(event) == ()


def test_j9_an_end_that_cannot_be_told_is_not_guessed():
    few = past_games(TEAMS, ["Reds", "Blues", "Reds", "Blues"])
    found = world(events=[*few, game("g", at(DAY, 20), TEAMS)])
    assert asked(found, min_results=1).questions == ()


def test_j3_a_market_that_may_settle_early_is_not_asked_about():
    options = ("Yes", "No")
    past = past_games(options, ["Yes", "No"] * 5)
    assert asked(world(events=[*past, game("g", at(DAY, 20), options)])).questions == ()


def test_a_draw_is_never_the_option_and_counts_as_no():
    options = ("Reds", "Draw", "Blues")
    winners = ["Reds", "Draw", "Blues", "Reds", "Draw", "Blues", "Reds"]
    found = world(events=[*past_games(options, winners), game("g", at(DAY, 20), options)])
    seen = {question.target.option: question.text for seed in range(10) for question in asked(found, seed).questions}
    assert set(seen) <= {"Reds", "Blues"}
    assert all(text.endswith("? A draw counts as No.") for text in seen.values())


def test_of_a_large_field_recent_winners_are_asked_about():
    field = ("ann-lee", "bob", "cat", "dan")
    winners = ["ann-lee", "bob"] * 5
    found = world(events=[*past_games(field, winners), game("g", at(DAY, 20), field, title="final")])
    questions = [question for seed in range(10) for question in asked(found, seed).questions]
    assert {question.target.option for question in questions} <= {"ann-lee", "bob"}
    assert {question.text.split(" win ")[0] for question in questions} <= {"Will Ann Lee", "Will Bob"}


def test_two_games_of_a_pair_on_one_day_are_told_apart():
    past = past_games(TEAMS, ["Reds", "Blues"] * 5)
    found = world(events=[*past, game("g1", at(DAY, 14), TEAMS), game("g2", at(DAY, 20), TEAMS)])
    texts = [question.text for question in asked(found).questions]
    assert sorted(text.split(" on ")[1] for text in texts) == [
        "2026-06-10, starting 14:00 UTC?",
        "2026-06-10, starting 20:00 UTC?",
    ]


def test_options_are_chosen_so_that_last_results_even_out():
    past = past_games(TEAMS, ["Reds", "Blues"] * 5)
    ahead = [game(f"g{i}", at(DAY, 13 + i / 2), TEAMS) for i in range(10)]
    questions = asked(world(events=[*past, *ahead])).questions
    assert Counter(question.last_values[-1] for question in questions) == {1.0: 5, 0.0: 5}


def test_filters_drop_what_must_not_be_asked():
    past = past_games(TEAMS, ["Reds", "Blues"] * 5)
    full = [series()], rows("s", WAVE), [*past, game("g", at(DAY, 20), TEAMS)]
    found = world(*full)
    by_kind = {question.resolver: question for question in asked(found).questions}
    good, event = by_kind["series"], by_kind["event"]
    bad = {
        "duplicate: same text": good,
        "well_formed: threshold or step is not a positive finite number": replace(good, threshold=math.nan),
        "well_formed: its day has ended": replace(good, target=replace(good.target, date=DAY - ONE)),
        "well_formed: the text holds the description": replace(good, text=good.text + good.description),
        "length: too long": replace(good, text="x" * (MAX_CHARACTERS + 1)),
        "undecided: no such event": replace(event, target=replace(event.target, id="other")),
        "undecided: no such option": replace(event, target=replace(event.target, option="Greens")),
        "undecided: starts before answers close": replace(event, closes_at=at(DAY, 21)),
    }
    kept, dropped = apply(rules(found, at(DAY, 12)), [good, *bad.values()])
    assert kept == [good]
    assert dropped == dict.fromkeys(bad, 1)


def test_j3_what_is_published_or_decided_is_filtered():
    found = world(
        [series()], rows("s", WAVE), [*past_games(TEAMS, ["Reds", "Blues"] * 5), game("g", at(DAY, 20), TEAMS)]
    )
    by_kind = {question.resolver: question for question in asked(found).questions}
    later = world(
        [series()],
        [*rows("s", WAVE), Observation("s", DAY, 1.0, at(DAY, 11))],
        [game("g", at(DAY, 8), TEAMS, "Reds")],
    )
    _, dropped = apply(rules(later, at(DAY, 12)), by_kind.values())
    assert dropped == {"undecided: already published": 1, "undecided: already decided": 1}


def test_j6_a_postponed_game_is_not_asked_about():
    event = game("g", at(DAY, 20), TEAMS, status=EventStatus.POSTPONED, resolved_at=at(DAY, 8))
    assert one_event(event) == ()
    assert len(one_event(replace(event, resolved_at=at(DAY, 8) + timedelta(days=1)))) == 1
