"""The token policy on a scripted engine: no Ray, no vLLM."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from chat_policy import TOOLS, tiny_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from futureworld.agents.base import Feedback, Sampling, Turn, TurnEnd
from futureworld.errors import EngineError, PolicyError
from futureworld.records import Message, Role
from verl_tool_future.templates import TemplateRenderer
from verl_tool_future.token_policy import TokenPolicy

OPENING = (Message("system", "You forecast."), Message("user", "Rain?"))
RESULT = Feedback("tool", "wet", "search", "ok")
TOKENIZER = tiny_tokenizer()
EOS = TOKENIZER.eos_token_id
RENDERER = TemplateRenderer(TOKENIZER)
ROOM = 512


@dataclass
class Output:
    token_ids: list[int]
    log_probs: list[float] | None
    stop_reason: str | None = "completed"
    extra_fields: dict[str, Any] = field(default_factory=lambda: {"global_steps": 3})


@dataclass
class Script:
    """Plays turns in order and keeps what it was asked."""

    turns: list[Output]
    asked: list[tuple[str, list[int], dict[str, Any]]] = field(default_factory=list)

    async def __call__(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Output:
        self.asked.append((request_id, list(prompt_ids), dict(sampling_params)))
        sampling_params.clear()  # verl's server writes into the dict it gets
        return self.turns[len(self.asked) - 1]


def turn(ids: list[int]) -> Output:
    return Output(ids, [-0.5] * len(ids))


def text_turn(text: str) -> Output:
    return turn([*TOKENIZER.encode(text, add_special_tokens=False), EOS])


def conversation(*turns: Output, sampling: Sampling = Sampling(), room: int = ROOM) -> tuple[Any, Script]:  # noqa: B008
    script = Script(list(turns))
    policy = TokenPolicy(script, RENDERER, name="tiny", version=3, room=room)
    return policy.open(OPENING, TOOLS, sampling, "r1"), script


async def test_a1_sampled_ids_stay_although_their_text_encodes_otherwise() -> None:
    sampled = [TOKENIZER.convert_tokens_to_ids("a"), TOKENIZER.convert_tokens_to_ids("b")]
    assert TOKENIZER.encode("ab", add_special_tokens=False) != sampled
    talk, _ = conversation(turn([*sampled, EOS]))
    assert await talk.next([], 48) == Turn("ab", (), TurnEnd.CLOSED)
    assert talk.tape().ids == (*sampled, EOS)


async def test_b1_only_what_the_engine_returned_is_policy() -> None:
    first, second = text_turn("look"), text_turn("so")
    talk, script = conversation(first, second)
    await talk.next([], 48)
    await talk.next([RESULT], 48)
    tape = talk.tape()
    added = RENDERER.feedback_ids([RESULT], EOS)
    assert tape.ids == (*first.token_ids, *added, *second.token_ids)
    assert [(span.role, span.end - span.start) for span in tape.spans] == [
        (Role.POLICY, len(first.token_ids)),
        (Role.ENVIRONMENT, len(added)),
        (Role.POLICY, len(second.token_ids)),
    ]
    assert (tape.spans[1].tool, tape.spans[1].status) == ("search", "ok")
    assert tape.log_probs == (-0.5,) * len(first.token_ids) + (None,) * len(added) + (-0.5,) * len(second.token_ids)
    assert script.asked[1][1] == [*tape.prompt_ids, *first.token_ids, *added]
    assert talk.tokens_used == len(tape.prompt_ids) + len(tape.ids)


async def test_b4_the_sampled_end_belongs_to_the_policy_and_the_newline_after_it_does_not() -> None:
    talk, _ = conversation(text_turn("look"), text_turn("so"))
    await talk.next([], 48)
    await talk.next([RESULT], 48)
    tape = talk.tape()
    end = tape.spans[0].end
    assert tape.ids[end - 1] == EOS
    assert TOKENIZER.decode([tape.ids[end]]) == "\n"


async def test_a_turn_without_end_ran_out_of_tokens() -> None:
    talk, _ = conversation(turn(TOKENIZER.encode("never ending", add_special_tokens=False)))
    assert (await talk.next([], 12)).end is TurnEnd.LENGTH


async def test_a7_a_malformed_call_is_a_problem_and_the_ids_stay_as_sampled() -> None:
    sampled = text_turn('<tool_call>{"name": "search", </tool_call>')
    talk, _ = conversation(sampled)
    result = await talk.next([], 96)
    assert [call.arguments for call in result.calls] == [None]
    assert talk.tape().ids == tuple(sampled.token_ids)


async def test_calls_are_read_from_the_turn() -> None:
    talk, _ = conversation(text_turn('<tool_call>{"name": "search", "arguments": {"query": "rain"}}</tool_call>'))
    (call,) = (await talk.next([], 96)).calls
    assert (call.name, call.arguments) == ("search", {"query": "rain"})


async def test_every_turn_has_its_own_parameters_and_seed() -> None:
    talk, script = conversation(text_turn("a"), text_turn("b"), sampling=Sampling(0.7, 1.0, 11))
    await talk.next([], 48)
    await talk.next([RESULT], 40)
    one, two = (parameters for _, _, parameters in script.asked)
    assert (one["temperature"], one["top_p"], one["top_k"], one["logprobs"]) == (0.7, 1.0, -1, True)
    assert (one["max_tokens"], two["max_tokens"]) == (48, 40)
    assert one["stop_token_ids"] == [EOS]
    assert one["seed"] != two["seed"] and 0 <= one["seed"] < 2**63
    assert talk.tape().seed == 11
    again, repeated = conversation(text_turn("a"), sampling=Sampling(0.7, 1.0, 11))
    await again.next([], 48)
    assert repeated.asked[0][2]["seed"] == one["seed"]


async def test_no_seed_is_sent_where_none_is_wished() -> None:
    talk, script = conversation(text_turn("a"))
    await talk.next([], 48)
    assert "seed" not in script.asked[0][2]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (Output([1], [-0.5], extra_fields={"global_steps": 4}), "version 4, expected 3"),
        (Output([1], [-0.5], extra_fields={}), "version None, expected 3"),
        (Output([1], [-0.5], stop_reason="aborted"), "'aborted'"),
        (Output([1, 2], [-0.5]), "2 tokens with 1 log-probs"),
        (Output([1], None), "1 tokens with none log-probs"),
    ],
    ids=["c11-version", "c11-no-version", "c11-aborted", "b13-length", "c7-none"],
)
async def test_c7_c11_an_answer_that_cannot_be_trained_on_is_an_engine_error(output: Output, message: str) -> None:
    talk, _ = conversation(output)
    with pytest.raises(EngineError, match=message):
        await talk.next([], 48)
    assert talk.tape().ids == ()


async def test_f9_cancellation_passes_through() -> None:
    async def waits(request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Output:
        await asyncio.Event().wait()
        raise AssertionError

    talk = TokenPolicy(waits, RENDERER, name="tiny", version=3, room=ROOM).open(OPENING, TOOLS, Sampling(), "r1")
    task = asyncio.create_task(talk.next([], 48))
    await asyncio.wait([task], timeout=0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_f11_a_turn_gets_only_the_room_that_is_left() -> None:
    opening = len(RENDERER.prompt_ids(OPENING, TOOLS))
    talk, script = conversation(text_turn("a"), room=opening + 5)
    await talk.next([], 48)
    assert script.asked[0][2]["max_tokens"] == 5
    before = talk.tape()
    assert await talk.next([RESULT], 48) == Turn("", (), TurnEnd.LENGTH)
    assert talk.tape() == before and len(script.asked) == 1


def test_a_prompt_without_room_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"raise rollout.max_tokens"):
        conversation(room=8)


async def test_a_log_prob_rounded_above_zero_is_zero() -> None:
    talk, _ = conversation(Output([EOS], [1e-8]))
    await talk.next([], 48)
    assert talk.tape().log_probs == (0.0,)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, EOS - 1), min_size=1, max_size=8), st.booleans(), st.text(max_size=12)),
        min_size=1,
        max_size=4,
    )
)
def test_a4_the_tape_only_grows_and_is_what_the_engine_saw(turns: list[tuple[list[int], bool, str]]) -> None:
    outputs = [turn([*ids, EOS] if closed else ids) for ids, closed, _ in turns]
    talk, script = conversation(*outputs, room=10_000)

    async def play() -> None:
        feedback: list[Feedback] = []
        for _, _, reply in turns:
            await talk.next(feedback, 48)
            feedback = [Feedback("tool", reply, "search", "ok")]

    asyncio.run(play())
    tape = talk.tape()
    whole = [*tape.prompt_ids, *tape.ids]
    assert all(seen == whole[: len(seen)] for _, seen, _ in script.asked)
    sampled = [i for span in tape.spans if span.role is Role.POLICY for i in tape.ids[span.start : span.end]]
    assert sampled == [i for output in outputs for i in output.token_ids]
