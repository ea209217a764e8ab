"""Compare models with people on judged minimal pairs: deltas, criteria, correlations, and a page.

A delta is a difference within a pair. A model's delta is its score of the acceptable sentence minus
its score of the unacceptable sentence. People's delta is the same difference of judgements. The
letter δ denotes the threshold of a criterion.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.acceptability import ACCEPTABILITY, AcceptabilitySettings
from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.evaluation.judged_scores import ScoredJudgements
from contstim.evaluation.scores import LeftOut
from contstim.files.tables import columns_of, frame_of
from contstim.items.correlation import pearson, pearson_matrix, spearman
from contstim.reporting.canvas import BLUE, ORANGE, heat_map, panels, widest
from contstim.reporting.report import Heading, Paragraph, Table, short_names
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from contstim.evaluation.acceptability import JudgedPair, Judgements
    from contstim.evaluation.folder import Columns, Row
    from contstim.evaluation.judged_scores import JudgedScores
    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.reporting.report import Part

    Apart = Mapping[tuple[str, str, str], IntArray]


PEOPLE = "people"  # name of a row and a column in the table of correlations
_EXCLUDED = (
    "discarded by the authors of the collection",
    "a judgement is missing",
    "a score is missing",
)


def z_scores(values: FloatArray) -> FloatArray:
    """Standardize columns: subtract the mean, divide by the population standard deviation.

    Values have shape (n,) or (n, m); nan is ignored and returned as nan.

    Raises:
        InputError: if all values of a column are equal.
    """
    deviations = np.nanstd(values, axis=0)  # divides by n, not n - 1
    if not np.all(deviations > 0):
        raise InputError("All values are the same: z-scores are undefined.")
    scores: FloatArray = (values - np.nanmean(values, axis=0)) / deviations
    return scores


def criterion_met(delta: float | None, people: FloatArray, model: FloatArray) -> BoolArray:
    """Return a mask of the pairs that meet a criterion.

    BLiMP criterion: model > 0 (Warstadt et al. 2020). Acceptability Delta Criterion (ADC):
    sign(people) = sign(model) and |people - model| < δ (Vázquez Martínez 2021).

    Args:
        delta: threshold δ of the ADC; None for the BLiMP criterion.
        people: deltas of human judgements; the shape must broadcast against `model`.
        model: deltas of the z-scores of one or several models.

    Raises:
        InputError: if δ is not positive and finite.
    """
    if delta is None:
        return model > 0
    if not 0 < delta < np.inf:
        raise InputError(f"`delta` must be above 0 and finite, got {delta}.")
    same_sign = np.sign(people) == np.sign(model)  # two deltas of zero have the same sign
    met: BoolArray = same_sign & (np.abs(people - model) < delta)
    return met


@dataclass(frozen=True, eq=False)
class AcceptabilityEvaluation(ScoredJudgements):
    """Minimal pairs with their deltas, and the criteria that models meet.

    Attributes:
        sentence_scores: z-scores of the sentences, (n_sentences, n_models); nan if missing. The
            setting `scores_as_given` replaces the z-scores by the original scores.
        sentence_judgements: original judgements, (n_sentences,); nan if missing. The setting
            `human_z_scores` replaces the original judgements by z-scores.
        pairs: evaluated pairs.
        excluded: excluded pairs, with the reason.
        people: deltas of human judgements, (n_pairs,).
        deltas: deltas of the models' scores, (n_pairs, n_models).
        met: criterion (`blimp`, or `adc-0.5` for a δ of 0.5) → mask of the pairs that meet the
            criterion, (n_pairs, n_models).
    """

    settings: AcceptabilitySettings
    pairs: tuple[JudgedPair, ...]
    excluded: tuple[tuple[JudgedPair, str], ...]
    people: FloatArray
    deltas: FloatArray
    met: Mapping[str, BoolArray]

    @property
    def disputed(self) -> BoolArray:
        """Mask (n_pairs,) of pairs in which people do not prefer the acceptable sentence."""
        return np.less_equal(self.people, 0)

    def excluded_for(self) -> dict[str, int]:
        """Return the number of excluded pairs by reason, in the order of the checks."""
        counts = Counter(reason for _, reason in self.excluded)
        return {reason: counts[reason] for reason in _EXCLUDED}

    def pair_columns(self, rows: Sequence[int]) -> dict[str, list[Any]]:
        """Return columns that describe the pairs in these rows, without the models' results."""
        sentences, pairs = self.judgements.sentences, [self.pairs[row] for row in rows]
        return {
            "source": [pair.source for pair in pairs],
            "phenomenon": [pair.phenomenon for pair in pairs],
            "acceptable_id": [pair.acceptable for pair in pairs],
            "unacceptable_id": [pair.unacceptable for pair in pairs],
            "acceptable": [sentences[pair.acceptable].text for pair in pairs],
            "unacceptable": [sentences[pair.unacceptable].text for pair in pairs],
            "delta_people": self.people[rows].tolist(),
            "people_dispute_experts": self.disputed[rows].astype(int).tolist(),
        }

    def table(self) -> dict[str, list[Any]]:
        """Return `pair_columns` of all pairs, and the models' deltas and criteria (1 if met)."""
        columns = self.pair_columns(range(len(self.pairs)))
        by_name = {"delta": self.deltas, **{n: met.astype(int) for n, met in self.met.items()}}
        for name, values in by_name.items():  # (n_pairs, n_models) each
            for model, column in zip(self.models, values.T.tolist(), strict=True):
                columns[f"{name} {model}"] = column
        return columns

    def to_frame(self) -> DataFrame:
        """Return the table of pairs.csv as a data frame; see `table`."""
        return frame_of(self.table())


def evaluate_acceptability(
    judgements: Judgements, scores: JudgedScores, settings: AcceptabilitySettings = ACCEPTABILITY
) -> AcceptabilityEvaluation:
    """Compute the deltas of people and models for all pairs, and the criteria that models meet.

    Unless `scores_as_given` is set, scores are standardized over all sentences with a score,
    including sentences of excluded pairs. A pair is excluded if the authors of the collection
    discarded it. A pair is also excluded if one of its sentences has no judgement, or if a model
    has no score for one of its sentences.

    The published judgements of LI-Adger are already z-scores, so do not set `human_z_scores` for
    LI-Adger.

    Raises:
        InputError: if all pairs are excluded; a δ is not above 0; all scores of a model are equal
            or missing; the name of a model is empty or `people`; or all judgements are equal and
            `human_z_scores` is set.
    """
    for model, column in zip(scores.models, scores.values.T, strict=True):
        if model in ("", PEOPLE):
            raise InputError(f"A model must not be named {model!r}. Rename the column of scores.")
        if len(np.unique(column[~np.isnan(column)])) < 2:
            raise InputError(f"{model} has no scores, or the same score for every sentence.")
    # Vázquez Martínez (2021) also standardizes over all sentences
    values = scores.values if settings.scores_as_given else z_scores(scores.values)
    people = judgements.values
    row_of = {name: row for row, name in enumerate(judgements.sentences)}
    unscored: BoolArray = np.logical_or.reduce(np.isnan(values), axis=1)
    missing_values = np.isnan(people), unscored
    included, excluded, rows = [], [], []
    for pair in judgements.pairs:
        both = [row_of[pair.acceptable], row_of[pair.unacceptable]]
        # Only the first reason counts, so that the numbers of `excluded_for` add up
        exclusions = (pair.discarded, *(bool(mask[both].any()) for mask in missing_values))
        if any(exclusions):
            excluded.append((pair, _EXCLUDED[exclusions.index(True)]))
        else:
            included.append(pair)
            rows.append(both)
    if settings.human_z_scores:
        people = z_scores(people)
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
        counts = ", ".join(f"{n:,}: {why}" for why, n in evaluation.excluded_for().items() if n)
        raise InputError(f"None of {len(judgements.pairs):,} pairs can be evaluated ({counts}).")
    return evaluation


def criterion_shares(evaluation: AcceptabilityEvaluation, by: str = "") -> Iterator[Row]:
    """Yield the share of pairs that meet a criterion, by group of pairs, model and criterion.

    `by` is "source", "phenomenon" (one group for each source and phenomenon), or "" (one group).
    `disputed` is the number of pairs in which people do not prefer the sentence that experts
    accept.
    """
    groups = grouped(
        ((pair.source if by else "", pair.phenomenon if by == "phenomenon" else ""), row)
        for row, pair in enumerate(evaluation.pairs)
    )
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


def delta_correlations(evaluation: AcceptabilityEvaluation) -> tuple[tuple[str, ...], FloatArray]:
    """Correlate the deltas of people and of all models with each other.

    Returns:
        Names and correlations. The names of the rows and columns are `people`, then the models. The
        correlations are Pearson's r, (1 + n_models, 1 + n_models); nan if deltas are constant, or
        if there are fewer than two pairs.
    """
    names = (PEOPLE, *evaluation.models)
    return names, pearson_matrix(np.column_stack([evaluation.people, evaluation.deltas]))


def fits(evaluation: ScoredJudgements) -> Iterator[Row]:
    """Regress judgements on each model's scores, over all sentences with a judgement and a score.

    The slope has units of judgement per unit of score. Slope, intercept and correlations are nan
    if scores or judgements are constant.
    """
    from scipy.stats import linregress

    judgements = evaluation.sentence_judgements
    for model, scores in zip(evaluation.models, evaluation.sentence_scores.T, strict=True):
        both = ~(np.isnan(scores) | np.isnan(judgements))  # (n_sentences,)
        x, y = scores[both], judgements[both]
        r, slope, intercept = pearson(x, y), math.nan, math.nan
        if not math.isnan(r):  # otherwise the line is undefined, too
            slope, intercept = map(float, linregress(x, y)[:2])
        yield {
            "model": model,
            "sentences": len(x),
            "slope": slope,
            "intercept": intercept,
            "pearson": r,
            "spearman": spearman(x, y),
        }


def models_apart(evaluation: AcceptabilityEvaluation) -> Apart:
    """Find pairs that meet a criterion under one model and not under another.

    Returns:
        (criterion, model under which it is met, other model) → indices in `evaluation.pairs`.
    """
    models = tuple(enumerate(evaluation.models))
    return {
        (criterion, passes, fails): np.flatnonzero(met[:, i] & ~met[:, j])
        for criterion, met in evaluation.met.items()
        for (i, passes), (j, fails) in permutations(models, 2)
    }


def criteria_apart(evaluation: AcceptabilityEvaluation) -> Apart:
    """Find pairs that meet the BLiMP criterion and not the ADC, or vice versa.

    Returns:
        (model, criterion that is met, other criterion) → indices in `evaluation.pairs`.
    """
    met = evaluation.met
    return {
        (model, passes, fails): np.flatnonzero(met[passes][:, column] & ~met[fails][:, column])
        for column, model in enumerate(evaluation.models)
        for name in met
        if name != "blimp"
        for passes, fails in (("blimp", name), (name, "blimp"))
    }


_MAX_ROWS = 30  # maximum number of rows of a table in the report
_PANELS_PER_ROW = 3


def acceptability_findings(
    evaluation: AcceptabilityEvaluation, title: str = "Acceptability"
) -> Findings:
    """Prepare the results as a page, figures, and tables.

    criteria        number and share of pairs that meet each criterion under each model
    phenomena       the same numbers and shares, by source and phenomenon
    pairs           deltas of each pair, and criteria that it meets
    models_apart    pairs that meet a criterion under one model and not under another
    criteria_apart  pairs that meet the BLiMP criterion and not the ADC, or vice versa
    correlations    Pearson's r between the deltas of people and models, empty if undefined
    fits            regression of judgements on scores of sentences
    excluded        excluded pairs, with reasons
    left_out        sentences without a score, with reasons
    """
    settings, tables = evaluation.settings, acceptability_tables(evaluation)
    left_out = {omission.sentence for omission in evaluation.scores.left_out}
    counts = {
        "sentences": len(evaluation.judgements.sentences),
        "sentences_without_judgement": int(np.isnan(evaluation.sentence_judgements).sum()),
        "sentences_without_score": len(left_out),
        "pairs": len(evaluation.judgements.pairs),
        "pairs_evaluated": len(evaluation.pairs),
        "pairs_disputed": int(evaluation.disputed.sum()),
        **{f"pairs_excluded ({reason})": n for reason, n in evaluation.excluded_for().items()},
    }
    scores = "as given" if settings.scores_as_given else "z-scores over all scored sentences"
    return Findings(
        title,
        criteria_table(evaluation),
        tuple(_parts(evaluation, counts, tables)),
        tables,
        partial(acceptability_figures, evaluation),
        {
            "data_files": [path.name for path in evaluation.files],
            "score_columns": list(evaluation.models),
            **counts,
            "scores_are": scores,
            "judgements_are": "z-scores" if settings.human_z_scores else "as given",
        },
    )


def acceptability_tables(evaluation: AcceptabilityEvaluation) -> dict[str, Columns]:
    """Compute the tables of `acceptability_findings`, by name."""
    names, matrix = delta_correlations(evaluation)
    rows = zip(names, matrix.tolist(), strict=True)
    return {
        "criteria": table_of(criterion_shares(evaluation)),
        "phenomena": table_of(criterion_shares(evaluation, "phenomenon")),
        "pairs": evaluation.table(),
        "models_apart": _difference_rows(
            evaluation, models_apart(evaluation), "criterion", "passes", "fails"
        ),
        "criteria_apart": _difference_rows(
            evaluation, criteria_apart(evaluation), "model", "model"
        ),
        "correlations": table_of({"": n} | dict(zip(names, r, strict=True)) for n, r in rows),
        "fits": table_of(fits(evaluation)),
        "excluded": {
            "acceptable_id": [pair.acceptable for pair, _ in evaluation.excluded],
            "unacceptable_id": [pair.unacceptable for pair, _ in evaluation.excluded],
            "reason": [reason for _, reason in evaluation.excluded],
        },
        "left_out": columns_of(LeftOut, evaluation.scores.left_out),
    }


def _difference_rows(
    evaluation: AcceptabilityEvaluation, pairs_by_kind: Apart, at: str, *deltas_of: str
) -> Columns:
    """Build the columns of models_apart.csv or criteria_apart.csv, with a row for each pair.

    `at` is the name of the first column, `criterion` or `model`. This column contains the first
    element of each key of `pairs_by_kind`. `deltas_of` are columns that contain names of models,
    such as `passes`. The deltas of these models become further columns.
    """
    rows: list[dict[str, Any]] = []
    for kind, pairs in pairs_by_kind.items():
        about = dict(zip((at, "passes", "fails"), kind, strict=True))
        models = [(f"delta_{n}", evaluation.models.index(about[n])) for n in deltas_of]
        rows += [
            about | {"pair": pair, **{n: float(evaluation.deltas[pair, c]) for n, c in models}}
            for pair in pairs.tolist()
        ]
    columns = table_of(rows, (at, "passes", "fails", "pair", *(f"delta_{n}" for n in deltas_of)))
    return columns | evaluation.pair_columns(columns.pop("pair"))


def _parts(
    evaluation: AcceptabilityEvaluation, counts: Mapping[str, int], tables: Mapping[str, Columns]
) -> Iterator[Part]:
    excluded = ", ".join(f"{n:,} ({reason})" for reason, n in evaluation.excluded_for().items())
    yield Paragraph(
        f"{counts['pairs_evaluated']:,} of {quantity(counts['pairs'], 'minimal pair')}; "
        f"{quantity(counts['sentences'], 'sentence')}, "
        f"{counts['sentences_without_judgement']:,} of them without a judgement and "
        f"{counts['sentences_without_score']:,} without a score. Not evaluated: {excluded}. In "
        f"{quantity(counts['pairs_disputed'], 'evaluated pair')} participants do not prefer the "
        "sentence that experts accept."
    )
    yield criteria_table(evaluation)
    if {pair.source for pair in evaluation.pairs} != {""}:
        yield from (Heading("By source"), criteria_table(evaluation, by="source"))
    phenomena = len({pair.phenomenon for pair in evaluation.pairs})
    if 1 < phenomena <= _MAX_ROWS:
        yield from (Heading("By phenomenon"), criteria_table(evaluation, by="phenomenon"))
    elif phenomena > _MAX_ROWS:
        yield Paragraph(f"phenomena.csv lists {phenomena:,} phenomena.")
    for name in ("models", "criteria"):
        table = tables[f"{name}_apart"]
        about = [*table][:3]  # model or criterion, passes, fails
        kinds = zip(*(table[column] for column in about), strict=True)
        disputed = grouped(zip(kinds, table["people_dispute_experts"], strict=True))
        if rows := [(*kind, len(pairs), sum(pairs)) for kind, pairs in disputed.items()]:
            header = (*about, "pairs", "of these disputed by participants")
            yield Heading(f"Pairs on which {name} differ")
            yield Table(header, rows[:_MAX_ROWS], texts=3)
    yield from (Heading("Scores against judgements"), page_table(tables["fits"]))


def criteria_table(evaluation: AcceptabilityEvaluation, by: str = "") -> Table:
    """Tabulate `criterion_shares`; a row shows the results of one model on one group of pairs."""
    about = ["source", "phenomenon"] if by == "phenomenon" else [by] if by else []
    if {pair.source for pair in evaluation.pairs} == {""}:
        about = [name for name in about if name != "source"]
    about.append("model")
    rows: dict[tuple[str, ...], list[str]] = {}
    for share in criterion_shares(evaluation, by):
        cell = f"{share['met']:,} of {share['pairs']:,} ({share['share']:.1%})"
        rows.setdefault(tuple(share[name] for name in about), []).append(cell)
    header = [*about, *evaluation.met]
    return Table(header, [[*row, *cells] for row, cells in rows.items()], len(about))


def acceptability_figures(evaluation: AcceptabilityEvaluation) -> dict[str, Figure]:
    """Draw a heat map of correlations and a scatter plot; return both figures by file name."""
    return {"correlations": correlation_figure(evaluation), "scatter": scatter_figure(evaluation)}


def correlation_figure(evaluation: AcceptabilityEvaluation) -> Figure:
    """Draw Pearson's r between the deltas of people and models as a heat map."""
    names, matrix = delta_correlations(evaluation)
    short = short_names(names)
    title = "Correlation of differences within pairs"
    return heat_map(short, short, matrix, title=title, middle=0.0, numbers="decimals")


def scatter_figure(
    evaluation: ScoredJudgements,
    *,
    unit: str = "z-score",
    judgement: str = "judgement",
) -> Figure:
    """Draw a panel for each model with a dot for each sentence, and the least-squares line.

    `unit` and `judgement` are the labels of the axes.
    """
    names = short_names(evaluation.models)
    side = max(2.2, 0.5 + widest(names))
    figure, grid = panels(len(names), _PANELS_PER_ROW, side, 2.1, sharey=True)
    judgements = evaluation.sentence_judgements
    dot = max(1.5, 40 / math.sqrt(len(judgements)))  # smaller dots for more sentences
    for column, (axes, line) in enumerate(zip(grid[0], fits(evaluation), strict=True)):
        scores = evaluation.sentence_scores[:, column]
        axes.plot(scores, judgements, ".", ms=dot, color=BLUE, alpha=0.35, mew=0, rasterized=True)
        if np.isfinite(line["slope"]):
            ends = np.array([np.nanmin(scores), np.nanmax(scores)])
            axes.plot(ends, line["intercept"] + line["slope"] * ends, color=ORANGE, lw=1.2)
        axes.set_title(f"{names[column]}\nr = {line['pearson']:.2f}", loc="left", fontsize="small")
        axes.set_xlabel(unit)
    for axes in grid[0, ::_PANELS_PER_ROW]:
        axes.set_ylabel(judgement)
    return figure
