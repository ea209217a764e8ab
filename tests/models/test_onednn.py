"""Linear layers through oneDNN against PyTorch's own, on the same weights."""

import math
from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.pytorch_utils import Conv1D

from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.onednn import use_onednn
from tests.examples import examples
from tests.models.tiny import Folder

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(),  # type: ignore[no-untyped-call]
    reason="this build of PyTorch has no oneDNN",
)


@settings(max_examples=examples(25))
@given(st.lists(st.integers(0, 5), min_size=0, max_size=3), st.integers(1, 40), st.integers(1, 40))
def test_outputs_equal_pytorch_for_all_shapes(shape: list[int], inputs: int, outputs: int) -> None:
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


@pytest.mark.parametrize("shape", [(2, 4, 3), (3,)])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    "layer",
    [
        torch.nn.Linear(3, 2),
        torch.nn.Linear(3, 2, bias=False),
        Conv1D(2, 3),  # type: ignore[no-untyped-call]
    ],
    ids=["linear", "without bias", "transposed"],
)
def test_gradients_equal_pytorch(
    layer: torch.nn.Module, frozen: bool, shape: tuple[int, ...]
) -> None:
    plain, fast = deepcopy(layer), deepcopy(layer)
    use_onednn(fast)
    gradients = []
    for module in (plain, fast):
        x = torch.linspace(0, 1, math.prod(shape)).reshape(shape).requires_grad_()
        module.requires_grad_(not frozen)
        module(x).square().sum().backward()
        gradients.append([x.grad, *(weight.grad for weight in module.parameters())])
    for expected, gradient in zip(*gradients, strict=True):
        if frozen and expected is None:
            assert gradient is None
        else:
            torch.testing.assert_close(gradient, expected)


def test_other_precisions_are_unchanged() -> None:
    layer = torch.nn.Linear(3, 2).double()
    plain = deepcopy(layer)
    use_onednn(layer)
    x = torch.randn(4, 3, dtype=torch.float64)
    with torch.inference_mode():
        assert torch.equal(layer(x), plain(x))
    layer, plain = layer.float(), plain.float()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert layer(x.float()).dtype == torch.bfloat16
        assert torch.equal(layer(x.float()), plain(x.float()))


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_networks_use_onednn_and_keep_weights(tiny_checkpoint: Folder, name: str) -> None:
    """Witness: the same folder loaded with transformers only."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    folder = tiny_checkpoint(name)
    checkpoint = load_checkpoint(str(folder), Loading(device="cpu"))
    expected_model = (
        AutoModelForCausalLM if name == "gpt2" else AutoModelForMaskedLM
    ).from_pretrained(folder)
    kinds = {type(module).__module__ for module in checkpoint.model.modules()}
    assert "contstim.models.onednn" in kinds
    assert checkpoint.model.state_dict().keys() == expected_model.state_dict().keys()
    ids = torch.arange(6)[None]
    with torch.inference_mode():
        torch.testing.assert_close(checkpoint.model(ids).logits, expected_model.eval()(ids).logits)
