"""Float32 products are float32 within every pass, whatever a program has asked PyTorch for.

Witness: PyTorch's own settings, which it tells by `fp32_precision` for each kind of operation.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from contstim.models.batching import float32_products
from contstim.models.catalog import load_model
from contstim.words.sentence import Sentence
from tests.models.tiny import Folder

backends: Any = torch.backends
if not hasattr(backends.cudnn, "conv"):
    pytest.skip("PyTorch has these settings since 2.9", allow_module_level=True)
FLOAT32 = {"ieee", "none"}  # nothing set means float32
KINDS = [
    backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn,
    backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn,
]  # fmt: skip
WISHES = {
    "nothing": lambda: None,
    "allow_tf32": lambda: setattr(backends.cuda.matmul, "allow_tf32", True),
    "no TF32 in cuDNN": lambda: setattr(backends.cudnn, "allow_tf32", False),
    "high": lambda: torch.set_float32_matmul_precision("high"),
    "medium": lambda: torch.set_float32_matmul_precision("medium"),
    "newer, everywhere": lambda: setattr(backends, "fp32_precision", "tf32"),
    "newer, products": lambda: setattr(backends.cuda.matmul, "fp32_precision", "tf32"),
    "newer, cuDNN": lambda: setattr(backends.cudnn, "fp32_precision", "tf32"),
    "newer, one kind": lambda: setattr(backends.cudnn.conv, "fp32_precision", "ieee"),
    "newer, the processor": lambda: setattr(backends.mkldnn, "fp32_precision", "bf16"),
}


def told() -> list[str]:
    """What PyTorch says by both kinds of settings."""
    found = [kind.fp32_precision for kind in KINDS]
    for ask in (
        lambda: backends.cuda.matmul.allow_tf32,
        lambda: backends.cudnn.allow_tf32,
        torch.get_float32_matmul_precision,
    ):
        try:
            found.append(str(ask()))
        except RuntimeError:
            found.append("hidden by the newer settings")
    return found


@pytest.fixture
def free() -> Iterator[None]:
    """Leaves the settings as they were, whatever a test makes of them."""
    everywhere = (backends, backends.cudnn, backends.mkldnn)
    before = told(), [place.fp32_precision for place in everywhere]
    yield
    for place, precision in zip(everywhere, before[1], strict=True):
        place.fp32_precision = precision
    torch.set_float32_matmul_precision("highest")
    backends.cudnn.allow_tf32 = True
    for kind, precision in zip(KINDS, before[0][: len(KINDS)], strict=True):
        kind.fp32_precision = precision
    assert (told(), [place.fp32_precision for place in everywhere]) == before


@pytest.fixture(params=list(WISHES))
def wish(request: pytest.FixtureRequest, free: None) -> str:
    """What a program has asked for."""
    del free
    WISHES[request.param]()
    return str(request.param)


def test_nothing_is_rounded_within_and_all_is_as_it_was_afterwards(wish: str) -> None:
    before = told()
    assert set(before[:6]) - FLOAT32 or wish == "no TF32 in cuDNN"
    with float32_products():
        assert set(told()[:6]) <= FLOAT32
        with float32_products():
            assert set(told()[:6]) <= FLOAT32
        assert set(told()[:6]) <= FLOAT32
    assert told() == before


def test_the_last_of_several_threads_restores_the_settings(wish: str) -> None:
    """One begins after the other and ends after it, as threads do."""
    del wish
    before = told()
    first, second = float32_products(), float32_products()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(told()[:6]) <= FLOAT32
    second.__exit__(None, None, None)
    assert told() == before


def test_networks_compute_products_as_float32(wish: str, tiny_checkpoint: Folder) -> None:
    """After the newer settings PyTorch refuses to tell the older ones."""
    del wish
    before = told()
    model: Any = load_model(f"hf:{tiny_checkpoint('gpt2')}", device="cpu")
    seen: list[list[str]] = []
    handle = model.checkpoint.model.register_forward_hook(lambda *_: seen.append(told()))
    sentence = Sentence.parse("She sleeps in the small house.")
    model.log_probs([sentence])
    n_scored = len(seen)
    model.replacements(sentence, 3, ("dog", "house"))
    handle.remove()
    assert len(seen) > n_scored > 0
    for settings in seen:
        assert set(settings[:6]) <= FLOAT32
        assert "True" not in settings  # of the older ones, `allow_tf32`
    assert told() == before


def test_older_settings_before_pytorch_2_9(free: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del free
    monkeypatch.setattr("contstim.models.batching._kinds_of_operations", list)
    before = told()
    with float32_products():
        assert told()[-3:] == ["False", "False", "highest"]
    assert told()[-3:] == before[-3:]
