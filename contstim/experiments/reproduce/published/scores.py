"""Log-probabilities of the 2023 study: of its natural corpus, and of its 2,240 stimuli."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.array_files import read_npy
from contstim.errors import InputError
from contstim.experiments.reproduce.published.pickles import load_plain
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.tables import parsed

if TYPE_CHECKING:
    from contstim.arrays import FloatArray

MODELS = ("bigram", "trigram", "rnn", "lstm", "bert", "roberta", "xlm", "electra", "gpt2")
_NATURAL = "natural_sentences_for_natural_controversial_sentence_pair_selection_probs_{}.npy"
_FEATURES = {
    "log_frequency": "contstim_sents_freqs.npy",
    "glove_correlation": "contstim_sents_gcorrs.npy",
}


def read_natural_scores(folder: Path | str) -> ScoreTable:
    """Scores of 231,725 natural eight-word sentences under nine models; texts were not published.

    Raises:
        InputError: a file is missing or is not an array of numbers.
    """
    root = _resources(folder) / "precomputed_sentence_probabilities"
    paths = [root / _NATURAL.format(model) for model in MODELS]
    columns = [_load_array(path) for path in paths]
    for path, column in zip(paths, columns, strict=True):
        _check_length(path, column, len(columns[0]))
    return ScoreTable(None, MODELS, np.stack(columns, axis=1))


def read_stimulus_scores(folder: Path | str) -> ScoreTable:
    """Scores of the study's 2,240 stimulus sentences under nine models.

    Raises:
        InputError: the file is missing or does not hold such scores.
    """
    path = _resources(folder) / "contstim_stim_probs_dict.pkl"
    by_model = load_plain(path)
    if not isinstance(by_model, dict) or tuple(by_model) != MODELS:
        raise InputError(f"{path} does not hold the scores of the nine models.")
    try:
        sentences = tuple(by_model[MODELS[0]])
        columns = [
            [float(scores[sentence]) for sentence in sentences] for scores in by_model.values()
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not hold a score of each sentence: {error!r}.") from error
    # A dictionary for each model, sentence → nats, all in the order of the first: columns become
    # (n_sentences, n_models).
    given = tuple(parsed(path, "the sentences", sentences, Sentence.parse, "sentence"))
    return ScoreTable(given, MODELS, np.array(columns).T)


def read_stimulus_features(folder: Path | str) -> dict[str, dict[str, float]]:
    """Measurements by the study of its stimuli without a model: feature → sentence → value.

    `log_frequency` is the mean log frequency of a sentence's words, `glove_correlation` the mean
    correlation of their GloVe vectors.

    Raises:
        InputError: a file is missing or is not an array of numbers.
    """
    sentences = list(map(str, read_stimulus_scores(folder).sentences or ()))
    features = {}
    for feature, name in _FEATURES.items():
        path = _resources(folder) / name
        numbers = _load_array(path)
        _check_length(path, numbers, len(sentences))
        features[feature] = dict(zip(sentences, numbers.tolist(), strict=True))
    return features


def _resources(folder: Path | str) -> Path:
    folder = Path(folder)
    return folder / "resources" if (folder / "resources").is_dir() else folder


def _load_array(path: Path) -> FloatArray:
    """The numbers of a file, (n,)."""
    array = read_npy(path)
    if array.dtype.kind != "f" or array.ndim != 1:
        raise InputError(f"{path} holds an array {array.shape} of {array.dtype}, not numbers.")
    return array.astype(np.float64)


def _check_length(path: Path, numbers: FloatArray, n: int) -> None:
    if len(numbers) != n:
        raise InputError(f"{path} holds {len(numbers):,} numbers; expected {n:,}.")
