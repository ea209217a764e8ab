"""Loading of checkpoints: their kinds, refusals and fingerprints."""

import json
import shutil
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models.catalog import load_model
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.checkpoints.source import foreign_errors
from contstim.models.loading import Loading
from contstim.models.tensors import fingerprint
from tests.models import tiny
from tests.models.checkpoints.conftest import SENTENCES, Copy, edit
from tests.models.tiny import Folder, Load

CAUSAL = {"gpt2", "pythia", "llama", "spaced"}
CPU = Loading(device="cpu")
WORDS = ("the", "teacher", "unbelievably", "3rd", "猫")


QUICK = ("bert", "gpt2", "roberta", "xlm")


@pytest.mark.parametrize("name", sorted(tiny.BUILDERS))
def test_configuration_determines_causal_or_masked(load: Load, name: str) -> None:
    checkpoint = load(name)
    assert checkpoint.kind == ("causal" if name in CAUSAL else "masked")
    assert checkpoint.window == tiny.CONTEXT
    assert checkpoint.tokenizer.is_fast
    assert not checkpoint.model.training
    assert checkpoint.model.dtype == torch.float32


def test_checkpoint_in_use_is_not_loaded_again(tiny_checkpoint: Folder) -> None:
    location = str(tiny_checkpoint("gpt2"))
    checkpoint = load_checkpoint(location, Loading(device="cpu"))
    assert load_checkpoint(location, Loading(device="cpu")) is checkpoint
    half = load_checkpoint(location, Loading(device="cpu", dtype="bfloat16"))
    assert half.model.dtype == torch.bfloat16
    assert half.fingerprint != checkpoint.fingerprint


def test_fingerprints_ignore_the_folder(
    tiny_checkpoint: Folder, load: Load, tmp_path: Path
) -> None:
    original = load("gpt2")
    original.tokenizer(["one", "two words"], padding=False, truncation=True, max_length=4)
    copy = shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "copy")
    same_model = load_checkpoint(str(copy), Loading(device="cpu"))
    assert same_model is not original
    assert same_model.fingerprint == original.fingerprint
    with torch.no_grad():
        same_model.model.transformer.wpe.weight[0, 0] += 1e-3
    changed = Checkpoint(same_model.model, same_model.tokenizer, str(copy), "cpu", "causal")
    assert changed.fingerprint != original.fingerprint
    model = json.loads((copy / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    edit(copy / "tokenizer.json", model={**model, "merges": []})
    assert load_checkpoint(str(copy), Loading(device="cpu")).fingerprint != original.fingerprint


@pytest.mark.parametrize("name", ["bert", "pythia"])
def test_untrained_heads_are_refused(tiny_checkpoint: Folder, tmp_path: Path, name: str) -> None:
    for auto in (transformers.AutoModel, transformers.AutoTokenizer):
        auto.from_pretrained(tiny_checkpoint(name)).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"not a complete (masked|causal) .* missing"):
        load_checkpoint(str(tmp_path), Loading())


@pytest.mark.parametrize("location", ["./nowhere", "/nowhere", "a/b/c", "~/model"])
def test_missing_folder_is_not_searched_on_the_hub(location: str) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        load_checkpoint(location, Loading())


def test_unreachable_hub_is_reported_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    start = perf_counter()
    with pytest.raises(ModelError, match=r"unheard-of .* cannot be reached.*use DIR instead"):
        load_checkpoint("someone/unheard-of", Loading())
    assert perf_counter() - start < 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "`device` must be one of auto, cpu, cuda, got 'tpu'"),
        ({"dtype": "int8"}, r"`dtype` must be one of auto, float32.*got 'int8'"),
        ({"quantize": "int3"}, "int8, int4"),
        ({"device": "cpu", "device_map": "auto"}, "exclude each other"),
        ({"device_map": "balanced"}, r"must be auto.* got 'balanced'"),
        ({"device": "cuda"}, r"finds no GPU here\. Use the device cpu"),
    ],
)
def test_options_are_checked(tiny_checkpoint: Folder, options: Any, message: str) -> None:
    if options == {"device": "cuda"} and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ModelError, match=message):
        load_checkpoint(str(tiny_checkpoint("gpt2")), Loading(**options))


def test_fingerprints_cover_merges_and_options(load: Load, tmp_path: Path) -> None:
    """The same vocabulary with other merges or another option splits words differently."""
    pytest.importorskip("sacremoses")
    network = load("xlm").model
    pieces = ["<s>", "</s>", "<pad>", "<unk>", "t", "h", "e</w>", "th", "the</w>", "T"]
    vocabulary, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocabulary.write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    slow: Any = transformers.XLMTokenizer
    fingerprints = []
    for rules, options in (
        ("t h\nth e</w>\n", {}),
        ("t h\nth e</w>\n", {}),
        ("t h\n", {}),
        ("t h\nth e</w>\n", {"do_lowercase_and_remove_accent": False}),
    ):
        merges.write_text(rules)
        tokenizer = slow(str(vocabulary), str(merges), **options)
        fingerprints.append(fingerprint(network, tokenizer))
    assert fingerprints[0] == fingerprints[1]
    assert len(set(fingerprints)) == 3


def test_missing_tokenizer_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocabulary.write_text("{}")
    merges.write_text("")
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    slow: Any = transformers.XLMTokenizer
    with pytest.raises(ModelError, match=r"contstim\[xlm\]"), foreign_errors("xlm"):
        slow(str(vocabulary), str(merges))


def test_lack_of_memory_is_reported_with_remedies(
    tiny_checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(transformers.AutoModelForMaskedLM, "from_pretrained", fail)
    with pytest.raises(
        ModelError, match=r"does not fit into memory.* quantize int8 or int4, device_map"
    ):
        load_checkpoint(str(tiny_checkpoint("albert")), Loading(device="cpu", dtype="bfloat16"))


@pytest.mark.parametrize(
    "kind",
    [
        *QUICK,
        *(pytest.param(k, marks=pytest.mark.slow) for k in sorted({*tiny.BUILDERS} - {*QUICK})),
    ],
)
def test_words_and_tokens_are_available_without_weights(copy: Copy, kind: str) -> None:
    """Witness: the model with weights; the other model has an empty file of weights."""
    folder = copy(kind)
    full_model = load_model(f"hf:{folder}", device="cpu")
    for file in folder.glob("*.safetensors"):
        file.write_bytes(b"")
    tokenizer_only = load_model(f"hf:{folder}", CPU, weights=False)
    assert np.array_equal(tokenizer_only.knows(WORDS), full_model.knows(WORDS))
    assert np.array_equal(
        tokenizer_only.token_counts(SENTENCES), full_model.token_counts(SENTENCES)
    )
    for initial in (True, False):
        without_weights, with_weights = (
            m.tokens_per_word(WORDS, initial=initial) for m in (tokenizer_only, full_model)
        )
        assert without_weights is not None
        assert with_weights is not None
        assert without_weights.tolist() == with_weights.tolist()
    assert tokenizer_only.unscorable(SENTENCES) == full_model.unscorable(SENTENCES)
    assert tokenizer_only.convention.fingerprint.startswith("tokenizer-")
    with pytest.raises(ModelError, match=r"without its weights.*cannot score"):
        tokenizer_only.log_probs(SENTENCES)


def test_invented_tokenizer_is_refused_without_weights(copy: Copy) -> None:
    folder = copy("bert")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ModelError, match=r"tokenizer of 5 tokens for a network of 220"):
        load_model(f"hf:{folder}", CPU, weights=False)
