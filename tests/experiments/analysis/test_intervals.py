"""Intervals that exclude nothing are reported as not estimable."""

import re

import pytest

from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.figures import drawings
from contstim.experiments.analysis.intervals import difference_ends, not_estimable
from contstim.experiments.analysis.page import report, verdict_texts
from contstim.experiments.analysis.run import Analysis
from contstim.items.stimuli import Condition
from tests.experiments.analysis.simulation import simulate

CONDITIONS = (Condition.RANDOM_NATURAL, Condition.SYNTHETIC_SYNTHETIC)


def analyze_simulated(groups: tuple[int, ...], per_pair: int) -> Analysis:
    experiment = simulate(("a", "b"), groups, each=per_pair, conditions=CONDITIONS, follow=0.7)
    return experiment.analyze(sampling=Sampling())


@pytest.mark.parametrize(
    ("groups", "per_pair", "is_full_range"), [((2, 2), 2, True), ((8, 8, 8), 12, False)]
)
def test_intervals_of_nearly_the_full_range_have_a_reason(
    groups: tuple[int, ...], per_pair: int, is_full_range: bool
) -> None:
    """Witness: the distance of the limits from the ends of the measure's range."""
    analysis = analyze_simulated(groups, per_pair)
    full_range = {
        (result.scope, result.measure.name)
        for result in analysis.results
        for row in result.comparisons
        for low, high in [difference_ends(result.measure)]
        if row.interval.low - low + high - row.interval.high < (high - low) / 20
    }
    assert bool(full_range) == is_full_range
    for result in analysis.results:
        reason = not_estimable(result)
        assert bool(reason) == ((result.scope, result.measure.name) in full_range)
        assert not reason or f"{sum(groups)} participants in {len(groups)} groups" in reason
    images = dict.fromkeys((name for name, _ in drawings(analysis)), b"")
    text = re.sub("<[^>]+>", " ", report(analysis, images, title="x").html())
    assert ("not estimable" in text) == is_full_range
    assert not re.search(r"-([12])\.00 … \1\.00", text)
    assert not re.search(r"-([12])\.00 … \1\.00", " ".join(verdict_texts(analysis)))
