"""An interval that rules nothing out is not printed as if it said something."""

import re

import pytest

from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.figures import drawings
from contstim.experiments.analysis.intervals import difference_ends, not_estimable
from contstim.experiments.analysis.page import report, verdict_texts
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.items.stimuli import Condition
from tests.experiments.analysis.simulation import simulate

CONDITIONS = (Condition.RANDOM_NATURAL, Condition.SYNTHETIC_SYNTHETIC)


def analysis(groups: tuple[int, ...], each: int) -> Analysis:
    made = simulate(("a", "b"), groups, each=each, conditions=CONDITIONS, follow=0.7)
    return analyze(made.trials, made.responses, made.scores, sampling=Sampling())


@pytest.mark.parametrize(
    ("groups", "each", "expected"), [((2, 2), 2, True), ((8, 8, 8), 12, False)]
)
def test_intervals_of_nearly_every_possible_value_are_named_with_the_reason(
    groups: tuple[int, ...], each: int, expected: bool
) -> None:
    """The witness is the table: how far the limits are from the ends of the measure."""
    found = analysis(groups, each)
    full = {
        (result.scope, result.measure.name)
        for result in found.results
        for row in result.comparisons
        for low, high in [difference_ends(result.measure)]
        if row.interval.low - low + high - row.interval.high < (high - low) / 20
    }
    assert bool(full) == expected
    for result in found.results:
        reason = not_estimable(result)
        assert bool(reason) == ((result.scope, result.measure.name) in full)
        assert not reason or f"{sum(groups)} participants in {len(groups)} groups" in reason
    images = dict.fromkeys((name for name, _ in drawings(found)), b"")
    text = re.sub("<[^>]+>", " ", report(found, images, title="x").html())
    assert ("not estimable" in text) == expected
    assert not re.search(r"-([12])\.00 … \1\.00", text)
    assert not re.search(r"-([12])\.00 … \1\.00", " ".join(verdict_texts(found)))
