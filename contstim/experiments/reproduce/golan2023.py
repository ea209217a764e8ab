"""Experiment 1 of Golan et al. (2023): 100 people, nine models, and what was concluded."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.families import CEILING
from contstim.experiments.analysis.measures import (
    ACCURACY,
    COSINE,
    rank_squares,
    signed_rank_cosine,
    signed_ranks,
)
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import analyze
from contstim.experiments.reproduce.claims import PublishedClaim
from contstim.experiments.reproduce.golan2023_data import read_experiment
from contstim.experiments.reproduce.published.reading import read_stimulus_scores
from contstim.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.run import Analysis

# By model, in the order of `_ORDER`: choices predicted of 900 on random pairs, and cosines over all
# trials.
_CORRECT = "675 641 637 643 631 637 605 605 585"
_COSINES = ".626882 .602620 .569057 .507873 .452131 .444224 .308928 .323389 .269957"
_ORDER = ("gpt2", "roberta", "electra", "bert", "xlm", "lstm", "rnn", "trigram", "bigram")
_TRIALS = "9 random, 36 natural, 72 natural vs. synthetic, 36 synthetic, 12 catch"
_UNANIMOUS = "47 of 90 random, 132 of 360 natural, 487 of 720 natural vs. synthetic, "
PUBLISHED_SAMPLING = Sampling("groups", intervals="percentile", catch_trials=True)
"""The published statistics: tests over groups, percentiles, catch trials in overall results."""
_CONDITIONS = {
    Condition.RANDOM_NATURAL: "random",
    Condition.NATURAL_CONTROVERSIAL: "natural",
    Condition.NATURAL_SYNTHETIC: "natural vs. synthetic",
    Condition.SYNTHETIC_SYNTHETIC: "synthetic",
    Condition.CATCH: "catch",
}


def locate(data: Path | str, ratings: Path | str | None = None) -> tuple[Path, Path]:
    """The repository dpmlab/contstimlang and the file of ratings in a folder of published data.

    Args:
        data: a folder with `contstimlang` and `contstimlang-fork/data`, or a checkout of
            contstimlang itself.
        ratings: the file of ratings, where it lies elsewhere.

    Raises:
        InputError: one of them is not there.
    """
    # A folder of both repositories, or a checkout of the first, where --ratings names the second's.
    data = Path(data)
    folder = next((f for f in (data / "contstimlang", data) if (f / "resources").is_dir()), None)
    if folder is None:
        raise InputError(
            f"{data} holds no published data: expected the repository dpmlab/contstimlang there, "
            f"or in {data / 'contstimlang'}."
        )
    file = Path(ratings) if ratings else data / "contstimlang-fork" / "data"
    if not file.is_file():
        raise InputError(
            f"There are no ratings in {file}. They are the file `data` of the repository "
            f"LpZamora/contstimlang; name it with --ratings."
        )
    return folder, file


def analyze_golan2023(
    folder: Path | str,
    ratings: Path | str,
    *,
    sampling: Sampling = PUBLISHED_SAMPLING,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Analysis:
    """Analyse the published experiment as any other.

    Args:
        folder: the repository dpmlab/contstimlang.
        ratings: the file of ratings.
        sampling: see `analyze`; by default as published. Catch trials count in any case.
        progress: see `analyze`.

    Raises:
        InputError: a file is missing or is not what was published.
    """
    trials, responses = read_experiment(folder, ratings)
    scores = read_stimulus_scores(folder)
    sampling = replace(sampling, catch_trials=True)
    return analyze(trials, responses, scores, sampling=sampling, progress=progress)


def claims(analysis: Analysis) -> tuple[PublishedClaim, ...]:
    """Every claim, in the paper's order of conditions."""
    return tuple(
        PublishedClaim(about, published, ours)
        for part in (_size, _random, _controversial, _overall)
        for about, published, ours in part(analysis)
    )


def _size(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    ratings = analysis.ratings
    sizes = sum(group.ratings.size for group in ratings.groups)
    people = len(ratings.participants)
    yield (
        "ratings",
        "16,500 of 100 participants in 10 groups",
        f"{sizes:,} of {people:,} participants in {len(ratings.groups)} groups",
    )
    # Counts of trials by condition, a dictionary for each design that some group has: one, if all
    # participants saw as many of each.
    each = {tuple(Counter(t.condition for t in g.trials).items()) for g in ratings.groups}
    designs = {frozenset(counts): dict(counts) for counts in each}
    ours = "; ".join(
        ", ".join(f"{counts.get(c, 0)} {name}" for c, name in _CONDITIONS.items())
        for counts in designs.values()
    )
    yield "trials of each participant", _TRIALS, ours
    yield "participants left out", "0", f"{len(analysis.admission.excluded)}"


def _random(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    result = analysis.result(Scope.RANDOM, ACCURACY)
    # A participant's accuracy times their number of trials is how many choices were predicted; a
    # tie makes it a half.
    scores = result.evaluation
    sums = dict(zip(scores.models, (scores.values * scores.n_trials).sum(axis=0), strict=True))
    yield (
        "random pairs: choices predicted, of 900",
        _listed(_CORRECT.split()),
        _listed(f"{sums[model]:g}" for model in _ORDER),
    )
    yield (
        "random pairs: noise ceiling",
        ".748889 to .810000",
        f"{_digits(scores.lower.mean())} to {_digits(scores.upper.mean())}",
    )
    differ = sum(len(result.beaten_by(model)) for model in _ORDER)
    compared = sum(comparison.second != CEILING for comparison in result.comparisons)
    yield "random pairs: models that differ", "0 of 36 pairs", f"{differ} of {compared} pairs"
    # Of the symmetric matrix (n_models, n_models) what lies above the diagonal: each pair once.
    agreement = analysis.agreement[Condition.RANDOM_NATURAL]
    above = np.triu_indices(len(agreement), 1)
    shares = agreement[above]
    yield "random pairs: models agree on", "84.5 %", f"{100 * shares.mean():.1f} %"
    for about, published, place in (
        ("least", "gpt2 and rnn, 75.56 %", shares.argmin()),
        ("most", "gpt2 and roberta, 93.33 %", shares.argmax()),
    ):
        names = sorted(analysis.ratings.models[side[place]] for side in above)
        ours = f"{' and '.join(names)}, {100 * shares[place]:.2f} %"
        yield f"random pairs: models that agree {about}", published, ours


def _controversial(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    natural = analysis.result(Scope.NATURAL, ACCURACY)
    everyone = ", ".join(_ORDER)
    yield (
        "natural controversial pairs: not below the ceiling",
        "gpt2, roberta, electra",
        _not_below(natural),
    )
    yield (
        "natural controversial pairs: gpt2 is better than",
        _ordered(set(_ORDER) - {"gpt2", "roberta"}),
        _ordered(natural.beaten_by("gpt2")),
    )
    for scope, about, published in (
        (Scope.SYNTHETIC, "synthetic controversial pairs", "gpt2"),
        (Scope.ACCEPT, "natural vs. synthetic, accepting", "none"),
        (Scope.REJECT, "natural vs. synthetic, rejecting", everyone),
    ):
        result = analysis.result(scope, ACCURACY)
        yield f"{about}: not below the ceiling", published, _not_below(result)


def _overall(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    result = analysis.result(Scope.OVERALL, COSINE)
    scores = result.evaluation
    means = dict(zip(scores.models, scores.values.mean(axis=0), strict=True))
    yield (
        "all trials: signed-rank cosine",
        _listed(_COSINES.split()),
        _listed(_digits(means[model]) for model in _ORDER),
    )
    yield (
        "all trials: noise ceiling of the cosine",
        ".720220 to .773509",
        f"{_digits(_published_ceiling(analysis.ratings))} to {_digits(scores.upper.mean())}",
    )
    # The paper orders its first four models, each significantly better than the next.
    for better, worse in pairwise(_ORDER[:4]):
        beaten = worse in result.beaten_by(better)
        yield (
            f"all trials: {better} is better than {worse}",
            "significantly",
            "significantly" if beaten else "not significantly",
        )
    cells = [r for r in analysis.roles if (r["accept"], r["reject"]) == ("gpt2", "bigram")]
    yield (
        "gpt2 accepts, bigram rejects: people prefer the synthetic sentence",
        "22 of 100",
        ", ".join(f"{cell['prefer_synthetic']} of {cell['ratings']}" for cell in cells),
    )
    unanimous = {row["condition"]: row for row in analysis.unanimity}
    yield (
        "at least nine of ten people agree on",
        f"{_UNANIMOUS}216 of 360 synthetic",
        ", ".join(
            f"{unanimous[c]['near_unanimous']} of {unanimous[c]['trials']} {name}"
            for c, name in _CONDITIONS.items()
            if c is not Condition.CATCH
        ),
    )


def _published_ceiling(ratings: Ratings) -> float:
    """The lower noise ceiling of the cosine with means in floating point, as published.

    What ties in exact arithmetic, as in `analyze`, differs there in the last bit, and so in rank.
    """
    cosines = []
    for group in ratings.groups:
        ranks = signed_ranks(group.preferences)
        unit = ranks / np.sqrt(rank_squares(ranks, np.ones(ranks.shape)))[:, None]
        others = [np.delete(unit, person, axis=0).mean(axis=0) for person in range(len(unit))]
        # Each person's own cosine with the others: (n_participants, n_participants), its diagonal
        cosines.append(np.diag(signed_rank_cosine(np.stack(others), group.preferences)))
    return float(np.concatenate(cosines).mean())


def _not_below(result: Result) -> str:
    return _ordered(set(_ORDER) - result.below_ceiling())


def _ordered(models: Iterable[str]) -> str:
    chosen = set(models)
    return ", ".join(model for model in _ORDER if model in chosen) or "none"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(f"{model} {value}" for model, value in zip(_ORDER, values, strict=True))


def _digits(value: float) -> str:
    return f"{value:.6f}".removeprefix("0")
