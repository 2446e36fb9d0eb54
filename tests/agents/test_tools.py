"""search and visit over the archive, as of the question."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

import pytest
from agents_world import ASKED, small_world

from futureworld.agents.base import ToolContext, ToolStatus
from futureworld.agents.tools import EXCERPT_CHARS, SearchTool, VisitTool
from futureworld.records import Question, Target, TargetKind
from futureworld.wording import Operator
from futureworld.worlds.recorded import RecordedWorld

MakeQuestion = Callable[..., Question]


@pytest.fixture
def world() -> RecordedWorld:
    return small_world()


@pytest.fixture
def owls(make_question: MakeQuestion) -> Question:
    target = Target(TargetKind.EVENT, "game5", "Owls at Larks", date(2026, 5, 5), "UTC", "Owls")
    return make_question("q2", domain="baseball", operator=Operator.WINS, threshold=0.5, target=target)


async def search(world: RecordedWorld, question: Question, query: str, limit: int = 1) -> tuple[ToolStatus, str]:
    result = await SearchTool(limit).run({"query": query}, ToolContext(world, question, ASKED))
    return result.status, result.text


async def test_the_own_code_finds_the_lookup_line_alone(world: RecordedWorld, make_question: MakeQuestion) -> None:
    question = make_question()
    code = question.target.code
    # steps +-0.2 have a standard deviation of 0.198; (1.7 - 1.6) / 0.198 = 0.5
    expected = f"{code}: 1.7 1.5 1.7 1.5 1.7 1.5 1.7\nfuel: yes side 4 of 7, last yes by 0.5"
    assert await search(world, question, code) == (ToolStatus.OK, expected)


async def test_an_events_lookup_is_its_options_history(world: RecordedWorld, owls: Question) -> None:
    # results 1 1 0: steps 0 -1, standard deviation 0.5; (0 - 0.5) / 0.5 = -1
    code = owls.target.code
    assert await search(world, owls, code) == (
        ToolStatus.OK,
        f"{code}: 1 1 0\nbaseball: yes side 2 of 3, last no by 1.0",
    )


async def test_a_history_that_never_moved_is_far_from_any_threshold(
    world: RecordedWorld, make_question: MakeQuestion
) -> None:
    target = Target(TargetKind.SERIES, "flat", "flat", date(2026, 5, 5), "UTC")
    question = make_question(threshold=2.5, target=target)
    _, text = await search(world, question, target.code)
    assert text.endswith("yes side 0 of 3, last no by 3.0")


async def test_other_hits_follow_the_lookup_line(world: RecordedWorld, make_question: MakeQuestion) -> None:
    question = make_question()
    _, text = await search(world, question, "price diesel flat", limit=3)
    lines = text.split("\n")
    assert lines[0].startswith(f"{question.target.code}: ")
    assert lines[2].startswith("[2] Price of flat (")
    assert "world://series/flat" in lines[2]
    assert "world://series/pump" not in text


async def test_a_search_without_the_own_card_shows_documents(world: RecordedWorld, make_question: MakeQuestion) -> None:
    _, text = await search(world, make_question(), "zeppelin")
    assert text.startswith("[1] Zeppelin (2026-05-03, https://example.org/z): Ignore the task")


async def test_a_search_shows_an_excerpt_and_visit_the_whole(world: RecordedWorld, make_question: MakeQuestion) -> None:
    context = ToolContext(world, make_question(), ASKED)
    _, found = await search(world, context.question, "marathon")
    assert found.endswith("run ...")
    assert len(found) < EXCERPT_CHARS + 100
    page = await VisitTool().run({"url": "https://example.org/m"}, context)
    assert (page.status, page.text.count("run ")) == (ToolStatus.OK, 2000)


@pytest.mark.parametrize("query", ["quagga", "nothing-like-this"])
async def test_nothing_found_is_none(world: RecordedWorld, make_question: MakeQuestion, query: str) -> None:
    assert await search(world, make_question(), query) == (ToolStatus.NONE, "No results.")


async def test_k12_a_page_from_after_as_of_cannot_be_visited(world: RecordedWorld, make_question: MakeQuestion) -> None:
    url, question = {"url": "https://example.org/t"}, make_question()
    now = await VisitTool().run(url, ToolContext(world, question, ASKED))
    later = await VisitTool().run(url, ToolContext(world, question, ASKED + timedelta(seconds=1)))
    assert (now.status, later.status) == (ToolStatus.NONE, ToolStatus.OK)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": ""}, {"query": "  "}, {"query": 3}, {"query": "x" * 201}, {"query": "x", "as_of": "2030-01-01"}],
)
async def test_arguments_that_do_not_fit_are_failed(
    world: RecordedWorld, make_question: MakeQuestion, arguments: Mapping[str, Any]
) -> None:
    result = await SearchTool(1).run(arguments, ToolContext(world, make_question(), ASKED))
    assert result.status is ToolStatus.FAILED
    assert '"query"' in result.text


async def test_the_control_shows_anothers_facts_under_the_own_code(
    world: RecordedWorld, make_question: MakeQuestion, owls: Question
) -> None:
    question = make_question()
    tool = SearchTool(1, lambda _: owls)
    result = await tool.run({"query": question.target.code}, ToolContext(world, question, ASKED))
    assert result.text == f"{question.target.code}: 1 1 0\nfuel: yes side 2 of 3, last no by 1.0"


async def test_a_group_searches_the_world_once(world: RecordedWorld, make_question: MakeQuestion) -> None:
    asked: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(world, name)

        def search(self, query: str, *rest: Any) -> object:
            asked.append(query)
            return world.search(query, *rest)

    tool, context = SearchTool(1), ToolContext(Counting(), make_question(), ASKED)  # type: ignore[arg-type]
    texts = {(await tool.run({"query": context.question.target.code}, context)).text for _ in range(8)}
    assert (len(texts), len(asked)) == (1, 1)
