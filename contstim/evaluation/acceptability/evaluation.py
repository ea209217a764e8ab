"""Deltas of minimal pairs under people and models, and which criteria they meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.acceptability.criteria import DELTAS, Criterion, z_scores
from contstim.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandas import DataFrame

    from contstim.arrays import BoolArray, FloatArray
    from contstim.evaluation.acceptability.judgements import (
        JudgedPair,
        Judgements,
    )
    from contstim.evaluation.acceptability.sentence_scores import SentenceScores

PEOPLE = "people"  # their row among the models'
PUBLISHED_CRITERIA = (Criterion(), *map(Criterion, DELTAS))
_DISCARDED = "discarded by the collection's makers"
_UNJUDGED = "a judgement is missing"
_UNSCORED = "a score is missing"


@dataclass(frozen=True)
class ExcludedPair:
    """A pair that is not evaluated, and why."""

    pair: JudgedPair
    reason: str


@dataclass(frozen=True, eq=False)
class AcceptabilityEvaluation:
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
    pairs: tuple[JudgedPair, ...]
    excluded: tuple[ExcludedPair, ...]
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
        """Mask of the pairs that meet a criterion, (n_pairs, n_models)."""
        return criterion.met(self.people[:, None], self.deltas)

    def excluded_for(self) -> dict[str, int]:
        """Number of pairs excluded for each reason, in the order in which reasons are asked."""
        reasons = [excluded.reason for excluded in self.excluded]
        return {why: reasons.count(why) for why in (_DISCARDED, _UNJUDGED, _UNSCORED)}

    def pair_columns(self, rows: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Columns about pairs, and the judgements of people and experts; all pairs by default."""
        chosen = list(range(len(self.pairs)) if rows is None else rows)
        text = {judged.id: judged.sentence.text for judged in self.judgements.sentences}
        pairs = [self.pairs[row] for row in chosen]
        return {
            "source": [pair.source for pair in pairs],
            "phenomenon": [pair.phenomenon for pair in pairs],
            "acceptable_id": [pair.acceptable for pair in pairs],
            "unacceptable_id": [pair.unacceptable for pair in pairs],
            "acceptable": [text[pair.acceptable] for pair in pairs],
            "unacceptable": [text[pair.unacceptable] for pair in pairs],
            "delta_people": self.people[chosen].tolist(),
            "people_dispute_experts": self.disputed[chosen].astype(int).tolist(),
        }

    def pairs_table(self) -> dict[str, list[Any]]:
        """A row for each pair: `pair_columns`, every model's delta, and the criteria it meets."""
        columns = self.pair_columns()
        for column, model in enumerate(self.models):
            columns[f"delta {model}"] = self.deltas[:, column].tolist()
        for criterion in self.criteria:
            met = self.met(criterion).astype(int)
            for column, model in enumerate(self.models):
                columns[f"{criterion.name} {model}"] = met[:, column].tolist()
        return columns

    def to_frame(self) -> DataFrame:
        """Table of pairs.csv as a data frame; see `pairs_table`."""
        return frame_of(self.pairs_table())

    def _differences(self, values: FloatArray) -> FloatArray:
        """Values of acceptable less those of unacceptable sentences, by pair."""
        row_of = {judged.id: row for row, judged in enumerate(self.judgements.sentences)}
        # (n_pairs,) rows of `values`, which is (n_sentences,) or (n_sentences, n_models)
        good = np.array([row_of[pair.acceptable] for pair in self.pairs], np.int64)
        bad = np.array([row_of[pair.unacceptable] for pair in self.pairs], np.int64)
        differences: FloatArray = values[good] - values[bad]
        return differences


def evaluate_acceptability(
    judgements: Judgements,
    scores: SentenceScores,
    criteria: Sequence[Criterion] = PUBLISHED_CRITERIA,
    *,
    scores_as_given: bool = False,
    standardize_people: bool = False,
) -> AcceptabilityEvaluation:
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
    _check_models(scores)
    people = np.array([judged.judgement for judged in judgements.sentences])
    # over all sentences, also those of excluded pairs, as published
    values = scores.values if scores_as_given else z_scores(scores.values)
    ids = np.array([judged.id for judged in judgements.sentences])
    unjudged = set(ids[np.isnan(people)].tolist())
    unscored = set(ids[np.isnan(values).any(axis=1)].tolist())
    pairs, excluded = [], []
    # each pair has one reason, in this order, so that the counts of `excluded_for` add up
    for pair in judgements.pairs:
        both = {pair.acceptable, pair.unacceptable}
        if pair.discarded:
            excluded.append(ExcludedPair(pair, _DISCARDED))
        elif both & unjudged:
            excluded.append(ExcludedPair(pair, _UNJUDGED))
        elif both & unscored:
            excluded.append(ExcludedPair(pair, _UNSCORED))
        else:
            pairs.append(pair)
    evaluation = AcceptabilityEvaluation(
        judgements=judgements,
        models=scores.models,
        sentence_scores=values,
        sentence_judgements=z_scores(people) if standardize_people else people,
        pairs=tuple(pairs),
        excluded=tuple(excluded),
        criteria=tuple(criteria),
    )
    if not pairs:
        why = ", ".join(f"{n:,}: {reason}" for reason, n in evaluation.excluded_for().items() if n)
        raise InputError(f"None of {len(judgements.pairs):,} pairs can be evaluated ({why}).")
    return evaluation


def _check_models(scores: SentenceScores) -> None:
    """Refuse names that are columns of the results, and scores that do not vary."""
    for name in {"", PEOPLE} & set(scores.models):
        raise InputError(
            f"A model cannot be called {name!r}: tables of results have a column of that name. "
            f"Rename its column of scores, or choose others with --column."
        )
    for model, column in zip(scores.models, scores.values.T, strict=True):
        if len(np.unique(column[~np.isnan(column)])) < 2:
            raise InputError(
                f"{model} gives every sentence the same score, or none at all: there is nothing to "
                f"compare."
            )
