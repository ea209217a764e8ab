"""The stimuli of the 2023 study: 360 natural pairs, 3,600 triplets, 6,113 natural sentences."""

from __future__ import annotations

from pathlib import Path

from contstim.corpus import read_sentences
from contstim.errors import InputError
from contstim.experiments.reproduce.published.scores import read_stimulus_scores
from contstim.sentence import Sentence
from contstim.stimuli import Pair, Triplet, content_id
from contstim.tables import number, parsed, read_table

_PAIRS = "natural_controversial_sentences/sents_reddit_natural_June2021_selected.csv"
_TRIPLETS = (
    "synthesized_sentences/20210224_controverisal_sentence_pairs_heuristic_natural_init_allow_rep/"
    "8_word_9_models_100_sentences_per_pair{}.csv"
)
_NATURAL = (
    "resources/sentence_corpora/"
    "natural_sentences_for_synthetic_controversial_sentence_pair_optimization.txt"
)


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
        sentence_1, sentence_2 = map(Sentence.parse, (first, second))
        for sentence in (sentence_1, sentence_2):
            if sentence not in rows:
                raise InputError(
                    f"{path}: {sentence.text!r} is not among the study's scored stimuli."
                )
        trial_id = content_id("pair", model_1, model_2, sentence_1, sentence_2)
        pairs.append(
            Pair(
                trial_id,
                model_1,
                model_2,
                sentence_1,
                sentence_2,
                rows[sentence_1],
                rows[sentence_2],
                *map(float, ranks),
            )
        )
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
    scores = tuple(f"lp_{s}_given_m{m}" for s in ("N", "S2", "S1") for m in (1, 2))
    triplets = []
    for model_1, model_2, *cells in _columns(path, ("m1", "m2", "N", "S2", "S1"), scores):
        natural, synthetic_1, synthetic_2 = map(Sentence.parse, cells[:3])
        natural_1, natural_2, rejected_1, accepted_1, accepted_2, rejected_2 = map(float, cells[3:])
        triplets.append(
            Triplet(
                content_id("triplet", model_1, model_2, natural, synthetic_1, synthetic_2),
                model_1,
                model_2,
                natural,
                synthetic_1,
                synthetic_2,
                log_prob_natural_model_1=natural_1,
                log_prob_natural_model_2=natural_2,
                log_prob_synthetic_1_model_1=rejected_1,
                log_prob_synthetic_1_model_2=accepted_1,
                log_prob_synthetic_2_model_1=accepted_2,
                log_prob_synthetic_2_model_2=rejected_2,
                controversiality=natural_1 - rejected_1 + natural_2 - rejected_2,  # Eq. 4
            )
        )
    return tuple(triplets)


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
