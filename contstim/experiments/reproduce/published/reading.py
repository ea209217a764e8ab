"""The 2023 study's scores, stimuli and words, read from its files; of pickled ones nothing is run.

Every reader takes the folder of the repository dpmlab/contstimlang; scores and words also its part
`resources` alone. Sentences come as `Sentence.text`, closed by an end mark, and orientation is
ours: model_1 rejects sentence_1 and synthetic_1.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.arrays import read_npy
from contstim.corpus import read_sentences
from contstim.errors import InputError
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Pair, Triplet, content_id
from contstim.tables import number, parsed, read_table
from contstim.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contstim.arrays import FloatArray

MODELS = ("bigram", "trigram", "rnn", "lstm", "bert", "roberta", "xlm", "electra", "gpt2")
_NATURAL_SCORES = (
    "precomputed_sentence_probabilities/"
    "natural_sentences_for_natural_controversial_sentence_pair_selection_probs_{}.npy"
)
_FEATURES = {
    "log_frequency": "contstim_sents_freqs.npy",
    "glove_correlation": "contstim_sents_gcorrs.npy",
}
_INITIAL = "vocabulary/vocab_cap.pkl"
_INNER = "vocabulary/vocab_low.pkl"
_REPEATABLE = "preps.pkl"
_PAIRS = "natural_controversial_sentences/sents_reddit_natural_June2021_selected.csv"
_TRIPLETS = (
    "synthesized_sentences/20210224_controverisal_sentence_pairs_heuristic_natural_init_allow_rep/"
    "8_word_9_models_100_sentences_per_pair{}.csv"
)
_NATURAL = (
    "resources/sentence_corpora/"
    "natural_sentences_for_synthetic_controversial_sentence_pair_optimization.txt"
)
_PLAIN = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"),
}


def read_natural_scores(folder: Path | str) -> ScoreTable:
    """Scores of 231,725 natural eight-word sentences under nine models; texts were not published.

    Raises:
        InputError: a file is missing or is not an array of numbers.
    """
    columns: list[FloatArray] = []
    for model in MODELS:
        path = _resource(folder, _NATURAL_SCORES.format(model))
        columns.append(_load_numbers(path, len(columns[0]) if columns else None))
    return ScoreTable(None, MODELS, np.stack(columns, axis=1))


def read_stimulus_scores(folder: Path | str) -> ScoreTable:
    """Scores of the study's 2,240 stimulus sentences under nine models.

    Raises:
        InputError: the file is missing or does not hold such scores.
    """
    path = _resource(folder, "contstim_stim_probs_dict.pkl")
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
        numbers = _load_numbers(_resource(folder, name), len(sentences))
        features[feature] = dict(zip(sentences, numbers.tolist(), strict=True))
    return features


def read_natural_sentences(folder: Path | str) -> list[Sentence]:
    """The 6,113 natural eight-word sentences from which the study's synthesis started.

    Raises:
        InputError: the file is missing.
    """
    return list(read_sentences(Path(folder) / _NATURAL))


def read_natural_pairs(folder: Path | str) -> tuple[Pair, ...]:
    """The study's 360 natural controversial pairs.

    Rows are those of `read_stimulus_scores`: the lines of the corpus were not published. Ranks are
    the published ones, among 231,725 sentences.

    Raises:
        InputError: a file is missing, lacks a column, or has a sentence without scores.
    """
    path = Path(folder) / _PAIRS
    rows = read_stimulus_scores(folder).rows
    table = _columns(
        path,
        ("model_1", "model_2", "sentence1", "sentence2"),
        tuple(f"s{s}_ranked_log_prob_model_{m}" for s in (1, 2) for m in (1, 2)),
    )
    pairs = []
    for model_1, model_2, first, second, *ranks in table:
        sentences = (Sentence.parse(first), Sentence.parse(second))
        for sentence in sentences:
            if sentence not in rows:
                raise InputError(
                    f"{path}: {sentence.text!r} is not among the study's scored stimuli."
                )
        trial_id = content_id("pair", model_1, model_2, *sentences)
        places = (rows[sentence] for sentence in sentences)
        pairs.append(Pair(trial_id, model_1, model_2, *sentences, *places, *map(float, ranks)))
    return tuple(pairs)


def read_triplets(folder: Path | str, *, selected: bool = False) -> tuple[Triplet, ...]:
    """The study's 3,600 synthesized triplets in the order of the file, or the 360 shown to people.

    The files call S1 the sentence that their second model rejects; here synthetic_1 is the one that
    model_1 rejects, as in Eq. 4.

    Raises:
        InputError: the file is missing, lacks a column, or a score is not a number.
    """
    path = Path(folder) / _TRIPLETS.format("_best10" if selected else "")
    # In this order the columns are ours: natural, synthetic_1 (their S2), synthetic_2, each under
    # both models.
    names = tuple(f"lp_{s}_given_m{m}" for s in ("N", "S2", "S1") for m in (1, 2))
    triplets = []
    for model_1, model_2, *cells in _columns(path, ("m1", "m2", "N", "S2", "S1"), names):
        natural, synthetic_1, synthetic_2 = map(Sentence.parse, cells[:3])
        natural_1, natural_2, rejected_1, accepted_1, accepted_2, rejected_2 = map(float, cells[3:])
        triplets.append(
            Triplet(
                content_id("triplet", model_1, model_2, natural, synthetic_1, synthetic_2),
                *(model_1, model_2, natural, synthetic_1, synthetic_2),
                *(natural_1, natural_2, rejected_1, accepted_1, accepted_2, rejected_2),
                controversiality=natural_1 - rejected_1 + natural_2 - rejected_2,  # Eq. 4
            )
        )
    return tuple(triplets)


def read_vocabulary(folder: Path | str) -> Vocabulary:
    """The study's vocabulary: 5,977 sentence-initial and 23,180 other words, 42 may repeat.

    Raises:
        InputError: a file is missing, or is not a plain list of words.
    """
    initial, inner, repeatable = (
        _load_words(_resource(folder, name)) for name in (_INITIAL, _INNER, _REPEATABLE)
    )
    return Vocabulary(initial, inner, frozenset(repeatable))


def read_frequencies(folder: Path | str) -> dict[str, float]:
    """The relative frequency of each word of the study's vocabulary, as it is written there.

    Raises:
        InputError: a file is missing, or does not hold one frequency for each word.
    """
    frequencies: dict[str, float] = {}
    # A word in both lists has the frequency that stands beside the initial words.
    for name in (_INNER, _INITIAL):
        words = _load_words(_resource(folder, name))
        path = _resource(folder, name.replace(".pkl", "_freqs.pkl"))
        values = load_plain(path)
        numbers = isinstance(values, np.ndarray) and values.dtype.kind in "fiu"
        if not isinstance(values, np.ndarray) or not numbers or values.shape != (len(words),):
            raise InputError(f"{path} does not hold a frequency for each of {len(words):,} words.")
        frequencies.update(zip(words, values.tolist(), strict=True))
    return frequencies


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        today = module.replace("numpy.core.", "numpy._core.")  # the name before NumPy 2
        if (today, name) not in _PLAIN:
            raise pickle.UnpicklingError(f"it wants to load {module}.{name}")
        return super().find_class(today, name)


def load_plain(path: Path) -> object:
    """Contents of a pickle, if it is built of numbers, texts, arrays and plain containers alone.

    Raises:
        InputError: the file is missing, damaged, or wants to load anything else.
    """
    try:
        with path.open("rb") as file:
            loaded: object = _PlainUnpickler(file).load()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # damaged pickles raise nearly anything
        raise InputError(f"{path} is not a pickle of plain values: {error}.") from error
    return loaded


def _resource(folder: Path | str, name: str) -> Path:
    """The path of a file in the repository's folder `resources`, or in that folder alone."""
    folder = Path(folder)
    path = (folder / "resources" if (folder / "resources").is_dir() else folder) / name
    if not path.is_file():
        raise InputError(
            f"There is no {path}. Give a copy of the repository dpmlab/contstimlang, or its folder "
            "'resources'."
        )
    return path


def _load_numbers(path: Path, n: int | None) -> FloatArray:
    """The numbers of a file, (n,)."""
    array = read_npy(path)
    if array.dtype.kind != "f" or array.ndim != 1:
        raise InputError(f"{path} holds an array {array.shape} of {array.dtype}, not numbers.")
    if n is not None and len(array) != n:
        raise InputError(f"{path} holds {len(array):,} numbers; expected {n:,}.")
    return array.astype(np.float64)


def _load_words(path: Path) -> tuple[str, ...]:
    words = load_plain(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{path} is not a plain list of words.")
    return tuple(words)


def _columns(path: Path, texts: tuple[str, ...], numbers: tuple[str, ...]) -> list[tuple[str, ...]]:
    table = read_table(path)
    missing = [name for name in (*texts, *numbers) if name not in table]
    if missing:
        raise InputError(f"{path} lacks the columns {', '.join(missing)}.")
    for name in numbers:
        parsed(path, name, table[name], number, "number")
    for name in texts:
        parsed(path, name, table[name], Sentence.parse, "text")
    return list(zip(*(table[name] for name in (*texts, *numbers)), strict=True))
