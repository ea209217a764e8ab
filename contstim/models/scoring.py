"""Scores of many sentences under several models; tables and records of scores.

Scores are saved every few seconds. Models are loaded in this process or by workers (see `remote`).
The record of a table is a file that describes how the table was computed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from contstim.english.words import tag_table
from contstim.errors import InputError, ScoreError
from contstim.files.documents import read_json_object
from contstim.files.records import record_path
from contstim.items.scores import ScoreTable
from contstim.models.base import (
    Continuation,
    Convention,
    Scorer,
    TokenScore,
    record_entry,
    require_language_model,
)
from contstim.models.remote import CHUNK, Answer, ModelCall, RemoteModel
from contstim.models.training_text import Contamination, contamination
from contstim.models.transforms import UnknownWords, unknown_words
from contstim.wording import grouped
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.store import Store

    Progress: TypeAlias = Callable[[Scorer, int], None]
    _Item = TypeVar("_Item", Sentence, Continuation)

_MIN_BLOCK, _MAX_BLOCK = 16, 4_096  # number of sentences between two saves
# Seconds. After a block that took less than _FAST, the size of blocks doubles. After a block that
# took more than _SLOW, the size is halved
_FAST, _SLOW = 2.0, 10.0


def score_sentences(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence | str],
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> ScoreTable:
    """Score sentences under models.

    Scores in the store are not computed again. New scores are saved every few seconds, so that an
    interrupted run can be resumed. Repeated sentences are scored once. If a model that workers have
    loaded fails, the scores of the other models are saved before the error is raised.

    Args:
        models: models, one for each column of the table.
        sentences: sentences or their texts, one for each row.
        store: database of scores.
        progress: function that is called during scoring. Its arguments are a model, and the number
            of distinct sentences that were just scored or found in the store.

    Raises:
        ScoreError: if a score is nan or +inf.
        ModelError: if a model cannot score a sentence.
        WorkerError: if workers fail repeatedly.
        StoreError: if the store cannot be written.
    """
    rows = tuple(Sentence.parse(s) if isinstance(s, str) else s for s in sentences)
    scores = score_each(models, rows, store=store, progress=progress)
    return ScoreTable(rows, tuple(model.name for model in models), scores)


def score_continuations(
    models: Sequence[Scorer],
    continuations: Sequence[Continuation],
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Return log p(continuation | words before it), (n_continuations, n_models), nats.

    As in `score_sentences`, scores are saved, and an interrupted run can be resumed.

    Raises:
        ScoreError: if a score is nan or +inf.
        ModelError: if a model does not read from left to right, or cannot read a sentence.
        StoreError: if the store cannot be written.
    """
    stored_as = []
    for model in models:
        require_language_model(model, "A score of words given the words before them")
        # The store finds scores by the fingerprint. A separate fingerprint keeps scores of
        # continuations apart from scores of whole sentences
        convention = model.convention
        fingerprint = f"{convention.fingerprint}-continuation"
        stored_as.append(replace(convention, end_scored=False, fingerprint=fingerprint))
    method = "continuation_log_probs"
    return score_each(models, continuations, method, stored_as, store=store, progress=progress)


def score_each(
    models: Sequence[Scorer],
    items: Sequence[_Item],
    method: str = "scores",
    stored_as: Sequence[Convention] | None = None,
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Return scores of items, (n_items, n_models), from the store or by calling models' methods.

    Args:
        models: models, one column each.
        items: items to score, such as sentences.
        method: name of the method; the method takes a list of items and returns an array
            (n_items,).
        stored_as: for each model, the convention under which the store has the model's scores. A
            convention describes how scores are computed. The default is the model's convention.
        store: see `score_sentences`.
        progress: see `score_sentences`.

    Raises:
        ModelError, ScoreError, StoreError, WorkerError: see `score_sentences`.
    """
    stored_as = stored_as or [model.convention for model in models]
    row_of = {item: row for row, item in enumerate(dict.fromkeys(items))}
    distinct = list(row_of)
    texts = [item.text for item in distinct]
    scores = np.full((len(distinct), len(models)), np.nan)
    report = progress or (lambda _model, _n: None)

    def save(column: int, rows: IntArray, values: FloatArray) -> None:
        scores[rows, column] = values
        # nan is not a score; the error is raised below
        if store is not None and not np.isnan(values).any():
            convention = stored_as[column]
            store.save(convention.fingerprint, convention.json, [texts[r] for r in rows], values)
        report(models[column], len(rows))

    # `calls` contains the calls for workers, grouped by the function that sends them. `targets`
    # contains the column and the rows of each call's result
    calls: dict[Answer, list[ModelCall]] = {}
    targets: dict[ModelCall, tuple[int, IntArray]] = {}
    for column, model in enumerate(models):
        if store is not None:
            scores[:, column] = store.log_probs(stored_as[column].fingerprint, texts)
        missing = np.flatnonzero(np.isnan(scores[:, column]))
        # Count cached scores as done, so that a resumed progress bar starts where it stopped
        report(model, len(texts) - len(missing))
        if isinstance(model, RemoteModel):
            # A score can depend slightly on the other sentences of its chunk. Chunks end at
            # multiples of CHUNK, and an interrupted run saves only whole chunks. So a resumed run
            # has the same chunks, and thus exactly the same scores, as an uninterrupted run
            borders = np.flatnonzero(np.diff(missing // CHUNK)) + 1
            for rows in np.split(missing, borders) if len(missing) else ():
                chunk = tuple(distinct[row] for row in rows)
                call = ModelCall(model.specification, method, (chunk,))
                calls.setdefault(model.answer, []).append(call)
                targets[call] = column, rows
            continue
        for block in _blocks(len(missing)):
            rows = missing[block]
            save(column, rows, getattr(model, method)([distinct[row] for row in rows]))
    for answer, model_calls in calls.items():
        answer(model_calls, lambda call, values: save(*targets[call], values))
    for row, column in np.argwhere(~(scores < np.inf))[:1]:
        shown_text = " | ".join(texts[row].split("\n"))
        raise ScoreError(
            f"The score of {shown_text!r} under {models[column].name} is not a number "
            f"({scores[row, column]})."
        )
    return scores[[row_of[item] for item in items]]


def _blocks(n: int) -> Iterator[slice]:
    """Yield slices of n sentences. The caller must score each slice before it takes the next one.

    The size of a slice depends on the time of the previous slice, so that each slice takes a few
    seconds.
    """
    size, start = _MIN_BLOCK, 0
    while start < n:
        block_start = perf_counter()
        yield slice(start, start + size)  # the caller scores this block
        seconds = perf_counter() - block_start
        start += size
        if seconds < _FAST:
            size = min(2 * size, _MAX_BLOCK)
        elif seconds > _SLOW:
            size = max(size // 2, 1)


_AROUND_WORDS = re.compile(r"^\W+|\W+$")  # punctuation before and after a word

Terms: TypeAlias = "Mapping[Sentence, Sequence[TokenScore]]"
"""For each sentence, the terms of its score: log-probabilities of tokens or words."""


def mean_word_log_probs(
    models: Sequence[Scorer], sentences: Sequence[Sentence], progress: Progress | None = None
) -> dict[Sentence, FloatArray]:
    """Return, for each sentence, the words' log-probabilities averaged over models, (n_words,).

    The unit is nats. For `progress`, see `token_terms`.

    Raises:
        ModelError: see `token_terms`.
    """
    means = {sentence: np.zeros(len(sentence)) for sentence in sentences}
    for model in models:
        for sentence, terms in token_terms(model, sentences, progress=progress).items():
            for term in terms:
                if term.word >= 0:
                    means[sentence][term.word] += term.log_prob / len(models)
    return means


def token_terms(
    model: Scorer,
    sentences: Sequence[Sentence],
    *,
    completed: bool = False,
    progress: Progress | None = None,
) -> Terms:
    """Return the terms of each sentence's score under one model.

    Args:
        model: language model.
        sentences: sentences to score; duplicates are scored once.
        completed: whether to use the model's method `completed_word_log_probs` instead of
            `token_log_probs`.
        progress: function called with the model and the number of newly scored sentences.

    Raises:
        ModelError: if the score is not a sum over tokens, or if a sentence cannot be scored.
    """
    scorer = require_language_model(model, "A score for each word")
    score = scorer.completed_word_log_probs if completed else scorer.token_log_probs
    distinct = list(dict.fromkeys(sentences))
    terms: dict[Sentence, Sequence[TokenScore]] = {}
    for block in _blocks(len(distinct)):
        batch = distinct[block]
        terms.update(zip(batch, score(batch), strict=True))
        if progress is not None:
            progress(model, len(batch))
    return terms


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores and optional results of a model.

    Attributes:
        convention: entry of the model in a record, see `record_entry`.
        log_probs: scores, (n_sentences,), in the convention's unit; None if `terms` were requested
            instead of scores.
        terms: terms of each sentence's score; None if they were not requested.
        standard_errors: standard errors of the scores, (n_sentences,), in the convention's unit, 0
            for exact scores; None if they were not requested.
        lower_bounds: lower bounds of the scores, (n_sentences,), nats; None if they were not
            requested or are not defined.
        n_sampled: number of scores that are estimates.
        contamination: scored sentences that are also in the training text; None if the
            model's training text is unknown.
        unknown: description of words that the model does not know.
    """

    name: str
    convention: dict[str, object]
    log_probs: FloatArray | None
    terms: Terms | None
    standard_errors: FloatArray | None
    lower_bounds: FloatArray | None
    n_sampled: int
    contamination: Contamination | None
    unknown: UnknownWords

    @classmethod
    def of(
        cls,
        model: Scorer,
        log_probs: FloatArray | None,
        sentences: Sequence[Sentence],
        progress: Progress | None = None,
        *,
        terms: bool = False,
        completed: bool = False,
        standard_errors: bool = False,
        lower_bounds: bool = False,
    ) -> ModelScores:
        """Compute the requested optional results of a model, and combine them with its scores.

        Standard errors take as much time as the scores, and so do lower bounds.

        Args:
            model: model.
            log_probs: see `ModelScores`.
            sentences: sentences to which `log_probs` belongs.
            progress: see `token_terms`.
            terms: whether to compute terms.
            completed: see `token_terms`.
            standard_errors: whether to compute standard errors.
            lower_bounds: whether to compute lower bounds.

        Raises:
            ModelError: if the model cannot score a sentence.
        """
        words = partial(token_terms, model, sentences, completed=completed, progress=progress)
        return cls(
            name=model.name,
            convention=record_entry(model.specification, model.convention),
            log_probs=log_probs,
            terms=words() if terms else None,
            standard_errors=model.standard_errors(sentences) if standard_errors else None,
            lower_bounds=model.lower_bounds(sentences) if lower_bounds else None,
            n_sampled=len(sentences) - int(model.exact(sentences).sum()),
            contamination=contamination({model.name: model.training_text}, sentences)[model.name],
            unknown=unknown_words(model, sentences),
        )


def score_table(scores: Sequence[ModelScores], sentences: Sequence[Sentence]) -> ScoreTable:
    """Return the scores as a table with a row per sentence and a column per model."""
    columns = [model.log_probs for model in scores if model.log_probs is not None]
    names = tuple(model.name for model in scores)
    return ScoreTable(tuple(sentences), names, np.stack(columns, axis=1))


def term_table(
    scores: Mapping[str, Terms], sentences: Sequence[Sentence], *, by_word: bool = True
) -> dict[str, list[Any]]:
    """Return a table of the terms of scores, for each sentence and model.

    With `by_word`, there is a row for each word and for the end of the sentence. Otherwise, there
    is a row for each term. Rows are ordered by sentence, model and position. The columns are:

    * `sentence`, `model`
    * `position`: 0-based; the end of the sentence has the position after the last word
    * `word`
    * `tokens` (with `by_word`): number of tokens of the word
    * `token` (without `by_word`): text of the token
    * `log_prob` (nats), `surprisal` (nats), `surprisal_bits`
    * `entropy`: entropy of the distribution that predicts the row's first token, nats; None if
      unknown
    * `frequency`: Zipf value (log10 of the occurrences in 10^9 words of English) of the word
      without punctuation; None if unknown
    """
    rows, table = [], tag_table(None)
    bare = {word: _AROUND_WORDS.sub("", word) for s in sentences for word in s.words}
    # Empty if the words are probably not English
    known = bare if table.fits({*bare.values()}) else {}
    zipfs = {word: table.frequencies.zipf(bare[word]) for word in known if bare[word]}
    for sentence in sentences:
        for name, terms in scores.items():
            numbered = enumerate(terms[sentence])
            groups = grouped((term.word if by_word else index, term) for index, term in numbered)
            for group in groups.values():
                end = group[0].word < 0
                position = len(sentence) if end else group[0].word
                word = sentence.end if end else sentence.words[position]
                token = len(group) if by_word else group[0].token
                log_prob = sum((term.log_prob for term in group[1:]), group[0].log_prob)
                entropy = None if math.isnan(group[0].entropy) else group[0].entropy
                values = (log_prob, -log_prob, -log_prob / math.log(2), entropy)
                zipf = None if end else zipfs.get(word)
                rows.append((sentence.text, name, position, word, token, *values, zipf))
    names = f"sentence model position word {'tokens' if by_word else 'token'} log_prob surprisal"
    return _table(f"{names} surprisal_bits entropy frequency".split(), rows)


def standard_error_table(
    scores: Sequence[ModelScores], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """Return a table of standard errors: a row per sentence, a column per model."""
    errors = {m.name: m.standard_errors.tolist() for m in scores if m.standard_errors is not None}
    return {"sentence": [sentence.text for sentence in sentences]} | errors


def bounds_table(
    scores: Sequence[ModelScores], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """Return a table of scores that have lower bounds, with a row for each model and sentence.

    Under rules such as `chain-mixture`, words are predicted in several orders. The score is the log
    of the sentence's mean probability over these orders. The lower bound of the score is the
    sentence's mean log-probability over the same orders. The columns are `sentence`, `model`,
    `log_prob`, `lower_bound` and `gap`. The last three are in nats, and `gap` is `log_prob` -
    `lower_bound`.
    """
    rows = [
        (sentence.text, model.name, score, bound, score - bound)
        for model in scores
        if model.lower_bounds is not None and model.log_probs is not None
        for sentence, score, bound in zip(
            sentences, model.log_probs.tolist(), model.lower_bounds.tolist(), strict=True
        )
    ]
    return _table(("sentence", "model", "log_prob", "lower_bound", "gap"), rows)


def _table(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def recorded_conventions(scores: Path | str, models: Iterable[str]) -> dict[str, Convention]:
    """Return the conventions of models, by name, from the record of a score table.

    Models that are not in the record are omitted. If there is no record, the result is empty.

    Raises:
        InputError: if the record cannot be read, or does not belong to a table of scores.
    """
    path = record_path(scores)
    entries = read_json_object(path).get("models", {}) if path.exists() else {}
    # An entry also has other keys, such as the model's specification
    names = {field.name for field in fields(Convention)}
    try:
        return {
            model: Convention(**{n: value for n, value in entries[model].items() if n in names})
            for model in models
            if model in entries
        }
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is not the record of a table of scores: {error}. Score the sentences again."
        ) from error


def require_log_probabilities(scores: Path | str, models: Iterable[str], purpose: str) -> None:
    """Refuse a score table if, according to its record, a model has a unit other than nats.

    Models that are not in the record are accepted. For `purpose`, see
    `Convention.require_log_probability`.

    Raises:
        ModelError: if the scores of a model have a unit other than nats.
        InputError: see `recorded_conventions`.
    """
    for model, convention in recorded_conventions(scores, models).items():
        convention.require_log_probability(model, purpose)
