"""Quantized networks: what arrives at the library, and that their scores stay apart."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models import loading as loading_module
from contstim.models.catalog import load_model
from contstim.models.loading import Loading
from contstim.models.tensors import spreading
from contstim.words.sentence import Sentence
from tests.models import tiny

hf: Any = transformers
SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS[:4]]

needs_library = pytest.mark.skipif(
    find_spec("bitsandbytes") is None or find_spec("accelerate") is None,
    reason="needs contstim[big]",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoints whose rows are blocks of 64 weights, as quantization to four bits wants."""
    root = tmp_path_factory.mktemp("quantized")
    made = {}
    for name, build in (("gpt2", tiny.small_gpt2), ("bert", tiny.small_bert)):
        _, tokenizer = tiny.BUILDERS[name]()
        torch.manual_seed(1)
        network = build(len(tokenizer), width=64, layers=2, heads=4)
        with torch.no_grad():
            for weight in network.parameters():
                if weight.ndim > 1:
                    weight.normal_(std=0.15)
        network.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
        made[name] = root / name
    return made


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("quantize", ["int8", "int4"])
def test_library_arguments(monkeypatch: pytest.MonkeyPatch, quantize: Any, dtype: Any) -> None:
    monkeypatch.setattr(loading_module, "find_spec", lambda _: object())
    given = Loading(device="cpu", dtype=dtype, quantize=quantize)
    settings = spreading(given.resolved(), "")
    told = settings["quantization_config"]
    assert (told.load_in_8bit, told.load_in_4bit) == (quantize == "int8", quantize == "int4")
    assert told.bnb_4bit_quant_type == "nf4"
    assert told.bnb_4bit_compute_dtype == getattr(torch, dtype)
    assert settings["device_map"] == {"": "cpu"}
    assert settings["dtype"] == dtype
    given = Loading(dtype=dtype, device_map="auto", quantize=quantize)
    mapped = spreading(given.resolved(), "folder")
    assert mapped["device_map"] == "auto"


def test_another_quantization_is_refused() -> None:
    with pytest.raises(ModelError, match="int8, int4"):
        Loading(quantize="int3").resolved()  # type: ignore[arg-type]


@needs_library
@pytest.mark.parametrize(("quantize", "off"), [("int8", 0.02), ("int4", 0.15)])
@pytest.mark.parametrize("name", ["gpt2", "bert@pll-original"])
def test_a_quantized_network_scores_nearly_as_the_full_one(
    folders: dict[str, Path], name: str, quantize: Any, off: float
) -> None:
    """Witness: the full network; int8 keeps a weight to 1/250 of its row, int4 to about 1/12."""
    specification = tiny.specification(folders.__getitem__, name)
    full = load_model(specification, device="cpu")
    small = load_model(specification, device="cpu", quantize=quantize)
    ours, theirs = small.log_probs(SENTENCES), full.log_probs(SENTENCES)
    assert np.abs(ours - theirs).max() < off * np.abs(theirs).max()
    assert np.abs(ours - theirs).max() > 1e-4
    assert small.convention.precision == f"{quantize} with float32"
    assert small.convention.tolerance >= full.convention.tolerance
    # What a search reports is scored again, which must not fail and be the same each time
    again = [small.float32_log_probs([sentence])[0] for sentence in SENTENCES]
    assert again == pytest.approx(ours, rel=small.convention.tolerance, abs=1e-4)
