"""Scores of many sentences under several models, stored every few seconds, with what a record says.

Models are loaded, here or by workers (see `remote`). Where there are more than memory holds, they
are loaded `one_at_a_time`, and `ModelScores` hold all that is wanted of each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from contstim.errors import InputError, ScoreError
from contstim.files.documents import read_json_object
from contstim.files.records import record_path
from contstim.items.scores import ScoreTable
from contstim.models.base import Convention, record_entry, require_language_model
from contstim.models.remote import CHUNK, ModelCall, RemoteModel
from contstim.models.training_text import Contamination, contamination
from contstim.models.transforms import UnknownWords, unknown_words
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.models.base import Continuation, Scorer, TokenScore
    from contstim.models.remote import Answer
    from contstim.store import Store

    Progress: TypeAlias = Callable[[Scorer, int], None]
    _Item = TypeVar("_Item", Sentence, Continuation)

_MIN_BLOCK, _MAX_BLOCK = 16, 4_096  # sentences scored between two saves
_FAST, _SLOW = 2.0, 10.0  # seconds of a block, beyond which the next is larger or smaller


def score_sentences(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence | str],
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> ScoreTable:
    """Scores of sentences under models, rows in the order given.

    With a store, scores that are in it are not computed again. New scores are stored in blocks that
    take seconds, so that an interrupted run can be resumed. Repeated sentences are scored once.
    Models that workers hold are scored at the same time, a chunk a worker; where one of them fails,
    the scores of the others are stored before its error is raised.

    Args:
        models: one column each.
        sentences: one row each, or their texts.
        store: a database of scores.
        progress: called with the model and the number of distinct sentences scored since.

    Raises:
        ScoreError: a model gave nan or +inf.
        ModelError: a model cannot score a sentence.
        StoreError: the store cannot be written.
    """
    rows = tuple(Sentence.parse(each) if isinstance(each, str) else each for each in sentences)
    scores = score_each(models, rows, store=store, progress=progress)
    return ScoreTable(rows, tuple(model.name for model in models), scores)


def score_continuations(
    models: Sequence[Scorer],
    continuations: Sequence[Continuation],
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Log p(words | the words before them), (n_continuations, n_models), nats.

    Stored and resumed as by `score_sentences`.

    Raises:
        ScoreError: a model gave nan or +inf.
        ModelError: a model does not read from left to right, or cannot read a sentence.
        StoreError: the store cannot be written.
    """
    stored_as = []
    for model in models:
        require_language_model(model, "A score of words given the words before them")
        # Under a fingerprint of their own: the text alone does not tell a score given a prefix
        whole = model.convention
        fingerprint = f"{whole.fingerprint}-continuation"
        stored_as.append(replace(whole, end_scored=False, fingerprint=fingerprint))
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
    """Scores of items by a method, (n_items, n_models), from the store and from the models.

    Args:
        models: see `score_sentences`.
        items: sentences, or what else the method is of.
        method: of the models.
        stored_as: the models' conventions in the store; by default their own.
        store: see `score_sentences`.
        progress: see `score_sentences`.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    stored_as = stored_as or [model.convention for model in models]
    # Each distinct item is scored once
    row_of = {item: row for row, item in enumerate(dict.fromkeys(items))}
    distinct = list(row_of)
    texts = [item.text for item in distinct]
    scores = np.full((len(distinct), len(models)), np.nan)
    report = progress or (lambda _model, _n: None)

    def keep(column: int, rows: IntArray, values: FloatArray) -> None:
        scores[rows, column] = values
        # A nan is not stored, so that the score is computed again once the model is mended
        if store is not None and not np.isnan(values).any():
            convention = stored_as[column]
            store.save(convention.fingerprint, convention.json, [texts[r] for r in rows], values)
        report(models[column], len(rows))

    # Chunks for workers, those of all models at once: the calls, and where their answers belong
    calls: dict[Answer, list[ModelCall]] = {}
    targets: dict[ModelCall, tuple[int, IntArray]] = {}
    for column, model in enumerate(models):
        if store is not None:
            # nan where the store has none, as where there is no store
            scores[:, column] = store.log_probs(stored_as[column].fingerprint, texts)
        missing = np.flatnonzero(np.isnan(scores[:, column]))
        # What is stored counts as done at once, so that bars do not start anew after an
        # interruption
        report(model, len(texts) - len(missing))
        if isinstance(model, RemoteModel):
            # Borders of chunks are those of all items, whatever is missing: after an interruption
            # the same sentences share a batch, and the scores of networks are the same to the digit
            borders = np.flatnonzero(np.diff(missing // CHUNK)) + 1
            for rows in np.split(missing, borders) if len(missing) else ():
                chunk = tuple(distinct[row] for row in rows)
                call = ModelCall(model.specification, method, (chunk,))
                calls.setdefault(model.answer, []).append(call)
                targets[call] = column, rows
            continue
        for block in _blocks(len(missing)):
            rows = missing[block]
            keep(column, rows, getattr(model, method)([distinct[row] for row in rows]))
    for answer, asked in calls.items():
        answer(asked, lambda call, values: keep(*targets[call], values))
    for row, column in np.argwhere(~(scores < np.inf))[:1]:
        what = " | ".join(texts[row].split("\n"))
        raise ScoreError(
            f"The score of {what!r} under {models[column].name} is not a number "
            f"({scores[row, column]})."
        )
    return scores[[row_of[item] for item in items]]


def _blocks(n: int) -> Iterator[slice]:
    """Cut n sentences into blocks that take some seconds each, however fast the model is."""
    size, start = _MIN_BLOCK, 0
    while start < n:
        before = perf_counter()
        yield slice(start, start + size)  # the caller scores the block before it asks for the next
        seconds = perf_counter() - before
        start += size
        if seconds < _FAST:
            size = min(2 * size, _MAX_BLOCK)
        elif seconds > _SLOW:
            size = max(size // 2, 1)


Terms: TypeAlias = "Mapping[Sentence, Sequence[TokenScore]]"
"""The terms of the score of each sentence."""


def token_terms(
    model: Scorer,
    sentences: Sequence[Sentence],
    *,
    completed: bool = False,
    progress: Progress | None = None,
) -> Terms:
    """The terms of every sentence's score under one model.

    Args:
        model: a language model.
        sentences: the sentences to score.
        completed: whether a word's end counts to the word, see
            `LanguageModel.completed_word_log_probs`.
        progress: told the model and how many sentences more have their terms.

    Raises:
        ModelError: a model's score is not a sum over tokens, or it cannot score a sentence.
    """
    scorer = require_language_model(model, "A score for each word")
    score = scorer.completed_word_log_probs if completed else scorer.token_log_probs
    distinct = list(dict.fromkeys(sentences))
    terms: dict[Sentence, Sequence[TokenScore]] = {}
    for block in _blocks(len(distinct)):
        part = distinct[block]
        terms.update(zip(part, score(part), strict=True))
        if progress is not None:
            progress(model, len(part))
    return terms


Wanted: TypeAlias = Literal["terms", "completed_words", "standard_errors", "lower_bounds"]
"""Results that can be wanted of every model: the terms of each score instead of their sum; in these
a word's end counted to the word; the standard errors that sampling leaves, and lower bounds of
mixtures over orders, each of which costs as much again as the scores."""


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores of a model, and all else that is wanted of it before it is let go.

    Attributes:
        name: the model's.
        convention: how its scores came about, as a record holds it.
        log_probs: (n_sentences,), nats; None where terms were asked for.
        terms: of every sentence's score; None where sums were asked for.
        standard_errors: (n_sentences,), nats, 0 where exact; None where nobody asked.
        lower_bounds: (n_sentences,), nats; None where nobody asked, or the rule has none.
        n_sampled: how many of the scores are estimates.
        contamination: which sentences it was trained on; None where its text is not known.
        unknown: about the words that it does not know.
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
        wanted: Collection[Wanted] = (),
        progress: Progress | None = None,
    ) -> ModelScores:
        """All that is wanted of a model beside its scores of sentences.

        Args:
            model: that is loaded.
            log_probs: the scores, (n_sentences,).
            sentences: the sentences.
            wanted: of the model.
            progress: of terms, told the model and how many distinct sentences more have theirs.

        Raises:
            ModelError: the model cannot score a sentence.
        """
        terms, completed = None, "completed_words" in wanted
        if "terms" in wanted:
            terms = token_terms(model, sentences, completed=completed, progress=progress)
        errors, bounds = "standard_errors" in wanted, "lower_bounds" in wanted
        return cls(
            name=model.name,
            convention=record_entry(model.specification, model.convention),
            log_probs=log_probs,
            terms=terms,
            standard_errors=model.standard_errors(sentences) if errors else None,
            lower_bounds=model.lower_bounds(sentences) if bounds else None,
            n_sampled=len(sentences) - int(model.exact(sentences).sum()),
            contamination=contamination({model.name: model.training_text}, sentences)[model.name],
            unknown=unknown_words(model, sentences),
        )


def score_table(scores: Sequence[ModelScores], sentences: Sequence[Sentence]) -> ScoreTable:
    """The sums as one table: a row for each sentence, a column for each model."""
    columns = [model.log_probs for model in scores if model.log_probs is not None]
    names = tuple(model.name for model in scores)
    return ScoreTable(tuple(sentences), names, np.stack(columns, axis=1))


def term_table(
    scores: Mapping[str, Terms], sentences: Sequence[Sentence], *, by_word: bool = False
) -> dict[str, list[Any]]:
    """The terms of every sentence's score, by model: columns of one row for each term or word.

    Columns: sentence, model, position (of the word, from 0; the end of the sentence follows the
    last word), word, token (by word: tokens, how many), log_prob and surprisal (nats). Rows are
    ordered by sentence, then model, then position.
    """
    rows = []
    for sentence in sentences:
        for name, terms in scores.items():
            # In reading order; the end of the sentence, at -1, is last
            groups: dict[int, list[TokenScore]] = {}
            for number, term in enumerate(terms[sentence]):
                groups.setdefault(term.word if by_word else number, []).append(term)
            for group in groups.values():
                end = group[0].word < 0
                position = len(sentence) if end else group[0].word
                word = sentence.end if end else sentence.words[position]
                token = len(group) if by_word else group[0].token
                log_prob = sum((term.log_prob for term in group[1:]), group[0].log_prob)
                rows.append((sentence.text, name, position, word, token, log_prob, -log_prob))
    token = "tokens" if by_word else "token"
    return _table(("sentence", "model", "position", "word", token, "log_prob", "surprisal"), rows)


def standard_error_table(
    scores: Sequence[ModelScores], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """The standard errors as one table of the shape of `score_table`."""
    columns: dict[str, list[Any]] = {"sentence": [sentence.text for sentence in sentences]}
    errors = {model.name: model.standard_errors for model in scores}
    return columns | {name: each.tolist() for name, each in errors.items() if each is not None}


def bounds_table(
    scores: Sequence[ModelScores], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """Scores that are mixtures over orders beside their lower bounds: a row a sentence and model.

    The columns are sentence, model, log_prob, lower_bound (the mean over orders) and gap, in nats.
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
    """The conventions of models, by name, from the record of a table of scores.

    Without the models that the record lacks; without a record there are none.

    Args:
        scores: the table.
        models: names of its columns.

    Raises:
        InputError: the record cannot be read, or is not that of a table of scores.
    """
    path = record_path(scores)
    entries = read_json_object(path).get("models", {}) if path.exists() else {}
    # an entry may say more, such as the specification that the model was loaded by
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
    """Refuse a table of scores whose record says that they are not log-probabilities.

    Args:
        scores: the table; without a record beside it, nothing is refused.
        models: names of the columns that are used.
        purpose: the work that needs log-probabilities, a noun phrase that begins a sentence.

    Raises:
        ModelError: the scores of a model have another unit; names it.
        InputError: see `recorded_conventions`.
    """
    # Columns that the record does not name may come from elsewhere, and pass
    for model, convention in recorded_conventions(scores, models).items():
        convention.require_log_probability(model, purpose)
