"""A masked language model that computes its vocabulary head only where it is needed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import pad

from contstim.errors import ModelError
from contstim.models.batching import single_input
from contstim.models.merging import NetworkCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.models.batching import Budget
    from contstim.models.checkpoints import Checkpoint


class MaskedNetwork:
    """A checkpoint's network, with its mask and padding tokens.

    After its last attention, a masked language model treats each place by itself, so that its last
    feed-forward layer and its head need to see only the places in question. A hook drops the others
    after the last module called `attention`, or else after the network's body. Each is tried once
    against the whole output; if neither agrees with it, the whole output is always computed.

    Raises:
        ModelError: the tokenizer has no mask token.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        checkpoint.require_weights()
        tokenizer = checkpoint.tokenizer
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"The tokenizer of {checkpoint.location} has no mask token: it is not a masked "
                f"language model. Causal models have the rules log-likelihood and chain."
            )
        self.mask = int(tokenizer.mask_token_id)
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.mask)
        self.model: torch.nn.Module = checkpoint.model
        self.device = torch.device(checkpoint.device)
        self.window = window_of(checkpoint)
        self._narrow: torch.nn.Module | None = None
        with single_input(3, self.device):
            whole = self._logits_of_trial()
        self.n_outputs = whole.shape[-1]
        # The module nearest to the head saves least, so it comes last
        body: Any = self.model.base_model
        attentions = [m for name, m in body.named_modules() if name.endswith(".attention")]
        for module in [] if body is self.model else [*attentions[-1:], body]:
            self._narrow = module
            if self._agrees(whole):
                break
            self._narrow = None

    @torch.inference_mode()
    def logits(
        self, ids: torch.Tensor, attention: torch.Tensor | None, places: torch.Tensor
    ) -> torch.Tensor:
        """Logits at some places of a batch.

        Args:
            ids: token ids, (b, l).
            attention: 1 for tokens, 0 for padding, (b, l); None where nothing is padded, which
                the library would else find out by a question to the device.
            places: row * l + column of each wanted place, (k,).

        Returns:
            (k, n_outputs)
        """
        if self.model.training:  # `eval` visits every module
            self.model.eval()
        if self._narrow is None:
            logits = self._whole(ids, attention).flatten(0, 1)
            return logits[places.to(logits.device)]
        with _only(self._narrow, places):
            return self._whole(ids, attention)[0]

    @property
    def drops_places(self) -> bool:
        """True if places that are not in question are dropped before the head."""
        return self._narrow is not None

    def _whole(self, ids: torch.Tensor, attention: torch.Tensor | None) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=ids, attention_mask=attention).logits
        return logits

    def _logits_of_trial(self) -> torch.Tensor:
        """Logits of two short rows, one of them padded, at places in no particular order."""
        # rows of two lengths and places out of order, so that places mixed up would show
        ids = torch.tensor([[self.mask] * 3, [self.mask, self.mask, self.pad]], device=self.device)
        attention = torch.tensor([[1, 1, 1], [1, 1, 0]], device=self.device)
        return self.logits(ids, attention, torch.tensor([4, 1, 3, 2], device=self.device))

    def _agrees(self, whole: torch.Tensor) -> bool:
        try:
            narrow = self._logits_of_trial()
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            return False
        # the head computes fewer rows at once, which rounds differently
        close = max(1e-5, 4 * torch.finfo(whole.dtype).eps)
        return narrow.shape == whole.shape and torch.allclose(
            narrow, whole, rtol=close, atol=close * float(whole.abs().max())
        )


@dataclass(frozen=True, eq=False)
class MaskedCall(NetworkCall):
    """Logits at some places of a batch; see `MaskedNetwork.logits` for shapes.

    Attributes:
        masked: the network and its tokens.
        ids: (b, l)
        attention: (b, l), or None where nothing is padded.
        places: (k,)
        budget: how many tokens pass through the network at once.
    """

    masked: MaskedNetwork
    ids: torch.Tensor
    attention: torch.Tensor | None
    places: torch.Tensor
    budget: Budget

    @property
    def network(self) -> torch.nn.Module:
        """See `NetworkCall.network`."""
        return self.masked.model

    @property
    def device(self) -> torch.device:
        """See `NetworkCall.device`."""
        return self.masked.device

    @property
    def shape(self) -> tuple[int, int]:
        """See `NetworkCall.shape`."""
        return self.ids.shape[0], self.ids.shape[1]

    def compute(self) -> torch.Tensor:
        """See `NetworkCall.compute`."""
        return self.masked.logits(self.ids, self.attention, self.places)

    @classmethod
    def compute_together(cls, calls: Sequence[MaskedCall]) -> list[torch.Tensor]:
        """See `NetworkCall.compute_together`: all rows are padded to the longest."""
        longest = max(call.shape[1] for call in calls)
        ids, attention, places = [], [], []
        n_rows = 0
        for call in calls:
            length = call.shape[1]
            padding = (0, longest - length)  # on the right
            mask = torch.ones_like(call.ids) if call.attention is None else call.attention
            ids.append(pad(call.ids, padding, value=call.masked.pad))
            attention.append(pad(mask, padding))
            # row * length + column, of longer rows that stand further down
            rows, columns = call.places // length, call.places % length
            places.append((rows + n_rows) * longest + columns)
            n_rows += call.shape[0]
        whole = all(call.attention is None and call.shape[1] == longest for call in calls)
        logits = calls[0].masked.logits(
            torch.cat(ids), None if whole else torch.cat(attention), torch.cat(places)
        )
        return list(torch.split_with_sizes(logits, [len(call.places) for call in calls]))


@contextmanager
def _only(module: torch.nn.Module, places: torch.Tensor) -> Iterator[None]:
    """Within a `with` statement, a module returns states at some places only, (1, k, width)."""

    def gather(_module: torch.nn.Module, _inputs: Any, output: Any) -> Any:
        whole = output if isinstance(output, torch.Tensor) else output[0]
        # The last layers may be on another device than the first
        states = whole.flatten(0, 1)[places.to(whole.device)][None]
        if isinstance(output, torch.Tensor):
            return states
        if isinstance(output, tuple):
            return (states, *output[1:])
        output["last_hidden_state"] = states
        return output

    handle = module.register_forward_hook(gather)
    try:
        yield
    finally:
        handle.remove()


def window_of(checkpoint: Checkpoint) -> int:
    """Largest number of tokens that a masked network reads.

    Networks with a padding index among their places (RoBERTa) count places from there on.
    """
    model = checkpoint.model
    limits = [checkpoint.tokenizer.model_max_length]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - unused)
    if len(limits) == 1:
        limits.append(checkpoint.window or limits[0])
    return int(min(limits))
