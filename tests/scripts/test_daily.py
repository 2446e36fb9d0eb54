"""The two daily jobs, with a stand-in for `futureworld` that writes down its calls and fails where it is told."""

import fcntl
import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts" / "daily"
DAY = "2026-05-04"

STAND_IN = """\
#!/usr/bin/env bash
echo "$*" >> "$CALLS"
echo "said by $1"
left=$(cat "$CALLS.fail.$1" 2>/dev/null || echo 0)
[ "$left" = 0 ] && exit 0
echo $((left - 1)) > "$CALLS.fail.$1"
echo "$1: no luck" >&2
exit 3
"""


@dataclass(frozen=True)
class Desk:
    """A run folder, a configuration and a stand-in command in one place."""

    folder: Path

    @property
    def run(self) -> Path:
        return self.folder / "the run"

    @property
    def config(self) -> Path:
        return self.folder / "config file.yaml"

    def fail(self, stage: str, times: int) -> None:
        (self.folder / f"calls.fail.{stage}").write_text(str(times))

    def calls(self) -> list[str]:
        """Every call, with the folders' names cut short."""
        path = self.folder / "calls"
        text = path.read_text() if path.exists() else ""
        return text.replace(str(self.run), "RUN").replace(str(self.config), "CONFIG").splitlines()

    def log(self, job: str, day: str = DAY) -> str:
        return (self.run / "logs" / "daily" / f"{job}-{day}.log").read_text()

    def do(self, script: str, *arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "FUTUREWORLD": str(self.folder / "futureworld"), "PAUSE": "0"}
        environment |= {"CALLS": str(self.folder / "calls"), "WAIT": "0"} | settings
        return subprocess.run(
            [SCRIPTS / script, *arguments],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    command = tmp_path / "futureworld"
    command.write_text(STAND_IN)
    command.chmod(0o755)
    return Desk(tmp_path)


def existing(desk: Desk) -> Desk:
    desk.run.mkdir()
    (desk.run / "config.yaml").touch()
    return desk


def test_the_first_evening_checks_the_configuration_and_makes_the_run(desk: Desk) -> None:
    result = desk.do("ask.sh", desk.run, desk.config, DAY)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert desk.calls() == [
        "replay --dry-run --config CONFIG",
        f"collect --run RUN --day {DAY} --config CONFIG",
        f"ask --run RUN --day {DAY} --config CONFIG",
        f"predict --run RUN --day {DAY}",
    ]
    log = desk.log("ask")
    assert log.index("said by collect") < log.index("said by predict") < log.index(f"ask {DAY}: done")


def test_a_later_evening_does_not_check_again(desk: Desk) -> None:
    assert existing(desk).do("ask.sh", desk.run, desk.config, DAY).returncode == 0
    assert [call.split()[0] for call in desk.calls()] == ["collect", "ask", "predict"]


def test_the_second_job_resolves_and_updates(desk: Desk) -> None:
    assert existing(desk).do("learn.sh", desk.run, DAY).returncode == 0
    assert desk.calls() == [f"resolve --run RUN --day {DAY}", f"update --run RUN --day {DAY}"]


def test_a_stage_that_failed_is_tried_again(desk: Desk) -> None:
    existing(desk).fail("predict", 2)
    result = desk.do("ask.sh", desk.run, desk.config, DAY)
    assert (result.returncode, result.stderr) == (0, "")
    assert [call.split()[0] for call in desk.calls()] == ["collect", "ask", "predict", "predict", "predict"]
    assert "predict, try 3" in desk.log("ask")


def test_a_stage_that_keeps_failing_ends_the_job_with_its_code(desk: Desk) -> None:
    existing(desk).fail("resolve", 9)
    result = desk.do("learn.sh", desk.run, DAY, TRIES="2")
    assert result.returncode == 3
    assert [call.split()[0] for call in desk.calls()] == ["resolve", "resolve"]  # and no update
    assert f"learn {DAY}: resolve failed 2 times, the last with code 3; see " in result.stderr
    assert "resolve: no luck" in desk.log("learn")


def test_a_refused_configuration_starts_nothing(desk: Desk) -> None:
    desk.fail("replay", 1)
    result = desk.do("ask.sh", desk.run, desk.config, DAY)
    assert result.returncode == 3
    assert "was refused" in result.stderr
    assert [call.split()[0] for call in desk.calls()] == ["replay"]


def test_the_same_evening_again_does_the_same_and_adds_to_the_log(desk: Desk) -> None:
    existing(desk)
    for _ in range(2):
        assert desk.do("learn.sh", desk.run, DAY).returncode == 0
    assert desk.calls() == [f"resolve --run RUN --day {DAY}", f"update --run RUN --day {DAY}"] * 2
    assert desk.log("learn").count("done") == 2


def test_two_jobs_at_once_are_one_after_the_other_or_none(desk: Desk) -> None:
    (existing(desk).run / "logs" / "daily").mkdir(parents=True)
    with (desk.run / "logs" / "daily" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = desk.do("learn.sh", desk.run, DAY)
    assert result.returncode == 75
    assert "still holds the run after 0 s; nothing was done" in result.stderr
    assert desk.calls() == []
    assert desk.do("learn.sh", desk.run, DAY).returncode == 0  # the lock is free again


def test_what_a_stage_leaves_running_does_not_hold_the_lock(desk: Desk) -> None:
    command = desk.folder / "futureworld"
    command.write_text('#!/usr/bin/env bash\nsleep 60 &\necho $! >> "$CALLS"\n')
    try:
        assert existing(desk).do("learn.sh", desk.run, DAY).returncode == 0
        assert desk.do("learn.sh", desk.run, DAY).returncode == 0
    finally:
        for left in desk.calls():
            os.kill(int(left), 9)


def test_today_is_the_schedule_s_day(desk: Desk) -> None:
    before = datetime.now(UTC) + timedelta(hours=8)  # Asia/Shanghai has no summer time
    assert existing(desk).do("learn.sh", desk.run).returncode == 0
    after = datetime.now(UTC) + timedelta(hours=8)
    day = desk.calls()[0].split()[-1]
    assert day in {before.date().isoformat(), after.date().isoformat()}


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("ask.sh", []),
        ("ask.sh", ["run"]),
        ("ask.sh", ["run", "config", DAY, "more"]),
        ("learn.sh", []),
        ("learn.sh", ["run", "yesterday"]),
    ],
)
def test_a_wrong_call_is_explained(desk: Desk, script: str, arguments: list[str]) -> None:
    result = desk.do(script, *arguments)
    assert result.returncode == 64
    assert any(words in result.stderr for words in ("scripts/daily/", "not of the form", "no run folder"))
    assert desk.calls() == []
