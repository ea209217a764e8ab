"""Readers of the files of the 2023 study, against facts from other sources."""

import csv
import pickle
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.reproduce import published
from contstim.words.sentence import Sentence
from tests.published import readers


class _UnsafeObject:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path, ("/",))


@pytest.fixture(scope="module")
def folder(published_data: Path) -> Path:
    return published_data / "contstimlang"


def test_a_pickle_that_loads_a_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.pkl"
    path.write_bytes(pickle.dumps([_UnsafeObject()]))
    with pytest.raises(InputError, match="wants to load pathlib"):
        published.load_plain(path)


def test_pickled_arrays_and_numbers_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "plain.pkl"
    for module in (b"numpy.core.multiarray", b"numpy._core.multiarray"):
        dumped = pickle.dumps({"a": np.arange(3.0)[1], "b": np.arange(3)}, protocol=3)
        path.write_bytes(dumped.replace(b"numpy._core.multiarray", module))
        loaded = published.load_plain(path)
        assert isinstance(loaded, dict)
        assert loaded["a"] == 1.0
        assert loaded["b"].tolist() == [0, 1, 2]


@pytest.mark.published
def test_natural_scores_have_the_published_shape(published_data: Path) -> None:
    """Only XLM has sentences of probability zero, nine of 231,725."""
    scores = readers.read_natural_scores(published_data / "contstimlang")
    assert scores.log_probs.shape == (231_725, 9)
    assert np.isneginf(scores.log_probs).sum() == 9
    assert np.isneginf(scores.column("xlm")).sum() == 9


@pytest.mark.published
def test_every_stimulus_has_scores_and_features(folder: Path, published_data: Path) -> None:
    """Witness: the ratings file, which repeats the scores of GPT-2 for each pair."""
    scores = published.read_stimulus_scores(folder)
    assert scores.models == published.MODELS
    assert scores.sentences is not None
    assert len(set(scores.sentences)) == 2_240
    gpt2 = dict(zip(scores.sentences, scores.column("gpt2"), strict=True))
    with (published_data / "contstimlang-fork" / "data").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for side, sentence in enumerate(row["sentence_pair"].split("_"), 1):
                expected = float(row[f"sentence{side}_gpt2_prob"])
                assert gpt2[Sentence.parse(sentence)] == pytest.approx(expected, rel=1e-6)
    features = readers.read_stimulus_features(folder)
    assert {name: len(values) for name, values in features.items()} == {
        "log_frequency": 2_240,
        "glove_correlation": 2_240,
    }
    assert max(features["glove_correlation"].values()) < 1


@pytest.mark.published
def test_each_model_rejects_one_sentence_of_a_published_pair(folder: Path) -> None:
    scores = published.read_stimulus_scores(folder)
    pairs = published.read_natural_pairs(folder)
    assert len(pairs) == 360
    for pair in pairs:
        for model, less_likely, more_likely in (
            (pair.model_1, pair.row_1, pair.row_2),
            (pair.model_2, pair.row_2, pair.row_1),
        ):
            assert scores.column(model)[less_likely] < scores.column(model)[more_likely]
    total = sum(pair.rank_1_model_1 + pair.rank_2_model_2 for pair in pairs)
    assert total == pytest.approx(28.6791174884, abs=1e-9)


@pytest.mark.published
def test_each_model_rejects_its_published_synthetic_sentence(folder: Path) -> None:
    """Eq. 4: a synthetic sentence is at most as likely as the natural one for its model."""
    triplets = published.read_triplets(folder)
    selected = published.read_triplets(folder, selected=True)
    assert (len(triplets), len(selected)) == (3_600, 360)
    assert {t.triplet_id for t in selected} < {t.triplet_id for t in triplets}
    for t in triplets:
        assert t.log_prob_synthetic_1_model_1 <= t.log_prob_natural_model_1 + 1e-3
        assert t.log_prob_synthetic_2_model_2 <= t.log_prob_natural_model_2 + 1e-3
    total = sum(t.controversiality for t in selected)
    assert total == pytest.approx(23_922.602363, abs=1e-6)


@pytest.mark.published
def test_every_word_of_the_vocabulary_has_a_frequency(folder: Path) -> None:
    vocabulary = published.read_vocabulary(folder)
    frequencies = readers.read_frequencies(folder)
    assert (len(vocabulary.initial), len(vocabulary.inner)) == (5_977, 23_180)
    assert frequencies.keys() == {*vocabulary.initial, *vocabulary.inner}
    assert frequencies["the"] > frequencies["house"] > 0
    assert len(readers.read_natural_sentences(folder)) == 6_113
