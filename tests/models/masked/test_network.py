"""The head at some places only, exactly as in the whole output."""

from typing import Any

import pytest
import torch
import transformers

from contstim.models.checkpoints import Checkpoint
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.network import MaskedNetwork
from tests.models.masked.conftest import of_kinds
from tests.models.tiny import Load

IDS = torch.tensor([[7, 4, 9, 12, 8], [5, 6, 9, 4, 0], [10, 11, 0, 0, 0]])
ATTENTION = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
PLACES = torch.tensor([1, 8, 0, 11, 3, 5, 6])


@pytest.mark.parametrize("kind", of_kinds())
def test_some_places_are_as_in_the_whole_output(load: Load, kind: str) -> None:
    checkpoint = load(kind)
    network = MaskedNetwork(checkpoint)
    assert network._narrow is not None
    found = network.logits(IDS, ATTENTION, PLACES)
    with torch.inference_mode():
        whole = checkpoint.model(input_ids=IDS, attention_mask=ATTENTION).logits
    torch.testing.assert_close(found, whole.flatten(0, 1)[PLACES], rtol=1e-5, atol=1e-4)


def test_a_head_that_mixes_places_gets_all_of_them(load: Load) -> None:
    """This one subtracts from each place the mean of all places."""
    checkpoint = load("bert")
    model: Any = transformers.BertForMaskedLM(checkpoint.model.config)
    model.eval()
    model.cls.register_forward_hook(lambda *args: args[-1] - args[-1].mean(dim=1, keepdim=True))
    network = MaskedNetwork(Checkpoint(model, checkpoint.tokenizer, "mixing", "cpu", "masked"))
    assert network._narrow is None
    with torch.inference_mode():
        whole = model(input_ids=IDS, attention_mask=ATTENTION).logits
    found = network.logits(IDS, ATTENTION, PLACES)
    torch.testing.assert_close(found, whole.flatten(0, 1)[PLACES])


def test_no_hook_stays_behind(load: Load) -> None:
    checkpoint = load("bert")
    MaskedNetwork(checkpoint).logits(IDS, ATTENTION, PLACES)
    assert not any(module._forward_hooks for module in checkpoint.model.modules())


@pytest.mark.parametrize("kind", of_kinds())
def test_the_window_counts_usable_places(load: Load, kind: str) -> None:
    assert MaskedModel(load(kind)).window == 64
