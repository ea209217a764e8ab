"""Where models disagree. Witnesses: planted differences."""

from copy import deepcopy
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from contstim.english import generate
from contstim.english.words import tag_table
from contstim.evaluation.diff import (
    Change,
    Difference,
    Parting,
    _ratio,
    find_differences,
    sample_changes,
)
from contstim.evaluation.diff_report import summary_table, where_text
from contstim.files.arrays import BoolArray, FloatArray
from contstim.items.minimal_pair_scores import SentencePair
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Triplet
from contstim.models.recurrent.adapter import LeftToRightModel
from contstim.models.recurrent.network import RecurrentNetwork, Shape
from contstim.models.scoring import score_sentences
from contstim.models.vocabularies import WordList, default_vocabulary
from contstim.optimization.search.settings import SearchSettings
from contstim.words.sentence import Sentence

TABLE = tag_table(None)
NATURAL = [*dict.fromkeys(generate(60, seed=3, words=7))]
CHANGES = sample_changes(NATURAL, default_vocabulary(()), SearchSettings(), seed=1)
PAIRS = [
    SentencePair(name, f"{n}", *(Sentence.parse(f"{word} {name} {n}.") for word in ("Good", "Bad")))
    for name, size in (("easy", 4), ("hard", 12))
    for n in range(size)
]


def part_of_speech(change: Change) -> str:
    return TABLE.part_of_speech(TABLE.tags(change.natural)[change.position])


def planted_scores() -> ScoreTable:
    """Return scores with planted disagreements.

    Model a prefers every natural sentence, b changed verbs, and c every third change.
    """
    scores = {sentence: [-1.0, -1.0, -1.0] for sentence in NATURAL}
    for number, change in enumerate(CHANGES):
        is_verb = part_of_speech(change) == "verb"
        scores[change.changed] = [-2.0, 0.0 if is_verb else -2.0, 0.0 if number % 3 == 0 else -2.0]
    for pair in PAIRS:
        scores[pair.good] = [-1.0, -1.0 if pair.paradigm == "easy" else -3.0, -1.0]
        scores[pair.bad] = [-2.0, -2.0, -2.0]
    return ScoreTable(tuple(scores), ("a", "b", "c"), np.array([*scores.values()]))


def find_planted(baseline: str = "", triplets: tuple[Triplet, ...] = ()) -> list[Difference]:
    scores = planted_scores()
    return find_differences(scores, NATURAL, CHANGES, PAIRS, TABLE, triplets, baseline, seed=0)


def preferences(parted: BoolArray) -> FloatArray:
    """Return the preferences of two models that part on the comparisons in a mask."""
    return np.stack([np.ones(len(parted)), np.where(parted, -1.0, 1.0)])


def test_without_minimal_pairs_there_are_no_paradigms() -> None:
    first, *_ = find_differences(planted_scores(), NATURAL, CHANGES, [], TABLE)
    assert (first.paradigms, first.pairs) == ({}, None)
    assert summary_table([first]).rows[0][-1] == "–"


def test_changes_keep_the_part_of_speech_of_one_word() -> None:
    assert len(CHANGES) > len(NATURAL)
    for change in CHANGES:
        words = zip(change.natural.words, change.changed.words, strict=True)
        assert [i for i, (old, new) in enumerate(words) if old != new] == [change.position]
        tags = TABLE.shares(change.changed.words[change.position], initial=change.position == 0)
        assert TABLE.tags(change.natural)[change.position] in tags


def test_the_planted_part_of_speech_comes_first() -> None:
    ab, ac, bc = find_planted()
    assert [(d.model_1, d.model_2) for d in (ab, ac, bc)] == [*combinations("abc", 2)]
    verbs = sum(part_of_speech(change) == "verb" for change in CHANGES)
    assert ab.changes.share == pytest.approx(verbs / len(CHANGES))
    assert ac.changes.share == pytest.approx(np.mean(np.arange(len(CHANGES)) % 3 == 0))
    (first, parting), *other_partings = ab.where["part of speech"].items()
    assert (first, parting.share, parting.n) == ("verb", 1, verbs)
    assert {share.share for _, share in other_partings} == {0}
    assert {name: (p.correct, p.share) for name, p in ab.paradigms.items()} == {"hard": ((1, 0), 1)}
    assert ac.paradigms == {}
    assert ab.pairs is not None
    assert ab.pairs.share == 12 / 16


def test_a_baseline_gives_a_ratio_of_disagreements() -> None:
    """Witness: the ratio of both counts."""
    ab, ac = find_planted(baseline="c")
    assert ab.ratio is not None
    ratio, low, high = ab.ratio
    assert ratio == pytest.approx(ab.changes.share / ac.changes.share)
    assert low < ratio < high
    assert ac.ratio == (1, 1, 1)


def test_rare_baseline_disagreements_give_no_upper_limit() -> None:
    half_parted = preferences(np.arange(60) % 2 == 0)
    once_parted = preferences(np.arange(60) == 0)
    ratio, low, high = _ratio(half_parted, once_parted, np.arange(60), seed=1)
    assert (ratio, high) == (30, np.inf)
    assert 0 < low < ratio


def test_intervals_are_wilsons_with_the_effective_sample_size() -> None:
    """Witness: statsmodels, for independent comparisons and for copies of each.

    Korn & Graubard (1998) multiply by the squared ratio of two quantiles of t distributions.
    """
    n, margins = 80, preferences(np.arange(80) % 4 == 0)
    independent = Parting.of(margins, np.arange(n))
    # The variance over clusters has n - 1 in its denominator
    expected = proportion_confint(0.25 * (n - 1), n - 1, method="wilson")
    assert independent.interval() == pytest.approx(expected)
    copies = Parting.of(np.repeat(margins, 5, axis=1), np.repeat(np.arange(n), 5))
    effective = (n - 1) * (t.ppf(0.975, 5 * n - 1) / t.ppf(0.975, n - 1)) ** 2
    expected = proportion_confint(0.25 * effective, effective, alpha=0.01, method="wilson")
    assert copies.interval(0.01) == pytest.approx(expected)
    assert copies.n == 5 * n
    never = Parting.of(np.ones((2, 50)), np.arange(50) // 5)
    effective = 10 * (t.ppf(0.975, 49) / t.ppf(0.975, 9)) ** 2
    assert never.interval() == pytest.approx(proportion_confint(0, effective, method="wilson"))


def test_few_values_are_named_by_chance() -> None:
    """Simulate 24 values of words in 60 sentences, without a difference."""
    rng, n_named = np.random.default_rng(0), 0
    difference = find_planted()[0]
    for _ in range(80):
        parted, clusters = rng.random(480) < 0.2, np.repeat(np.arange(60), 8)
        margins, values = preferences(parted), rng.integers(24, size=480)
        shares = {
            str(value): Parting.of(margins[:, rows], clusters[rows])
            for value in range(24)
            for rows in [np.flatnonzero(values == value)]
        }
        overall = Parting.of(margins, clusters)
        random_difference = replace(difference, changes=overall, where={"kind": shares})
        n_named += "kind:" in where_text(random_difference)
    assert n_named <= 8  # 5 % and two standard errors


def test_triplets_start_with_the_largest_difference() -> None:
    n, s1, s2 = map(Sentence.parse, ("The dog ran.", "The cat ran.", "The dog sat."))
    triplets = (
        Triplet("x", "b", "a", n, s1, s2, -1.0, -2.0, -7.0, -2.0, -1.0, -8.0, 12.0, 0.5, 1.5),
        Triplet("y", "a", "b", n, s2, s1, -1.0, -1.0, -9.0, -1.0, -1.0, -9.0, 16.0),
    )
    best, second = find_planted(triplets=triplets)[0].triplets
    assert (best.triplet_id, second.triplet_id) == ("y", "x")
    assert (second.model_1, second.synthetic_1, second.drops) == ("a", s2, (6, 6))
    assert (second.judge_drop_1, second.judge_drop_2) == (1.5, 0.5)
    assert second.labelled[1][1:] == (s2, [-8.0, -1.0])


def test_permuted_verbs_cause_disagreement_on_verbs() -> None:
    """The test exchanges rows of the embedding and of the output layer between verbs."""
    words = WordList.from_sentences([*NATURAL, *(change.changed for change in CHANGES)])
    torch.manual_seed(5)
    network = RecurrentNetwork(Shape("lstm", len(words), 16, 16, 1, 0.0))
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(2)
    permuted = deepcopy(network)
    verbs = {c.natural.words[c.position] for c in CHANGES if part_of_speech(c) == "verb"}
    rows = words.numbers(sorted(verbs)[: 2 * len(verbs) // 3])
    assert isinstance(permuted.output, torch.nn.Linear)
    layers = (permuted.embedding.weight, permuted.output.weight, permuted.output.bias)
    with torch.no_grad():
        for layer in layers:
            layer[rows] = layer[np.roll(rows, 1)].clone()
    named_networks = (("original", network), ("permuted", permuted))
    models = [LeftToRightModel(version, words, name=name) for name, version in named_networks]
    scores = score_sentences(models, [*NATURAL, *(change.changed for change in CHANGES)])
    (difference,) = find_differences(scores, NATURAL, CHANGES, [], TABLE)
    (first, parting), (_, second), *_ = difference.where["part of speech"].items()
    assert first == "verb"
    assert parting.interval()[0] > second.share
    assert "verb" in where_text(difference)
