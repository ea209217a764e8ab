"""Scores of a benchmark's sentences, and of both sides of minimal pairs, by every model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError, ModelError
from contstim.evaluation.settings import Method, TieRule
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

    Progress = Callable[[Scorer, int], None]


@dataclass(frozen=True)
class LeftOut:
    """A sentence that a model cannot score, for instance because it exceeds the window."""

    sentence: str
    model: str
    reason: str


def readable_by(
    models: Sequence[Scorer], sentences: Sequence[Sentence]
) -> tuple[list[int], list[LeftOut]]:
    """Places of the sentences that every model can score; and what some model refuses.

    The latter is in the order of the models, then of the sentences.
    """
    left_out = [
        LeftOut(sentence.text, model.name, reason)
        for model in models
        for sentence, reason in zip(sentences, model.unscorable(sentences), strict=True)
        if reason
    ]
    refused = {omission.sentence for omission in left_out}
    return [i for i, sentence in enumerate(sentences) if sentence.text not in refused], left_out


def score_readable(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> tuple[ScoreTable, list[LeftOut]]:
    """Scores of the distinct sentences that every model can score, and what was left out.

    A sentence that one model refuses is left out for all, so that models are compared on the same
    sentences.

    Args:
        models: one column each.
        sentences: in any order, repeated or not; rows follow their first occurrence.
        store: see `score_sentences`.
        progress: see `score_sentences`.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    # asked before anything is scored, so that no time is spent on what is left out
    distinct = list(dict.fromkeys(sentences))
    rows, left_out = readable_by(models, distinct)
    readable = [distinct[row] for row in rows]
    return score_sentences(models, readable, store=store, progress=progress), left_out


@dataclass(frozen=True, eq=False)
class PairScores(MinimalPairScores):
    """Scores of both sides of pairs by one method.

    Attributes:
        pairs: those that every model can read.
        method: what is compared.
        unread: how many pairs of each paradigm were left out, because a model cannot read them.
    """

    pairs: tuple[MinimalPair, ...]
    method: Method = Method.FULL_SENTENCE
    unread: Counter[str] = field(default_factory=Counter)

    def columns(self) -> dict[str, Any]:
        """The columns of the table, with the method, so that `read` takes full sentences only."""
        return {"method": [self.method.value] * len(self.pairs)} | super().columns()

    @cached_property
    def decisions(self) -> BoolArray:
        """Mask of pairs whose sides differ, (n_pairs,); in others there is nothing to decide."""
        sides = (pair.sides(self.method) or ("", None) for pair in self.pairs)
        return np.array([good != bad for good, bad in sides], np.bool_)

    @property
    def identical(self) -> list[MinimalPair]:
        """Pairs whose sides are the same, which count neither as right nor as wrong."""
        return [*compress(self.pairs, ~self.decisions)]

    def correct(self, ties: TieRule = "wrong") -> FloatArray:
        """1 where the good side has the higher score, else 0; a tie is wrong, or counts one half.

        Shape (n_pairs, n_models).
        """
        points: FloatArray = (self.margins > 0).astype(np.float64)
        if ties == "half":
            points[self.ties] = 0.5
        return points


@dataclass(frozen=True)
class PairScoring:
    """Scores of pairs by every method.

    Attributes:
        by_method: those of each method that can be used.
        refusals: why a model cannot be asked by a method, by both.
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
    """Score both sides of pairs by each method that they and the models allow.

    A sentence is scored once, however many pairs hold it. A pair with a sentence that one model
    cannot read is left out for all of them.

    Args:
        models: who is asked.
        pairs: minimal pairs.
        methods: what to compare; those that apply to no pair are passed over.
        store: where scores are kept between runs.
        progress: makes what is told of scores, from the number of texts and the method.

    Raises:
        InputError: there is nothing to compare.
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    by_method: list[PairScores] = []
    refusals: dict[tuple[str, Method], str] = {}
    left_out: list[LeftOut] = []
    for method in Method:
        sides = {pair: both for pair in pairs if (both := pair.sides(method))}
        if method not in methods or not sides:
            continue
        refused = {model.name: why for model in models if (why := _refusal(model, method))}
        refusals |= {(model, method): why for model, why in refused.items()}
        able = [model for model in models if model.name not in refused]
        if not able:
            continue
        # each side once, in the order of the pairs
        texts: Any = list(dict.fromkeys(side for both in sides.values() for side in both))
        places, unread = readable_by(able, [getattr(side, "sentence", side) for side in texts])
        left_out += unread
        texts = [texts[place] for place in places]
        rows = {side: row for row, side in enumerate(texts)}
        readable = [pair for pair, both in sides.items() if all(side in rows for side in both)]
        if not readable:
            continue
        told = progress(len(texts), str(method))
        if method is Method.FULL_SENTENCE:
            scores = score_sentences(able, texts, store=store, progress=told).log_probs
        else:
            scores = score_continuations(able, texts, store=store, progress=told)
        scores = scores[[rows[side] for pair in readable for side in sides[pair]]]
        names = tuple(model.name for model in able)
        both_sides = scores.reshape(len(readable), 2, len(names))  # good and bad ones in turn
        all_pairs, read = (Counter(p.paradigm for p in some) for some in (sides, readable))
        columns = (tuple(readable), names, both_sides)
        by_method.append(PairScores(*columns, method=method, unread=all_pairs - read))
    if not by_method:
        # The first reason is enough: with nothing to compare, all methods mostly share it.
        reasons = [*refusals.values(), *(omission.reason for omission in left_out)]
        reason = next(iter(reasons), "No pair has the fields that the method compares.")
        raise InputError(f"Nothing could be compared. {reason}")
    return PairScoring(tuple(by_method), refusals, tuple(dict.fromkeys(left_out)))


def pair_scores_from_table(
    table: ScoreTable, pairs: Sequence[MinimalPair], methods: Iterable[Method] = ()
) -> PairScoring:
    """Full sentences, scored before.

    Raises:
        InputError: another method is asked for.
        ScoreError: the table lacks sentences (lists the first ones).
    """
    if set(methods) - {Method.FULL_SENTENCE}:
        raise InputError("A table of scores holds full sentences: prefix methods need models.")
    rows = table.rows_of(side for pair in pairs for side in (pair.good, pair.bad))
    sides = table.log_probs[rows].reshape(len(pairs), 2, len(table.models))
    return PairScoring((PairScores(tuple(pairs), table.models, sides),), {}, ())


def _refusal(model: Scorer, method: Method) -> str:
    """Why a model cannot be asked by a method; empty where it can."""
    if method is not Method.FULL_SENTENCE:
        try:
            language_model = require_language_model(model, f"The method {method}")
            language_model.continuation_log_probs(())  # raises where the model reads from both ends
        except ModelError as error:
            return str(error)
    return ""
