"""verl's agent loop class over futureworld's rollout, with a scripted server."""

from typing import Any

import pytest
from chat_policy import tiny_tokenizer

from futureworld.errors import EngineError
from futureworld.records import Question

TOKENIZER = tiny_tokenizer()
CALL = '<tool_call>{"name": "search", "arguments": {"query": "diesel"}}</tool_call>'


class Scripted:
    """Answers like verl's client: TokenOutput with the policy version."""

    def __init__(self, *turns: str) -> None:
        self.turns = list(turns)
        self.asked: list[dict[str, Any]] = []

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        self.asked.append(dict(sampling_params))
        ids = [*TOKENIZER.encode(self.turns[len(self.asked) - 1], add_special_tokens=False), TOKENIZER.eos_token_id]
        return TokenOutput(
            token_ids=ids,
            log_probs=[-0.25] * len(ids),
            stop_reason="completed",
            extra_fields={"global_steps": 7},
        )


def agent_loop(server: Scripted, **settings: Any) -> Any:
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, RLHFDataset, ToolListWrap

    from verl_tool_future.agent_loop import FutureWorldAgentLoop
    from verl_tool_future.composition import compose

    config = compose({"actor_rollout_ref.rollout.name": "vllm", "actor_rollout_ref.model.path": "tiny"}, {})
    return FutureWorldAgentLoop(
        trainer_config=DictConfigWrap(config),
        server_manager=server,
        tokenizer=TOKENIZER,
        processor=None,
        dataset_cls=RLHFDataset,
        data_config=DictConfigWrap(config.data),
        hf_model_type="llama",
        tools=ToolListWrap([]),
        limits={"max_tokens": 4096, "max_turn_tokens": 256},
        **settings,
    )


async def test_a_rollout_in_verls_terms(make_question: Any) -> None:
    question: Question = make_question()
    server = Scripted(CALL, "\\boxed{0.25}")
    loop = agent_loop(server)
    out = await loop.run({"temperature": 1.0, "top_p": 1.0}, question=question, policy_version=7, seed=1)
    policy = len(TOKENIZER.encode(CALL)) + 1 + len(TOKENIZER.encode("\\boxed{0.25}")) + 1
    assert sum(out.response_mask) == policy
    assert len(out.response_ids) == len(out.response_mask) == len(out.response_logprobs)
    assert all(p == (-0.25 if m else 0.0) for m, p in zip(out.response_mask, out.response_logprobs, strict=True))
    assert out.extra_fields["probability"] == 0.25 and out.extra_fields["global_steps"] == 7
    assert out.reward_score is None
    assert len(server.asked) == 2


async def test_a_failure_outside_the_policy_is_raised(make_question: Any) -> None:
    loop = agent_loop(Scripted(CALL))
    with pytest.raises(EngineError, match="failed"):
        await loop.run({"temperature": 1.0}, question=make_question(), policy_version=8)


def test_it_is_registered_and_named_by_the_configuration() -> None:
    from hydra.utils import get_class
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop import agent_loop as verls

    from verl_tool_future.agent_loop import FutureWorldAgentLoop

    (entry,) = OmegaConf.load("configs/agent_loop.yaml")
    assert entry.name in verls._agent_loop_registry
    assert get_class(entry._target_) is FutureWorldAgentLoop
