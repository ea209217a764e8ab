"""Scores of both sides of minimal pairs, and which side a model prefers."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import ModelError
from contstim.evaluation.benchmark_scores import (
    LeftOut,
    refused_by,
    score_readable,
    scores_from_table,
)
from contstim.evaluation.minimal_pairs.pairs import Method, applicable
from contstim.models.base import require_language_model
from contstim.models.scoring import score_continuations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from contstim.arrays import BoolArray, FloatArray
    from contstim.evaluation.minimal_pairs.pairs import MinimalPair
    from contstim.models.base import Scorer
    from contstim.scores import ScoreTable
    from contstim.store import Store

    ProgressBars = Callable[[int], AbstractContextManager[Callable[[Scorer, int], None]]]

TieRule: TypeAlias = Literal["wrong", "half"]

_ROUNDING = 2.0**-21  # relative: four times the rounding of a number in single precision


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores of both sides of pairs by one method.

    Attributes:
        method: what is compared.
        pairs: those that every model can read.
        models: names.
        log_probs: (n_pairs, 2, n_models), nats; the good side comes first.
        unread: how many pairs of each paradigm were left out, because a model cannot read them.
    """

    method: Method
    pairs: tuple[MinimalPair, ...]
    models: tuple[str, ...]
    log_probs: FloatArray
    unread: Counter[str]

    @property
    def ties(self) -> BoolArray:
        """Mask of ties, (n_pairs, n_models): both sides have the same score, or both are -inf.

        Scores are the same where they differ by no more than single precision rounds. Sums of the
        same terms in another order do: n-gram models that back off have many such pairs, half of
        which would count as right by chance.
        """
        good, bad = self.log_probs[:, 0], self.log_probs[:, 1]
        same: BoolArray = good == bad  # which -inf and -inf are, although their difference is nan
        finite = np.isfinite(good) & np.isfinite(bad)
        size = np.maximum(np.abs(good), np.abs(bad))[finite]
        same[finite] |= np.abs(good[finite] - bad[finite]) <= _ROUNDING * size
        return same

    @property
    def margins(self) -> FloatArray:
        """Log-probability of the good side less that of the bad, (n_pairs, n_models); 0 if tied."""
        good, bad = self.log_probs[:, 0], self.log_probs[:, 1]
        margins = np.zeros(good.shape)
        return np.subtract(good, bad, out=margins, where=~self.ties)

    def correct(self, ties: TieRule = "wrong") -> FloatArray:
        """1 where the good side has the higher score, else 0; a tie is wrong, or counts one half.

        Shape (n_pairs, n_models).
        """
        points: FloatArray = (self.margins > 0).astype(np.float64)
        if ties == "half":
            points[self.ties] = 0.5
        return points


@dataclass(frozen=True)
class MethodRefusal:
    """A model that cannot be asked by a method, and why."""

    model: str
    method: Method
    reason: str


@dataclass(frozen=True)
class PairScoring:
    """Scores of pairs by every method, refusals, and sentences that a model cannot read."""

    by_method: tuple[PairScores, ...]
    refusals: tuple[MethodRefusal, ...]
    left_out: tuple[LeftOut, ...]


def score_pairs(
    models: Sequence[Scorer],
    pairs: Sequence[MinimalPair],
    methods: Sequence[Method],
    *,
    store: Store | None = None,
    bars: ProgressBars | None = None,
) -> PairScoring:
    """Score both sides of pairs by each method that they and the models allow.

    A sentence is scored once, however many pairs hold it. A pair with a sentence that one model
    cannot read is left out for all of them.

    Args:
        models: who is asked.
        pairs: minimal pairs.
        methods: what to compare; those that apply to no pair are passed over.
        store: where scores are kept between runs.
        bars: makes the context in which progress on so many texts is shown.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    by_method: list[PairScores] = []
    refusals: list[MethodRefusal] = []
    left_out: list[LeftOut] = []
    for method in methods:
        suited = applicable(pairs, method)
        able, refused = _able(models, method) if suited else ([], [])
        refusals += refused
        if not able:
            continue
        if method is Method.FULL_SENTENCE:
            # each sentence once, in the order of the pairs
            sentences = list(dict.fromkeys(side for pair in suited for side in pair.sides))
            with bars(len(sentences)) if bars else nullcontext() as progress:
                table, unread = score_readable(able, sentences, store=store, progress=progress)
            scores = _from_table(table, suited)
        else:
            scores, unread = _by_prefix(able, suited, method, store, bars)
        by_method += [scores] if scores.pairs else []
        left_out += unread
    return PairScoring(tuple(by_method), tuple(refusals), tuple(dict.fromkeys(left_out)))


def pair_scores_from_table(table: ScoreTable, pairs: Sequence[MinimalPair]) -> PairScoring:
    """Full sentences, scored before.

    Raises:
        ScoreError: the table lacks sentences (lists the first ones).
    """
    scores = scores_from_table(table, [side for pair in pairs for side in pair.sides])
    return PairScoring((_from_table(scores, pairs),), (), ())


def _able(models: Sequence[Scorer], method: Method) -> tuple[list[Scorer], list[MethodRefusal]]:
    """The models that can be asked by a method, and why the others cannot."""
    if method is Method.FULL_SENTENCE:
        return list(models), []
    able, refusals = [], []
    for model in models:
        try:
            language_model = require_language_model(model, f"The method {method}")
            language_model.continuation_log_probs(())  # raises where the model reads from both ends
        except ModelError as error:
            refusals.append(MethodRefusal(model.name, method, str(error)))
        else:
            able.append(model)
    return able, refusals


def _from_table(table: ScoreTable, pairs: Sequence[MinimalPair]) -> PairScores:
    """The rows of a table put side by side; pairs with a sentence that it lacks are unread."""
    rows = table.rows
    readable = [pair for pair in pairs if all(side in rows for side in pair.sides)]
    places = [[rows[side] for side in pair.sides] for pair in readable]
    sides = table.log_probs[np.array(places, np.int64).reshape(-1, 2)]  # (n_pairs, 2, n_models)
    unread = _count_unread(pairs, readable)
    return PairScores(Method.FULL_SENTENCE, tuple(readable), table.models, sides, unread)


def _by_prefix(
    models: Sequence[Scorer],
    pairs: Sequence[MinimalPair],
    method: Method,
    store: Store | None,
    bars: ProgressBars | None,
) -> tuple[PairScores, list[LeftOut]]:
    sides_of = {pair: pair.continuations(method) or () for pair in pairs}
    sentences = list(dict.fromkeys(c.sentence for sides in sides_of.values() for c in sides))
    unread = refused_by(models, sentences)
    refused = {omission.sentence for omission in unread}
    # a pair is left out for every model where one cannot read a side
    readable = [
        pair for pair in pairs if all(c.sentence.text not in refused for c in sides_of[pair])
    ]
    texts = [continuation for pair in readable for continuation in sides_of[pair]]
    with bars(len(set(texts))) if bars else nullcontext() as progress:
        scores = score_continuations(models, texts, store=store, progress=progress)
    names = tuple(model.name for model in models)
    sides = scores.reshape(len(readable), 2, len(models))  # good and bad alternate in `texts`
    return PairScores(method, tuple(readable), names, sides, _count_unread(pairs, readable)), unread


def _count_unread(pairs: Sequence[MinimalPair], readable: Sequence[MinimalPair]) -> Counter[str]:
    return Counter(pair.paradigm for pair in pairs) - Counter(pair.paradigm for pair in readable)
