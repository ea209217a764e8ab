"""Differences within judged pairs under people and models, and the criteria that they meet."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.settings import ACCEPTABILITY, AcceptabilitySettings
from contstim.files.tables import frame_of
from contstim.items.correlation import pearson, pearson_matrix, spearman

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pandas import DataFrame

    from contstim.evaluation.acceptability import JudgedPair, Judgements
    from contstim.evaluation.judged_scores import JudgedScores
    from contstim.files.arrays import BoolArray, FloatArray, IntArray

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


def criterion_met(delta: float | None, people: FloatArray, model: FloatArray) -> BoolArray:
    """Mask of the pairs that meet the BLiMP criterion, or the Acceptability Delta Criterion (ADC).

    A delta is the score of the acceptable sentence less that of the unacceptable one. The BLiMP
    criterion asks for a positive delta of the model (Warstadt et al. 2020). The ADC asks that the
    deltas of people and model have the same sign and differ by less than δ (Vázquez Martínez 2021).

    Args:
        delta: δ; None for the BLiMP criterion.
        people: deltas of human judgements, broadcast against the models'.
        model: deltas of a model's or several models' z-scores.

    Raises:
        InputError: δ is not above 0.
    """
    if delta is None:
        return model > 0
    if not 0 < delta < np.inf:
        raise InputError(f"`delta` must be above 0, not {delta}.")
    same = np.sign(people) == np.sign(model)  # two deltas of zero have the same sign
    met: BoolArray = same & (np.abs(people - model) < delta)
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
        people: deltas of human judgements, (n_pairs,).
        deltas: of the models' scores, (n_pairs, n_models).
        met: masks of the pairs that meet each criterion, (n_pairs, n_models), by its name: `blimp`,
            or such as `adc-0.5`.
    """

    judgements: Judgements
    scores: JudgedScores
    settings: AcceptabilitySettings
    sentence_scores: FloatArray
    sentence_judgements: FloatArray
    pairs: tuple[JudgedPair, ...]
    excluded: tuple[tuple[JudgedPair, str], ...]
    people: FloatArray
    deltas: FloatArray
    met: Mapping[str, BoolArray]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return self.scores.models

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that judgements and scores were read from."""
        return (*self.judgements.files, *self.scores.files)

    @property
    def disputed(self) -> BoolArray:
        """Pairs (n_pairs,) in which people do not prefer the sentence that experts accept."""
        return np.less_equal(self.people, 0)

    def excluded_for(self) -> dict[str, int]:
        """Number of pairs excluded for each reason, in the order in which reasons are asked."""
        reasons = Counter(reason for _, reason in self.excluded)
        return {why: reasons[why] for why in _EXCLUDED}

    def pair_columns(self, rows: Sequence[int]) -> dict[str, list[Any]]:
        """Columns about some pairs, and the judgements of people and experts."""
        text, pairs = self.judgements.sentences, [self.pairs[row] for row in rows]
        return {
            "source": [pair.source for pair in pairs],
            "phenomenon": [pair.phenomenon for pair in pairs],
            "acceptable_id": [pair.acceptable for pair in pairs],
            "unacceptable_id": [pair.unacceptable for pair in pairs],
            "acceptable": [text[pair.acceptable].text for pair in pairs],
            "unacceptable": [text[pair.unacceptable].text for pair in pairs],
            "delta_people": self.people[rows].tolist(),
            "people_dispute_experts": self.disputed[rows].astype(int).tolist(),
        }

    def table(self) -> dict[str, list[Any]]:
        """A row for each pair: `pair_columns`, every model's delta, and the criteria it meets."""
        columns = self.pair_columns(range(len(self.pairs)))
        by_name = {"delta": self.deltas, **{n: met.astype(int) for n, met in self.met.items()}}
        for name, values in by_name.items():  # (n_pairs, n_models) each
            for model, column in zip(self.models, values.T.tolist(), strict=True):
                columns[f"{name} {model}"] = column
        return columns

    def to_frame(self) -> DataFrame:
        """Table of pairs.csv as a data frame; see `table`."""
        return frame_of(self.table())


def evaluate_acceptability(
    judgements: Judgements,
    scores: JudgedScores,
    settings: AcceptabilitySettings = ACCEPTABILITY,
) -> AcceptabilityEvaluation:
    """Deltas of every pair under people and models, and whether they meet BLiMP's criterion or ADC.

    Scores become z-scores over all sentences that have one, whether or not they are in a pair that
    is evaluated. Pairs that were discarded, and those without both judgements or without scores
    under every model, are excluded and counted.

    Args:
        judgements: sentences and pairs.
        scores: of these sentences.
        settings: each δ of the ADC; whether the scores are z-scores already, and judgements become
            some too, as LI-Adger's are already.

    Raises:
        InputError: no pair is left, a δ is not above 0, a model gives every sentence the same
            score, or has no name or that of the people.
    """
    for model, column in zip(scores.models, scores.values.T, strict=True):
        if model in ("", PEOPLE):
            raise InputError(f"A model cannot be called {model!r}. Rename its column of scores.")
        if len(np.unique(column[~np.isnan(column)])) < 2:
            raise InputError(f"{model} gives every sentence the same score, or none at all.")
    # over all sentences, also those of excluded pairs, as published
    values = scores.values if settings.scores_as_given else z_scores(scores.values)
    people = judgements.values
    row_of = {name: row for row, name in enumerate(judgements.sentences)}
    unscored: BoolArray = np.logical_or.reduce(np.isnan(values), axis=1)
    lacking = np.isnan(people), unscored
    included, excluded, rows = [], [], []
    for pair in judgements.pairs:
        both = [row_of[pair.acceptable], row_of[pair.unacceptable]]
        # each pair has one reason, in this order, so that the counts of `excluded_for` add up
        asked = (pair.discarded, *(bool(lacks[both].any()) for lacks in lacking))
        if any(asked):
            excluded.append((pair, _EXCLUDED[asked.index(True)]))
        else:
            included.append(pair)
            rows.append(both)
    if settings.human_z_scores:
        people = z_scores(people)
    # of acceptable less those of unacceptable sentences
    good, bad = np.array(rows, np.int64).reshape(-1, 2).T
    deltas, differences = values[good] - values[bad], people[good] - people[bad]
    criteria = {"blimp": None, **{f"adc-{delta:g}": delta for delta in settings.delta}}
    evaluation = AcceptabilityEvaluation(
        judgements=judgements,
        scores=scores,
        settings=settings,
        sentence_scores=values,
        sentence_judgements=people,
        pairs=tuple(included),
        excluded=tuple(excluded),
        people=differences,
        deltas=deltas,
        met={n: criterion_met(d, differences[:, None], deltas) for n, d in criteria.items()},
    )
    if not included:
        why = ", ".join(f"{n:,}: {reason}" for reason, n in evaluation.excluded_for().items() if n)
        raise InputError(f"None of {len(judgements.pairs):,} pairs can be evaluated ({why}).")
    return evaluation


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
            for criterion, passed in evaluation.met.items():
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


class ScoredSentences(Protocol):
    """Scores and judgements of the same sentences."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""

    @property
    def sentence_scores(self) -> FloatArray:
        """Shape (n_sentences, n_models); nan if there is none."""

    @property
    def sentence_judgements(self) -> FloatArray:
        """Shape (n_sentences,); nan if there is none."""


def fits(evaluation: ScoredSentences) -> Iterator[Row]:
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
        for criterion, met in evaluation.met.items()
        for (i, passes), (j, fails) in permutations(models, 2)
    }


def criteria_apart(evaluation: AcceptabilityEvaluation) -> Apart:
    """Pairs, by number, that meet the BLiMP criterion and fail the ADC at a δ, or reversely.

    By the model, and the criteria that they pass and fail.
    """
    met = evaluation.met
    return {
        (model, passes, fails): np.flatnonzero(met[passes][:, column] & ~met[fails][:, column])
        for column, model in enumerate(evaluation.models)
        for name in met
        if name != "blimp"
        for passes, fails in (("blimp", name), (name, "blimp"))
    }
