"""Desiderata of a list of models on the same sentences and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.desiderata.carriers import Carrier, score_words, unreadable
from contstim.evaluation.desiderata.measures import Correlation, Splitting
from contstim.evaluation.scored import score_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import FloatArray
    from contstim.evaluation.desiderata.carriers import WordScores
    from contstim.evaluation.scored import LeftOut
    from contstim.frequencies import WordFrequencies
    from contstim.models.base import Scorer
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.store import Store

_FEWEST = 4


@dataclass(frozen=True)
class ModelDesiderata:
    """What one model's scores do.

    Attributes:
        model: its name.
        length: of negative score with number of tokens, over sentences.
        reference: of score with the reference model's score, over sentences.
        frequency: of a word's mean score over the carriers with its frequency (Zipf scale).
        by_carrier: the same in each carrier.
        splitting: what being cut into several tokens does to a word's mean score.
        split_in_text: the share of the sentences' running words that are cut.
    """

    model: str
    length: Correlation
    reference: Correlation | None
    frequency: Correlation
    by_carrier: tuple[Correlation, ...]
    splitting: Splitting
    split_in_text: float


@dataclass(frozen=True, eq=False)
class Desiderata:
    """The results, and what they were computed from.

    Attributes:
        models: a result for each.
        reference: the name of the causal model, or None.
        carriers: where words stood.
        scores: sentences × models; the reference is one more column where it is none of them.
        tokens: (n_sentences, n_models).
        words: those that every model can score.
        zipfs: (n_words,), the words' frequencies on the Zipf scale.
        word_scores: one each for the models.
        left_out: sentences that a model cannot score.
        words_left_out: words that a model does not know or cannot score, with the reason.
    """

    models: tuple[ModelDesiderata, ...]
    reference: str | None
    carriers: tuple[Carrier, ...]
    scores: ScoreTable
    tokens: FloatArray
    words: tuple[str, ...]
    zipfs: FloatArray
    word_scores: tuple[WordScores, ...]
    left_out: tuple[LeftOut, ...]
    words_left_out: dict[str, str]


def evaluate_desiderata(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence],
    words: Sequence[str],
    frequencies: WordFrequencies,
    *,
    carriers: Sequence[Carrier],
    reference: Scorer | None = None,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> Desiderata:
    """Correlations of scores with length, word frequency and a causal model (Kauf & Ivanova 2023).

    Sentences that a model cannot score, and words that it does not know, are left out for all.

    Args:
        models: what is evaluated.
        sentences: for length and reference; repeated ones count once.
        words: for frequency and splitting.
        frequencies: of the words.
        carriers: one at least.
        reference: the causal model.
        store: where scores are kept between runs.
        progress: told the model and how many sentences more have their score.

    Raises:
        InputError: there is no carrier, or fewer than four sentences or words are left.
        ModelError, ScoreError, StoreError: see `score_sentences` and `score_words`.
    """
    if not carriers:
        raise InputError("Words need a carrier, such as 'My word is _'.")
    others = [reference] if reference and reference.name not in {m.name for m in models} else []
    table, left_out = score_readable([*models, *others], sentences, store=store, progress=progress)
    reasons = unreadable(models, words, carriers)
    kept = [word for word in dict.fromkeys(words) if word not in reasons]
    _enough(table.sentences or (), kept, len(left_out), len(reasons))
    readable = list(table.sentences or ())
    zipfs = np.array([frequencies.zipf(word) for word in kept])
    scored = [score_words(m, kept, carriers, store=store, progress=progress) for m in models]
    tokens = np.stack([m.token_counts(readable) for m in models], axis=1).astype(np.float64)
    results = tuple(
        ModelDesiderata(
            model.name,
            Correlation.of(-table.column(model.name), tokens[:, column]),
            _with_reference(table, model, reference),
            Correlation.of(own.scores.mean(axis=1), zipfs),
            tuple(Correlation.of(scores, zipfs) for scores in own.scores.T),
            Splitting.of(own.scores.mean(axis=1), zipfs, own.tokens > 1),
            _split_in_text(model, readable),
        )
        for column, (model, own) in enumerate(zip(models, scored, strict=True))
    )
    return Desiderata(
        results,
        reference.name if reference else None,
        tuple(carriers),
        table,
        tokens,
        tuple(kept),
        zipfs,
        tuple(scored),
        tuple(left_out),
        reasons,
    )


def _with_reference(
    table: ScoreTable, model: Scorer, reference: Scorer | None
) -> Correlation | None:
    if reference is None:
        return None
    return Correlation.of(table.column(model.name), table.column(reference.name))


def _split_in_text(model: Scorer, sentences: Sequence[Sentence]) -> float:
    """The share of running words that are several tokens where they stand; 0 for whole words."""
    counts: list[int] = []
    for initial in (True, False):
        words = [w for s in sentences for w in (s.words[:1] if initial else s.words[1:])]
        if words:
            found = model.tokens_per_word(words, initial=initial)
            counts += [1] * len(words) if found is None else found.tolist()
    return float(np.mean(np.array(counts) > 1))


def _enough(
    sentences: Sequence[Sentence], words: Sequence[str], left_out: int, words_left_out: int
) -> None:
    for what, found, lost in (
        ("sentences", len(sentences), left_out),
        ("words", len(words), words_left_out),
    ):
        if found < _FEWEST:
            raise InputError(
                f"A correlation needs {_FEWEST} {what} or more; here are {found} ({lost} left out "
                f"because a model cannot score them)."
            )
