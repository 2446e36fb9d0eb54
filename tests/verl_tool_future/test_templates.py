"""Chat templates as ids, on tiny tokenizers in three shapes; no engine."""

import pytest
from chat_policy import CHATML, NO_TOOLS, TOOLS, WRAPPED, tiny_tokenizer

from futureworld.agents.base import Feedback
from futureworld.agents.calls import text_protocol
from futureworld.errors import PolicyError
from futureworld.records import Message
from verl_tool_future.templates import TemplateRenderer

OPENING = (Message("system", "You forecast."), Message("user", "Rain?"))
RESULT = Feedback("tool", "wet", "search", "ok")


def whole(tokenizer, turns: list[tuple[str, str]], tools=None) -> list[int]:
    """The conversation rendered once, with the header of the next policy turn."""
    messages = [{"role": role, "content": text} for role, text in turns]
    text = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
    return tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("template", [CHATML, WRAPPED])
@pytest.mark.parametrize("role", ["tool", "user"])
def test_a2_turn_by_turn_equals_the_whole_conversation(template: str, role: str) -> None:
    tokenizer = tiny_tokenizer(template)
    renderer = TemplateRenderer(tokenizer)
    sampled = [*tokenizer.encode("Let me see."), tokenizer.eos_token_id]
    ids = [*renderer.prompt_ids(OPENING, TOOLS), *sampled]
    ids += renderer.feedback_ids([Feedback(role, "wet")], sampled[-1])
    turns = [("system", "You forecast."), ("user", "Rain?"), ("assistant", "Let me see."), (role, "wet")]
    assert ids == whole(tokenizer, turns, TOOLS)


def test_a3_the_suffix_starts_right_after_the_sampled_end() -> None:
    tokenizer = tiny_tokenizer(CHATML)
    ids = TemplateRenderer(tokenizer).feedback_ids([RESULT], tokenizer.eos_token_id)
    assert tokenizer.decode(list(ids)) == "\n<|im_start|>tool\nwet<|im_end|>\n<|im_start|>assistant\n"


def test_a_turn_cut_by_length_is_closed_by_the_environment() -> None:
    tokenizer = tiny_tokenizer(CHATML)
    ids = TemplateRenderer(tokenizer).feedback_ids([RESULT], tokenizer.encode("x")[0])
    assert tokenizer.decode(list(ids)).startswith("<|im_end|>\n<|im_start|>tool\n")


def test_b5_consecutive_tool_replies_share_the_turn_that_the_template_gives_them() -> None:
    tokenizer = tiny_tokenizer(WRAPPED)
    feedback = [RESULT, Feedback("tool", "dry", "search", "ok")]
    ids = TemplateRenderer(tokenizer).feedback_ids(feedback, tokenizer.eos_token_id)
    assert tokenizer.decode(list(ids)) == (
        "\n<|im_start|>user\n<tool_response>\nwet\n</tool_response>\n<tool_response>\ndry\n</tool_response>"
        "<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_template_without_tools_gets_the_protocol_in_words() -> None:
    tokenizer = tiny_tokenizer(NO_TOOLS)
    renderer = TemplateRenderer(tokenizer)
    text = tokenizer.decode(list(renderer.prompt_ids(OPENING, TOOLS)))
    assert text == f"S: You forecast.\n\n{text_protocol(TOOLS)}\nU: Rain?\nA: "
    assert tokenizer.decode(list(renderer.prompt_ids(OPENING[1:], TOOLS))).startswith("S: You can call")
    assert tokenizer.decode(list(renderer.prompt_ids(OPENING, ()))) == "S: You forecast.\nU: Rain?\nA: "


def test_a_template_without_a_tool_turn_gets_results_as_one_user_turn() -> None:
    tokenizer = tiny_tokenizer(NO_TOOLS)
    feedback = [RESULT, Feedback("tool", "dry", "search", "ok")]
    ids = TemplateRenderer(tokenizer).feedback_ids(feedback, tokenizer.eos_token_id)
    assert tokenizer.decode(list(ids)) == "U: wet\n\ndry\nA: "


def test_a_template_with_tools_lists_them_and_no_protocol() -> None:
    tokenizer = tiny_tokenizer(CHATML)
    text = tokenizer.decode(list(TemplateRenderer(tokenizer).prompt_ids(OPENING, TOOLS)))
    assert "<tools>" in text and text_protocol(TOOLS) not in text


def test_b3_feedback_text_cannot_shift_what_is_added() -> None:
    """Feedback that holds the stand-in's own words changes nothing around it."""
    tokenizer = tiny_tokenizer(CHATML)
    renderer = TemplateRenderer(tokenizer)
    text = "a stand-in for what was sampled"
    ids = renderer.feedback_ids([Feedback("tool", text)], tokenizer.eos_token_id)
    assert tokenizer.decode(list(ids)) == f"\n<|im_start|>tool\n{text}<|im_end|>\n<|im_start|>assistant\n"


def test_text_keeps_special_tokens_and_drops_the_one_that_ended_the_turn() -> None:
    tokenizer = tiny_tokenizer(CHATML)
    renderer = TemplateRenderer(tokenizer)
    ids = tokenizer.encode("a <|im_start|> b<|im_end|>", add_special_tokens=False)
    assert renderer.text(ids) == "a <|im_start|> b"
    assert renderer.text(ids[:-1]) == "a <|im_start|> b"


def test_stop_ids_are_eos_closing_token_and_those_of_the_model() -> None:
    tokenizer = tiny_tokenizer(CHATML)
    renderer = TemplateRenderer(tokenizer, [tokenizer.pad_token_id])
    assert renderer.stop_ids == {tokenizer.eos_token_id, tokenizer.pad_token_id}


def test_template_hash_names_the_template() -> None:
    hashes = {TemplateRenderer(tiny_tokenizer(template)).template_hash for template in (CHATML, NO_TOOLS, WRAPPED)}
    assert len(hashes) == 3
    assert TemplateRenderer(tiny_tokenizer(CHATML)).template_hash in hashes


def test_a_tokenizer_without_template_is_refused() -> None:
    with pytest.raises(PolicyError, match="no chat template"):
        TemplateRenderer(tiny_tokenizer(None))


def test_a5_a_template_that_closes_turns_in_two_ways_is_refused() -> None:
    template = (
        "{%- for m in messages -%}{{ m.role }}: {{ m.content }}"
        "{%- if loop.last -%}<|im_end|>{%- else -%}<|endoftext|>{%- endif -%}{%- endfor -%}"
    )
    renderer = TemplateRenderer(tiny_tokenizer(template))
    with pytest.raises(PolicyError, match="does not extend a finished turn"):
        renderer.feedback_ids([RESULT], 0)


def test_a_template_that_refuses_a_role_is_named() -> None:
    template = (
        "{%- for m in messages -%}{%- if m.role == 'system' -%}{{ raise_exception('no system here') }}{%- endif -%}"
        "{{ m.role }}: {{ m.content }}<|im_end|>{%- endfor -%}"
    )
    with pytest.raises(PolicyError, match=r"system, user: no system here"):
        TemplateRenderer(tiny_tokenizer(template)).prompt_ids(OPENING, ())
