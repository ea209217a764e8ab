"""Fetching and reading of the 2023 study's scores, stimuli and words; pickles run no code.

Files come from the repository dpmlab/contstimlang and keep their paths; `registry.txt` pins each by
the SHA-256 of its content.

Every reader takes the folder of the repository dpmlab/contstimlang; scores and words also its
folder `resources` alone. Sentences are `Sentence.text`, with an end mark, and orientation is ours:
model_1 rejects sentence_1 and synthetic_1.
"""

from __future__ import annotations

import logging
import pickle
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.files.files import decoding
from contstim.files.tables import number, parsed, parsed_columns, read_table
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet, content_id
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contstim.files.tables import Reader

MODELS = ("bigram", "trigram", "rnn", "lstm", "bert", "roberta", "xlm", "electra", "gpt2")
_WORDS = ("vocabulary/vocab_cap.pkl", "vocabulary/vocab_low.pkl", "preps.pkl")
_PAIRS = "natural_controversial_sentences/sents_reddit_natural_June2021_selected.csv"
_TRIPLETS = (
    "synthesized_sentences/20210224_controverisal_sentence_pairs_heuristic_natural_init_allow_rep/"
    "8_word_9_models_100_sentences_per_pair{}.csv"
)
_ALLOWED_CLASSES = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"),
}


def read_stimulus_scores(folder: Path | str) -> ScoreTable:
    """Read scores of the study's 2,240 stimulus sentences under nine models.

    Raises:
        InputError: if the file is missing or does not contain such scores.
    """
    path = resource(folder, "contstim_stim_probs_dict.pkl")
    by_model = load_plain(path)
    if not isinstance(by_model, dict) or tuple(by_model) != MODELS:
        raise InputError(f"{path} does not contain the scores of the nine models.")
    try:
        sentences = tuple(by_model[MODELS[0]])
        columns = [
            [float(scores[sentence]) for sentence in sentences] for scores in by_model.values()
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} does not contain a score for each sentence: {error!r}."
        ) from error
    # The file has a dictionary for each model, sentence → nats, in the same order: columns become
    # (n_sentences, n_models)
    parsed_sentences = tuple(parsed(path, "the sentences", sentences, Sentence.parse, "sentence"))
    return ScoreTable(parsed_sentences, MODELS, np.array(columns).T)


def read_natural_pairs(folder: Path | str) -> tuple[Pair, ...]:
    """Read the study's 360 natural controversial pairs.

    Rows are those of `read_stimulus_scores`, because corpus line numbers were not published. Ranks
    are the published ones, among 231,725 sentences.

    Raises:
        InputError: if a file is missing, lacks a column, or has a sentence without scores.
    """
    path = Path(folder) / _PAIRS
    rows = read_stimulus_scores(folder).rows
    table = _read_columns(
        path,
        ("model_1", "model_2", "sentence1", "sentence2"),
        tuple(f"s{s}_ranked_log_prob_model_{m}" for s in (1, 2) for m in (1, 2)),
    )
    pairs = []
    for model_1, model_2, first, second, *ranks in table:
        sentences = (Sentence.parse(first), Sentence.parse(second))
        for sentence in sentences:
            if sentence not in rows:
                raise InputError(f"{path}: {sentence.text!r} has no published scores.")
        trial_id = content_id("pair", model_1, model_2, *sentences)
        stimulus_rows = (rows[sentence] for sentence in sentences)
        pairs.append(
            Pair(trial_id, model_1, model_2, *sentences, *stimulus_rows, *map(float, ranks))
        )
    return tuple(pairs)


def read_triplets(folder: Path | str, *, selected: bool = False) -> tuple[Triplet, ...]:
    """Read the study's 3,600 synthesized triplets in file order, or the 360 shown ones.

    The files name S1 the sentence that their second model rejects; here synthetic_1 is the one that
    model_1 rejects, as in Eq. 4.

    Raises:
        InputError: if the file is missing, lacks a column, or a score is not a number.
    """
    path = Path(folder) / _TRIPLETS.format("_best10" if selected else "")
    # Column order: natural, synthetic_1 (S2 in the files), synthetic_2, each under both models
    names = tuple(f"lp_{s}_given_m{m}" for s in ("N", "S2", "S1") for m in (1, 2))
    triplets = []
    for model_1, model_2, *cells in _read_columns(path, ("m1", "m2", "N", "S2", "S1"), names):
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
    """Read the study's vocabulary: 5,977 sentence-initial and 23,180 other words; 42 may repeat.

    Raises:
        InputError: if a file is missing, or is not a plain list of words.
    """
    initial, inner, repeatable = (load_words(resource(folder, name)) for name in _WORDS)
    return Vocabulary(initial, inner, frozenset(repeatable))


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        current_module = module.replace("numpy.core.", "numpy._core.")  # name before NumPy 2
        if (current_module, name) not in _ALLOWED_CLASSES:
            raise pickle.UnpicklingError(f"it wants to load {module}.{name}")
        return super().find_class(current_module, name)


def load_plain(path: Path) -> object:
    """Load a pickle that consists of numbers, texts, arrays and plain containers only.

    Raises:
        InputError: if the file is missing, damaged, or loads any other class.
    """
    with decoding(path, "a pickle of plain values"), path.open("rb") as file:
        loaded: object = _PlainUnpickler(file).load()
    return loaded


def resource(folder: Path | str, name: str) -> Path:
    """Return the path of a file in the repository's folder `resources`, or in a copy of it."""
    folder = Path(folder)
    path = (folder / "resources" if (folder / "resources").is_dir() else folder) / name
    if not path.is_file():
        raise InputError(
            f"{path} does not exist. Name a copy of the repository dpmlab/contstimlang."
        )
    return path


def load_words(path: Path) -> tuple[str, ...]:
    """Load the words of a pickled list."""
    words = load_plain(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{path} is not a plain list of words.")
    return tuple(words)


def _read_columns(
    path: Path, texts: tuple[str, ...], numbers: tuple[str, ...]
) -> list[tuple[str, ...]]:
    table = read_table(path)
    readers: dict[str, Reader] = dict.fromkeys(texts, (Sentence.parse, "text"))
    readers |= dict.fromkeys(numbers, (number, "number"))
    parsed_columns(path, table, readers)  # only raises errors
    return list(zip(*(table[name] for name in readers), strict=True))


ADDRESS = "https://raw.githubusercontent.com/dpmlab/contstimlang/HEAD/"

PUBLISHED = {
    "pairs": ("natural_controversial_sentences/",),
    "triplets": ("synthesized_sentences/",),
    "sentences": ("resources/sentence_corpora/",),
    "vocabulary": ("resources/vocabulary/", "resources/preps.pkl"),
    "natural-scores": ("resources/precomputed_sentence_probabilities/",),
    "stimulus-scores": ("resources/contstim_stim_probs_dict.pkl", "resources/contstim_sents_"),
}
"""Sets of files that can be fetched → prefixes of their paths in the repository."""


def published_files() -> dict[str, str]:
    """Return paths → checksums of all files that can be fetched."""
    registry = files("contstim.experiments.reproduce").joinpath("registry.txt")
    text = registry.read_text(encoding="utf-8")
    return dict(line.split(" ") for line in text.splitlines())


def fetch_published(
    folder: Path | str,
    names: Iterable[str] = tuple(PUBLISHED),
    *,
    address: str = ADDRESS,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Fetch files of the 2023 study into a folder.

    Existing files with the right content are kept, so an interrupted call can be repeated.
    `read_natural_pairs` also needs `stimulus-scores`.

    Args:
        folder: destination, created when missing; files keep their paths in the repository.
        names: keys of `PUBLISHED`; all sets together have 20 MB.
        address: base address of the repository's files.
        progress: callback that receives the path of each file before it is fetched or checked.

    Returns:
        The folder.

    Raises:
        InputError: if Pooch is not installed, a name is unknown, there is no connection, or a file
            is missing or has other content than expected.
    """
    try:
        import pooch
    except ImportError as error:
        raise InputError(
            "Fetching published files needs Pooch, which is not installed. Install it with "
            "pip install 'contstim[published]', or download the repository "
            "dpmlab/contstimlang and name its folder."
        ) from error

    try:
        prefixes = tuple(prefix for name in names for prefix in PUBLISHED[name])
    except KeyError as error:
        raise InputError(f"The name must be one of {', '.join(PUBLISHED)}, got {error}.") from None
    registry = published_files()
    fetcher = pooch.create(path=Path(folder), base_url=address, registry=registry)
    # Pooch logs every download; `progress` reports them instead
    pooch.get_logger().setLevel(logging.WARNING)
    for path in registry:
        if path.startswith(prefixes):
            if progress is not None:
                progress(path)
            try:
                fetcher.fetch(path)
            except (OSError, ValueError) as error:  # ValueError: another checksum
                raise InputError(
                    f"Cannot fetch {address}{path}: {str(error).rstrip('.')}. Connect to "
                    "the internet, or download the repository dpmlab/contstimlang by hand and name "
                    "its folder."
                ) from error
    return Path(folder)
