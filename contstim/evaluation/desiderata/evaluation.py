"""Desiderata of a list of models on the same sentences and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.correlation import Correlation
from contstim.errors import InputError
from contstim.evaluation.benchmark_scores import score_readable
from contstim.evaluation.desiderata.carriers import Carrier, score_words, unreadable
from contstim.evaluation.desiderata.measures import Splitting, correlation_columns
from contstim.tables import ShownAsTable, frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pandas import DataFrame

    from contstim.arrays import FloatArray
    from contstim.evaluation.benchmark_scores import LeftOut
    from contstim.evaluation.desiderata.carriers import WordScores
    from contstim.frequencies import WordFrequencies
    from contstim.models.base import Scorer
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.store import Store

_FEWEST = 4


@dataclass(frozen=True)
class ModelDesiderata:
    """Results of one model: its correlations, and the effect of splitting words.

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
class Desiderata(ShownAsTable):
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

    def table(self) -> dict[str, list[Any]]:
        """One row a model: correlations with 95 % intervals, and what splitting does."""
        models = self.models
        columns: dict[str, list[Any]] = {"model": [model.model for model in models]}
        columns |= correlation_columns("length", [model.length for model in models])
        if self.reference:
            columns["reference"] = [self.reference] * len(models)
            references = [model.reference for model in models if model.reference]
            columns |= correlation_columns("reference", references)
        columns |= correlation_columns("frequency", [model.frequency for model in models])
        return columns | {
            "split_words": [model.splitting.share for model in models],
            "split_in_text": [model.split_in_text for model in models],
            "score_of_single": [model.splitting.single for model in models],
            "score_of_several": [model.splitting.several for model in models],
            "advantage_of_several": [model.splitting.advantage for model in models],
            "advantage_error": [model.splitting.standard_error for model in models],
        }

    def to_frame(self) -> DataFrame:
        """Table of desiderata.csv as a data frame; see `table`."""
        return frame_of(self.table())


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
    # the reference is scored once, also where it is one of the models
    others = [reference] if reference and reference.name not in {m.name for m in models} else []
    table, left_out = score_readable([*models, *others], sentences, store=store, progress=progress)
    # a word stays only where every model knows it and can read it in every carrier
    reasons = unreadable(models, words, carriers)
    usable = [word for word in dict.fromkeys(words) if word not in reasons]
    for what, number, lost in (
        ("sentences", len(table.sentences or ()), len(left_out)),
        ("words", len(usable), len(reasons)),
    ):
        if number < _FEWEST:
            raise InputError(
                f"A correlation needs {_FEWEST} {what} or more; here are {number} ({lost} left out "
                f"because a model cannot score them)."
            )
    readable = list(table.sentences or ())
    zipfs = np.array([frequencies.zipf(word) for word in usable])
    word_scores = [score_words(m, usable, carriers, store=store, progress=progress) for m in models]
    tokens = np.stack([m.token_counts(readable) for m in models], axis=1).astype(np.float64)
    reference_scores = table.column(reference.name) if reference else None
    results = []
    for column, (model, of_words) in enumerate(zip(models, word_scores, strict=True)):
        # (n_sentences,), and (n_words,): a word's score is its mean over the carriers
        scores, means = table.column(model.name), of_words.scores.mean(axis=1)
        results.append(
            ModelDesiderata(
                model.name,
                length=Correlation.of(-scores, tokens[:, column]),
                reference=None
                if reference_scores is None
                else Correlation.of(scores, reference_scores),
                frequency=Correlation.of(means, zipfs),
                by_carrier=tuple(Correlation.of(each, zipfs) for each in of_words.scores.T),
                splitting=Splitting.of(means, zipfs, of_words.tokens > 1),
                split_in_text=_split_in_text(model, readable),
            )
        )
    return Desiderata(
        models=tuple(results),
        reference=reference.name if reference else None,
        carriers=tuple(carriers),
        scores=table,
        tokens=tokens,
        words=tuple(usable),
        zipfs=zipfs,
        word_scores=tuple(word_scores),
        left_out=tuple(left_out),
        words_left_out=reasons,
    )


def _split_in_text(model: Scorer, sentences: Sequence[Sentence]) -> float:
    """The share of running words that are several tokens where they stand; 0 for whole words."""
    counts: list[int] = []
    for initial in (True, False):  # a word that begins a sentence may be cut in another way
        words = [w for s in sentences for w in (s.words[:1] if initial else s.words[1:])]
        if words:
            tokens = model.tokens_per_word(words, initial=initial)
            counts += [1] * len(words) if tokens is None else tokens.tolist()
    return float(np.mean(np.array(counts) > 1))
