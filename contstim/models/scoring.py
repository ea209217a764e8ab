"""Score many sentences under several models, storing scores every few seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from contstim.errors import ScoreError
from contstim.models.base import require_language_model
from contstim.models.remote import CHUNK, ModelCall, RemoteScorer
from contstim.scores import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.base import Continuation, Convention, Scorer, TokenScore
    from contstim.models.remote import ModelWorkers
    from contstim.sentence import Sentence
    from contstim.store import Store

_MIN_BLOCK, _MAX_BLOCK = 16, 4_096  # sentences scored between two saves
_FAST, _SLOW = 2.0, 10.0  # seconds of a block, beyond which the next is larger or smaller


def score_sentences(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> ScoreTable:
    """Scores of sentences under models, rows in the order given.

    With a store, scores that are in it are not computed again. New scores are stored in blocks that
    take seconds, so that an interrupted run can be resumed. Repeated sentences are scored once.
    Models that workers hold are scored at the same time, a chunk a worker; where one of them fails,
    the scores of the others are stored before its error is raised.

    Args:
        models: one column each.
        sentences: one row each.
        store: a database of scores.
        progress: called with the model and the number of distinct sentences scored since.

    Raises:
        ScoreError: a model gave nan.
        ModelError: a model cannot score a sentence.
        StoreError: the store cannot be written.
    """
    # Row of each distinct sentence; `order` leads from the rows asked for to these
    rows = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
    order = [rows[sentence] for sentence in sentences]
    works = [_Work(model, "scores", model.scores, model.convention) for model in models]
    scores = _score(works, list(rows), store, progress)[order]
    return ScoreTable(tuple(sentences), tuple(model.name for model in models), scores)


def score_continuations(
    models: Sequence[Scorer],
    continuations: Sequence[Continuation],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> FloatArray:
    """Log p(words | the words before them), (n_continuations, n_models), nats.

    Stored and resumed as by `score_sentences`.

    Raises:
        ScoreError: a model gave nan.
        ModelError: a model does not read from left to right, or cannot read a sentence.
        StoreError: the store cannot be written.
    """
    # As above: each distinct item is scored once
    rows = {item: row for row, item in enumerate(dict.fromkeys(continuations))}
    order = [rows[item] for item in continuations]
    works = []
    for scorer in models:
        model = require_language_model(scorer, "A score of words given the words before them")
        # Stored under a fingerprint of their own: the text alone does not tell a score given a
        # prefix
        whole = model.convention
        convention = replace(
            whole, end_scored=False, fingerprint=f"{whole.fingerprint}-continuation"
        )
        method = "continuation_log_probs"
        works.append(_Work(model, method, model.continuation_log_probs, convention))
    scores = _score(works, list(rows), store, progress)[order]
    if np.isnan(scores).any():
        row, column = np.argwhere(np.isnan(scores))[0]
        what = " | ".join(continuations[row].text.split("\n"))
        raise ScoreError(f"The score of {what!r} under {models[column].name} is not a number.")
    return scores


Terms: TypeAlias = "Mapping[Sentence, Sequence[TokenScore]]"
"""The terms of the score of each sentence."""


def token_terms(
    model: Scorer,
    sentences: Sequence[Sentence],
    *,
    completed: bool = False,
    progress: Callable[[Scorer, int], None] | None = None,
) -> Terms:
    """The terms of every sentence's score under one model.

    Args:
        model: a language model.
        sentences: what is scored.
        completed: whether a word's end counts to the word, see
            `LanguageModel.completed_word_log_probs`.
        progress: told the model and how many sentences more have their terms.

    Raises:
        ModelError: a model's score is not a sum over tokens, or it cannot score a sentence.
    """
    language_model = require_language_model(model, "A score for each word")
    score = language_model.token_log_probs
    if completed:
        score = language_model.completed_word_log_probs
    distinct = list(dict.fromkeys(sentences))
    terms: dict[Sentence, Sequence[TokenScore]] = {}
    for block in _blocks(len(distinct)):
        part = distinct[block]
        terms.update(zip(part, score(part), strict=True))
        if progress is not None:
            progress(model, len(part))
    return terms


def table_of_terms(
    terms: Mapping[str, Terms], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """The terms of every sentence's score, by model: columns of one row for each term.

    Columns: sentence, model, position (of the word, from 0; the end of the sentence follows the
    last word), word, token, log_prob and surprisal (nats). Rows are ordered by sentence, then
    model, then place in the sentence.
    """
    rows = [
        (sentence.text, name, *_place(sentence, term), -term[2])
        for sentence in sentences
        for name, of_model in terms.items()
        for term in of_model[sentence]
    ]
    columns = ("sentence", "model", "position", "word", "token", "log_prob", "surprisal")
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


def table_of_words(
    terms: Mapping[str, Terms], sentences: Sequence[Sentence]
) -> dict[str, list[Any]]:
    """The same, a row for each word, whose terms are added up.

    Columns: sentence, model, position, word, tokens (how many), log_prob and surprisal (nats).
    """
    rows: list[tuple[object, ...]] = []
    for sentence in sentences:
        for name, of_model in terms.items():
            # Words in reading order; the end of the sentence, at -1, is last
            words: dict[int, list[TokenScore]] = {}
            for term in of_model[sentence]:
                words.setdefault(term.word, []).append(term)
            for tokens in words.values():
                position, word, _, _ = _place(sentence, tokens[0])
                log_prob = sum(token.log_prob for token in tokens)
                rows.append((sentence.text, name, position, word, len(tokens), log_prob, -log_prob))
    columns = ("sentence", "model", "position", "word", "tokens", "log_prob", "surprisal")
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


def _place(sentence: Sentence, term: TokenScore) -> tuple[int, str, str, float]:
    word, token, log_prob = term
    if word < 0:
        # The end of the sentence stands one place behind the last word
        return len(sentence), sentence.end, token, log_prob
    return word, sentence.words[word], token, log_prob


_Item = TypeVar("_Item", "Sentence", "Continuation")


@dataclass(frozen=True)
class _Work(Generic[_Item]):
    """A model, the method that scores, and the convention under which its scores are stored."""

    model: Scorer
    method: str
    score: Callable[[Sequence[_Item]], FloatArray]
    convention: Convention


def _score(
    works: Sequence[_Work[_Item]],
    items: Sequence[_Item],
    store: Store | None,
    progress: Callable[[Scorer, int], None] | None,
) -> FloatArray:
    """Scores of distinct items, (n_items, n_works), from the store and from the models."""
    texts = [item.text for item in items]
    scores = np.full((len(items), len(works)), np.nan)
    report = progress or (lambda _model, _n: None)

    def keep(column: int, rows: IntArray, values: FloatArray) -> None:
        work = works[column]
        scores[rows, column] = values
        # A nan is not stored, so that the score is computed again once the model is mended
        if store is not None and not np.isnan(values).any():
            convention = work.convention
            store.save(convention.fingerprint, convention.json, [texts[r] for r in rows], values)
        report(work.model, len(rows))

    # Chunks for workers, those of all models at once: the calls, and where their answers belong
    calls: dict[ModelWorkers, list[ModelCall]] = {}
    places: dict[ModelCall, tuple[int, IntArray]] = {}
    for column, work in enumerate(works):
        if store is not None:
            # nan where the store has none, as where there is no store
            scores[:, column] = store.log_probs(work.convention.fingerprint, texts)
        missing = np.flatnonzero(np.isnan(scores[:, column]))
        # What is stored counts as done at once, so that bars do not start anew after an
        # interruption
        report(work.model, len(texts) - len(missing))
        if isinstance(work.model, RemoteScorer):
            # Borders of chunks are those of all items, whatever is missing: after an interruption
            # the same sentences share a batch, and the scores of networks are the same to the digit
            borders = np.flatnonzero(np.diff(missing // CHUNK)) + 1
            for rows in np.split(missing, borders) if len(missing) else ():
                chunk = tuple(items[row] for row in rows)
                call = ModelCall(work.model.specification, work.method, (chunk,))
                calls.setdefault(work.model.workers, []).append(call)
                places[call] = column, rows
            continue
        for block in _blocks(len(missing)):
            rows = missing[block]
            keep(column, rows, work.score([items[row] for row in rows]))
    for workers, asked in calls.items():
        workers.answer(asked, lambda call, values: keep(*places[call], values))
    return scores


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
