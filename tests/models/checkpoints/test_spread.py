"""Networks on several devices have the same scores as on one device."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from contstim.errors import ModelError
from contstim.models import loading as loading_module
from contstim.models.catalog import load_model, load_scorer
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.tensors import has_parts_elsewhere
from contstim.words.sentence import Sentence
from tests.models import tiny
from tests.models.checkpoints.conftest import edit_weights
from tests.models.tiny import Folder

# Short sentences, because each pass reads the network from the disk
SENTENCES = [
    Sentence.parse(text)
    for text in ("She sleeps in the house.", "The dogs were hungry.", "Nobody remembered it.")
]
WORDS = ["dog", "teachers", "unbelievable", "a"]


@pytest.fixture(autouse=True)
def accelerate() -> None:
    pytest.importorskip("accelerate")


def map_to_two_devices(location: str, *, first: str = "cpu", other: str = "disk") -> dict[str, str]:
    """Put the embedding and the output that shares it on one device, other parts on another."""
    network = load_checkpoint(location, Loading(device="cpu")).model
    body = network.base_model_prefix
    parts = {name: first for name, _ in network.named_children() if name != body}
    parts |= {f"{body}.{name}": other for name, _ in getattr(network, body).named_children()}
    embedding = network.get_input_embeddings()
    (name,) = (name for name, module in network.named_modules() if module is embedding)
    (part,) = (part for part in parts if f"{name}.".startswith(f"{part}."))
    return {**parts, part: first}


NAMES = ["gpt2@chain", "bert", "llama", "roberta@pll-original"]
KINDS = ["all on disk", "whole", "two devices"]
QUICK = {("gpt2@chain", "two devices"), ("roberta@pll-original", "all on disk")}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.slow])
        for case in product(NAMES, KINDS)
    ],
)
def test_spread_networks_have_equal_scores(tiny_checkpoint: Folder, name: str, kind: str) -> None:
    specification = tiny.specification(tiny_checkpoint, name)
    folder = str(tiny_checkpoint(name.partition("@")[0]))
    parts = {"": "cpu"} if kind == "whole" else map_to_two_devices(folder)
    if kind == "all on disk":
        parts = dict.fromkeys(parts, "disk")
    plain = load_model(specification, device="cpu")
    spread = load_model(specification, device_map=parts)
    np.testing.assert_allclose(
        spread.log_probs(SENTENCES), plain.log_probs(SENTENCES), rtol=2e-6, atol=1e-4
    )
    for method in ("replacement_log_probs", "replacements"):
        ours, theirs = (getattr(m, method)(SENTENCES[0], 2, WORDS) for m in (spread, plain))
        if method == "replacements":
            ours, theirs = ours.upper_bound, theirs.upper_bound
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-4)
    # Scores stored with one device are valid with several
    assert spread.convention == plain.convention


def test_classifier_can_be_spread(folders: Folder) -> None:
    plain = load_scorer(f"classifier:{folders('classifier')}", device="cpu")
    spread = load_scorer(f"classifier:{folders('classifier')}", device_map={"": "cpu"})
    np.testing.assert_allclose(spread.scores(SENTENCES), plain.scores(SENTENCES), atol=1e-5)


def test_checkpoint_in_use_is_shared_only_with_equal_maps(tiny_checkpoint: Folder) -> None:
    location = str(tiny_checkpoint("gpt2"))
    spread = load_checkpoint(location, Loading(device_map={"": "cpu"}))
    assert load_checkpoint(location, Loading(device_map={"": "cpu"})) is spread
    assert load_checkpoint(location, Loading(device="cpu")) is not spread


def test_weights_on_disk_are_checked(copy: Folder) -> None:
    folder = copy("gpt2")
    parts = map_to_two_devices(str(folder))

    def spoil(weights: dict[str, torch.Tensor]) -> None:
        weights["transformer.h.1.mlp.c_fc.weight"][0, 0] = float("nan")

    edit_weights(folder, spoil)
    with pytest.raises(ModelError, match="not finite"):
        load_checkpoint(str(folder), Loading(device_map=parts))


def test_offloaded_weights_are_not_cast_to_float32(tiny_checkpoint: Folder) -> None:
    location = str(tiny_checkpoint("gpt2"))
    parts = map_to_two_devices(location)
    spread = load_model(f"hf:{location}", dtype="bfloat16", device_map=parts)
    assert spread.convention.precision == "bfloat16"
    with pytest.raises(ModelError, match="dtype float32"):
        spread.float32_log_probs(SENTENCES)
    precise = load_model(f"hf:{location}", device_map=parts)
    assert has_parts_elsewhere(precise.checkpoint.model)  # type: ignore[attr-defined]
    assert precise.float32_log_probs(SENTENCES) == pytest.approx(precise.log_probs(SENTENCES))


def test_parts_that_share_weights_must_share_a_device(tiny_checkpoint: Folder) -> None:
    location = str(tiny_checkpoint("gpt2"))
    parts = map_to_two_devices(location)
    with pytest.raises(ModelError, match=r"wte\.weight and lm_head\.weight .* the same weights"):
        load_checkpoint(location, Loading(device_map={**parts, "lm_head": "disk"}))
    del parts["transformer.wpe"]
    with pytest.raises(ModelError, match=r"not give any device .* transformer\.wpe"):
        load_checkpoint(location, Loading(device_map=parts))


@pytest.mark.parametrize(
    ("options", "packages"),
    [
        ({"device_map": "auto"}, "`device_map` needs accelerate"),
        ({"quantize": "int8"}, "`quantize` needs accelerate and bitsandbytes"),
    ],
)
def test_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], packages: str
) -> None:
    monkeypatch.setattr(loading_module, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=rf"{packages}: pip .*contstim\[big\]"):
        Loading(**options).resolved()
