"""Scores of models that are loaded one after the other, with what a record says of each.

`score_sentences` takes models that are loaded already. Where there are more than memory holds, all
that is wanted of a model is asked of it before it makes room for the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.models.base import LanguageModel, conventions
from contstim.models.catalog import with_each_model
from contstim.models.contamination import contamination
from contstim.models.letter_case import UnknownWords, unknown_words
from contstim.models.scoring import (
    score_sentences,
    table_of_terms,
    table_of_words,
    token_terms,
)
from contstim.scores import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from contstim.arrays import FloatArray
    from contstim.models.base import Scorer
    from contstim.models.catalog import LoadOptions
    from contstim.models.contamination import Contamination
    from contstim.models.scoring import Terms
    from contstim.sentence import Sentence
    from contstim.store import Store


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores of a model, and all else that is wanted of it before it is let go.

    Attributes:
        name: the model's.
        convention: how its scores came about, as a record holds it.
        log_probs: (n_sentences,), nats; None where terms were asked for.
        terms: of every sentence's score; None where sums were asked for.
        standard_errors: (n_sentences,), nats, 0 where exact; empty where nobody asked.
        lower_bounds: (n_sentences,), nats; None where nobody asked, or the rule has none.
        n_sampled: how many of the scores are estimates.
        contamination: which sentences it was trained on; None where its text is not known.
        unknown: the words that it does not know.
    """

    name: str
    convention: dict[str, object]
    log_probs: FloatArray | None
    terms: Terms | None
    standard_errors: list[float]
    lower_bounds: FloatArray | None
    n_sampled: int
    contamination: Contamination | None
    unknown: UnknownWords


def score_in_turn(
    specifications: Sequence[str],
    sentences: Sequence[Sentence],
    *,
    store: Store | None = None,
    by_token: bool = False,
    completed_words: bool = False,
    standard_errors: bool = False,
    lower_bounds: bool = False,
    progress: Callable[[Scorer, int], None] | None = None,
    **loading: Unpack[LoadOptions],
) -> list[ModelScores]:
    """Score sentences under models, one model in memory at a time.

    Args:
        specifications: `[NAME=]SPECIFICATION` each.
        sentences: what is scored.
        store: where scores are kept between runs; see `score_sentences`.
        by_token: whether the terms of each score are wanted instead of their sum.
        completed_words: whether in these terms a word's end counts to the word.
        standard_errors: whether they are wanted too; costs as much again as the scores.
        lower_bounds: whether those of mixtures over orders are; costs as much again.
        progress: told the model and how many distinct sentences more have their score.
        loading: see `load_scorer`.

    Raises:
        ModelError: see `load_scorers`; or a model cannot score a sentence.
        ScoreError: a model gave nan.
        StoreError: the store cannot be written.
    """
    return with_each_model(
        specifications,
        lambda model: model_scores(
            model,
            sentences,
            store=store,
            by_token=by_token,
            completed_words=completed_words,
            standard_errors=standard_errors,
            lower_bounds=lower_bounds,
            progress=progress,
        ),
        **loading,
    )


def model_scores(
    model: Scorer,
    sentences: Sequence[Sentence],
    *,
    log_probs: FloatArray | None = None,
    store: Store | None = None,
    by_token: bool = False,
    completed_words: bool = False,
    standard_errors: bool = False,
    lower_bounds: bool = False,
    progress: Callable[[Scorer, int], None] | None = None,
) -> ModelScores:
    """All that is wanted of a model; the result does not hold the model, which can be dropped.

    Args:
        model: the model.
        sentences: what is scored.
        log_probs: their scores, (n_sentences,), nats, where they are there already.
        store: see `score_in_turn`, as what follows.
        by_token: whether terms are wanted.
        completed_words: whether a word's end counts to the word.
        standard_errors: whether they are wanted too.
        lower_bounds: whether those of mixtures over orders are.
        progress: told the model and how many sentences more have their score.

    Raises:
        ModelError, ScoreError, StoreError: see `score_in_turn`.
    """
    terms = None
    if by_token:
        terms = token_terms(model, sentences, completed=completed_words, progress=progress)
    elif log_probs is None:
        table = score_sentences([model], sentences, store=store, progress=progress)
        log_probs = table.log_probs[:, 0]
    bounds = None
    if lower_bounds and isinstance(model, LanguageModel):
        bounds = model.lower_bounds(sentences)
    return ModelScores(
        model.name,
        conventions([model])[model.name],
        log_probs,
        terms,
        model.standard_errors(sentences).tolist() if standard_errors else [],
        bounds,
        len(sentences) - int(model.exact(sentences).sum()),
        contamination({model.name: model.training_text}, sentences)[model.name],
        unknown_words(model, sentences),
    )


def score_table(scores: Sequence[ModelScores], sentences: Sequence[Sentence]) -> ScoreTable:
    """The sums as one table: a row for each sentence, a column for each model."""
    columns = [model.log_probs for model in scores if model.log_probs is not None]
    names = tuple(model.name for model in scores)
    return ScoreTable(tuple(sentences), names, np.stack(columns, axis=1))


def term_table(
    scores: Sequence[ModelScores], sentences: Sequence[Sentence], *, by_word: bool = False
) -> dict[str, list[Any]]:
    """The terms as one table; see `table_of_terms` and, by word, `table_of_words`."""
    terms = {model.name: model.terms for model in scores if model.terms is not None}
    return (table_of_words if by_word else table_of_terms)(terms, sentences)


def standard_error_table(
    scores: Sequence[ModelScores], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """The standard errors as one table of the shape of `score_table`."""
    columns: dict[str, list[Any]] = {"sentence": [sentence.text for sentence in sentences]}
    return columns | {model.name: model.standard_errors for model in scores}


def bounds_table(
    scores: Sequence[ModelScores], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """Scores that are mixtures over orders beside their lower bounds: a row a sentence and model.

    The columns are sentence, model, log_prob, lower_bound (the mean over orders) and gap, in nats.
    """
    columns: dict[str, list[Any]] = {
        name: [] for name in ("sentence", "model", "log_prob", "lower_bound", "gap")
    }
    for model in scores:
        if model.lower_bounds is None or model.log_probs is None:
            continue
        columns["sentence"] += [sentence.text for sentence in sentences]
        columns["model"] += [model.name] * len(sentences)
        columns["log_prob"] += model.log_probs.tolist()
        columns["lower_bound"] += model.lower_bounds.tolist()
        columns["gap"] += (model.log_probs - model.lower_bounds).tolist()
    return columns
