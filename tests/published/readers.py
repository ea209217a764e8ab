"""Readers of files of the 2023 study that only tests and benchmarks need."""

from pathlib import Path

import numpy as np

from contstim.experiments.reproduce.published import (
    MODELS,
    load_plain,
    load_words,
    read_stimulus_scores,
    resource,
)
from contstim.files.arrays import FloatArray, read_npy
from contstim.items.scores import ScoreTable
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence

NATURAL_SCORES = (
    "precomputed_sentence_probabilities/"
    "natural_sentences_for_natural_controversial_sentence_pair_selection_probs_{}.npy"
)
FEATURES = {
    "log_frequency": "contstim_sents_freqs.npy",
    "glove_correlation": "contstim_sents_gcorrs.npy",
}
NATURAL = (
    "resources/sentence_corpora/"
    "natural_sentences_for_synthetic_controversial_sentence_pair_optimization.txt"
)


def read_natural_scores(folder: Path) -> ScoreTable:
    """Read scores of 231,725 natural sentences under nine models; texts are not published."""
    columns = [load_numbers(resource(folder, NATURAL_SCORES.format(model))) for model in MODELS]
    return ScoreTable(None, MODELS, np.stack(columns, axis=1))


def read_stimulus_features(folder: Path) -> dict[str, dict[str, float]]:
    """Read measurements of the stimuli that need no model: feature → sentence → value.

    `log_frequency` is the mean log frequency of a sentence's words, `glove_correlation` the mean
    correlation of their GloVe vectors.
    """
    sentences = list(map(str, read_stimulus_scores(folder).sentences or ()))
    return {
        feature: dict(zip(sentences, load_numbers(resource(folder, name)).tolist(), strict=True))
        for feature, name in FEATURES.items()
    }


def read_natural_sentences(folder: Path) -> list[Sentence]:
    """Read the 6,113 natural eight-word sentences from which the synthesis started."""
    return list(read_sentences(folder / NATURAL))


def read_frequencies(folder: Path) -> dict[str, float]:
    """Read the published relative frequency of each word of the vocabulary."""
    frequencies: dict[str, float] = {}
    # A word in both lists gets its frequency as an initial word.
    for name in ("vocabulary/vocab_low", "vocabulary/vocab_cap"):
        values = load_plain(resource(folder, f"{name}_freqs.pkl"))
        assert isinstance(values, np.ndarray)
        words = load_words(resource(folder, f"{name}.pkl"))
        frequencies.update(zip(words, values.tolist(), strict=True))
    return frequencies


def load_numbers(path: Path) -> FloatArray:
    """Read the numbers of a file, shape (n,)."""
    array = read_npy(path)
    assert array.dtype.kind == "f"
    assert array.ndim == 1
    return array.astype(np.float64)
