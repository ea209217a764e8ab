"""Code, weights and tokenizers of a folder: which of them are refused or accepted.

Names of weights are those of published checkpoints, as their files on the hub list them.
"""

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.checkpoints.loading import load_tokenizer
from contstim.models.classifier import LABELS
from contstim.models.loading import Loading
from tests.models import damages
from tests.models.checkpoints.conftest import Copy, Scores, edit, edit_weights, score

NETWORK = """
from pathlib import Path
from transformers import GPT2Config, GPT2LMHeadModel

Path({marker!r}).touch()


class OwnConfig(GPT2Config):
    model_type = {kind!r}


class OwnModel(GPT2LMHeadModel):
    config_class = OwnConfig
"""
TOKENIZER = """
from pathlib import Path
from transformers import GPT2Tokenizer

Path({marker!r}).touch()


class OwnTokenizer(GPT2Tokenizer):
    pass
"""


def _add_custom_network(folder: Path, marker: Path, kind: str) -> None:
    """Make the network one that only the code in its folder can build."""
    (folder / "own_network.py").write_text(NETWORK.format(marker=str(marker), kind=kind))
    edit(
        folder / "config.json",
        model_type=kind,
        architectures=["OwnModel"],
        auto_map={
            "AutoConfig": "own_network.OwnConfig",
            "AutoModelForCausalLM": "own_network.OwnModel",
        },
    )


def _add_custom_tokenizer(folder: Path, marker: Path) -> None:
    (folder / "own_tokenizer.py").write_text(TOKENIZER.format(marker=str(marker)))
    edit(folder / "config.json", model_type="gpt2")
    edit(
        folder / "tokenizer_config.json",
        tokenizer_class="OwnTokenizer",
        auto_map={"AutoTokenizer": ["own_tokenizer.OwnTokenizer", None]},
    )


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.mark.parametrize("kind", ["own", "gpt2"])
def test_network_with_custom_code_is_refused(
    copy: Copy, marker: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused without a question, even if `transformers` has a network of that type."""
    folder, answers = copy("gpt2"), io.StringIO("yes\n" * 100)
    monkeypatch.setattr("sys.stdin", answers)
    _add_custom_network(folder, marker, kind)
    with pytest.raises(ModelError, match=r"own_network\.OwnModel.*--trust-remote-code") as error:
        load_checkpoint(str(folder), Loading(device="cpu"))
    assert str(folder) in str(error.value)
    assert not marker.exists()
    assert answers.tell() == 0


def test_tokenizer_with_custom_code_is_refused(copy: Copy, marker: Path) -> None:
    """The library would use the tokenizer of the network's type, which splits otherwise."""
    folder = copy("gpt2")
    _add_custom_tokenizer(folder, marker)
    with pytest.raises(ModelError, match=r"own_tokenizer\.OwnTokenizer.*--trust-remote-code"):
        load_checkpoint(str(folder), Loading(device="cpu"))
    assert not marker.exists()
    edit(folder / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    load_checkpoint(str(folder), Loading(device="cpu"))
    assert not marker.exists()


def test_trust_remote_code_runs_custom_code(
    copy: Copy, marker: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = copy("gpt2")
    _add_custom_network(folder, marker, "own")
    checkpoint = load_checkpoint(str(folder), Loading(device="cpu", trust_remote_code=True))
    assert type(checkpoint.model).__name__ == "OwnModel"
    assert marker.exists()


PUBLISHED = {
    "bert": (  # bert-large-cased
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
        "bert.embeddings.position_ids",
    ),
    "roberta": (  # roberta-large
        "roberta.pooler.dense.weight",
        "roberta.pooler.dense.bias",
        "roberta.embeddings.position_ids",
    ),
    "electra": (  # google/electra-large-generator
        "electra.embeddings.position_ids",
        "discriminator_predictions.dense.weight",
    ),
    "albert": (  # albert-base-v2
        "albert.pooler.weight",
        "albert.pooler.bias",
        "sop_classifier.classifier.weight",
        "sop_classifier.classifier.bias",
        "albert.embeddings.position_ids",
    ),
    "xlm": ("transformer.position_ids",),  # xlm-mlm-en-2048
    "gpt2": ("transformer.h.0.attn.bias", "transformer.h.1.attn.masked_bias"),  # gpt2-xl
    "pythia": (  # EleutherAI/pythia-160m
        "gpt_neox.layers.0.attention.bias",
        "gpt_neox.layers.0.attention.masked_bias",
        "gpt_neox.layers.0.attention.rotary_emb.inv_freq",
    ),
    "llama": ("model.layers.0.self_attn.rotary_emb.inv_freq",),  # Llama-2
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_extra_weights_are_ignored(copy: Copy, undamaged_scores: Scores, kind: str) -> None:
    folder = copy(kind)
    names = PUBLISHED[kind]
    edit_weights(folder, lambda weights: weights.update({name: torch.ones(2) for name in names}))
    assert np.array_equal(score(folder), undamaged_scores(kind))


def test_old_names_of_layer_norms_are_loaded(copy: Copy, undamaged_scores: Scores) -> None:
    """bert-large-cased calls them gamma and beta. Witness: the undamaged scores."""
    folder = copy("bert")

    def rename(weights: dict[str, torch.Tensor]) -> None:
        for name in [name for name in weights if "LayerNorm" in name]:
            old_name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
            weights[old_name] = weights.pop(name)

    edit_weights(folder, rename)
    assert np.array_equal(score(folder), undamaged_scores("bert"))


def test_new_classifier_needs_the_complete_network(copy: Copy) -> None:
    folder = copy("bert")
    cpu = Loading(device="cpu")
    load = partial(load_checkpoint, str(folder), cpu, classifier=True, labels=LABELS)
    assert load().kind == "classifier"
    edit(folder / "config.json", num_hidden_layers=1)
    with pytest.raises(ModelError, match=r"do not belong to the .*layer\.1"):
        load()


hf: Any = transformers

NETWORK_FILES = {"config.json", "generation_config.json", "model.safetensors"}


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert", "gpt2", "llama", "classifier"])
def test_folder_without_tokenizer_is_refused(copy: Copy, kind: str) -> None:
    """The library would invent a tokenizer of five tokens, which reads every word as unknown."""
    folder = copy(kind)
    for file in folder.iterdir():
        if file.name not in NETWORK_FILES:
            file.unlink()
    with pytest.raises(ModelError, match=str(folder)):
        score(folder)


@pytest.mark.parametrize(("network", "tokenizer"), [("gpt2", "bert"), ("bert", "gpt2")])
def test_tokenizer_of_another_model_is_refused(copy: Copy, network: str, tokenizer: str) -> None:
    folder, other_folder = copy(network), copy(tokenizer)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((other_folder / name).read_bytes())
    with pytest.raises(ModelError, match=r"tokenizer of \d+ tokens for a network of \d+"):
        score(folder)


@pytest.mark.parametrize("multiple", [64, 128])
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_padded_embedding_is_accepted(copy: Copy, kind: str, multiple: int) -> None:
    folder = copy(kind)
    auto = hf.AutoModelForMaskedLM if kind == "bert" else hf.AutoModelForCausalLM
    model = auto.from_pretrained(folder)
    model.resize_token_embeddings(pad_to_multiple_of=multiple)
    model.save_pretrained(folder)
    assert np.isfinite(score(folder)).all()


def test_tokenizer_that_reads_words_as_unknown_is_refused(copy: Copy) -> None:
    folder = copy("bert")
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    special = list(tokenizer.all_special_tokens)
    words = [*special, *(f"词{i}" for i in range(len(tokenizer) - len(special)))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"cannot read ordinary English words, such as the, of"):
        score(folder)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_two_words_with_the_same_id_are_refused(copy: Copy, kind: str) -> None:
    """The network has one row for both words and cannot distinguish them."""
    folder = copy(kind)
    path = folder / "tokenizer.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = settings["model"]["vocab"]
    first, second = [token for token in vocabulary if token.strip("Ġ#").isalpha()][-2:]
    vocabulary[second] = vocabulary[first]
    path.write_text(json.dumps(settings), encoding="utf-8")
    message = f"{vocabulary[first]} for both .*Put the tokenizer"
    with pytest.raises(ModelError, match=message) as error:
        score(folder)
    assert repr(first) in str(error.value)
    assert repr(second) in str(error.value)
    with pytest.raises(ModelError, match="for both"):
        load_tokenizer(str(folder), Loading())


def _write_slow_tokenizer(folder: Path, kind: str) -> None:
    """Write the files that older checkpoints have instead of tokenizer.json."""
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.model.save(str(folder))
    (folder / "tokenizer.json").unlink()
    assert (folder / ("vocab.txt" if kind == "bert" else "merges.txt")).is_file()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "whole": lambda _path: None,
    **{name: damages.DAMAGES[name] for name in ("missing", "empty", "cut in the middle", "null")},
    "cut between lines": lambda path: path.write_text("\n".join(path.read_text().split("\n")[:99])),
    "nonsense": lambda path: path.write_text("one\ntwo\n\nthree four five\n"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00" * 200),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("kind", "file"), [("bert", "vocab.txt"), ("gpt2", "vocab.json"), ("gpt2", "merges.txt")]
)
def test_damaged_files_of_older_tokenizers_are_refused(
    copy: Copy, undamaged_scores: Scores, kind: str, file: str, damage: str
) -> None:
    """Witness: the same tokenizer from tokenizer.json."""
    folder = copy(kind)
    _write_slow_tokenizer(folder, kind)
    original = (folder / file).read_bytes()
    DAMAGES[damage](folder / file)
    if (folder / file).is_file() and (folder / file).read_bytes() == original:
        assert np.array_equal(score(folder), undamaged_scores(kind))
        return
    with pytest.raises(ModelError, match=str(folder)):
        score(folder)
