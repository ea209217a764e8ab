"""A masked language model that computes its vocabulary head only where it is needed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.models.checkpoints import Checkpoint


class MaskedNetwork:
    """A checkpoint's network and what its tokenizer says about masks and padding.

    The head of a masked language model treats each place by itself, so that it need not see the
    places nobody asks about. A hook on the network's body hands the head the hidden states of the
    wanted places only. Whether the head permits this is tried out once, against the whole output;
    where it does not, the whole output is computed.

    Raises:
        ModelError: the tokenizer has no mask token.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        tokenizer = checkpoint.tokenizer
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"The tokenizer of {checkpoint.location} has no mask token: it is not a masked "
                f"language model. Causal models have the rules log-likelihood and chain."
            )
        self.mask = int(tokenizer.mask_token_id)
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.mask)
        self.model: torch.nn.Module = checkpoint.model
        self.device = next(self.model.parameters()).device
        self.window = _window(self.model, tokenizer)
        self.n_outputs = 0
        self.head_is_local = False
        self._try_out()

    @torch.inference_mode()
    def logits(
        self, ids: torch.Tensor, attention: torch.Tensor, places: torch.Tensor
    ) -> torch.Tensor:
        """Logits at some places of a batch.

        Args:
            ids: token ids, (b, l).
            attention: 1 for tokens, 0 for padding, (b, l).
            places: row * l + column of each wanted place, (k,).

        Returns:
            (k, n_outputs)
        """
        self.model.eval()
        if not self.head_is_local:
            return self._whole(ids, attention).flatten(0, 1)[places]
        with _only(self._body, places):
            return self._whole(ids, attention)[0]

    @property
    def _body(self) -> torch.nn.Module:
        body: torch.nn.Module = self.model.base_model  # type: ignore[assignment]
        return body

    def _whole(self, ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=ids, attention_mask=attention).logits
        return logits

    def _try_out(self) -> None:
        ids = torch.tensor([[self.mask, self.mask, self.mask], [self.mask, self.mask, self.pad]])
        ids = ids.to(self.device)
        attention = torch.tensor([[1, 1, 1], [1, 1, 0]], device=self.device)
        places = torch.tensor([1, 3, 2], device=self.device)
        expected = self.logits(ids, attention, places)
        self.n_outputs = expected.shape[-1]
        if self._body is self.model:
            return
        self.head_is_local = True
        try:
            found = self.logits(ids, attention, places)
        except (RuntimeError, TypeError, ValueError, IndexError):
            self.head_is_local = False
        else:
            close = 100 * torch.finfo(expected.dtype).eps
            self.head_is_local = found.shape == expected.shape and torch.allclose(
                found, expected, rtol=close, atol=close * float(expected.abs().max())
            )


@contextmanager
def _only(body: torch.nn.Module, places: torch.Tensor) -> Iterator[None]:
    """Make the body put out the hidden states of some places of the batch only, (1, k, width)."""

    def gather(_module: torch.nn.Module, _inputs: Any, output: Any) -> Any:
        kept = output[0].flatten(0, 1)[places][None]
        if isinstance(output, tuple):
            return (kept, *output[1:])
        output["last_hidden_state"] = kept
        return output

    handle = body.register_forward_hook(gather)
    try:
        yield
    finally:
        handle.remove()


def _window(model: Any, tokenizer: Any) -> int:
    """How many tokens the network reads at most.

    Networks with a padding index among their places (RoBERTa) count places from there on.
    """
    limits = [tokenizer.model_max_length]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - unused)
    if len(limits) == 1:
        limits.append(getattr(model.config, "max_position_embeddings", None) or limits[0])
    return int(min(limits))
