"""A policy's chat template as token ids: the prompt once, then only what each turn adds.

Sampled ids are never rendered again. What follows a policy's turn is the template's own text
between a finished assistant turn and the next one: its closing part, the new turns, the header
of the next assistant turn. It is read off a stand-in conversation, so it cannot depend on how a
template rewrites earlier turns.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from futureworld.agents.base import Feedback
from futureworld.agents.calls import text_protocol
from futureworld.errors import PolicyError
from futureworld.records import Message, content_id

STAND_IN = "a stand-in for what was sampled"
QUESTION = "a stand-in for what was asked"
THINKING = ("<think>", "</think>")
REMEMBERED = 4096
"""Renderings kept: the rollouts of a group share their prompt, and most of what they find."""


class TemplateRenderer:
    """Renders for one tokenizer (Hugging Face, with a chat template) and one set of tools.

    `stop_ids` end a policy's turn: the tokenizer's EOS, the template's closing token and
    `more_stop_ids`. `arguments` go to the template, for example `{"enable_thinking": False}`.
    Raises PolicyError when the template cannot be used turn by turn.
    """

    def __init__(
        self, tokenizer: Any, more_stop_ids: Sequence[int] = (), arguments: Mapping[str, Any] | None = None
    ) -> None:
        if not tokenizer.chat_template:
            raise PolicyError(f"tokenizer {tokenizer.name_or_path!r} has no chat template; save one with it")
        self._tokenizer = tokenizer
        self._arguments = dict(arguments or {})
        said = [json.dumps(self._arguments, sort_keys=True)] if self._arguments else []
        self.template_hash = content_id(tokenizer.get_chat_template(), *said)
        self._closing = self._after_stand_in(())
        first = self._encode(self._closing)[:1]
        special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
        eos = () if tokenizer.eos_token_id is None else (int(tokenizer.eos_token_id),)
        self.stop_ids = frozenset([*eos, *more_stop_ids, *(i for i in first if i in special)])
        self._header = self._opened_by()
        self._thinking = _left_open(self._header)
        self._tool_role = self._renders_tool_role()
        self._opening = lru_cache(REMEMBERED)(self._opening_ids)
        self._between = lru_cache(REMEMBERED)(self._between_ids)

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        """The opening, rendered once, up to and including the header of the first policy turn."""
        return self._opening(tuple(messages), json.dumps([*tools]))

    def feedback_ids(self, feedback: Sequence[Feedback], last_id: int | None) -> tuple[int, ...]:
        """What stands between a policy turn that ended with `last_id` and the policy's next turn.

        A closing token that the policy sampled itself is not repeated; one that it did not
        reach (`last_id` is no stop token) is added, since the template writes it.
        """
        ids = self._between(tuple(feedback))
        return ids[1:] if last_id in self.stop_ids and ids[:1] and ids[0] in self.stop_ids else ids

    def _opening_ids(self, messages: tuple[Message, ...], described: str) -> tuple[int, ...]:
        tools = json.loads(described)
        turns = [{"role": message.role, "content": message.text} for message in messages]
        plain = self._render(turns, None, header=True)
        if not tools:
            return self._encode(plain)
        with_tools = self._render(turns, tools, header=True)
        if with_tools == plain:  # the template knows no tools: say it in words
            with_tools = self._render(_with_protocol(turns, text_protocol(tools)), None, header=True)
        return self._encode(with_tools)

    def _between_ids(self, feedback: tuple[Feedback, ...]) -> tuple[int, ...]:
        text = self._after_stand_in(self._turns(feedback))
        if not text.startswith(self._closing):
            raise PolicyError(
                f"chat template of {self._tokenizer.name_or_path!r} does not extend a finished turn:"
                f" it closes with {self._closing!r}, but with feedback {text[:80]!r} follows; use another template"
            )
        return self._encode(text)

    def text(self, ids: Sequence[int]) -> str:
        """A policy turn as text, special tokens kept, without the stop token that ended it.

        Where the template opens the turn in thinking, the text begins with that opening: what is
        said before the thinking is closed is no answer.
        """
        body = ids[:-1] if ids and ids[-1] in self.stop_ids else ids
        said = self._tokenizer.decode(list(body), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return self._thinking + said

    def _turns(self, feedback: Sequence[Feedback]) -> list[dict[str, str]]:
        """As messages; where the template has no tool turns, all feedback is one user turn."""
        if self._tool_role or all(item.role == "user" for item in feedback):
            return [{"role": item.role, "content": item.text} for item in feedback]
        return [{"role": "user", "content": "\n\n".join(item.text for item in feedback)}]

    def _renders_tool_role(self) -> bool:
        """Whether a tool's turn shows its text and is followed by the policy's next turn, as a user's is."""
        try:
            text = self._after_stand_in([{"role": "tool", "content": QUESTION}])
        except PolicyError:
            return False
        return QUESTION in text and text.endswith(self._header)

    def _opened_by(self) -> str:
        """What the template writes to open a policy turn after a user's."""
        turns = [{"role": "user", "content": QUESTION}]
        closed, opened = (self._render(turns, None, header=header) for header in (False, True))
        return opened.removeprefix(closed)

    def _after_stand_in(self, turns: Sequence[Mapping[str, str]]) -> str:
        opening = [{"role": "user", "content": "?"}, {"role": "assistant", "content": STAND_IN}]
        text = self._render([*opening, *turns], None, header=bool(turns))
        _, found, after = text.partition(STAND_IN)
        if not found:
            raise PolicyError(
                f"chat template of {self._tokenizer.name_or_path!r} does not show an assistant turn;"
                " it cannot hold a conversation"
            )
        return after

    def _render(
        self, turns: Sequence[Mapping[str, str]], tools: Sequence[Mapping[str, Any]] | None, *, header: bool
    ) -> str:
        import jinja2

        try:
            return self._tokenizer.apply_chat_template(
                list(turns),
                tools=None if tools is None else [dict(tool) for tool in tools],
                add_generation_prompt=header,
                tokenize=False,
                **self._arguments,
            )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError) as error:
            roles = ", ".join(turn["role"] for turn in turns)
            raise PolicyError(
                f"chat template of {self._tokenizer.name_or_path!r} cannot render turns of {roles}: {error}"
            ) from None

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))


def _left_open(header: str) -> str:
    """The part of a turn's header from a `<think>` that it does not close; else nothing."""
    start, end = THINKING
    _, found, after = header.rpartition(start)
    return found + after if found and end not in after else ""


def _with_protocol(turns: Sequence[dict[str, str]], protocol: str) -> list[dict[str, str]]:
    """`turns` with the protocol in words at the end of the system turn (a new one where there is none)."""
    if turns and turns[0]["role"] == "system":
        return [{"role": "system", "content": f"{turns[0]['content']}\n\n{protocol}"}, *turns[1:]]
    return [{"role": "system", "content": protocol}, *turns]
