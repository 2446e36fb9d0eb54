"""verl's FSDP engine on a CPU, without the work that has no part in the loss.

verl's CPU path runs the output layer, log-softmax and entropy over every position, row by row in
Python. Here they run at once, over the policy's tokens alone: a seventh of the positions of short
answers to searches. Linear layers use oneDNN, which is twice as fast as torch's default on AMD.
Both leave every figure as it was, to float32's rounding.
"""

from functools import partial
from typing import Any, cast

import torch
from torch import nn
from verl.workers.engine.fsdp import FSDPEngineWithLMHead

Base: type[Any] = cast(Any, FSDPEngineWithLMHead)
"""Named as anything: verl's own bases are not typed."""


class CpuEngine(Base):
    """Log-probs and entropy are 0 where `loss_mask` is; entropy has no gradient (its coefficient is 0 here)."""

    def _build_module(self) -> Any:
        module = super()._build_module()
        self._chosen: tuple[torch.Tensor, torch.Tensor] | None = None
        module.get_output_embeddings().register_forward_pre_hook(self._choose)
        use_onednn(module)
        return module

    def _build_fsdp_module(self, module: Any) -> Any:
        # verl keeps the reference model in pinned memory, which torch has only beside an accelerator
        settings: Any = self.engine_config
        forward_only, settings.forward_only = settings.forward_only, False
        try:
            return super()._build_fsdp_module(module)
        finally:
            settings.forward_only = forward_only

    def prepare_model_inputs(self, micro_batch: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Right-padded (B, L) ids; under a causal mask padding at the end changes nothing before it."""
        ids = micro_batch["input_ids"]
        padded = torch.nested.to_padded_tensor(ids, padding=0)
        self._chosen = predicting(micro_batch, padded.shape[1])
        return {"input_ids": padded}, {}

    def prepare_model_outputs(
        self, output: Any, output_args: Any, micro_batch: Any, logits_processor_func: Any
    ) -> dict[str, Any]:
        """Nested (B, L) log-probs of the next token, and entropy, by verl's names."""
        assert self._chosen is not None
        rows, columns = self._chosen
        ids, offsets = micro_batch["input_ids"], micro_batch["input_ids"].offsets()
        places = offsets[rows] + columns
        log_probs = torch.log_softmax(output.logits / micro_batch["temperature"], dim=-1)
        labels = ids.values()[places + 1]
        found = {"log_probs": -nn.functional.nll_loss(log_probs, labels, reduction="none")}
        with torch.no_grad():
            found["entropy"] = -(log_probs.exp() * log_probs).sum(dim=-1)
        return {
            name: torch.nested.nested_tensor_from_jagged(
                values.new_zeros(len(ids.values())).index_put((places,), values), offsets
            )
            for name, values in found.items()
        }

    def _choose(self, module: nn.Module, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor]:
        """(B, L, H) hidden states to the (N, H) that predict a token of the policy."""
        assert self._chosen is not None
        return (arguments[0][self._chosen],)


def predicting(micro_batch: Any, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns (N each) of the positions whose next token is in the loss."""
    prompts = micro_batch["prompts"].offsets().diff()
    mask = micro_batch["loss_mask"]
    rows = torch.repeat_interleave(torch.arange(len(prompts)), mask.offsets().diff())
    columns = torch.arange(len(rows)) - mask.offsets()[rows] + prompts[rows] - 1
    chosen = mask.values().bool()
    return rows[chosen], columns[chosen]


class OneDnnLinear(torch.autograd.Function):
    """x (..., I) and weight (O, I) to (..., O), both of its (..., O) and (..., I) products by oneDNN in float32."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        (gradient,) = gradients
        flat = gradient.reshape(-1, gradient.shape[-1])
        return product(gradient, weight.t()), flat.t() @ x.reshape(-1, x.shape[-1])


def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


def use_onednn(module: nn.Module) -> None:
    """Let every linear layer without a bias use it, where torch was built with it."""
    if not torch.backends.mkldnn.is_available():
        return
    for layer in module.modules():
        if type(layer) is nn.Linear and layer.bias is None:
            cast(Any, layer).forward = partial(_linear, layer)


def _linear(layer: nn.Linear, x: torch.Tensor) -> Any:
    return OneDnnLinear.apply(x, layer.weight)
