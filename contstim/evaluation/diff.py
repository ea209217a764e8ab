"""Where models part: on natural sentences, one-word changes, minimal pairs and synthetic sentences.

A change replaces a word of a natural sentence by a random word of the same part of speech. Two
models part on a change if one prefers the natural sentence and the other the changed sentence:

    The dog sleeps soundly  →  The idea sleeps soundly    both prefer the first: they do not part
    The dog sleeps soundly  →  The dog sleeps badly       only one prefers the first: they part

The share of changes on which two models part is also reported by properties of the replaced word,
such as its part of speech. Two models part on a minimal pair if one prefers the good sentence and
the other the bad sentence. All shares depend only on such preferences, so the scores of two models
may have different units. A paradigm is a type of minimal pair with one kind of error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.comparison import model_agreements
from contstim.evaluation.folder import table_of
from contstim.optimization.search.constraints import Candidates, capitals, no_repeats
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.items.minimal_pair_scores import SentencePair
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Triplet
    from contstim.optimization.search.settings import SearchSettings
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable
    from contstim.words.vocabulary import Vocabulary

_RARE, _FREQUENT = 4.0, 5.0  # limits of the classes of word frequency, on the Zipf scale
# A value of a property, such as `noun`, is reported if it occurs in this many natural sentences
_MIN_SENTENCES = 10
_MIN_PAIRS = 5  # a paradigm is reported if it has this many minimal pairs
_DRAWS = 2_000  # bootstrap samples
_SWAPPED = str.maketrans("12", "21")


@dataclass(frozen=True)
class Change:
    """A natural sentence, and the same sentence with another word at a 0-based position."""

    natural: Sentence
    position: int
    changed: Sentence

    def properties(self, table: TagTable) -> dict[str, str]:
        """Return properties of the replaced word, such as `part of speech` → `noun`."""
        position, n_words = self.position, len(self.natural)
        zipf = table.frequencies.zipf(self.natural.words[position])
        half = "first half" if position < n_words / 2 else "second half"
        ends = {0: "first word", n_words - 1: "last word"}
        even = n_words - n_words % 2
        return {
            "part of speech": table.part_of_speech(table.tags(self.natural)[position]),
            "word frequency": "rare" if zipf < _RARE else "medium" if zipf < _FREQUENT else "high",
            "position": ends.get(position, half),
            "sentence length": f"{even} or {even + 1} words",
        }


def sample_changes(
    sentences: Iterable[Sentence], vocabulary: Vocabulary, settings: SearchSettings, seed: int
) -> list[Change]:
    """Return a change for each word of each sentence, with a random new word.

    The new word must satisfy the constraints of a search for synthetic sentences with these
    `settings`. If no word satisfies them, there is no change at this position.
    """
    rng, changes = np.random.default_rng(seed), []
    rules = [*filter(None, [no_repeats(vocabulary.repeatable), capitals(vocabulary)])]
    for natural in sentences:
        constraints = (*rules, *settings.constraints(natural, every_fix=False))
        candidates = Candidates(vocabulary, natural, constraints)
        for position in candidates.positions:
            allowed = np.flatnonzero(candidates.allowed(natural, position))
            if len(allowed):
                word = vocabulary.at(position)[int(rng.choice(allowed))]
                changes.append(Change(natural, position, natural.replace(position, word)))
    return changes


@dataclass(frozen=True)
class Parting:
    """Share of comparisons on which two models part.

    A comparison has two sentences: a natural and a changed sentence, or the good and the bad
    sentence of a minimal pair.

    Attributes:
        share: share of comparisons on which the models part, from 0 to 1.
        effective: number of independent comparisons that would give the share the same precision.
        n: number of comparisons.
        correct: for each model, share of comparisons in which it prefers the first sentence.
    """

    share: float
    effective: float
    n: int
    correct: tuple[float, float]

    @classmethod
    def of(cls, preferences: FloatArray, clusters: IntArray) -> Parting:
        """Compute the share and its precision from the preferences of two models.

        Comparisons in the same cluster are not independent.

        Args:
            preferences: 1 if a model prefers the first sentence, -1 if it prefers the second, 0 for
                equal scores, (2, n_comparisons).
            clusters: indices of natural sentences or of minimal pairs, (n_comparisons,).
        """
        from scipy.stats import t

        parted, (first, second) = preferences.prod(axis=0) < 0, (preferences > 0).mean(axis=1)
        n_parted, n = np.bincount(clusters, parted), np.bincount(clusters)
        n_parted, n = n_parted[n > 0], n[n > 0]
        share, k, total = float(parted.mean()), len(n), len(parted)
        variance = ((n_parted - share * n) ** 2).sum() * k / max(k - 1, 1) / total**2
        # If the variance is zero, each cluster counts as one observation
        effective = min(share * (1 - share) / variance if variance else k, total)
        if 1 < k < total:  # few clusters determine the variance less precisely
            effective *= (t.ppf(0.975, total - 1) / t.ppf(0.975, k - 1)) ** 2
        return cls(share, float(effective), total, (float(first), float(second)))

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the 1 - alpha interval of the share, which generalises to other sentences.

        The method is Wilson's (1927), with the effective sample size of Korn & Graubard (1998).
        """
        from statsmodels.stats.proportion import proportion_confint

        count = self.share * self.effective
        low, high = proportion_confint(count, self.effective, alpha, method="wilson")
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.share:.0%} [{low:.0%}, {high:.0%}]"


@dataclass(frozen=True)
class Difference:
    """Where two models part.

    A baseline is a model that is compared only with the first model. A triplet is a natural
    sentence and two synthetic sentences. Each model rejects one of them: it prefers the natural
    sentence. A drop of a triplet is the strength of this preference; there is one for each model.

    Attributes:
        spearman: rank correlation of the models' scores of the natural sentences.
        reordered: share of pairs of natural sentences that the models order differently.
        changes: share of changes on which they part.
        pairs: share of minimal pairs on which they part; None without minimal pairs.
        where: property → value → share of changes on which they part, highest share first.
        paradigms: paradigm → share of minimal pairs on which they part, highest share first.
            Paradigms on which they do not part are omitted.
        ratio: (ratio, low, high); None without a baseline. The ratio is `changes.share`, divided by
            the share of changes on which the first model and the baseline part. `low` and `high`
            are its 95 % bootstrap interval over sentences.
        triplets: triplets of the two models, sorted by the smaller of their drops, largest first.
    """

    model_1: str
    model_2: str
    spearman: float
    reordered: float
    changes: Parting
    pairs: Parting | None
    where: Mapping[str, Mapping[str, Parting]]
    paradigms: Mapping[str, Parting]
    ratio: tuple[float, float, float] | None = None
    triplets: Sequence[Triplet] = field(default=(), repr=False)

    @property
    def names(self) -> str:
        """Names of both models."""
        return f"{self.model_1} and {self.model_2}"

    @property
    def ratio_text(self) -> str:
        """The ratio with one decimal, and its interval in brackets."""
        values = self.ratio or (nan, nan, nan)
        ratio, low, high = (f"{value:.1f}" for value in values)
        return f"{ratio} [{low}, {high}]".replace("inf", "∞").replace("nan", "undefined")


def find_differences(
    scores: ScoreTable,
    natural: Sequence[Sentence],
    changes: Sequence[Change],
    pairs: Sequence[SentencePair],
    table: TagTable,
    triplets: Sequence[Triplet] = (),
    baseline: str = "",
    seed: int = 0,
) -> list[Difference]:
    """Compute where every two models part.

    The baseline, if any, is only compared with the first model. This comparison is the last
    element of the result.

    There must be at least two natural sentences, all different, and at least one change of a
    natural sentence. `scores` has a row for each sentence in the arguments, and a column for each
    model. `seed` is the seed of the bootstrap.
    """
    names = [name for name in scores.models if name != baseline]
    model_pairs = [*combinations(names, 2)] + [(names[0], baseline)] * bool(baseline)
    of_natural = scores.of(natural)
    agreements = {(row["model_1"], row["model_2"]): row for row in model_agreements(of_natural)}
    of_changes = _preferences(scores, [(c.natural, c.changed) for c in changes])
    of_pairs = _preferences(scores, [(pair.good, pair.bad) for pair in pairs])
    clusters = of_natural.rows_of(change.natural for change in changes)
    properties = table_of(change.properties(table) for change in changes)
    each_pair, paradigms = np.arange(len(pairs)), [pair.paradigm for pair in pairs]
    rows = {pair: [*map(scores.models.index, pair)] for pair in model_pairs}
    baseline_changed = of_changes[rows[model_pairs[-1]]]
    differences = []
    for a, b in model_pairs:
        changed, paired = of_changes[rows[a, b]], of_pairs[rows[a, b]]
        where = {
            name: _by_value(changed, clusters, values, _MIN_SENTENCES)
            for name, values in properties.items()
        }
        by_paradigm = _by_value(paired, each_pair, paradigms, _MIN_PAIRS)
        of_models = (_with_first(t, a) for t in triplets if {t.model_1, t.model_2} == {a, b})
        differences.append(
            Difference(
                a,
                b,
                spearman=agreements[a, b]["spearman"],
                reordered=1 - agreements[a, b]["agreement"],
                changes=Parting.of(changed, clusters),
                pairs=Parting.of(paired, each_pair) if pairs else None,
                where={name: shares for name, shares in where.items() if len(shares) > 1},
                paradigms={name: share for name, share in by_paradigm.items() if share.share},
                ratio=_ratio(changed, baseline_changed, clusters, seed) if baseline else None,
                triplets=sorted(of_models, key=lambda triplet: -min(triplet.drops)),
            )
        )
    return differences


def _with_first(triplet: Triplet, model: str) -> Triplet:
    """Return the triplet with `model` as model_1."""
    if triplet.model_1 == model:
        return triplet
    # Swap 1 and 2 in the names of all fields, so that the models and their sentences change places
    values = vars(triplet).items()
    return replace(triplet, **{name.translate(_SWAPPED): value for name, value in values})


def _preferences(scores: ScoreTable, pairs: Sequence[tuple[Sentence, Sentence]]) -> FloatArray:
    """Return the preference of each model in each pair, (n_models, n_pairs).

    It is 1 for the first sentence, -1 for the second sentence, 0 for equal scores.
    """
    rows = scores.rows_of(sentence for pair in pairs for sentence in pair).reshape(-1, 2)
    first, second = scores.log_probs[rows[:, 0]], scores.log_probs[rows[:, 1]]
    preferences: FloatArray = np.subtract(first > second, first < second, dtype=np.float64).T
    return preferences


def _by_value(
    preferences: FloatArray, clusters: IntArray, values: Sequence[str], least: int
) -> dict[str, Parting]:
    """Return value → share, highest share first.

    `values` has the value of each comparison. Values in fewer than `least` clusters are omitted.
    """
    partings = {
        value: Parting.of(preferences[:, rows], clusters[rows])
        for value, rows in grouped((value, row) for row, value in enumerate(values)).items()
        if len(np.unique(clusters[rows])) >= least
    }
    return dict(sorted(partings.items(), key=lambda item: -item[1].share))


def _ratio(
    preferences: FloatArray, baseline: FloatArray, clusters: IntArray, seed: int
) -> tuple[float, float, float]:
    """Return the ratio of two shares, and its percentile bootstrap interval over sentences.

    `preferences` gives the first share, and `baseline` the second. For the format of the arguments,
    see `Parting.of`.
    """
    n_sentences = int(clusters.max()) + 1
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(n_sentences, [1 / n_sentences] * n_sentences, size=_DRAWS)
    counts = [np.bincount(clusters, p.prod(axis=0) < 0) for p in (preferences, baseline)]
    # The first row has each sentence once, so it gives the ratio without resampling
    sums = np.vstack([np.ones(n_sentences), draws]) @ np.transpose(counts)  # (1 + draws, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, *of_draws = (sums[:, 0] / sums[:, 1]).tolist()
    # Do not interpolate, because the ratio of a bootstrap sample may be infinite
    drawn = [value for value in of_draws if not isnan(value)] or [nan]
    low, high = np.quantile(drawn, (0.025, 0.975), method="inverted_cdf").tolist()
    return ratio, low, high
