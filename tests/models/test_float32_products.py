"""Passes compute float32 products in float32, regardless of PyTorch's settings.

Witness: PyTorch's own settings, reported as `fp32_precision` for each kind of operation.
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
FLOAT32 = {"ieee", "none"}  # "none" means float32
KINDS = [
    backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn,
    backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn,
]  # fmt: skip
SETTINGS = {
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


def read_settings() -> list[str]:
    """Return PyTorch's settings of both generations."""
    values = [kind.fp32_precision for kind in KINDS]
    for read_setting in (
        lambda: backends.cuda.matmul.allow_tf32,
        lambda: backends.cudnn.allow_tf32,
        torch.get_float32_matmul_precision,
    ):
        try:
            values.append(str(read_setting()))
        except RuntimeError:
            values.append("hidden by the newer settings")
    return values


@pytest.fixture
def restored_settings() -> Iterator[None]:
    """Restore the settings after a test changed them."""
    everywhere = (backends, backends.cudnn, backends.mkldnn)
    previous = read_settings(), [group.fp32_precision for group in everywhere]
    yield
    for group, precision in zip(everywhere, previous[1], strict=True):
        group.fp32_precision = precision
    torch.set_float32_matmul_precision("highest")
    backends.cudnn.allow_tf32 = True
    for kind, precision in zip(KINDS, previous[0][: len(KINDS)], strict=True):
        kind.fp32_precision = precision
    assert (read_settings(), [group.fp32_precision for group in everywhere]) == previous


@pytest.fixture(params=list(SETTINGS))
def setting(request: pytest.FixtureRequest, restored_settings: None) -> str:
    """A setting that a program has made."""
    del restored_settings
    SETTINGS[request.param]()
    return str(request.param)


def test_products_are_float32_and_settings_are_restored(setting: str) -> None:
    previous = read_settings()
    assert set(previous[:6]) - FLOAT32 or setting == "no TF32 in cuDNN"
    with float32_products():
        assert set(read_settings()[:6]) <= FLOAT32
        with float32_products():
            assert set(read_settings()[:6]) <= FLOAT32
        assert set(read_settings()[:6]) <= FLOAT32
    assert read_settings() == previous


def test_last_of_several_threads_restores_the_settings(setting: str) -> None:
    """The second context begins and ends later than the first, as with threads."""
    del setting
    previous = read_settings()
    first, second = float32_products(), float32_products()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(read_settings()[:6]) <= FLOAT32
    second.__exit__(None, None, None)
    assert read_settings() == previous


def test_networks_compute_products_as_float32(setting: str, tiny_checkpoint: Folder) -> None:
    """After new settings, PyTorch refuses to report the older ones."""
    del setting
    previous = read_settings()
    model: Any = load_model(f"hf:{tiny_checkpoint('gpt2')}", device="cpu")
    calls: list[list[str]] = []
    handle = model.checkpoint.model.register_forward_hook(lambda *_: calls.append(read_settings()))
    sentence = Sentence.parse("She sleeps in the small house.")
    model.log_probs([sentence])
    n_scored = len(calls)
    model.replacements(sentence, 3, ("dog", "house"))
    handle.remove()
    assert len(calls) > n_scored > 0
    for settings in calls:
        assert set(settings[:6]) <= FLOAT32
        assert "True" not in settings  # the older setting `allow_tf32`
    assert read_settings() == previous


def test_settings_of_old_pytorch(restored_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del restored_settings
    monkeypatch.setattr("contstim.models.batching._kinds_of_operations", list)
    previous = read_settings()
    with float32_products():
        assert read_settings()[-3:] == ["False", "False", "highest"]
    assert read_settings()[-3:] == previous[-3:]
