"""FutureWorld's rollout loop as an agent loop of verl, for verl's own trainers and benchmarks.

A thin adapter: the loop, its tools and limits are futureworld's. It is registered as
`futureworld`; `configs/agent_loop.yaml` names it for `rollout.agent.agent_loop_config_path`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from futureworld.agents.base import Sampling
from futureworld.agents.loop import rollout
from futureworld.agents.tools import archive_tools
from futureworld.clock import SystemClock
from futureworld.config import RolloutConfig
from futureworld.errors import EngineError
from futureworld.records import Purpose, Trajectory
from futureworld.worlds.base import World
from futureworld.worlds.open import open_world
from verl_tool_future.templates import TemplateRenderer
from verl_tool_future.token_policy import TokenPolicy


@cache
def _world(name: str) -> World:
    """verl makes a loop for every trajectory; a world is opened once a process."""
    return open_world(name)


@register("futureworld")
class FutureWorldAgentLoop(AgentLoopBase):
    """Plays the question in column `question`; `world` and `limits` (RolloutConfig's keys) come from the YAML."""

    def __init__(
        self, *args: Any, world: str = "almanac", limits: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._world = _world(world)
        self._limits = RolloutConfig(**dict(limits or {}))
        self._renderer = TemplateRenderer(self.tokenizer, arguments=self.apply_chat_template_kwargs)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Columns: `question` (Question), `policy_version` (int), and optionally `sample` and `seed`.

        The reward stays open: the outcome is not known before `question.resolves_at`. Raises
        EngineError when the rollout failed outside the policy.
        """
        question, sample, seed = kwargs["question"], int(kwargs.get("sample", 0)), kwargs.get("seed")
        policy = TokenPolicy(
            self.server_manager.generate,
            self._renderer,
            name=str(self.config.actor_rollout_ref.model.path),
            version=int(kwargs["policy_version"]),
            room=self._limits.max_tokens,
        )
        trajectory, forecast = await rollout(
            question,
            policy,
            archive_tools(self._limits),
            self._world,
            config=self._limits,
            sampling=Sampling(
                sampling_params["temperature"], sampling_params.get("top_p", 1.0), None if seed is None else int(seed)
            ),
            purpose=Purpose.TRAIN,
            sample=sample,
            attempt=0,
            clock=SystemClock(),
        )
        if forecast.status.is_failure:
            raise EngineError(f"rollout {trajectory.id} of question {question.id} failed: {trajectory.stop_reason}")
        return output(trajectory)


def output(trajectory: Trajectory) -> AgentLoopOutput:
    """A trajectory in verl's terms: mask 1 on policy tokens, log-prob 0 elsewhere."""
    return AgentLoopOutput(
        prompt_ids=list(trajectory.prompt_ids),
        response_ids=list(trajectory.ids),
        response_mask=list(trajectory.mask),
        response_logprobs=[0.0 if value is None else value for value in trajectory.log_probs],
        num_turns=len(trajectory.messages),
        metrics=AgentLoopMetrics(),
        extra_fields={
            "global_steps": trajectory.policy_version,
            "min_global_steps": trajectory.policy_version,
            "max_global_steps": trajectory.policy_version,
            "forecast_id": trajectory.id,
            "probability": trajectory.probability,
            "answer_status": trajectory.answer_status.value,
        },
    )
