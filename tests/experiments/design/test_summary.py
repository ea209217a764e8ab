"""Summaries of designs, counted by hand, and the number of sentences that a study needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.experiments.design.building import build_design
from contstim.experiments.design.summary import sentences_needed, summarise, summary_report
from contstim.items.stimuli import Condition, Kind
from contstim.words.frequencies import WordFrequencies
from tests.experiments.stimuli import natural, small_design, some_pairs

DESIGN = small_design()
FREQUENCIES = WordFrequencies.of(natural(60))


def test_summary_counts_trials_minutes_and_sources() -> None:
    summary = summarise(DESIGN, FREQUENCIES, seconds_per_trial=10)
    assert summary.counts[Condition.NATURAL_CONTROVERSIAL] == (6, 6, 6)
    assert summary.counts[Condition.NATURAL_SYNTHETIC] == (12, 12, 12)
    assert summary.counts[Condition.CATCH] == (4, 4, 4)
    assert summary.minutes == pytest.approx([(6 + 12 + 6 + 5 + 4) / 6] * 3)
    assert summary.sources[Condition.NATURAL_CONTROVERSIAL, Kind.NATURAL] == 36
    assert summary.sources[Condition.SYNTHETIC_SYNTHETIC, Kind.SYNTHETIC_1] == 18
    assert summary.sources[Condition.CATCH, Kind.SHUFFLED] == 12
    assert summary.roles[Condition.SYNTHETIC_SYNTHETIC, "synthetic_1 – synthetic_2"] == (6, 1, 1)
    assert summary.roles[Condition.RANDOM_NATURAL, "natural – natural"] == (0, 5, 5)


def test_balance_is_the_mean_over_trials() -> None:
    balance = summarise(DESIGN, FREQUENCIES).balance[Condition.NATURAL_CONTROVERSIAL]
    pairs = some_pairs(3)
    for side, texts in enumerate(zip(*((p.sentence_1, p.sentence_2) for p in pairs), strict=True)):
        words = [str(text).rstrip(".!").split() for text in texts]
        assert balance[0, side] == np.mean([len(w) for w in words])
        assert balance[1, side] == pytest.approx(np.mean([len(" ".join(w)) for w in words]))
    np.testing.assert_allclose(*summarise(DESIGN, FREQUENCIES).balance[Condition.CATCH].T)


def test_page_states_whom_catch_trials_exclude() -> None:
    """By hand: three of four trials must be right; 1 - .99^4 - 4 (.01) .99^3 = .0006; 11 / 16."""
    note = summarise(DESIGN, FREQUENCIES).notes["catch"]
    assert "fewer than 3 of 4 catch trials" in note
    assert "0.1% of the participants who guess in 2% of trials, and 68.8% of" in note
    assert note in summary_report(summarise(DESIGN, FREQUENCIES)).markdown()


@pytest.mark.parametrize(
    ("groups", "begins"),
    [
        (1, "With 1 group no signed-rank test"),
        (3, "With 3 groups no signed-rank test"),
        (6, "**With 6 groups, no result can be significant unless 7 of the 10 tests"),
        (12, "The design has 72 trials, 6 for each participant."),
    ],
)
def test_limits_of_few_groups_come_first(groups: int, begins: str) -> None:
    """By hand: four models make ten tests, 2 / 2^6 · 10 / 7 = .045.

    A warning needs a remedy by more groups: below six groups, other tests are the default.
    """
    pairs = some_pairs(12)
    design = build_design(pairs, groups=groups, random_per_group=0, catch_per_group=0)
    summary = summarise(design, FREQUENCIES)
    assert summary_report(summary).markdown().splitlines()[2].startswith(begins)
    cautions = [f"**{caution}"[: len(begins)] for caution in summary.cautions]
    assert cautions == [begins] * (groups == 6)


def test_design_can_be_a_frame_of_trials() -> None:
    frame = DESIGN.to_frame()
    assert list(frame["trial_id"]) == [trial.trial_id for trial in DESIGN.trials]
    assert list(frame["sentence_1"]) == [trial.sentence_1.text for trial in DESIGN.trials]


def test_needs_of_the_2023_study() -> None:
    """Nine models: 3,600 triplets, 360 pairs, 9 random and 12 catch trials in ten groups each."""
    total, rows = sentences_needed(9, random_per_group=9)
    assert [(use, needed) for use, *_, needed in rows] == [
        ("triplets", 3_600),
        ("natural pairs", 720),
        ("random pairs", 180),
        ("catch trials", 120),
        ("in all", 4_620),
    ]
    assert total == 4_620


@given(st.integers(2, 7), st.lists(st.integers(0, 5), min_size=5, max_size=5))
def test_needs_match_a_literal_count(models: int, numbers: list[int]) -> None:
    triplets, pairs, groups, random, catch = numbers
    groups = max(groups, 3) if triplets else groups
    count = 0
    for model in range(models):
        for _other in range(model + 1, models):
            count += len(range(triplets)) + len([side for _ in range(pairs) for side in "12"])
    for _group in range(groups):
        count += len([side for _ in range(random) for side in "12"]) + catch
    per_pair = {"triplets_per_pair": triplets, "pairs_per_pair": pairs}
    per_group = {"random_per_group": random, "catch_per_group": catch}
    total, rows = sentences_needed(models, groups=groups, **per_pair, **per_group)
    assert total == count == sum(row[3] for row in rows[:-1])


def test_invalid_time_per_trial_is_rejected() -> None:
    with pytest.raises(InputError, match="must be above 0"):
        summarise(DESIGN, FREQUENCIES, seconds_per_trial=0)
