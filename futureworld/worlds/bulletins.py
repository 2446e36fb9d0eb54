"""Bulletins: documents written from rows that were already published, for worlds without texts.

One for each domain and UTC day on which rows came out. It is dated when the last of its rows came
out, so it holds nothing that could not be read elsewhere in the world at that moment.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime

from futureworld.records import Document, Event, EventStatus, Observation, Series

PUBLISHER = "world bulletin"


def bulletins(
    series: Mapping[str, Series], observations: Iterable[Observation], events: Iterable[Event]
) -> list[Document]:
    """One document per domain and day of publication, in no order."""
    lines: dict[tuple[str, str, date], list[tuple[str, datetime]]] = defaultdict(list)
    units = {key: _unit(about) for key, about in series.items()}
    for row in observations:
        about, day = series[row.series_id], row.published_at.date()
        on = "" if row.date == day else f" on {row.date}"
        line = f"{about.title}{on}: {row.value:.12g}{units[row.series_id]}"
        lines[about.domain, "values", day].append((line, row.published_at))
    for event in events:
        if event.resolved_at is not None:
            key = (event.domain, "results", event.resolved_at.date())
            lines[key].append((_result(event), event.resolved_at))
    return [_bulletin(*key, found) for key, found in lines.items()]


def _unit(series: Series) -> str:
    return "" if series.unit.lower() in series.title.lower() else f" {series.unit}"


def _result(event: Event) -> str:
    said = "postponed" if event.status is EventStatus.POSTPONED else event.outcome
    return f"{event.competition}, {event.date}, {event.title}: {said}"


def _bulletin(domain: str, what: str, day: date, lines: list[tuple[str, datetime]]) -> Document:
    name = f"bulletin-{domain}-{what}-{day}"
    text = "; ".join(sorted(line for line, _ in lines))
    return Document(
        id=name,
        title=f"{domain.capitalize()}: {what} published on {day}",
        url=f"world://bulletin/{domain}/{what}/{day}",
        text=f"{text}. Of {day} where no other day is named. Written from the rows of this world.",
        published_at=max(moment for _, moment in lines),
        publisher=PUBLISHER,
    )
