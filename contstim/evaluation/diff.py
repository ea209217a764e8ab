"""Where models part: on natural sentences, one-word changes, minimal pairs and synthetic sentences.

A change replaces a word of a natural sentence by a random word of the same part of speech. Two
models part on a change if one prefers the natural and the other one the changed sentence:

    The dog sleeps soundly  →  The idea sleeps soundly    both prefer the first: they do not part
    The dog sleeps soundly  →  The dog sleeps badly       only one prefers the first: they part

The share of changes on which two models part, by properties of the replaced word, shows where they
part. In the same way, they part on a minimal pair if only one of them prefers the good sentence.
Shares depend on preferences alone, so that the scores of the models may have different units.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.comparison import model_agreements
from contstim.items.scores import ScoreTable
from contstim.optimization.search.constraints import Candidates, capitals, no_repeats
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.items.minimal_pair_scores import SentencePair
    from contstim.items.stimuli import Triplet
    from contstim.optimization.search.settings import SearchSettings
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable
    from contstim.words.vocabulary import Vocabulary

_RARE, _FREQUENT = 4.0, 5.0  # limits of the classes of word frequency, on the Zipf scale
_MIN_SENTENCES = 10  # sentences that a value of a property needs to be reported
_DRAWS = 2_000  # bootstrap samples


@dataclass(frozen=True)
class Change:
    """A natural sentence, and the same sentence with another word at a 0-based position."""

    natural: Sentence
    position: int
    changed: Sentence

    def properties(self, table: TagTable) -> dict[str, str]:
        """Return property → value, such as `part of speech` → `noun`, of the replaced word."""
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
    """Replace each word of each sentence by a random one that the constraints of a search allow."""
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

    Attributes:
        share: share of the comparisons.
        low, high: 95 % interval, which generalises to other sentences.
        n: number of comparisons.
    """

    share: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, parted: BoolArray, clusters: IntArray) -> Parting:
        """Compute the share and its interval from one or more comparisons.

        The interval is Wilson's (1927) with the effective sample size (Korn & Graubard 1998), since
        comparisons of one sentence are not independent.

        Args:
            parted: whether the models part, (n_comparisons,).
            clusters: index of the natural sentence of each comparison, (n_comparisons,).
        """
        from statsmodels.stats.proportion import proportion_confint

        n_parted, n = np.bincount(clusters, parted), np.bincount(clusters)
        n_parted, n = n_parted[n > 0], n[n > 0]
        share, k, total = float(parted.mean()), len(n), len(parted)
        variance = ((n_parted - share * n) ** 2).sum() * k / max(k - 1, 1) / total**2
        # Without variance, the number of sentences is the cautious choice
        effective = min(share * (1 - share) / variance if variance else k, total)
        low, high = proportion_confint(share * effective, effective, method="wilson")
        return cls(share, float(low), float(high), total)

    def __str__(self) -> str:
        return f"{self.share:.0%} [{self.low:.0%}, {self.high:.0%}]"


@dataclass(frozen=True)
class ParadigmParting:
    """Verdicts of two models on the minimal pairs of a paradigm.

    Attributes:
        name: name of the paradigm.
        accuracy_1, accuracy_2: share of pairs whose good sentence each model prefers.
        parting: share of pairs on which they part.
    """

    name: str
    accuracy_1: float
    accuracy_2: float
    parting: Parting


@dataclass(frozen=True)
class Difference:
    """Where two models part.

    Attributes:
        model_1, model_2: names of the models.
        spearman: correlation of ranks of the natural sentences.
        reordered: share of pairs of natural sentences that the models order differently.
        changes: share of changes on which they part.
        pairs: share of minimal pairs on which they part.
        where: property → its values, the one with the highest share first → share of changes.
        paradigms: paradigms on which they part, the one with the highest share first.
        ratio: ratio of the share of changes to that of the first model and the baseline, with its
            95 % bootstrap interval over sentences; None without a baseline.
        triplets: natural sentences, and synthetic ones that one of the models rejects; those with
            the largest smaller drop first.
    """

    model_1: str
    model_2: str
    spearman: float
    reordered: float
    changes: Parting
    pairs: Parting
    where: Mapping[str, Mapping[str, Parting]]
    paradigms: Sequence[ParadigmParting]
    ratio: tuple[float, float, float] | None = None
    triplets: Sequence[Triplet] = field(default=(), repr=False)


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
    """Compute where every two models part; the last difference is that from the baseline.

    Args:
        scores: scores of the sentences of all other arguments, under two models or more.
        natural: two natural sentences or more, all different.
        changes: one or more changes of these sentences.
        pairs: minimal pairs.
        table: tags and frequencies of words.
        triplets: triplets of pairs of models.
        baseline: model of `scores` that is compared only with the first one; empty for none.
        seed: seed of the bootstrap.
    """
    names = [name for name in scores.models if name != baseline]
    model_pairs = [*combinations(names, 2)] + [(names[0], baseline)] * bool(baseline)
    of_natural = scores.log_probs[scores.rows_of(natural)]
    agreements = model_agreements(ScoreTable(tuple(natural), scores.models, of_natural))
    preferences = _preferences(scores, [(c.natural, c.changed) for c in changes])
    verdicts = _preferences(scores, [(pair.good, pair.bad) for pair in pairs])
    numbers = {sentence: number for number, sentence in enumerate(natural)}
    clusters = np.array([numbers[change.natural] for change in changes])
    properties = [change.properties(table) for change in changes]
    paradigms = grouped((pair.paradigm, row) for row, pair in enumerate(pairs))
    parted = {(a, b): preferences[a] * preferences[b] < 0 for a, b in model_pairs}
    differences = []
    for a, b in model_pairs:
        agreement = next(r for r in agreements if {r["model_1"], r["model_2"]} == {a, b})
        by_paradigm = (
            _verdicts(name, verdicts[a][r], verdicts[b][r]) for name, r in paradigms.items()
        )
        differences.append(
            Difference(
                a,
                b,
                spearman=agreement["spearman"],
                reordered=1 - agreement["agreement"],
                changes=Parting.of(parted[a, b], clusters),
                pairs=Parting.of(verdicts[a] * verdicts[b] < 0, np.arange(len(pairs))),
                where=_by_property(parted[a, b], clusters, properties),
                paradigms=sorted(
                    (p for p in by_paradigm if p.parting.share), key=lambda p: -p.parting.share
                ),
                ratio=_ratio(parted[a, b], parted[model_pairs[-1]], clusters, seed)
                if baseline
                else None,
                triplets=sorted(
                    (_with_first(t, a) for t in triplets if {t.model_1, t.model_2} == {a, b}),
                    key=lambda t: -min(t.drops),
                ),
            )
        )
    return differences


def _with_first(triplet: Triplet, model: str) -> Triplet:
    """Exchange the two models of a triplet if necessary, so that `model` is the first."""
    if triplet.model_1 == model:
        return triplet
    pairs = [
        ("model_1", "model_2"),
        ("synthetic_1", "synthetic_2"),
        ("judge_drop_1", "judge_drop_2"),
    ]
    pairs += [("sd_1", "sd_2"), ("unit_1", "unit_2")]
    kinds = (("natural", "natural"), ("synthetic_1", "synthetic_2"), ("synthetic_2", "synthetic_1"))
    pairs += [(f"log_prob_{x}_model_1", f"log_prob_{y}_model_2") for x, y in kinds]
    values = vars(triplet)
    return replace(triplet, **{x: values[y] for pair in pairs for x, y in (pair, pair[::-1])})


def _preferences(
    scores: ScoreTable, pairs: Sequence[tuple[Sentence, Sentence]]
) -> dict[str, FloatArray]:
    """Return model → 1 if it prefers the first sentence, -1 the second, 0 neither, (n_pairs,)."""
    first, second = (scores.log_probs[scores.rows_of([*side])] for side in zip(*pairs, strict=True))
    return dict(zip(scores.models, ((first > second) * 1.0 - (first < second)).T, strict=True))


def _verdicts(name: str, first: FloatArray, second: FloatArray) -> ParadigmParting:
    """Compare the preferences of two models on the minimal pairs of a paradigm, (n_pairs,) each."""
    one, two = (float((preferences > 0).mean()) for preferences in (first, second))
    return ParadigmParting(name, one, two, Parting.of(first * second < 0, np.arange(len(first))))


def _by_property(
    parted: BoolArray, clusters: IntArray, properties: Sequence[Mapping[str, str]]
) -> dict[str, dict[str, Parting]]:
    """Return property → value → share; only values that occur in at least ten sentences."""
    shares: dict[str, dict[str, Parting]] = {}
    for name in properties[0]:
        of_values = grouped((values[name], row) for row, values in enumerate(properties))
        partings = {
            value: Parting.of(parted[rows], clusters[rows])
            for value, rows in of_values.items()
            if len({*clusters[rows].tolist()}) >= _MIN_SENTENCES
        }
        if len(partings) > 1:
            best_first = sorted(partings.items(), key=lambda item: -item[1].share)
            shares[name] = dict(best_first)
    return shares


def _ratio(
    parted: BoolArray, baseline: BoolArray, clusters: IntArray, seed: int
) -> tuple[float, float, float]:
    """Return the ratio of two shares, and its percentile bootstrap interval over sentences."""
    n_sentences = int(clusters.max()) + 1
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(n_sentences, [1 / n_sentences] * n_sentences, size=_DRAWS)
    counts = [np.bincount(clusters, mask, minlength=n_sentences) for mask in (parted, baseline)]
    # The first row has all sentences once, so that its ratio is that of the sample
    sums = np.vstack([np.ones(n_sentences), draws]) @ np.transpose(counts)  # (1 + draws, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, *of_draws = (sums[:, 0] / sums[:, 1]).tolist()
    low, high = np.nanpercentile(of_draws, (2.5, 97.5)).tolist()
    return ratio, low, high
