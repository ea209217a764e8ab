"""Differences within judged pairs under people and models, and the criteria that they meet."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.correlation import pearson, pearson_matrix, spearman
from contstim.errors import InputError
from contstim.evaluation.settings import ACCEPTABILITY, AcceptabilitySettings
from contstim.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pandas import DataFrame

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.evaluation.acceptability import JudgedPair, Judgements
    from contstim.evaluation.judged_scores import JudgedScores

    Row = dict[str, Any]
    Apart = Mapping[tuple[str, str, str], IntArray]

PEOPLE = "people"  # their row among the models'
_EXCLUDED = (
    "discarded by the collection's makers",
    "a judgement is missing",
    "a score is missing",
)


def z_scores(values: FloatArray) -> FloatArray:
    """Values less their mean, divided by their population standard deviation, column by column.

    Args:
        values: (n,) or (n, m); nan where there is none, and then nan comes back.

    Raises:
        InputError: all values of a column are the same.
    """
    deviations = np.nanstd(values, axis=0)  # of the population: divided by n, not n - 1
    if not np.all(deviations > 0):
        raise InputError("All values are the same: z-scores are undefined.")
    scores: FloatArray = (values - np.nanmean(values, axis=0)) / deviations
    return scores


@dataclass(frozen=True)
class Criterion:
    """The BLiMP criterion, or the Acceptability Delta Criterion (ADC) with its δ.

    A delta is the score of the acceptable sentence less that of the unacceptable one. The BLiMP
    criterion asks for a positive delta of the model (Warstadt et al. 2020). The ADC asks that the
    deltas of people and model have the same sign and differ by less than δ (Vázquez Martínez 2021).

    Attributes:
        delta: δ, above 0; None for the BLiMP criterion.

    Raises:
        InputError: δ is not above 0.
    """

    delta: float | None = None

    def __post_init__(self) -> None:
        if self.delta is not None and not 0 < self.delta < np.inf:
            raise InputError(f"`delta` must be above 0, not {self.delta}.")

    @property
    def name(self) -> str:
        """Name in tables: `blimp`, or such as `adc-0.5`."""
        return "blimp" if self.delta is None else f"adc-{self.delta:g}"

    def met(self, people: FloatArray, model: FloatArray) -> BoolArray:
        """Mask of the pairs that meet it.

        Args:
            people: deltas of human judgements, broadcast against the models'.
            model: deltas of a model's or several models' z-scores.
        """
        if self.delta is None:
            return model > 0
        same = np.sign(people) == np.sign(model)  # two deltas of zero have the same sign
        met: BoolArray = same & (np.abs(people - model) < self.delta)
        return met


@dataclass(frozen=True, eq=False)
class AcceptabilityEvaluation:
    """Minimal pairs with their deltas: acceptable less unacceptable sentence.

    Attributes:
        judgements: sentences and pairs.
        scores: of the sentences, as given.
        settings: what was chosen.
        sentence_scores: (n_sentences, n_models) z-scores, or scores as given; nan where none.
        sentence_judgements: (n_sentences,), as given or z-scores; nan where none.
        pairs: the pairs that are evaluated.
        excluded: the others, and why.
        criteria: what is counted.
    """

    judgements: Judgements
    scores: JudgedScores
    settings: AcceptabilitySettings
    sentence_scores: FloatArray
    sentence_judgements: FloatArray
    pairs: tuple[JudgedPair, ...]
    excluded: tuple[tuple[JudgedPair, str], ...]
    criteria: tuple[Criterion, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return self.scores.models

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that judgements and scores were read from."""
        return (*self.judgements.files, *self.scores.files)

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
        return np.less_equal(self.people, 0)

    def met(self, criterion: Criterion) -> BoolArray:
        """Mask of the pairs that meet a criterion, (n_pairs, n_models)."""
        return criterion.met(self.people[:, None], self.deltas)

    @cached_property
    def met_by_name(self) -> dict[str, BoolArray]:
        """The masks of `met` by the names of the criteria."""
        return {criterion.name: self.met(criterion) for criterion in self.criteria}

    def excluded_for(self) -> dict[str, int]:
        """Number of pairs excluded for each reason, in the order in which reasons are asked."""
        reasons = Counter(reason for _, reason in self.excluded)
        return {why: reasons[why] for why in _EXCLUDED}

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

    def table(self) -> dict[str, list[Any]]:
        """A row for each pair: `pair_columns`, every model's delta, and the criteria it meets."""
        columns = self.pair_columns()
        by_name = {"delta": self.deltas, **{n: m.astype(int) for n, m in self.met_by_name.items()}}
        for name, values in by_name.items():  # (n_pairs, n_models) each
            for model, column in zip(self.models, values.T.tolist(), strict=True):
                columns[f"{name} {model}"] = column
        return columns

    def to_frame(self) -> DataFrame:
        """Table of pairs.csv as a data frame; see `table`."""
        return frame_of(self.table())

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
    scores: JudgedScores,
    settings: AcceptabilitySettings = ACCEPTABILITY,
    criteria: Sequence[Criterion] | None = None,
) -> AcceptabilityEvaluation:
    """Deltas of every pair under people and models.

    Scores become z-scores over all sentences that have one, whether or not they are in a pair that
    is evaluated. Pairs that were discarded, and those without both judgements or without scores
    under every model, are excluded and counted.

    Args:
        judgements: sentences and pairs.
        scores: of these sentences.
        settings: whether the scores are z-scores already, and judgements become some too, as
            LI-Adger's are already.
        criteria: what to count; by default the BLiMP criterion, and the ADC at each δ of the
            settings.

    Raises:
        InputError: no pair is left, a model gives every sentence the same score, or has no name or
            that of the people.
    """
    _check_models(scores)
    people = np.array([judged.judgement for judged in judgements.sentences])
    # over all sentences, also those of excluded pairs, as published
    values = scores.values if settings.scores_as_given else z_scores(scores.values)
    ids = np.array([judged.id for judged in judgements.sentences])
    unjudged = set(ids[np.isnan(people)].tolist())
    unscored = set(ids[np.isnan(values).any(axis=1)].tolist())
    included, excluded = [], []
    for pair in judgements.pairs:
        both = {pair.acceptable, pair.unacceptable}
        # each pair has one reason, in this order, so that the counts of `excluded_for` add up
        asked = zip(_EXCLUDED, (pair.discarded, both & unjudged, both & unscored), strict=True)
        reason = next((why for why, holds in asked if holds), "")
        if reason:
            excluded.append((pair, reason))
        else:
            included.append(pair)
    evaluation = AcceptabilityEvaluation(
        judgements=judgements,
        scores=scores,
        settings=settings,
        sentence_scores=values,
        sentence_judgements=z_scores(people) if settings.human_z_scores else people,
        pairs=tuple(included),
        excluded=tuple(excluded),
        criteria=tuple(criteria or (Criterion(), *map(Criterion, settings.delta))),
    )
    if not included:
        why = ", ".join(f"{n:,}: {reason}" for reason, n in evaluation.excluded_for().items() if n)
        raise InputError(f"None of {len(judgements.pairs):,} pairs can be evaluated ({why}).")
    return evaluation


def _check_models(scores: JudgedScores) -> None:
    """Refuse names that are columns of the results, and scores that do not vary."""
    for model, column in zip(scores.models, scores.values.T, strict=True):
        if model in ("", PEOPLE):
            raise InputError(f"A model cannot be called {model!r}. Rename its column of scores.")
        if len(np.unique(column[~np.isnan(column)])) < 2:
            raise InputError(f"{model} gives every sentence the same score, or none at all.")


def criterion_shares(evaluation: AcceptabilityEvaluation, by: str = "") -> Iterator[Row]:
    """Shares of pairs that meet each criterion, a row for each group, model and criterion.

    `source` is empty where there is one only, `phenomenon` for all; `share` is `met / pairs`, and
    `disputed` the number of pairs that people judge the other way round than experts.

    Args:
        evaluation: of pairs.
        by: `phenomenon` or `source` for a row each, in the order of their first pair; else all.
    """
    groups: dict[tuple[str, str], list[int]] = {}  # (source, phenomenon) -> rows of pairs
    for row, pair in enumerate(evaluation.pairs):
        name = (pair.source if by else "", pair.phenomenon if by == "phenomenon" else "")
        groups.setdefault(name, []).append(row)
    for (source, phenomenon), rows in groups.items():
        for column, model in enumerate(evaluation.models):
            for criterion, passed in evaluation.met_by_name.items():
                met = int(passed[rows, column].sum())
                yield {
                    "source": source,
                    "phenomenon": phenomenon,
                    "model": model,
                    "criterion": criterion,
                    "pairs": len(rows),
                    "met": met,
                    "share": met / len(rows),
                    "disputed": int(evaluation.disputed[rows].sum()),
                }


def delta_correlations(
    evaluation: AcceptabilityEvaluation,
) -> tuple[tuple[str, ...], FloatArray]:
    """Names, people first, and Pearson's r of their deltas over pairs, (n, n).

    It is nan where deltas are constant, and where there are fewer than two pairs.
    """
    names = (PEOPLE, *evaluation.models)
    return names, pearson_matrix(np.column_stack([evaluation.people, evaluation.deltas]))


def fits(evaluation: AcceptabilityEvaluation) -> Iterator[Row]:
    """Scores against judgements, a row for each model, over all sentences that have both.

    Slope and intercept are of the line by least squares, judgement units for a unit of score;
    `pearson` and `spearman` are correlations, nan where one of the two does not vary.
    """
    from scipy.stats import linregress

    judgements = evaluation.sentence_judgements
    for model, scores in zip(evaluation.models, evaluation.sentence_scores.T, strict=True):
        both = ~(np.isnan(scores) | np.isnan(judgements))  # (n_sentences,)
        x, y = scores[both], judgements[both]
        r, slope, intercept = pearson(x, y), math.nan, math.nan
        if not math.isnan(r):  # else a column does not vary, and no line is the best
            line = linregress(x, y)
            slope, intercept = float(line.slope), float(line.intercept)
        yield {
            "model": model,
            "sentences": len(x),
            "slope": slope,
            "intercept": intercept,
            "pearson": r,
            "spearman": spearman(x, y),
        }


def models_apart(evaluation: AcceptabilityEvaluation) -> Apart:
    """Pairs, by number, that meet a criterion under one model and not under another.

    By the criterion, and the models under which they pass and fail; for every two models.
    """
    models = tuple(enumerate(evaluation.models))
    return {
        (criterion, passes, fails): np.flatnonzero(met[:, i] & ~met[:, j])
        for criterion, met in evaluation.met_by_name.items()
        for (i, passes), (j, fails) in permutations(models, 2)
    }


def criteria_apart(evaluation: AcceptabilityEvaluation) -> Apart:
    """Pairs, by number, that meet the BLiMP criterion and fail the ADC at a δ, or reversely.

    By the model, and the criteria that they pass and fail. Where there is no BLiMP criterion, each
    δ is compared with each other one.
    """
    met = evaluation.met_by_name
    rivals = list(combinations(met, 2))
    if "blimp" in met:
        rivals = [("blimp", name) for name in met if name != "blimp"]
    return {
        (model, passes, fails): np.flatnonzero(met[passes][:, column] & ~met[fails][:, column])
        for column, model in enumerate(evaluation.models)
        for pair in rivals
        for passes, fails in (pair, pair[::-1])
    }
