"""Recurrent models on disk: read back as they were, damaged ones refused, vocabularies counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError, ModelError
from contstim.models.catalog import load_model, parse_specification
from contstim.models.recurrent.adapter import RecurrentModel
from contstim.models.recurrent.folder import write_folder
from contstim.models.recurrent.network import Kind
from contstim.models.recurrent.words import WordList
from contstim.sentence import Sentence
from tests.models.contract import SENTENCES
from tests.models.recurrent.conftest import build
from tests.models.tiny import TEXTS

PARSED = [Sentence.parse(text) for text in TEXTS]


def saved(kind: Kind, folder: Path, cutoffs: tuple[int, ...] = ()) -> RecurrentModel:
    model = build(kind, cutoffs=cutoffs)
    write_folder(folder, model._network, model._words)
    return model


@pytest.mark.parametrize("cutoffs", [(), (20, 60)])
def test_a_folder_reads_back_as_the_same_model(
    kind: Kind, cutoffs: tuple[int, ...], tmp_path: Path
) -> None:
    model = saved(kind, tmp_path, cutoffs)
    for specification in (f"{kind}:{tmp_path}", str(tmp_path)):
        again = load_model(specification, device="cpu")
        assert again.name == specification
        assert again.convention == model.convention
        assert (again.log_probs(SENTENCES) == model.log_probs(SENTENCES)).all()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"recurrent.json", "model.safetensors", "vocabulary.csv"}


def test_a_folder_tells_its_family(kind: Kind, tmp_path: Path) -> None:
    saved(kind, tmp_path)
    assert parse_specification(f"{tmp_path}@{_rule(kind)}").family == kind
    others = {"rnn": "lstm", "lstm": "bilstm", "bilstm": "rnn"}
    with pytest.raises(ModelError, match=f"of kind {kind}: write {kind}:"):
        load_model(f"{others[kind]}:{tmp_path}")


def _rule(kind: Kind) -> str:
    return "pseudo-log-likelihood" if kind == "bilstm" else "log-likelihood"


def test_missing_and_damaged_folders_are_model_errors(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no recurrent model in .* 'contstim train rnn"):
        load_model(f"lstm:{tmp_path}")
    saved("lstm", tmp_path)
    content = {path: path.read_bytes() for path in tmp_path.iterdir()}
    weights, words, facts = (
        tmp_path / name for name in ("model.safetensors", "vocabulary.csv", "recurrent.json")
    )
    kind = json.dumps(json.loads(content[facts]) | {"kind": "gru"}).encode()
    fewer = b"\n".join(content[words].splitlines()[:-1])
    narrow = json.dumps(json.loads(content[facts]) | {"hidden": 5}).encode()
    for path, damaged, message in (
        (weights, content[weights][:-9], "Cannot read the weights"),
        (facts, narrow, "Cannot read the weights"),
        (facts, b"[]", "describes no recurrent model"),
        (facts, b"{", "describes no recurrent model"),
        (facts, kind, "another version"),
        (words, b"word\n", "no table of words and counts"),
        (words, fewer, "is damaged: its network reads"),
    ):
        for whole in content:
            whole.write_bytes(content[whole])
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=message):
            load_model(f"lstm:{tmp_path}")
    weights.unlink()
    with pytest.raises(ModelError, match=r"Cannot read|is damaged"):
        load_model(f"lstm:{tmp_path}")


def test_words_are_the_most_frequent_ones() -> None:
    """Witness: `collections.Counter`."""
    counts = Counter(word for sentence in PARSED for word in sentence.words)
    words = WordList.from_sentences(PARSED, size=10)
    assert len(words.words) == 10
    assert min(counts[word] for word in words.words) >= max(
        count for word, count in counts.items() if word not in words.words
    )
    twice = WordList.from_sentences(PARSED, min_count=2)
    assert set(twice.words) == {word for word, count in counts.items() if count >= 2}
    assert [a + b for a, b in zip(twice.initial, twice.inner, strict=True)] == [
        counts[word] for word in twice.words
    ]
    assert len(set(words.numbers((*words.words, "zyzzyva", "xkcd")).tolist())) == 11


def test_the_vocabulary_comes_from_the_counts(kind: Kind) -> None:
    """Witness: words counted one by one."""
    found = build(kind).vocabulary(2)
    starts = [sentence.words[0] for sentence in PARSED]
    assert set(found.initial) == {word for word in starts if starts.count(word) >= 2}
    inner = [word for sentence in PARSED for word in sentence.words[1:]]
    assert set(found.inner) == {word for word in inner if inner.count(word) >= 2}


def test_boundaries_in_a_text_are_no_words() -> None:
    words = WordList.from_sentences([Sentence(("<s>", "the", "<unk>", "</S>", "dog"))])
    assert words.words == ("the", "dog")
    assert words.numbers(("<s>", "<unk>")).tolist() == [1, 1]


@pytest.mark.parametrize("size", [0, -1, 10_000])
def test_a_vocabulary_larger_than_the_text_is_refused(size: int) -> None:
    with pytest.raises(InputError, match=r"has \d+ distinct words"):
        WordList.from_sentences(PARSED, size=size)


def test_a_text_without_frequent_words_is_refused() -> None:
    with pytest.raises(InputError, match="a vocabulary of any size cannot"):
        WordList.from_sentences(PARSED, min_count=1_000)


def test_words_with_commas_and_quotes_survive(tmp_path: Path) -> None:
    words = WordList(('"', "1,000", "naïve", "null"), (1, 2, 3, 4), (4, 3, 2, 1))
    words.write(tmp_path / "vocabulary.csv")
    assert WordList.read(tmp_path / "vocabulary.csv") == words
    np.testing.assert_array_equal(words.numbers(words.words), [2, 3, 4, 5])
