"""Small tokenizers in three shapes that policies on GPUs come in; the templates are our own, the behaviours are theirs.

`hermes`: lists tools, wraps their results in user turns (as Qwen2.5). `bare`: knows no tools, keeps
only what follows the thinking, opens every turn in thinking, and leaves the turn to the policy
after a tool (as DeepSeek-R1-Distill). `thinking`: as hermes, but drops the thinking of turns before
the last question, and can be told not to think (as Qwen3).
"""

from typing import Any

_RESULTS = (
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}"
    "{{ '\n<tool_response>\n' + m.content + '\n</tool_response>' }}"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\n' }}{%- endif -%}"
)

_LIST = (
    "{%- if tools and loop.first -%}{{ '\n\nTools:' }}"
    "{%- for t in tools -%}{{ '\n' + (t | tojson) }}{%- endfor -%}"
    '{{ \'\nCall one as <tool_call>{"name": ..., "arguments": ...}</tool_call>\' }}{%- endif -%}'
)

HERMES = (
    "{%- for m in messages -%}{%- if m.role == 'tool' -%}" + _RESULTS + "{%- else -%}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content }}" + _LIST + "{{ '<|im_end|>\n' }}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)

THINKING = (
    "{%- set ns = namespace(asked=0) -%}"
    "{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.asked = loop.index0 -%}{%- endif -%}{%- endfor -%}"
    "{%- for m in messages -%}{%- if m.role == 'tool' -%}" + _RESULTS + "{%- elif m.role == 'assistant' -%}"
    "{{ '<|im_start|>assistant\n' }}"
    "{%- set said = m.content.split('</think>')[-1].lstrip('\n') -%}"
    "{%- if loop.index0 > ns.asked -%}"
    "{%- set thought = m.content.split('</think>')[0].split('<think>')[-1] if '</think>' in m.content else '\n\n' -%}"
    "{{ '<think>' + thought + '</think>\n\n' }}{%- endif -%}"
    "{{ said + '<|im_end|>\n' }}"
    "{%- else -%}{{ '<|im_start|>' + m.role + '\n' + m.content }}" + _LIST + "{{ '<|im_end|>\n' }}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking -%}{{ '<think>\n\n</think>\n\n' }}{%- endif -%}"
    "{%- endif -%}"
)

BARE = (
    "{{ bos_token }}{%- for m in messages -%}"
    "{%- if m.role == 'system' -%}{{ m.content }}"
    "{%- elif m.role == 'user' -%}{{ '<|User|>' + m.content }}"
    "{%- elif m.role == 'tool' -%}{{ '<|output|>' + m.content + '<|output end|>' }}"
    "{%- else -%}{{ '<|Assistant|>' + m.content.split('</think>')[-1] + eos_token }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt and messages[-1].role != 'tool' -%}{{ '<|Assistant|><think>\n' }}{%- endif -%}"
)

_CHATML = {"eos": "<|im_end|>", "special": ["<|im_start|>", "<|endoftext|>"]}
_SHAPES: dict[str, dict[str, Any]] = {
    "hermes": {"template": HERMES, "plain": ["<tool_call>", "</tool_call>"], **_CHATML},
    "thinking": {"template": THINKING, "plain": ["<tool_call>", "</tool_call>", "<think>", "</think>"], **_CHATML},
    "bare": {
        "template": BARE,
        "eos": "<|end of sentence|>",
        "bos": "<|begin of sentence|>",
        "special": [],
        "plain": ["<|User|>", "<|Assistant|>", "<think>", "</think>", "<|output|>", "<|output end|>"],
    },
}


def shaped_tokenizer(name: str) -> Any:
    """Byte-level, without merges; `plain` tokens are added but not special, as in the real ones."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    shape = _SHAPES[name]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_tokens([AddedToken(token, special=False, normalized=False) for token in shape["plain"]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=shape["eos"],
        bos_token=shape.get("bos"),
        additional_special_tokens=shape["special"],
    )
    tokenizer.chat_template = shape["template"]
    return tokenizer
