"""Makes the almanac, the world that ships inside the package, from the recorded world of 2026.

Facts and figures only: no headlines, no rankings, no details of results. Titles are written here.
Run it again and the files are the same, byte for byte.
"""

import argparse
import csv
import gzip
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

SERIES_ORIGINS = {
    "lykmapipo/US-Gas-Prices": "fuel",
    "dmossop/weather-data": "weather",
    "EvanLi/Github-Ranking": "software",
    "European Central Bank": "fx",
    "datasets/oil-prices": "energy",
    "datasets/natural-gas": "energy",
    "datasets/finance-vix": "volatility",
    "simonw/usgs-scraper": "earthquakes",
    "chaowang15/chaowang15.github.io": "news",
    "robert-koch-institut/GrippeWeb_Daten_des_Wochenberichts": "health",
    "cdcepi/FluSight-forecast-hub": "health",
    "karagemop466-tech/mlb-daily-results": "totals",
}
EVENT_ORIGINS = {
    "karagemop466-tech/mlb-daily-results": "baseball",
    "ismayc/wnba-schedule": "basketball",
    "ismayc/nba-schedule": "basketball",
    "ismayc/ismayc.github.io": "basketball",
    "openfootball/worldcup.json": "soccer",
    "openfootball/football.json": "soccer",
    "martj42/international_results": "soccer",
    "f1db/f1db": "racing",
}
ECB = "European Central Bank"
COLUMNS = ("series_id", "date", "value", "published_at")

CURRENCIES = {
    "aud": "Australian dollars", "brl": "Brazilian reais", "cad": "Canadian dollars", "chf": "Swiss francs",
    "cny": "Chinese yuan", "czk": "Czech koruny", "dkk": "Danish kroner", "gbp": "British pounds",
    "hkd": "Hong Kong dollars", "huf": "Hungarian forints", "idr": "Indonesian rupiah", "ils": "Israeli shekels",
    "inr": "Indian rupees", "isk": "Icelandic kronur", "jpy": "Japanese yen", "krw": "South Korean won",
    "mxn": "Mexican pesos", "myr": "Malaysian ringgit", "nok": "Norwegian kroner", "nzd": "New Zealand dollars",
    "php": "Philippine pesos", "pln": "Polish zlotys", "ron": "Romanian lei", "sek": "Swedish kronor",
    "sgd": "Singapore dollars", "thb": "Thai baht", "try": "Turkish lira", "usd": "US dollars",
    "zar": "South African rand",
}  # fmt: skip
STATES = {
    "ak": "Alaska", "al": "Alabama", "ar": "Arkansas", "az": "Arizona", "ca": "California", "co": "Colorado",
    "ct": "Connecticut", "dc": "the District of Columbia", "de": "Delaware", "fl": "Florida", "ga": "Georgia",
    "hi": "Hawaii", "ia": "Iowa", "id": "Idaho", "il": "Illinois", "in": "Indiana", "ks": "Kansas",
    "ky": "Kentucky", "la": "Louisiana", "ma": "Massachusetts", "md": "Maryland", "me": "Maine", "mi": "Michigan",
    "mn": "Minnesota", "mo": "Missouri", "ms": "Mississippi", "mt": "Montana", "nc": "North Carolina",
    "nd": "North Dakota", "ne": "Nebraska", "nh": "New Hampshire", "nj": "New Jersey", "nm": "New Mexico",
    "nv": "Nevada", "ny": "New York", "oh": "Ohio", "ok": "Oklahoma", "or": "Oregon", "pa": "Pennsylvania",
    "ri": "Rhode Island", "sc": "South Carolina", "sd": "South Dakota", "tn": "Tennessee", "tx": "Texas",
    "ut": "Utah", "va": "Virginia", "vt": "Vermont", "wa": "Washington State", "wi": "Wisconsin",
    "wv": "West Virginia", "wy": "Wyoming",
}  # fmt: skip
WEATHER = {
    "pressure": ("the air pressure at sea level", "hPa"),
    "temp": ("the air temperature", "degrees Celsius"),
    "wind": ("the wind speed", "metres per second"),
}
AGES = {
    "00_": "people of all ages", "0_4": "children aged 0 to 4", "5_14": "children aged 5 to 14",
    "0_14": "children aged 0 to 14", "15_": "people aged 15 and over", "15_34": "people aged 15 to 34",
    "35_59": "people aged 35 to 59", "60_": "people aged 60 and over",
}  # fmt: skip
ILLNESS = {"are": "acute respiratory illness", "ili": "influenza-like illness"}
SINGLE = {
    "energy.brent": ("the spot price of Brent crude oil", "USD per barrel"),
    "energy.wti": ("the spot price of WTI crude oil at Cushing", "USD per barrel"),
    "energy.henryhub": ("the spot price of natural gas at Henry Hub", "USD per million BTU"),
    "vol.vix.close": ("the closing level of the VIX volatility index", "index points"),
    "vol.vix.high": ("the daily high of the VIX volatility index", "index points"),
    "vol.vix.low": ("the daily low of the VIX volatility index", "index points"),
    "hn.best.medcomments": ("the median number of comments on the best list of Hacker News", "comments"),
    "hn.best.over300": ("the number of stories with a score of 300 or more on the best list of Hacker News", "stories"),
    "hn.best.topscore": ("the highest score on the best list of Hacker News", "score"),
    "mlb.daily.extra": ("the number of MLB games that go to extra innings", "games"),
    "mlb.daily.games": ("the number of MLB games finished", "games"),
    "mlb.daily.homewins": ("the number of MLB games won by the home team", "games"),
    "mlb.daily.runs": ("the total number of runs in MLB games", "runs"),
    "mlb.daily.shutouts": ("the number of MLB games in which one side scores no run", "games"),
    "quake.maxmag": ("the largest earthquake magnitude worldwide", "magnitude"),
}
QUAKES = {
    "m25": "2.5 or more worldwide", "m45": "4.5 or more worldwide", "m50": "5.0 or more worldwide",
    "alaska": "2.5 or more in Alaska", "california": "2.5 or more in California",
    "indonesia": "2.5 or more in Indonesia", "japan": "2.5 or more in Japan",
    "puertorico": "2.5 or more near Puerto Rico", "texas": "2.5 or more in Texas",
}  # fmt: skip


def title_and_unit(series_id: str, given: str) -> tuple[str, str]:
    """A plain noun phrase that reads inside "Will ... on 2026-05-05 be above 4.8?", and its unit.

    `given` is the title in the source; only the name of a repository is taken from it.
    """
    if series_id in SINGLE:
        return SINGLE[series_id]
    first, *middle, last = series_id.split(".")
    match first:
        case "fuel":
            kind = "regular gasoline" if middle[-1] == "regular" else "diesel"
            return f"the average price of {kind} in {STATES[last]}", "USD per gallon"
        case "fx":
            return f"the ECB reference rate of the euro in {CURRENCIES[last]}", CURRENCIES[last]
        case "github":
            return f"the number of GitHub stars of {given.rsplit(maxsplit=1)[-1]}", "stars"
        case "quake":
            return f"the number of earthquakes of magnitude {QUAKES[last]}", "earthquakes"
        case "weather":
            what, unit = WEATHER[last]
            return f"{what} in {_name(middle[-1])} in the morning", unit
    if middle[0] == "de":
        return f"the weekly incidence of {ILLNESS[middle[1]]} among {AGES[last]} in Germany", "per 100,000"
    place = "the United States" if last == "us" else _name(last)
    return f"the weekly number of influenza hospital admissions in {place}", "admissions"


def _name(slug: str) -> str:
    return " ".join(word.capitalize() for word in re.split("[_-]", slug))


def series_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = []
    for row in rows:
        origin = ECB if row["source_repo"].startswith(ECB) else row["source_repo"]
        if origin in SERIES_ORIGINS:
            title, unit = title_and_unit(row["id"], row["title"])
            about = {"title": title, "unit": unit, "domain": SERIES_ORIGINS[origin], "source_repo": origin}
            kept.append({name: row[name] for name in ("id", "zone", "calendar", "timing", "kind")} | about)
    return sorted(kept, key=lambda row: row["id"])


def event_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fixtures and results. The rows of postponed games are left out: the source dates them on the
    day of the later game, so they say that a game was put off on the very day it was played."""
    kept = []
    for row in rows:
        if row["source_repo"] not in EVENT_ORIGINS or row["status"] == "postponed":
            continue
        racing = row["source_repo"] == "f1db/f1db"
        names = ("id", "date", "known_from", "scheduled_at", "status", "resolved_at", "source_repo")
        about = {name: row[name] for name in names} | {"domain": EVENT_ORIGINS[row["source_repo"]]}
        about["schedule_precision"] = row["schedule_precision"].split(" ")[0]
        about["competition"] = competition(row["competition"])
        about["title"] = race(row["title"]) if racing else row["title"]
        about["options"] = [_name(option) if racing else option for option in row["options"]]
        about["outcome"] = _name(row["outcome"]) if racing else row["outcome"]
        kept.append(about)
    return sorted(kept, key=lambda row: (row["scheduled_at"], row["id"]))


def competition(text: str) -> str:
    """Season or tournament, without what was only known when a game was moved."""
    text = re.sub(r" \((Makeup|AT&T)[^)]*\)| 20\d\d-\d\d\b", "", text)
    words = {"playin": "play-in", "regular": "regular season", "allstar": "All-Star game"}
    return " ".join(words.get(word, word) for word in text.replace("regular season", "regular").split(" "))


def race(text: str) -> str:
    """A race's name without series and year, which stand in its competition."""
    return re.sub(r"^Formula 1 | 2026(?=:)", "", text)


def observation_rows(rows: Iterable[dict[str, str]], kept: set[str]) -> list[dict[str, str]]:
    found = [row for row in rows if row["series_id"] in kept]
    return sorted(found, key=lambda row: (row["series_id"], row["date"]))


def read_lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [json.loads(line) for line in text.split("\n") if line]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)
    write(path, text)


def write(path: Path, text: str) -> None:
    """Gzip without name and time, so that equal rows give equal bytes."""
    data = text.encode()
    path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0) if path.suffix == ".gz" else data)


def make(source: Path, target: Path) -> None:
    """Writes the four files of the almanac into `target`; ATTRIBUTION.md beside them is kept by hand."""
    target.mkdir(parents=True, exist_ok=True)
    series = series_rows(read_lines(source / "series.jsonl"))
    with gzip.open(source / "observations.csv.gz", "rt", newline="") as stream:
        observations = observation_rows(csv.DictReader(stream), {row["id"] for row in series})
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([row[name] for name in COLUMNS] for row in observations)
    write(target / "world.json", json.dumps({"name": "almanac", "bulletins": True}) + "\n")
    write_lines(target / "series.jsonl", series)
    write(target / "observations.csv.gz", table.getvalue())
    write_lines(target / "events.jsonl.gz", event_rows(read_lines(source / "events.jsonl.gz")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, default=ROOT.parent / "shared/worlds/2026")
    parser.add_argument("--to", dest="target", type=Path, default=ROOT / "futureworld/worlds/almanac")
    arguments = parser.parse_args()
    make(arguments.source, arguments.target)


if __name__ == "__main__":
    main()
