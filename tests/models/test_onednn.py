"""Linear layers through oneDNN against PyTorch's own, on the same weights."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.pytorch_utils import Conv1D

from contstim.models.checkpoints import load_checkpoint
from contstim.models.onednn import use_onednn

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(),  # type: ignore[no-untyped-call]
    reason="this build of PyTorch has no oneDNN",
)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=0, max_size=3), st.integers(1, 40), st.integers(1, 40))
def test_any_shape_gives_what_pytorch_gives(shape: list[int], inputs: int, outputs: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(*shape, inputs)
    for layer in (
        torch.nn.Linear(inputs, outputs),
        torch.nn.Linear(inputs, outputs, bias=False),
        Conv1D(outputs, inputs),  # type: ignore[no-untyped-call]
    ):
        fast = deepcopy(layer)
        use_onednn(fast)
        assert type(fast) is not type(layer)
        with torch.inference_mode():
            torch.testing.assert_close(fast(x), layer(x), rtol=1e-5, atol=1e-5)


def test_a_gradient_is_still_computed() -> None:
    layer = torch.nn.Linear(3, 2)
    plain = deepcopy(layer)
    use_onednn(layer)
    x = torch.randn(4, 3)
    for each in (layer, plain):
        each(x).square().sum().backward()
    assert plain.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, plain.weight.grad)


def test_other_precisions_are_left_alone() -> None:
    layer = torch.nn.Linear(3, 2).double()
    plain = deepcopy(layer)
    use_onednn(layer)
    x = torch.randn(4, 3, dtype=torch.float64)
    with torch.inference_mode():
        assert torch.equal(layer(x), plain(x))


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_loaded_networks_use_it_and_keep_their_weights(
    tiny_checkpoint: Callable[[str], Path], name: str
) -> None:
    """Against the same folder opened by transformers alone."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    folder = tiny_checkpoint(name)
    checkpoint = load_checkpoint(str(folder), device="cpu")
    opened = (AutoModelForCausalLM if name == "gpt2" else AutoModelForMaskedLM).from_pretrained(
        folder
    )
    kinds = {type(module).__module__ for module in checkpoint.model.modules()}
    assert "contstim.models.onednn" in kinds
    assert checkpoint.model.state_dict().keys() == opened.state_dict().keys()
    ids = torch.arange(6)[None]
    with torch.inference_mode():
        torch.testing.assert_close(checkpoint.model(ids).logits, opened.eval()(ids).logits)
