from datetime import date, timedelta

from hand_world import DAY, ONE, at, rows, series

from futureworld.clock import Schedule
from futureworld.questions.due import next_due, quantile, weekday_pattern
from futureworld.records import Observation

NOON = at(DAY, 12)  # 20:00 in Shanghai


def weekly(day: date) -> bool:
    return day.weekday() == 6


def test_the_days_own_row_while_it_is_still_to_come():
    due = next_due(series(), rows("s", range(20), lag=15), NOON)
    assert due is not None
    assert (due.date, due.earliest, due.expected) == (DAY, at(DAY, 15), at(DAY, 15))


def test_tomorrows_row_where_todays_is_out():
    due = next_due(series(), rows("s", range(20), last=DAY, lag=4), NOON)
    assert due is not None and due.date == DAY + ONE


def test_row_of_an_ended_day_is_stale_and_not_asked_about():
    # Published 13 hours after the day ended: yesterday's row is not out yet, but yesterday is over.
    due = next_due(series(timing="after_day"), rows("s", range(20), last=DAY - 2 * ONE, lag=37), NOON)
    assert due is not None
    assert due.date == DAY
    assert due.expected == at(DAY, 37) > Schedule().resolves_at(DAY)


def test_after_day_row_is_expected_the_next_morning():
    due = next_due(series(timing="after_day"), rows("s", range(20), lag=25), at(DAY, 12))
    assert due is not None
    assert due.date == DAY
    assert due.expected == at(DAY + ONE, 1) < Schedule().resolves_at(DAY)


def test_before_day_row_is_asked_about_ahead():
    # Known 11 hours before its day began, so at noon that of tomorrow is out only an hour later.
    due = next_due(series(timing="before_day"), rows("s", range(20), last=DAY, lag=-11), NOON)
    assert due is not None
    assert (due.date, due.earliest) == (DAY + ONE, at(DAY, 13))


def test_late_row_whose_value_exists_is_passed_over():
    due = next_due(series(), rows("s", range(20), lag=4), NOON)
    assert due is not None and due.date == DAY + ONE


def test_stopped_series_is_not_asked_about():
    assert next_due(series(), rows("s", range(20), last=DAY - 3 * ONE, lag=4), NOON) is None
    assert next_due(series(), [], NOON) is None


def test_weekday_pattern_of_business_days_and_weeks():
    business = [DAY - timedelta(days=i) for i in range(40) if (DAY - timedelta(days=i)).weekday() < 5][::-1]
    assert weekday_pattern(business) == {0, 1, 2, 3, 4}
    holiday = [day for day in business if day != DAY - timedelta(weeks=2)]
    assert weekday_pattern(holiday) == {0, 1, 2, 3, 4}
    sundays = [DAY - timedelta(days=i) for i in range(60) if weekly(DAY - timedelta(days=i))][::-1]
    assert weekday_pattern(sundays) == {6}


def test_friday_evening_is_followed_by_monday():
    friday = date(2026, 6, 5)
    days = [friday - timedelta(days=i) for i in reversed(range(40)) if (friday - timedelta(days=i)).weekday() < 5]
    found = [Observation("s", day, 1.0, at(day, 15)) for day in days]
    due = next_due(series(calendar="business days"), found, at(friday, 18))
    assert due is not None and due.date == date(2026, 6, 8)


def test_week_is_asked_about_until_its_last_day_is_over():
    sunday = date(2026, 6, 7)
    found = [Observation("s", sunday - timedelta(weeks=i), 1.0, at(sunday - timedelta(weeks=i), 20)) for i in range(8)]
    due = next_due(series(calendar="weekly"), found[::-1], NOON)
    assert due is not None and due.date == date(2026, 6, 14)


def test_one_early_row_moves_the_earliest_and_one_late_row_not_the_expected():
    lags = [15.0] * 18 + [13.0, 30.0]
    found = [
        Observation("s", DAY - timedelta(days=20 - i), 1.0, at(DAY - timedelta(days=20 - i), lag))
        for i, lag in enumerate(lags)
    ]
    due = next_due(series(), found, NOON)
    assert due is not None
    assert (due.earliest, due.expected) == (at(DAY, 13), at(DAY, 15))


def test_quantile_is_nearest_rank():
    hours = [timedelta(hours=i) for i in range(1, 11)]
    assert quantile(hours, 0.9) == timedelta(hours=9)
    assert quantile(hours[:1], 0.9) == timedelta(hours=1)


def test_j7_lags_follow_the_zone_over_summer_time():
    # 06:00 in New York every day; clocks go forward on 2026-03-08, a day of 23 hours.
    zone = "America/New_York"
    day = date(2026, 3, 9)
    found = [Observation("s", day - timedelta(days=i), 1.0, at(day - timedelta(days=i), 11)) for i in range(2, 15)]
    due = next_due(series(zone=zone), found[::-1], at(day - ONE, 9))
    assert due is not None
    # 2026-03-08 began at 05:00 UTC; six hours later it is 11:00 UTC there and then.
    assert (due.date, due.expected) == (date(2026, 3, 8), at(date(2026, 3, 8), 11))


def test_j7_schedule_reads_wall_clocks():
    berlin = Schedule(zone="Europe/Berlin")
    assert berlin.asked_at(date(2026, 3, 28)) == at(date(2026, 3, 28), 19)
    assert berlin.resolves_at(date(2026, 3, 28)) == at(date(2026, 3, 29), 18.5)
