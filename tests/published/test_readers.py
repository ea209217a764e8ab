"""Readers of what the 2023 study published, against facts measured from its files otherwise."""

import csv
import pickle
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.reproduce import published
from contstim.words.sentence import Sentence
from tests.published import readers


class _Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path, ("/",))


@pytest.fixture(scope="module")
def folder(published_data: Path) -> Path:
    return published_data / "contstimlang"


def test_a_pickle_that_loads_a_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.pkl"
    path.write_bytes(pickle.dumps([_Attack()]))
    with pytest.raises(InputError, match="wants to load pathlib"):
        published.load_plain(path)


def test_arrays_and_numbers_come_back(tmp_path: Path) -> None:
    path = tmp_path / "plain.pkl"
    for module in (b"numpy.core.multiarray", b"numpy._core.multiarray"):
        dumped = pickle.dumps({"a": np.arange(3.0)[1], "b": np.arange(3)}, protocol=3)
        path.write_bytes(dumped.replace(b"numpy._core.multiarray", module))
        loaded = published.load_plain(path)
        assert isinstance(loaded, dict)
        assert loaded["a"] == 1.0
        assert loaded["b"].tolist() == [0, 1, 2]


@pytest.mark.published
def test_natural_scores(published_data: Path) -> None:
    """231,725 × 9, and XLM alone has nine sentences of probability zero."""
    scores = readers.read_natural_scores(published_data / "contstimlang")
    assert scores.log_probs.shape == (231_725, 9)
    assert np.isneginf(scores.log_probs).sum() == 9
    assert np.isneginf(scores.column("xlm")).sum() == 9


@pytest.mark.published
def test_stimuli_have_scores_and_features(folder: Path, published_data: Path) -> None:
    """The ratings file repeats GPT-2's scores beside each pair: a second source for the same."""
    scores = published.read_stimulus_scores(folder)
    assert scores.models == published.MODELS
    assert scores.sentences is not None
    assert len(set(scores.sentences)) == 2_240
    gpt2 = dict(zip(scores.sentences, scores.column("gpt2"), strict=True))
    with (published_data / "contstimlang-fork" / "data").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for side, sentence in enumerate(row["sentence_pair"].split("_"), 1):
                beside = float(row[f"sentence{side}_gpt2_prob"])
                assert gpt2[Sentence.parse(sentence)] == pytest.approx(beside, rel=1e-6)
    features = readers.read_stimulus_features(folder)
    assert {name: len(values) for name, values in features.items()} == {
        "log_frequency": 2_240,
        "glove_correlation": 2_240,
    }
    assert max(features["glove_correlation"].values()) < 1


@pytest.mark.published
def test_published_pairs_are_rejected_by_models_of_that_number(folder: Path) -> None:
    scores = published.read_stimulus_scores(folder)
    pairs = published.read_natural_pairs(folder)
    assert len(pairs) == 360
    for pair in pairs:
        for model, low, high in (
            (pair.model_1, pair.row_1, pair.row_2),
            (pair.model_2, pair.row_2, pair.row_1),
        ):
            assert scores.column(model)[low] < scores.column(model)[high]
    total = sum(pair.rank_1_model_1 + pair.rank_2_model_2 for pair in pairs)
    assert total == pytest.approx(28.6791174884, abs=1e-9)


@pytest.mark.published
def test_published_triplets_reject_what_ours_would(folder: Path) -> None:
    """Eq. 4: the model of the same number gives a synthetic sentence no more than the natural."""
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
def test_words_and_their_frequencies(folder: Path) -> None:
    vocabulary = published.read_vocabulary(folder)
    frequencies = readers.read_frequencies(folder)
    assert (len(vocabulary.initial), len(vocabulary.inner)) == (5_977, 23_180)
    assert frequencies.keys() == {*vocabulary.initial, *vocabulary.inner}
    assert frequencies["the"] > frequencies["house"] > 0
    assert len(readers.read_natural_sentences(folder)) == 6_113
