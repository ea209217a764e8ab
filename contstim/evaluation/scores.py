"""Score the sentences of a benchmark, and both sides of minimal pairs, with several models.

A method compares two sides of a pair: by default, the good and the bad sentence. The other methods
compare words after a prefix; see `Method`. A paradigm is a type of minimal pair.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError, ModelError
from contstim.evaluation.minimal_pairs import Method, TieRule
from contstim.items.minimal_pair_scores import MinimalPairScores
from contstim.models.base import require_language_model
from contstim.models.scoring import score_continuations, score_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.evaluation.minimal_pairs import MinimalPair
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.items.scores import ScoreTable
    from contstim.models.base import Scorer
    from contstim.store import Store
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

    Progress = Callable[[Scorer, int], None]


@dataclass(frozen=True)
class LeftOut:
    """A sentence that a model cannot score, for example because it has too many tokens."""

    sentence: str
    model: str
    reason: str


def readable_by(
    models: Sequence[Scorer], sentences: Sequence[Sentence]
) -> tuple[list[int], list[LeftOut]]:
    """Return the indices of the sentences that every model can score, and list the other sentences.

    The list has an entry for each pair of a sentence and a model that cannot score the sentence.
    """
    left_out = [
        LeftOut(sentence.text, model.name, reason)
        for model in models
        for sentence, reason in zip(sentences, model.unscorable(sentences), strict=True)
        if reason
    ]
    refused = {omission.sentence for omission in left_out}
    return [i for i, sentence in enumerate(sentences) if sentence.text not in refused], left_out


def usable_sentences(
    models: Sequence[Scorer], sentences: Iterable[Sentence], vocabulary: Vocabulary
) -> list[Sentence]:
    """Return the sentences that all models can score, and whose words are in the vocabulary."""
    known = [sentence for sentence in sentences if not vocabulary.missing_words(sentence)]
    return [known[row] for row in readable_by(models, known)[0]]


def score_readable(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> tuple[ScoreTable, list[LeftOut]]:
    """Score the distinct sentences that every model can score, and list the other sentences.

    A sentence that one model cannot score is left out for all models, so that models are compared
    on the same sentences. Rows of the result have the order in which the sentences first occur.
    `score_sentences` describes the arguments.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    distinct = list(dict.fromkeys(sentences))
    rows, left_out = readable_by(models, distinct)
    readable = [distinct[row] for row in rows]
    return score_sentences(models, readable, store=store, progress=progress), left_out


@dataclass(frozen=True, eq=False)
class PairScores(MinimalPairScores):
    """Scores of both sides of pairs by one method.

    Attributes:
        pairs: pairs whose sides every model can read.
        method: method of comparison.
        unread: paradigm → number of pairs left out because a model cannot read a side.
    """

    pairs: tuple[MinimalPair, ...]
    method: Method = Method.FULL_SENTENCE
    unread: Counter[str] = field(default_factory=Counter)

    def columns(self) -> dict[str, Any]:
        """Return the scores as the columns of a table; the first column names the method."""
        return {"method": [self.method.value] * len(self.pairs)} | super().columns()

    @cached_property
    def decisions(self) -> BoolArray:
        """Mask of pairs whose sides differ, (n_pairs,); other pairs do not count in accuracies."""
        sides = (pair.sides(self.method) or ("", None) for pair in self.pairs)
        return np.array([good != bad for good, bad in sides], np.bool_)

    @property
    def identical(self) -> list[MinimalPair]:
        """Pairs with identical sides, which do not count."""
        return [*compress(self.pairs, ~self.decisions)]

    def correct(self, ties: TieRule = "wrong") -> FloatArray:
        """Return 1 if the good side scores higher, 0 if the bad side does, (n_pairs, n_models).

        A tie counts 0 (`wrong`) or one half (`half`).
        """
        points: FloatArray = (self.margins > 0).astype(np.float64)
        if ties == "half":
            points[self.ties] = 0.5
        return points


@dataclass(frozen=True)
class PairScoring:
    """Scores of pairs by every method.

    Attributes:
        by_method: scores of each method that at least one model and one pair support.
        refusals: model and method → reason why the model does not support the method.
        left_out: sentences that a model cannot read.
    """

    by_method: tuple[PairScores, ...]
    refusals: Mapping[tuple[str, Method], str]
    left_out: tuple[LeftOut, ...]


def score_pairs(
    models: Sequence[Scorer],
    pairs: Sequence[MinimalPair],
    methods: Iterable[Method] = Method,
    *,
    store: Store | None = None,
    progress: Callable[[int, str], Progress | None] = lambda _n_texts, _method: None,
) -> PairScoring:
    """Score both sides of pairs by each method that pairs and models support.

    If one model cannot read a side of a pair, the pair is left out for all models.

    `progress` is called once for each method, with the number of texts and the name of the method.
    It returns the callback for `score_sentences`.

    Raises:
        InputError: if no model can compare a pair by any of the methods.
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    by_method: list[PairScores] = []
    refusals: dict[tuple[str, Method], str] = {}
    left_out: list[LeftOut] = []
    for method in Method:
        sides = {pair: both for pair in pairs if (both := pair.sides(method))}
        if method not in methods or not sides:
            continue
        refused = {model.name: why for model in models if (why := _refusal_reason(model, method))}
        refusals |= {(model, method): why for model, why in refused.items()}
        able = [model for model in models if model.name not in refused]
        if not able:
            continue
        # Distinct sides, in the order of the pairs
        texts: Any = list(dict.fromkeys(side for both in sides.values() for side in both))
        indices, unread = readable_by(able, [getattr(side, "sentence", side) for side in texts])
        left_out += unread
        texts = [texts[index] for index in indices]
        rows = {side: row for row, side in enumerate(texts)}
        readable = [pair for pair, both in sides.items() if all(side in rows for side in both)]
        if not readable:
            continue
        report = progress(len(texts), str(method))
        if method is Method.FULL_SENTENCE:
            scores = score_sentences(able, texts, store=store, progress=report).log_probs
        else:
            scores = score_continuations(able, texts, store=store, progress=report)
        scores = scores[[rows[side] for pair in readable for side in sides[pair]]]
        names = tuple(model.name for model in able)
        both_sides = scores.reshape(len(readable), 2, len(names))  # good and bad side
        all_pairs, read = (Counter(p.paradigm for p in selected) for selected in (sides, readable))
        columns = (tuple(readable), names, both_sides)
        by_method.append(PairScores(*columns, method=method, unread=all_pairs - read))
    if not by_method:
        # Report only one reason, because all reasons are usually equal
        reasons = [*refusals.values(), *(omission.reason for omission in left_out)]
        reason = next(iter(reasons), "No pair has the fields that the method needs.")
        raise InputError(f"No pair could be compared. {reason}")
    return PairScoring(tuple(by_method), refusals, tuple(dict.fromkeys(left_out)))


def pair_scores_from_table(
    table: ScoreTable, pairs: Sequence[MinimalPair], methods: Iterable[Method] = ()
) -> PairScoring:
    """Read the scores of the good and the bad sentence of each pair from a table.

    Raises:
        InputError: if a method other than full sentences is requested.
        ScoreError: if the table lacks sentences (the message lists the first ones).
    """
    if set(methods) - {Method.FULL_SENTENCE}:
        raise InputError("A table has scores of full sentences only. Use models for other methods.")
    rows = table.rows_of(side for pair in pairs for side in (pair.good, pair.bad))
    sides = table.log_probs[rows].reshape(len(pairs), 2, len(table.models))
    return PairScoring((PairScores(tuple(pairs), table.models, sides),), {}, ())


def _refusal_reason(model: Scorer, method: Method) -> str:
    """Return why a model does not support a method; empty if the model supports the method."""
    if method is not Method.FULL_SENTENCE:
        try:
            language_model = require_language_model(model, f"The method {method}")
            language_model.continuation_log_probs(())  # raises if the model is bidirectional
        except ModelError as error:
            return str(error)
    return ""
