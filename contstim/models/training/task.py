"""What the loop trains, whatever the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import Tensor, nn

    from contstim.arrays import IntArray
    from contstim.sentence import Sentence


@dataclass(frozen=True, eq=False)
class Task:
    """A network, how it reads sentences, and what it is to predict.

    Attributes:
        network: whose weights are trained.
        encode: the numbers that each sentence is read as.
        log_probs: log p (n,), nats, of all that is predicted in a batch, from the numbers (b, l)
            and a mask (b, l) of what is no padding. What it leaves to chance, torch's generator
            decides.
        save: writes the trained model into a folder.
        facts: what the record says about the data, such as the size of the vocabulary.
    """

    network: nn.Module
    encode: Callable[[Sequence[Sentence]], list[IntArray]]
    log_probs: Callable[[Tensor, Tensor], Tensor]
    save: Callable[[Path], None]
    facts: dict[str, object]
