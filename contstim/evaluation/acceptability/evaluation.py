"""Deltas of minimal pairs under people and models, and which criteria they meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.acceptability.criteria import DELTAS, Criterion, z_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.evaluation.acceptability.judgements import (
        Judged,
        Judgements,
        MinimalPair,
    )
    from contstim.evaluation.acceptability.scores import SentenceScores

PEOPLE = "people"  # their row among the models'
PUBLISHED_CRITERIA = (Criterion(), *map(Criterion, DELTAS))
_DISCARDED = "discarded by the collection's makers"
_UNJUDGED = "a judgement is missing"
_UNSCORED = "a score is missing"


@dataclass(frozen=True)
class Excluded:
    """A pair that is not evaluated, and why."""

    pair: MinimalPair
    reason: str


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Minimal pairs with their deltas: acceptable less unacceptable sentence.

    Attributes:
        judgements: sentences and pairs.
        models: names.
        sentence_scores: (n_sentences, n_models) z-scores, or scores as given; nan where none.
        sentence_judgements: (n_sentences,), as given or z-scores; nan where none.
        pairs: the pairs that are evaluated.
        excluded: the others.
        criteria: what is counted.
    """

    judgements: Judgements
    models: tuple[str, ...]
    sentence_scores: FloatArray
    sentence_judgements: FloatArray
    pairs: tuple[MinimalPair, ...]
    excluded: tuple[Excluded, ...]
    criteria: tuple[Criterion, ...]

    @cached_property
    def people(self) -> FloatArray:
        """Deltas of human judgements, (n_pairs,)."""
        return self._differences(self.sentence_judgements)

    @cached_property
    def deltas(self) -> FloatArray:
        """Deltas of the models' scores, (n_pairs, n_models)."""
        return self._differences(self.sentence_scores)

    @cached_property
    def disputed(self) -> BoolArray:
        """Pairs (n_pairs,) in which people do not prefer the sentence that experts accept."""
        disputed: BoolArray = self.people <= 0
        return disputed

    def met(self, criterion: Criterion) -> BoolArray:
        """Which pairs meet a criterion, (n_pairs, n_models)."""
        return criterion.met(self.people[:, None], self.deltas)

    def excluded_for(self) -> dict[str, int]:
        """How many pairs are excluded for each reason, in the order in which reasons are asked."""
        reasons = [one.reason for one in self.excluded]
        return {why: reasons.count(why) for why in (_DISCARDED, _UNJUDGED, _UNSCORED)}

    def texts(self, pair: MinimalPair) -> tuple[str, str]:
        """The acceptable and the unacceptable sentence."""
        return tuple(  # type: ignore[return-value]
            self._sentences[name].sentence.text for name in (pair.acceptable, pair.unacceptable)
        )

    @cached_property
    def _sentences(self) -> dict[str, Judged]:
        return {one.id: one for one in self.judgements.sentences}

    def _differences(self, values: FloatArray) -> FloatArray:
        rows = {one.id: row for row, one in enumerate(self.judgements.sentences)}
        sides = [
            [rows[p.acceptable] for p in self.pairs],
            [rows[p.unacceptable] for p in self.pairs],
        ]
        good, bad = np.array(sides, np.int64)
        differences: FloatArray = values[good] - values[bad]
        return differences


def evaluate_acceptability(
    judgements: Judgements,
    scores: SentenceScores,
    criteria: Sequence[Criterion] = PUBLISHED_CRITERIA,
    *,
    scores_as_given: bool = False,
    standardize_people: bool = False,
) -> Evaluation:
    """Deltas of every pair under people and models.

    Scores become z-scores over all sentences that have one, whether or not they are in a pair that
    is evaluated. Pairs that were discarded, and those without both judgements or without scores
    under every model, are excluded and counted.

    Args:
        judgements: sentences and pairs.
        scores: of these sentences.
        criteria: what to count.
        scores_as_given: whether the scores are z-scores already.
        standardize_people: whether judgements become z-scores too; LI-Adger's are some already.

    Raises:
        InputError: no pair is left, a model gives every sentence the same score, or has no name or
            that of the people.
    """
    _refuse_reserved(scores.models)
    people = np.array([one.judgement for one in judgements.sentences])
    _refuse_constant(scores)
    values = scores.values if scores_as_given else z_scores(scores.values)
    ids = np.array([one.id for one in judgements.sentences])
    unjudged = set(ids[np.isnan(people)].tolist())
    unscored = set(ids[np.isnan(values).any(axis=1)].tolist())
    pairs, excluded = [], []
    for pair in judgements.pairs:
        reason = _reason(pair, unjudged, unscored)
        if reason is None:
            pairs.append(pair)
        else:
            excluded.append(Excluded(pair, reason))
    found = Evaluation(
        judgements=judgements,
        models=scores.models,
        sentence_scores=values,
        sentence_judgements=z_scores(people) if standardize_people else people,
        pairs=tuple(pairs),
        excluded=tuple(excluded),
        criteria=tuple(criteria),
    )
    if not pairs:
        why = ", ".join(f"{n:,}: {reason}" for reason, n in found.excluded_for().items() if n)
        raise InputError(f"None of {len(judgements.pairs):,} pairs can be evaluated ({why}).")
    return found


def _refuse_reserved(models: Sequence[str]) -> None:
    """Refuse names under which results would take the place of others."""
    for name in {"", PEOPLE} & set(models):
        raise InputError(
            f"A model cannot be called {name!r}: tables of results have a column of that name. "
            f"Rename its column of scores, or choose others with --column."
        )


def _refuse_constant(scores: SentenceScores) -> None:
    for model, column in zip(scores.models, scores.values.T, strict=True):
        if len(np.unique(column[~np.isnan(column)])) < 2:
            raise InputError(
                f"{model} gives every sentence the same score, or none at all: there is nothing to "
                f"compare."
            )


def _reason(pair: MinimalPair, unjudged: set[str], unscored: set[str]) -> str | None:
    both = {pair.acceptable, pair.unacceptable}
    if pair.discarded:
        return _DISCARDED
    if both & unjudged:
        return _UNJUDGED
    return _UNSCORED if both & unscored else None
