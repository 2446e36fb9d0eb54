"""Tiny tokenizers and a tiny random Llama, made on the spot."""

from pathlib import Path
from typing import Any

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search the archive.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    }
]

# One turn a message, tools listed in the system turn.
CHATML = (
    "{%- for m in messages -%}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{%- if tools and loop.first and m.role == 'system' -%}"
    "\n<tools>{% for t in tools %}\n{{ t | tojson }}{% endfor %}\n</tools>"
    "{%- endif -%}"
    "<|im_end|>{{ '\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)

# Knows system, user and assistant only; unknown roles vanish.
NO_TOOLS = (
    "{%- for m in messages -%}"
    "{%- if m.role == 'system' -%}S: {{ m.content }}{{ '\n' }}"
    "{%- elif m.role == 'user' -%}U: {{ m.content }}{{ '\n' }}"
    "{%- elif m.role == 'assistant' -%}A: {{ m.content }}<|im_end|>{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ 'A: ' }}{%- endif -%}"
)

# Consecutive tool replies share one user turn.
WRAPPED = (
    "{%- for m in messages -%}"
    "{%- if m.role == 'tool' -%}"
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}"
    "{{ '\n<tool_response>\n' + m.content + '\n</tool_response>' }}"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\n' }}{%- endif -%}"
    "{%- else -%}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{%- if tools and loop.first -%}{% for t in tools %}\n{{ t | tojson }}{% endfor %}{%- endif -%}"
    "<|im_end|>{{ '\n' }}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)


def tiny_tokenizer(template: str | None = CHATML) -> Any:
    """Byte-level BPE over every byte, so that it encodes any text; two merges that make encoding ambiguous."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    merges = [("a", "b"), ("ab", "c")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = template
    return tokenizer


def save_tiny_policy(folder: Path, seed: int = 0, positions: int = 1024) -> Path:
    """A Llama of random weights, hidden 128, 2 layers, 4 heads of 32, fp32, saved with its tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tiny_tokenizer()
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=positions,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            initializer_range=0.1,
        )
    )
    model.to(torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
