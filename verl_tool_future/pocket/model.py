"""The pocket policy's shape: a Llama small enough for a laptop, large enough to copy and compute."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from verl_tool_future.pocket.tokenizer import END_OF_TEXT, TURN_END, token

CONTEXT = 512


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """Fresh fp32 weights. The vocabulary is the tokenizer's exactly: engines mask what lies beyond it."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=token(tokenizer, TURN_END),
        pad_token_id=token(tokenizer, END_OF_TEXT),
        dtype="float32",
    )
    return LlamaForCausalLM(config)
