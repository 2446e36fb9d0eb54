"""A whole conversation on each shape of template: what the policy is shown, and what it is trained on."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from chat_policy import TOOLS
from template_shapes import shaped_tokenizer

from futureworld.agents.answers import parse_probability
from futureworld.agents.base import Feedback, Sampling, TurnEnd
from futureworld.agents.calls import text_protocol
from futureworld.records import Message, Role
from verl_tool_future.templates import TemplateRenderer
from verl_tool_future.token_policy import TokenPolicy

OPENING = (Message("system", "You forecast."), Message("user", "Rain?"))
CALL = '<tool_call>\n{"name": "search", "arguments": {"query": "rain"}}\n</tool_call>'
RESULT = Feedback("tool", "wet", "search", "ok")
REMINDER = Feedback("user", "Search first.")


@dataclass
class Output:
    token_ids: list[int]
    log_probs: list[float] | None
    stop_reason: str | None = "completed"
    extra_fields: dict[str, Any] = field(default_factory=lambda: {"global_steps": 0})


class Talk:
    """A conversation in which the policy says the given texts, each ended by EOS."""

    def __init__(self, shape: str, *said: str, **arguments: Any) -> None:
        self.tokenizer = shaped_tokenizer(shape)
        self.renderer = TemplateRenderer(self.tokenizer, arguments=arguments)
        self._said = iter(said)
        policy = TokenPolicy(self._generate, self.renderer, name=shape, version=0, room=4096)
        self._talk = policy.open(OPENING, TOOLS, Sampling(), "r")

    async def _generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Output:
        ids = [*self.tokenizer.encode(next(self._said), add_special_tokens=False), self.tokenizer.eos_token_id]
        return Output(ids, [-0.5] * len(ids))

    async def next(self, *feedback: Feedback) -> Any:
        return await self._talk.next(feedback, 512)

    def seen(self) -> str:
        """Everything on the tape as text, the prompt first."""
        tape = self._talk.tape()
        return self.tokenizer.decode([*tape.prompt_ids, *tape.ids])

    def trained(self) -> list[str]:
        tape = self._talk.tape()
        return [self.tokenizer.decode(tape.ids[s.start : s.end]) for s in tape.spans if s.role is Role.POLICY]

    def again(self, *turns: tuple[str, str]) -> str:
        """The conversation as the template would render it from its messages."""
        messages = [{"role": message.role, "content": message.text} for message in OPENING]
        messages += [{"role": role, "content": text} for role, text in turns]
        return self.tokenizer.apply_chat_template(messages, tools=TOOLS, add_generation_prompt=True, tokenize=False)


async def test_hermes_whole_conversation() -> None:
    talk = Talk("hermes", CALL, "So \\boxed{0.7}")
    first, second = await talk.next(), await talk.next(RESULT, RESULT)
    assert [call.arguments for call in first.calls] == [{"query": "rain"}]
    assert (first.end, second.end) == (TurnEnd.CLOSED, TurnEnd.CLOSED)
    assert parse_probability(second.text).probability == 0.7
    assert talk.trained() == [f"{CALL}<|im_end|>", "So \\boxed{0.7}<|im_end|>"]
    wet = "<tool_response>\nwet\n</tool_response>"
    assert talk.seen().endswith(
        f"<|im_start|>assistant\n{CALL}<|im_end|>\n<|im_start|>user\n{wet}\n{wet}<|im_end|>\n"
        "<|im_start|>assistant\nSo \\boxed{0.7}<|im_end|>"
    )
    assert '"name": "search"' in talk.seen().partition("<|im_end|>")[0]  # listed by the template itself
    assert text_protocol(TOOLS) not in talk.seen()


@pytest.mark.parametrize("feedback", [RESULT, REMINDER], ids=["tool", "user"])
async def test_a2_hermes_tape_is_the_template_s_own_rendering(feedback: Feedback) -> None:
    talk = Talk("hermes", CALL, "")
    await talk.next()
    await talk.next(feedback)
    rendered = talk.again(("assistant", CALL), (feedback.role, feedback.text))
    assert talk.seen() == rendered + "<|im_end|>"


async def test_a4_thinking_stays_on_the_tape_that_the_template_would_drop() -> None:
    thought = f"<think>\nLook \\boxed{{0.1}} up.\n</think>\n\n{CALL}"
    talk = Talk(
        "thinking", thought, "<think>\nWet.\n</think>\n\n\\boxed{0.7}", "<think>\nSure.\n</think>\n\n\\boxed{0.8}"
    )
    first, second, third = await talk.next(), await talk.next(RESULT), await talk.next(REMINDER)
    assert [call.name for call in first.calls] == ["search"]
    assert parse_probability(second.text).probability == 0.7
    assert parse_probability(third.text).probability == 0.8
    assert [text.count("<think>") for text in talk.trained()] == [1, 1, 1]
    assert all(text in talk.seen() for text in talk.trained())
    turns = [("assistant", thought), ("tool", "wet"), ("assistant", second.text), ("user", REMINDER.text)]
    assert talk.again(*turns[:2]).count("<think>") == 1  # before an answer the template keeps it
    assert "<think>" not in talk.again(*turns)  # after the next question it is gone


async def test_thinking_left_open_is_no_answer_and_no_call() -> None:
    talk = Talk("thinking", f"<think>\n{CALL} \\boxed{{0.7}}")
    turn = await talk.next()
    assert turn.calls == ()
    assert parse_probability(turn.text).probability is None


async def test_thinking_can_be_switched_off_by_the_template_s_argument() -> None:
    talk = Talk("thinking", "\\boxed{0.7}", "\\boxed{0.8}", enable_thinking=False)
    first, _ = await talk.next(), await talk.next(REMINDER)
    assert parse_probability(first.text).probability == 0.7
    assert talk.trained() == ["\\boxed{0.7}<|im_end|>", "\\boxed{0.8}<|im_end|>"]
    header = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert talk.seen().count(header) == 2  # shown to the policy, and never trained on


def test_the_argument_is_part_of_the_template_s_name() -> None:
    tokenizer = shaped_tokenizer("thinking")
    named = [
        TemplateRenderer(tokenizer, arguments=each).template_hash for each in (None, {}, {"enable_thinking": False})
    ]
    assert named[0] == named[1] != named[2]


async def test_bare_whole_conversation() -> None:
    talk = Talk("bare", f"Look it up.\n</think>\n\n{CALL}", "Wet.\n</think>\n\n\\boxed{0.7}")
    first, second = await talk.next(), await talk.next(RESULT, Feedback("tool", "dry", "search", "ok"))
    assert [call.name for call in first.calls] == ["search"]
    assert parse_probability(second.text).probability == 0.7
    end = "<|end of sentence|>"
    assert talk.seen() == (
        f"<|begin of sentence|>You forecast.\n\n{text_protocol(TOOLS)}<|User|>Rain?<|Assistant|><think>\n"
        f"Look it up.\n</think>\n\n{CALL}{end}<|User|>wet\n\ndry<|Assistant|><think>\n"
        f"Wet.\n</think>\n\n\\boxed{{0.7}}{end}"
    )
    assert talk.trained() == [f"Look it up.\n</think>\n\n{CALL}{end}", f"Wet.\n</think>\n\n\\boxed{{0.7}}{end}"]
    assert "Look it up" not in talk.again(("assistant", first.text), ("user", "wet"))


async def test_a_turn_that_the_template_opens_in_thinking_is_no_answer_until_it_is_closed() -> None:
    talk = Talk("bare", f"{CALL} maybe \\boxed{{0.7}}", "<think>again</think>\\boxed{0.6}")
    first, second = await talk.next(), await talk.next(REMINDER)
    assert first.text.startswith("<think>\n")
    assert first.calls == () and parse_probability(first.text).probability is None
    assert parse_probability(second.text).probability == 0.6


@pytest.mark.parametrize(
    ("shape", "ends"),
    [("hermes", {"<|im_end|>"}), ("thinking", {"<|im_end|>"}), ("bare", {"<|end of sentence|>"})],
)
def test_stop_tokens(shape: str, ends: set[str]) -> None:
    tokenizer = shaped_tokenizer(shape)
    assert {tokenizer.decode([i]) for i in TemplateRenderer(tokenizer).stop_ids} == ends


@pytest.mark.parametrize("shape", ["hermes", "thinking", "bare"])
def test_a_turn_cut_by_length_is_closed_for_the_policy(shape: str) -> None:
    tokenizer = shaped_tokenizer(shape)
    renderer = TemplateRenderer(tokenizer)
    cut, ended = (
        renderer.feedback_ids([REMINDER], last) for last in (tokenizer.encode("x")[-1], tokenizer.eos_token_id)
    )
    assert cut == (tokenizer.eos_token_id, *ended)
