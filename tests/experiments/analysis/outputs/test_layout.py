"""Figures of all kinds are legible with few and many models, and show the results."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from contstim.evaluation import comparison
from contstim.evaluation import criteria as acceptability
from contstim.evaluation import minimal_pair_report as minimal_pairs
from contstim.evaluation.accuracies import BIN, FEATURES, Accuracies
from contstim.evaluation.criteria import evaluate_acceptability
from contstim.evaluation.desiderata import Desiderata, desiderata_figure
from contstim.evaluation.judged_scores import JudgedScores
from contstim.experiments.analysis.effects import Sampling, compare
from contstim.experiments.analysis.families import every_contrast
from contstim.experiments.analysis.figures import consistency_figure, drawings
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.design.building import build_design
from contstim.experiments.design.summary import summarise, summary_figure
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition
from contstim.reporting.canvas import agreement_map, styled
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import Sentence
from tests.evaluation.small_data import simulated
from tests.experiments import stimuli
from tests.experiments.analysis.outputs.paper import find_faults
from tests.experiments.analysis.simulation import simulate

SIZES = ((2, True), (2, False), (4, True), (9, False), (20, True))
"""Numbers of models, and whether names are long."""

PHENOMENA = (
    *("anaphor_agreement", "argument_structure", "binding", "control_raising", "npi_licensing"),
    *("determiner_noun_agreement", "ellipsis", "filler_gap_dependency", "irregular_forms"),
    *("island_effects", "quantifiers", "subject_verb_agreement"),
)

SENTENCES = tuple(Sentence.parse(f"s{i}") for i in range(30))

_CONDITIONS = [c for c in Condition if c not in (Condition.MINIMAL_PAIR, Condition.CATCH)]


def build_names(n: int, *, long: bool) -> tuple[str, ...]:
    ending = "/bert-base-uncased-finetuned-on-news@pll-original" if long else ""
    return tuple(f"hf:runs/m{i}{ending}" if long else f"m{i}" for i in range(n))


def analysis_figures(n: int, *, long: bool) -> list[Figure]:
    """Draw single conditions, with one panel in the rank figure, and all conditions."""
    catch = Condition.CATCH
    single_conditions = (
        [frozenset({condition, catch}) for condition in _CONDITIONS] if n == 2 and not long else []
    )
    figures = []
    condition_sets = [frozenset(Condition)]
    if n == 20:
        condition_sets = [frozenset({Condition.NATURAL_SYNTHETIC, catch})]
    elif n == 2 and long:  # fast: all kinds of figures with two conditions
        condition_sets = [frozenset({Condition.NATURAL_SYNTHETIC, Condition.RANDOM_NATURAL, catch})]
    for conditions in (*single_conditions, *condition_sets):
        size = (3, 3, 2) if n < 9 else (2, 2, 1)
        models, groups, per_pair = build_names(n, long=long), size[:2], size[2]
        experiment = simulate(models, groups=groups, each=per_pair, conditions=conditions)
        sampling = Sampling()
        analysis = experiment.analyze(sampling=sampling)
        figures += [figure for _, figure in drawings(analysis)]
    return figures


def comparison_figures(n: int, *, long: bool) -> list[Figure]:
    scores = -np.random.default_rng(0).gamma(9, 6, (30, n))
    table = ScoreTable(SENTENCES, build_names(n, long=long), scores)
    return [agreement_map(table), comparison.ranks_figure(table)]


def acceptability_figures(n: int, *, long: bool) -> list[Figure]:
    judgements, scores = simulated(30, n)
    named_scores = JudgedScores(build_names(n, long=long), scores.values)
    evaluation = evaluate_acceptability(judgements, named_scores)
    return [acceptability.correlation_figure(evaluation), acceptability.scatter_figure(evaluation)]


def minimal_pair_figures(n: int, *, long: bool) -> list[Figure]:
    rng, models = np.random.default_rng(0), build_names(n, long=long)
    paradigms = tuple(f"{name}_{i}" for name in PHENOMENA for i in (1, 2))
    phenomena = tuple(name for name in PHENOMENA for _ in (1, 2))
    shares = rng.uniform(size=(len(paradigms), n))
    accuracies = Accuracies(paradigms, phenomena, np.full(len(paradigms), 10), models, shares)
    bins = [
        dict(zip(BIN, (model, feature, x, 3 * x, 2 * x, 9, rng.uniform(), 0.0, 1.0), strict=True))
        for model in models
        for feature in FEATURES
        for x in (3.0, 60.0, 2_000.0)
    ]
    return [
        minimal_pairs.phenomena_figure(accuracies, "Accuracy (%), full-sentence"),
        minimal_pairs.correlations_figure(accuracies),
        minimal_pairs.profile_figure(bins),
    ]


def desiderata_figures(n: int, *, long: bool) -> list[Figure]:
    rng, models = np.random.default_rng(0), build_names(n, long=long)
    cells = {"length_r": 0.5, "frequency_r": 0.5, "reference_r": 0.5}
    rows = tuple({"model": name, **cells} for name in models)
    table = ScoreTable(SENTENCES, models, -rng.gamma(9, 6, (30, n)))
    words = np.stack([-rng.gamma(3, 3, (20, 1))] * n)
    word_tokens = np.stack([rng.integers(1, 3, 20)] * n, axis=1)
    results = [
        Desiderata(
            *(rows, (), models, reference, ("_",), table),
            tokens=rng.gamma(9, 1, (30, n)),
            words=tuple(f"w{i}" for i in range(20)),
            zipfs=rng.uniform(1, 7, 20),
            word_scores=words,
            word_tokens=word_tokens,
            left_out=(),
            words_left_out={},
        )
        for reference in ((None, models[-1]) if n < 9 else (models[-1],))
    ]
    return [desiderata_figure(result) for result in results]


@pytest.mark.parametrize("groups", [pytest.param(1, marks=pytest.mark.slow), 40])
def test_summary_of_a_design_is_legible(groups: int) -> None:
    natural = stimuli.natural(12 * groups)
    design = build_design((), (), natural, groups=groups, random_per_group=2, catch_per_group=2)
    with styled():
        assert not find_faults(summary_figure(summarise(design, WordFrequencies.of(natural))))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "long"), SIZES)
@pytest.mark.parametrize(
    "kind",
    [
        *(analysis_figures, comparison_figures, acceptability_figures),
        *(minimal_pair_figures, desiderata_figures),
    ],
)
def test_no_text_is_cut_or_covered(kind: Callable[..., list[Figure]], n: int, long: bool) -> None:
    """Witness: the boxes of texts, legends and the page in matplotlib."""
    with styled():
        for figure in kind(n, long=long):
            assert not find_faults(figure)


def test_bars_dots_and_ceilings_show_the_results() -> None:
    experiment = simulate(groups=(5,) * 10, each=6)
    ratings = experiment.gather()
    family = every_contrast(ratings.models)
    result = compare(ratings, Scope.NATURAL, ACCURACY, family, Sampling("groups"))
    bars, _ = consistency_figure(result, "groups").axes
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names[-1] == "a"
    by_name = {row.model: row for row in result.models}
    widths = [patch.get_width() for patch in bars.patches]  # type: ignore[attr-defined]
    assert widths == [by_name[name].value for name in names]
    bands = [band.get_paths()[0].get_extents() for band in bars.collections]
    assert [(b.x0, b.x1) for b in bands] == [
        pytest.approx((by_name[n].lower, by_name[n].upper)) for n in names
    ]
    dots = [line for line in bars.lines if line.get_marker() == "o"]
    groups = result.evaluation.of_groups(result.evaluation.values)
    for name, dot in zip(names, dots, strict=True):
        assert np.asarray(dot.get_xdata()).tolist() == groups[:, "abc".index(name)].tolist()
