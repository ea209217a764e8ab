"""Both sides of minimal pairs under models, and who prefers which."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import ModelError
from contstim.evaluation.minimal_pairs.pairs import Method, having
from contstim.evaluation.scored import (
    LeftOut,
    refused_by,
    score_readable,
    scores_from_table,
)
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

    Bars = Callable[[int], AbstractContextManager[Callable[[Scorer, int], None]]]

TieRule: TypeAlias = Literal["wrong", "half"]

_ROUNDING = 2.0**-21  # of a score: four times what a number in single precision is rounded by


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both sides of pairs under models, by one method.

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
        """Where both sides have the same score, (n_pairs, n_models); also where both are -inf.

        Scores are the same where they differ by no more than single precision rounds. Sums of the
        same terms in another order do: n-gram models that back off have many such pairs, half of
        which would count as right by chance.
        """
        good, bad = self.log_probs[:, 0], self.log_probs[:, 1]
        same: BoolArray = good == bad
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
        found: FloatArray = (self.margins > 0).astype(np.float64)
        if ties == "half":
            found[self.ties] = 0.5
        return found


@dataclass(frozen=True)
class Refusal:
    """A model that cannot be asked in one way, and why."""

    model: str
    method: Method
    reason: str


@dataclass(frozen=True)
class Comparisons:
    """What was compared, who could not be asked, and which sentences could not be read."""

    made: tuple[Comparison, ...]
    refusals: tuple[Refusal, ...]
    left_out: tuple[LeftOut, ...]


def compare(
    models: Sequence[Scorer],
    pairs: Sequence[MinimalPair],
    methods: Sequence[Method],
    *,
    store: Store | None = None,
    bars: Bars | None = None,
) -> Comparisons:
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
    made: list[Comparison] = []
    refusals: list[Refusal] = []
    left_out: list[LeftOut] = []
    for method in methods:
        some = having(pairs, method)
        able, refused = _able(models, method) if some else ([], [])
        refusals += refused
        if able:
            ask = _full if method is Method.FULL_SENTENCE else _prefix
            comparison, unread = ask(able, some, method, store, bars)
            made += [comparison] if comparison.pairs else []
            left_out += unread
    return Comparisons(tuple(made), tuple(refusals), tuple(dict.fromkeys(left_out)))


def compare_scores(table: ScoreTable, pairs: Sequence[MinimalPair]) -> Comparisons:
    """Full sentences, from scores that are known.

    Raises:
        ScoreError: the table lacks sentences (lists the first ones).
    """
    scores = scores_from_table(table, [side for pair in pairs for side in (pair.good, pair.bad)])
    return Comparisons((_from_scores(scores, pairs),), (), ())


def _able(models: Sequence[Scorer], method: Method) -> tuple[list[Scorer], list[Refusal]]:
    if method is Method.FULL_SENTENCE:
        return list(models), []
    able, refusals = [], []
    for model in models:
        try:
            language_model = require_language_model(model, f"The method {method}")
            language_model.continuation_log_probs(())
        except ModelError as error:
            refusals.append(Refusal(model.name, method, str(error)))
        else:
            able.append(model)
    return able, refusals


def _full(
    models: Sequence[Scorer],
    pairs: Sequence[MinimalPair],
    _method: Method,
    store: Store | None,
    bars: Bars | None,
) -> tuple[Comparison, list[LeftOut]]:
    sentences = list(dict.fromkeys(side for pair in pairs for side in (pair.good, pair.bad)))
    with bars(len(sentences)) if bars else nullcontext() as progress:
        table, unread = score_readable(models, sentences, store=store, progress=progress)
    return _from_scores(table, pairs), unread


def _from_scores(table: ScoreTable, pairs: Sequence[MinimalPair]) -> Comparison:
    rows = table.rows
    kept = [pair for pair in pairs if pair.good in rows and pair.bad in rows]
    places = [[rows[pair.good], rows[pair.bad]] for pair in kept]
    scores = table.log_probs[np.array(places, np.int64).reshape(-1, 2)]  # (n, 2, m)
    return Comparison(Method.FULL_SENTENCE, tuple(kept), table.models, scores, _unread(pairs, kept))


def _prefix(
    models: Sequence[Scorer],
    pairs: Sequence[MinimalPair],
    method: Method,
    store: Store | None,
    bars: Bars | None,
) -> tuple[Comparison, list[LeftOut]]:
    asked = [pair.continuations(method) or () for pair in pairs]
    sentences = list(dict.fromkeys(one.sentence for both in asked for one in both))
    unread = refused_by(models, sentences)
    refused = {one.sentence for one in unread}
    kept = [i for i, both in enumerate(asked) if not any(c.sentence.text in refused for c in both)]
    texts = [one for i in kept for one in asked[i]]
    with bars(len(set(texts))) if bars else nullcontext() as progress:
        scores = score_continuations(models, texts, store=store, progress=progress)
    some = [pairs[i] for i in kept]
    names = tuple(model.name for model in models)
    sides = scores.reshape(len(some), 2, len(models))
    return Comparison(method, tuple(some), names, sides, _unread(pairs, some)), unread


def _unread(pairs: Sequence[MinimalPair], kept: Sequence[MinimalPair]) -> Counter[str]:
    return Counter(pair.paradigm for pair in pairs) - Counter(pair.paradigm for pair in kept)
