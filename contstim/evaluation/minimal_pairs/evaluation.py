"""Results of an evaluation on minimal pairs, with published results beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.evaluation.minimal_pairs.accuracies import accuracies
from contstim.evaluation.minimal_pairs.curves import curves
from contstim.evaluation.minimal_pairs.pairs import Method
from contstim.evaluation.minimal_pairs.profile import profile
from contstim.evaluation.minimal_pairs.published_results import NOTHING_PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pandas import DataFrame

    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.curves import CurvePoint, LearningCurve
    from contstim.evaluation.minimal_pairs.pair_scores import PairScoring, TieRule
    from contstim.evaluation.minimal_pairs.profile import Bin
    from contstim.evaluation.minimal_pairs.published_results import PublishedResults
    from contstim.models.base import Scorer

PEOPLE = "people"
_AGAIN = " (published)"
_RESERVED = {
    *(PEOPLE, "method", "phenomenon", "paradigm", "paradigms", "pairs", "unread", "identical"),
    *("contrast", "condition", "model"),
}


@dataclass(frozen=True, eq=False)
class MinimalPairEvaluation:
    """Accuracies of models on minimal pairs, ready to be written.

    Attributes:
        scoring: both sides of all pairs under all models.
        ties: how ties count.
        accuracies: by method, people and published models beside.
        profile: accuracy on full sentences against length, perplexity and the like.
        curves: learning curves by method.
        published: what others found.
    """

    scoring: PairScoring
    ties: TieRule
    accuracies: Mapping[Method, Accuracies]
    profile: tuple[Bin, ...]
    curves: Mapping[Method, tuple[LearningCurve, ...]]
    published: PublishedResults

    @property
    def full(self) -> Accuracies | None:
        """Accuracies on full sentences, where these were compared."""
        return self.accuracies.get(Method.FULL_SENTENCE)

    def to_frame(self) -> DataFrame:
        """A row for each method and paradigm; see `Accuracies.to_frame`."""
        from pandas import concat

        frames = {method.value: table.to_frame() for method, table in self.accuracies.items()}
        return concat(frames, names=["method"]).reset_index("method").reset_index(drop=True)


def evaluate_minimal_pairs(
    scoring: PairScoring,
    *,
    ties: TieRule = "wrong",
    published: PublishedResults = NOTHING_PUBLISHED,
    points: Sequence[CurvePoint] = (),
    models: Sequence[Scorer] = (),
) -> MinimalPairEvaluation:
    """Accuracies, profile and learning curves from the scores of pairs.

    Args:
        scoring: see `score_pairs`.
        ties: how ties count.
        published: what to set beside.
        points: the models that learning curves are drawn through.
        models: those that were asked, to know whose scores are log-probabilities.

    Raises:
        InputError: a model is called like a column of the tables.
    """
    taken = {model for scores in scoring.by_method for model in scores.models} & _RESERVED
    if taken:
        raise InputError(
            f"A model cannot be called {min(taken)!r}, which is a column of the tables. Give it "
            "another name."
        )
    relative = {model.name for model in models if not model.convention.is_log_probability}
    by_method, curves_by_method = {}, {}
    bins: list[Bin] = []
    for scores in scoring.by_method:
        table = accuracies(scores, ties)
        if lines := curves(table, points):
            curves_by_method[scores.method] = tuple(lines)
        if scores.method is Method.FULL_SENTENCE:
            bins = profile(scores, ties, relative=relative)
            # published models were asked by full sentences only
            for model, accuracy in published.models.items():
                if not accuracy.keys().isdisjoint(table.paradigms):
                    table = table.with_column(model + _AGAIN, accuracy)
        if not published.people.keys().isdisjoint(table.paradigms):
            shares = {paradigm: people.individual for paradigm, people in published.people.items()}
            table = table.with_column(PEOPLE, shares)
        by_method[scores.method] = table
    return MinimalPairEvaluation(scoring, ties, by_method, tuple(bins), curves_by_method, published)
