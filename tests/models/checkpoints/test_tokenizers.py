"""A network is only scored with a tokenizer that can be its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

from contstim.errors import ModelError
from contstim.models.checkpoints.loading import load_tokenizer
from contstim.models.loading import Loading
from tests.models.checkpoints.conftest import Copy, Scores, score

hf: Any = transformers

NETWORK = {"config.json", "generation_config.json", "model.safetensors"}


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert", "gpt2", "llama", "classifier"])
def test_a_folder_without_tokenizer_is_refused(copy: Copy, kind: str) -> None:
    """The library makes up a tokenizer of five tokens, which reads every word as unknown."""
    folder = copy(kind)
    for file in folder.iterdir():
        if file.name not in NETWORK:
            file.unlink()
    with pytest.raises(ModelError, match=str(folder)):
        score(folder)


@pytest.mark.parametrize(("network", "tokenizer"), [("gpt2", "bert"), ("bert", "gpt2")])
def test_the_tokenizer_of_another_network_is_refused(
    copy: Copy, network: str, tokenizer: str
) -> None:
    folder, other = copy(network), copy(tokenizer)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((other / name).read_bytes())
    with pytest.raises(ModelError, match=r"tokenizer of \d+ tokens for a network of \d+"):
        score(folder)


@pytest.mark.parametrize("multiple", [64, 128])
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_padded_embedding_is_no_reason_to_refuse(copy: Copy, kind: str, multiple: int) -> None:
    folder = copy(kind)
    auto = hf.AutoModelForMaskedLM if kind == "bert" else hf.AutoModelForCausalLM
    model = auto.from_pretrained(folder)
    model.resize_token_embeddings(pad_to_multiple_of=multiple)
    model.save_pretrained(folder)
    assert np.isfinite(score(folder)).all()


def test_a_tokenizer_that_reads_words_as_unknown_is_refused(copy: Copy) -> None:
    folder = copy("bert")
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    special = list(tokenizer.all_special_tokens)
    (folder / "vocab.txt").write_text(
        "\n".join([*special, *(f"词{i}" for i in range(len(tokenizer) - len(special)))]) + "\n"
    )
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"cannot read ordinary English words, such as the, of"):
        score(folder)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_two_words_on_one_number_are_refused(copy: Copy, kind: str) -> None:
    """The network has one row for both, and cannot tell them apart."""
    folder = copy(kind)
    path = folder / "tokenizer.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = settings["model"]["vocab"]
    one, two = [token for token in vocabulary if token.strip("Ġ#").isalpha()][-2:]
    vocabulary[two] = vocabulary[one]
    path.write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(ModelError, match=f"{vocabulary[one]} for both .*Put the tokenizer") as it:
        score(folder)
    assert repr(one) in str(it.value)
    assert repr(two) in str(it.value)
    with pytest.raises(ModelError, match="for both"):
        load_tokenizer(str(folder), Loading())


def _slow(folder: Path, kind: str) -> None:
    """The files of tokenizers that older checkpoints have instead of tokenizer.json."""
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.model.save(str(folder))
    (folder / "tokenizer.json").unlink()
    assert (folder / ("vocab.txt" if kind == "bert" else "merges.txt")).is_file()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "whole": lambda _path: None,
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut between lines": lambda path: path.write_text("\n".join(path.read_text().split("\n")[:99])),
    "null": lambda path: path.write_text("null"),
    "nonsense": lambda path: path.write_text("one\ntwo\n\nthree four five\n"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00" * 200),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("kind", "file"), [("bert", "vocab.txt"), ("gpt2", "vocab.json"), ("gpt2", "merges.txt")]
)
def test_files_of_older_tokenizers_are_whole_or_refused(
    copy: Copy, undamaged: Scores, kind: str, file: str, damage: str
) -> None:
    """The witness is the same tokenizer from tokenizer.json."""
    folder = copy(kind)
    _slow(folder, kind)
    whole = (folder / file).read_bytes()
    DAMAGES[damage](folder / file)
    if (folder / file).is_file() and (folder / file).read_bytes() == whole:
        assert np.array_equal(score(folder), undamaged(kind))
        return
    with pytest.raises(ModelError, match=str(folder)):
        score(folder)
