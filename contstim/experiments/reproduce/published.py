"""Functions that fetch or read the 2023 study's scores, stimuli, words and ratings.

Files come from the repository dpmlab/contstimlang; `registry.txt` lists the SHA-256 of each file.
Reading a pickle runs no code of the file. Every reader takes the folder of the repository. Readers
of scores and words also accept a copy of its folder `resources`. As everywhere in contstim,
sentences have end marks. In a pair, model_1 rejects sentence_1, that is, model_1 prefers
sentence_2. In a triplet, model_1 rejects synthetic_1, that is, model_1 prefers the natural
sentence.

The published file of experiment 1 is a list of 16,500 ratings. It does not contain the models and
the conditions of trials, which follow from the published selections of pairs and triplets.
Participants who saw the same sentences are in the same group.
"""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.design.building import pair_trial, triplet_trials
from contstim.experiments.platforms.platform import Platform, Reader
from contstim.experiments.responses.alignment import Imported
from contstim.experiments.responses.table import UNKNOWN, Response
from contstim.files.files import decoding
from contstim.files.tables import (
    number,
    parsed,
    parsed_columns,
    read_csv,
    read_table,
    text,
    whole_number,
)
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Pair, Trial, Triplet, content_id
from contstim.options import Help
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.files.tables import Reader as CellReader

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
    # For each model, the file has a dictionary: sentence → nats. All dictionaries have the same
    # sentences
    try:
        texts = tuple(by_model[MODELS[0]])
        columns = [[float(scores[text]) for text in texts] for scores in by_model.values()]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} does not contain a score for each sentence: {error!r}."
        ) from error
    sentences = tuple(parsed(path, "the sentences", texts, Sentence.parse, "sentence"))
    return ScoreTable(sentences, MODELS, np.array(columns).T)


def read_natural_pairs(folder: Path | str) -> tuple[Pair, ...]:
    """Read the study's 360 natural controversial pairs.

    The row numbers of a pair refer to the table of `read_stimulus_scores`, because line numbers of
    the corpus were not published. The ranks of a pair are the published ranks among 231,725
    sentences.

    Raises:
        InputError: if a file is missing, lacks a column, or has a sentence without scores.
    """
    path = Path(folder) / _PAIRS
    rows = read_stimulus_scores(folder).rows
    ranks_of = [f"s{s}_ranked_log_prob_model_{m}" for s in (1, 2) for m in (1, 2)]
    table = _read_columns(path, ("model_1", "model_2"), ("sentence1", "sentence2"), ranks_of)
    pairs = []
    for model_1, model_2, first, second, *ranks in table:
        sentences = (first, second)
        for sentence in sentences:
            if sentence not in rows:
                raise InputError(f"{path}: {sentence.text!r} has no published scores.")
        trial_id = content_id("pair", model_1, model_2, *sentences)
        stimulus_rows = (rows[sentence] for sentence in sentences)
        pairs.append(Pair(trial_id, model_1, model_2, *sentences, *stimulus_rows, *ranks))
    return tuple(pairs)


def read_triplets(folder: Path | str, *, selected: bool = False) -> tuple[Triplet, ...]:
    """Read the study's 3,600 synthesized triplets in file order.

    With `selected`, read only the 360 triplets that participants saw.

    In the files, S1 is the sentence that the second model rejects. Here, synthetic_1 is the
    sentence that model_1 rejects, as in Eq. 4 of the paper.

    Raises:
        InputError: if the file is missing or lacks a column, or if a score is not a number.
    """
    path = Path(folder) / _TRIPLETS.format("_best10" if selected else "")
    # Order of the scores in a row: natural, synthetic_1 (S2 in the files), synthetic_2; each
    # sentence has a score under model_1, then a score under model_2
    texts = ("N", "S2", "S1")
    scores = [f"lp_{s}_given_m{m}" for s in texts for m in (1, 2)]
    triplets = []
    for model_1, model_2, *cells in _read_columns(path, ("m1", "m2"), texts, scores):
        natural, synthetic_1, synthetic_2 = cells[:3]
        natural_1, natural_2, rejected_1, accepted_1, accepted_2, rejected_2 = cells[3:]
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
    """Read the study's vocabulary: 5,977 sentence-initial words and 23,180 other words.

    42 words may occur more than once in a sentence.

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
        InputError: if the file is missing or damaged, or contains any other object.
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
    path: Path, models: Iterable[str], sentences: Iterable[str], numbers: Iterable[str]
) -> Iterable[tuple[Any, ...]]:
    readers: dict[str, CellReader] = dict.fromkeys(models, (text, "text"))
    readers |= dict.fromkeys(sentences, (Sentence.parse, "text"))
    readers |= dict.fromkeys(numbers, (number, "number"))
    return zip(*parsed_columns(path, read_table(path), readers), strict=True)


ADDRESS = "https://raw.githubusercontent.com/dpmlab/contstimlang/HEAD/"

PUBLISHED = {
    "pairs": ("natural_controversial_sentences/",),
    "triplets": ("synthesized_sentences/",),
    "sentences": ("resources/sentence_corpora/",),
    "vocabulary": ("resources/vocabulary/", "resources/preps.pkl"),
    "natural-scores": ("resources/precomputed_sentence_probabilities/",),
    "stimulus-scores": ("resources/contstim_stim_probs_dict.pkl", "resources/contstim_sents_"),
}
"""Name of a set of files → prefixes of the paths of these files in the repository."""


def published_files() -> dict[str, str]:
    """Return path → checksum, for all files that can be fetched."""
    registry = files("contstim.experiments.reproduce").joinpath("registry.txt")
    return dict(line.split(" ") for line in registry.read_text(encoding="utf-8").splitlines())


def fetch_published(
    folder: Path | str,
    names: Iterable[str] = tuple(PUBLISHED),
    *,
    address: str = ADDRESS,
    progress: Callable[[str], None] = lambda _path: None,
) -> Path:
    """Fetch files of the 2023 study into a folder.

    Existing files with the right content are kept, so an interrupted call can be repeated. Files
    keep their paths in the repository. All sets together have 20 MB. `read_natural_pairs` needs the
    sets `pairs` and `stimulus-scores`.

    `names` are keys of `PUBLISHED`. `progress` receives the path of each file before it is fetched
    or checked.

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
    # `progress` replaces Pooch's log of downloads
    pooch.get_logger().setLevel(logging.WARNING)
    for path in registry:
        if path.startswith(prefixes):
            progress(path)
            try:
                fetcher.fetch(path)
            except (OSError, ValueError) as error:  # ValueError: the checksum is wrong
                raise InputError(
                    f"Cannot fetch {address}{path}: {str(error).rstrip('.')}. Connect to "
                    "the internet, or download the repository dpmlab/contstimlang by hand and name "
                    "its folder."
                ) from error
    return Path(folder)


TRIALS_EACH = 165  # number of trials of each participant, in consecutive rows


def _parse_pair(cell: str) -> tuple[Sentence, Sentence]:
    """Parse two sentences, joined by an underscore; no sentence contains an underscore."""
    first, second = map(Sentence.parse, cell.split("_"))
    return first, second


# High ratings mean a preference for the second sentence of the pair. Reaction times are in ms
_RATING_READERS: dict[str, CellReader] = {
    "sentence_pair": (_parse_pair, "pair of sentences"),
    "rating": (whole_number, "whole number"),
    "Trial Number": (whole_number, "whole number"),
    "Reaction Time": (number, "number"),
}


def read_experiment(
    contstimlang_folder: Path | str, ratings_file: Path | str
) -> tuple[tuple[Trial, ...], tuple[Response, ...]]:
    """Read the 1,650 trials and 16,500 responses of 100 participants in 10 groups.

    Participants are p001 … p100 in the order of the file. Groups are numbered in the order of their
    first participants. `position` is the trial number in the file. `left` is 0, because it was not
    published which sentence was displayed on the left.

    `ratings_file` is the file `data` in the repository LpZamora/contstimlang.

    Raises:
        InputError: if a file is missing, or its content does not have the published form.
    """
    columns = parsed_columns(ratings_file, read_csv(ratings_file), _RATING_READERS)
    groups = _assign_groups(columns[0], ratings_file)
    # The 1,440 controversial trials; groups are assigned below. `selected` finds a trial by its two
    # sentences in any order.
    candidates = [pair_trial(pair) for pair in read_natural_pairs(contstimlang_folder)]
    for triplet in read_triplets(contstimlang_folder, selected=True):
        candidates += triplet_trials(triplet, twins=True)
    selected = {frozenset((trial.sentence_1, trial.sentence_2)): trial for trial in candidates}
    order = read_stimulus_scores(contstimlang_folder).rows
    trials: dict[frozenset[Sentence], Trial] = {}
    responses = []
    for row, (pair, rating, position, rt_ms) in enumerate(zip(*columns, strict=True)):
        participant = row // TRIALS_EACH
        key = frozenset(pair)
        if key not in trials:
            trial = selected.get(key) or _unselected_trial(pair, order, ratings_file)
            trials[key] = replace(trial, group=groups[participant])
        trial = trials[key]
        responses.append(
            Response(
                f"p{participant + 1:03}",
                trial.group,
                trial.trial_id,
                # In the file, a rating refers to the order of the sentences in the row. In a
                # response, a rating refers to the order of the sentences in the trial
                rating if pair[0] == trial.sentence_1 else trial.scale.mirrored(rating),
                UNKNOWN,
                position,
                rt_ms,
            )
        )
    conditions = list(Condition)
    ordered = sorted(trials.values(), key=lambda t: (t.group, conditions.index(t.condition)))
    return tuple(ordered), tuple(responses)


def _assign_groups(pairs: Sequence[tuple[Sentence, Sentence]], path: Path | str) -> list[int]:
    if not pairs or len(pairs) % TRIALS_EACH:
        raise InputError(
            f"{path} has {len(pairs):,} ratings, but must have {TRIALS_EACH} for each participant."
        )
    seen = [
        frozenset(map(frozenset, pairs[start : start + TRIALS_EACH]))
        for start in range(0, len(pairs), TRIALS_EACH)
    ]
    # Groups share no pairs. If two different sets of 165 pairs have a common pair, rows are missing
    # or in the wrong order.
    numbers = {pairs_seen: n for n, pairs_seen in enumerate(dict.fromkeys(seen), start=1)}
    owners = Counter(pair for pairs_seen in numbers for pair in pairs_seen)
    if any(len(pairs_seen) < TRIALS_EACH for pairs_seen in seen) or max(owners.values()) > 1:
        raise InputError(
            f"{path} must have a block of {TRIALS_EACH} rows for each participant. But a block "
            "repeats a pair, or participants of different groups share a pair."
        )
    return [numbers[pairs_seen] for pairs_seen in seen]


def _unselected_trial(
    pair: tuple[Sentence, Sentence], order: Mapping[Sentence, int], path: Path | str
) -> Trial:
    """Build a catch trial if both sentences have the same words, otherwise a random natural pair.

    The published table of stimuli ends with the shuffled sentences. So the sentence that comes
    later in the table is the shuffled one.
    """
    absent = [sentence.text for sentence in pair if sentence not in order]
    if absent:
        raise InputError(f"{path}: {absent[0]!r} has no published scores.")
    first, second = pair
    condition, kind = Condition.RANDOM_NATURAL, Kind.NATURAL
    if sorted(first.words) == sorted(second.words):
        condition, kind = Condition.CATCH, Kind.SHUFFLED
        first, second = sorted(pair, key=order.__getitem__)
    trial_id = content_id("trial", first, second)
    return Trial(trial_id, 0, condition, "", "", first, second, Kind.NATURAL, kind, "")


def import_golan2023(
    files: Sequence[Path],
    trials: Sequence[Trial],
    *,
    data: Annotated[
        Path, Help("The folder that contains `contstimlang` and `contstimlang-fork`.", folder=True)
    ],
    scores_out: Annotated[
        Path | None, Help("Output file with the published scores of the sentences.")
    ] = None,
) -> Imported:
    """Rebuild experiment 1 of the 2023 study: 16,500 ratings of 100 participants.

    Example: `contstim import golan2023 --data data --out responses.csv --trials-out trials.csv
    --scores-out scores.csv`

    Raises:
        InputError: if a file is missing, or its content does not have the published form.
    """
    del files, trials  # the files are in the folder `data`; trials are built from these files
    folder = data / "contstimlang"
    published_trials, responses = read_experiment(folder, data / "contstimlang-fork" / "data")
    if scores_out is not None:
        read_stimulus_scores(folder).write(scores_out)
    return Imported(published_trials, responses)


PLATFORM = Platform("golan2023", reader=Reader(import_golan2023, builds_trials=True))
