"""Log-probabilities of the 2023 study: of its natural corpus, and of its 2,240 stimuli."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contstim.errors import InputError
from contstim.published.pickles import load_plain
from contstim.scores import ScoreTable
from contstim.sentence import Sentence

MODELS = ("bigram", "trigram", "rnn", "lstm", "bert", "roberta", "xlm", "electra", "gpt2")
_NATURAL = "natural_sentences_for_natural_controversial_sentence_pair_selection_probs_{}.npy"
_FEATURES = {
    "log_frequency": "contstim_sents_freqs.npy",
    "glove_correlation": "contstim_sents_gcorrs.npy",
}


def read_natural_scores(folder: Path | str) -> ScoreTable:
    """Scores of 231,725 natural eight-word sentences under nine models; texts were not published.

    Raises:
        InputError: a file is missing or is no array of numbers.
    """
    root = _resources(folder) / "precomputed_sentence_probabilities"
    columns = [_load_array(root / _NATURAL.format(model)) for model in MODELS]
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
    sentences = tuple(str(sentence) for sentence in by_model[MODELS[0]])
    columns = [[float(by_model[model][sentence]) for sentence in sentences] for model in by_model]
    texts = tuple(Sentence.parse(sentence).text for sentence in sentences)
    return ScoreTable(texts, MODELS, np.array(columns).T)


def read_stimulus_features(folder: Path | str) -> dict[str, dict[str, float]]:
    """What the study measured of its stimuli without a model: feature → sentence → value.

    `log_frequency` is the mean log frequency of a sentence's words, `glove_correlation` the mean
    correlation of their GloVe vectors.

    Raises:
        InputError: a file is missing or is no array of numbers.
    """
    sentences = read_stimulus_scores(folder).sentences or ()
    return {
        feature: dict(zip(sentences, _load_array(_resources(folder) / name).tolist(), strict=True))
        for feature, name in _FEATURES.items()
    }


def _resources(folder: Path | str) -> Path:
    folder = Path(folder)
    return folder / "resources" if (folder / "resources").is_dir() else folder


def _load_array(path: Path) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"Cannot read {path} as an array of numbers: {error}.") from error
    return np.asarray(array, np.float64)
