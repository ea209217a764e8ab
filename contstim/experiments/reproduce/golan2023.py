"""Reproduction of experiment 1 of Golan et al. (2023), with 100 participants and nine models."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import measures
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.families import CEILING
from contstim.experiments.analysis.ratings import Ratings, Scope
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.reproduce.published import read_experiment, read_stimulus_scores
from contstim.items.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    Claim = tuple[str, str, str]  # about, published, ours

# Published results of the models, in the order of `_ORDER`. `_CORRECT`: number of choices that the
# model predicts, of 900 choices on random pairs. `_COSINES`: signed-rank cosine over all trials.
_CORRECT = "675 641 637 643 631 637 605 605 585"
_COSINES = ".626882 .602620 .569057 .507873 .452131 .444224 .308928 .323389 .269957"
_ORDER = ("gpt2", "roberta", "electra", "bert", "xlm", "lstm", "rnn", "trigram", "bigram")
_SIZE = "16,500 of 100 participants in 10 groups"
_TRIALS = "9 random, 36 natural, 72 natural vs. synthetic, 36 synthetic, 12 catch"
_UNANIMOUS = (
    "47 of 90 random, 132 of 360 natural, 487 of 720 natural vs. synthetic, 216 of 360 synthetic"
)
_SAMPLING = Sampling("groups", catch_trials=True)  # published overall results include catch trials
_CONDITIONS = {
    Condition.RANDOM_NATURAL: "random",
    Condition.NATURAL_CONTROVERSIAL: "natural",
    Condition.NATURAL_SYNTHETIC: "natural vs. synthetic",
    Condition.SYNTHETIC_SYNTHETIC: "synthetic",
    Condition.CATCH: "catch",
}


def locate(data: Path | str, ratings: Path | str | None = None) -> tuple[Path, Path]:
    """Find the repository dpmlab/contstimlang and the file of ratings in a folder.

    Args:
        data: a folder with two folders: `contstimlang` is a copy of dpmlab/contstimlang, and
            `contstimlang-fork` is a copy of LpZamora/contstimlang. If `ratings` is passed, `data`
            may also be a copy of dpmlab/contstimlang itself.
        ratings: path of the file of ratings; by default the file `data` in `contstimlang-fork`.

    Raises:
        InputError: if the repository or the file is missing.
    """
    data = Path(data)
    folder = next((f for f in (data / "contstimlang", data) if (f / "resources").is_dir()), None)
    if folder is None:
        raise InputError(
            f"{data} contains no published data. Name a copy of the repository "
            "dpmlab/contstimlang, or a folder that contains this copy as contstimlang."
        )
    file = Path(ratings) if ratings else data / "contstimlang-fork" / "data"
    if not file.is_file():
        raise InputError(
            f"The ratings are missing: there is no file {file}. Name the file of ratings from "
            "the repository LpZamora/contstimlang (`ratings`)."
        )
    return folder, file


def analyze_golan2023(
    folder: Path | str,
    ratings: Path | str,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Analysis:
    """Analyse the published experiment with `analyze`; overall results include catch trials.

    Raises:
        InputError: if a file is missing, or its content does not have the published form.
    """
    trials, responses = read_experiment(folder, ratings)
    scores = read_stimulus_scores(folder)
    return analyze(trials, responses, scores, sampling=_SAMPLING, progress=progress)


def claims(analysis: Analysis) -> list[Claim]:
    """Return (topic, published result, our result) for each claim, in the paper's order."""
    parts = (_size_claims, _random_pair_claims, _controversial_pair_claims, _overall_claims)
    return [claim for part in parts for claim in part(analysis)]


def _size_claims(analysis: Analysis) -> Iterator[Claim]:
    groups, people = analysis.ratings.groups, len(analysis.ratings.participants)
    sizes = sum(group.ratings.size for group in groups)
    yield "ratings", _SIZE, f"{sizes:,} of {people:,} participants in {len(groups)} groups"
    designs = {
        ", ".join(f"{counts[c]} {name}" for c, name in _CONDITIONS.items())
        for counts in (Counter(trial.condition for trial in group.trials) for group in groups)
    }
    yield "trials of each participant", _TRIALS, "; ".join(sorted(designs))
    yield "participants left out", "0", f"{len(analysis.admission.excluded)}"


def _random_pair_claims(analysis: Analysis) -> Iterator[Claim]:
    result = analysis.result(Scope.RANDOM, measures.ACCURACY)
    # Number of correctly predicted choices; a tie counts one half
    scores = result.evaluation
    sums = dict(zip(scores.models, (scores.values * scores.n_trials).sum(axis=0), strict=True))
    ours = _join_with_models(f"{sums[model]:g}" for model in _ORDER)
    yield "random pairs: choices predicted, of 900", _join_with_models(_CORRECT.split()), ours
    ceiling = f"{_decimals(scores.lower.mean())} to {_decimals(scores.upper.mean())}"
    yield "random pairs: noise ceiling", ".748889 to .810000", ceiling
    differ = sum(len(result.beaten_by(model)) for model in _ORDER)
    compared = sum(comparison.second != CEILING for comparison in result.comparisons)
    yield "random pairs: models that differ", "0 of 36 pairs", f"{differ} of {compared} pairs"
    # Entries above the diagonal: each pair of models once
    agreement = analysis.agreement[Condition.RANDOM_NATURAL]
    above = np.triu_indices(len(agreement), 1)
    shares = agreement[above]
    yield "random pairs: models agree on", "84.5 %", f"{100 * shares.mean():.1f} %"
    for about, published, index in (
        ("least", "gpt2 and rnn, 75.56 %", shares.argmin()),
        ("most", "gpt2 and roberta, 93.33 %", shares.argmax()),
    ):
        names = sorted(analysis.ratings.models[side[index]] for side in above)
        ours = f"{' and '.join(names)}, {100 * shares[index]:.2f} %"
        yield f"random pairs: models that agree {about}", published, ours


def _controversial_pair_claims(analysis: Analysis) -> Iterator[Claim]:
    better = analysis.result(Scope.NATURAL, measures.ACCURACY).beaten_by("gpt2")
    worse = _join_models(set(_ORDER) - {"gpt2", "roberta"})
    yield "natural controversial pairs: gpt2 is better than", worse, _join_models(better)
    for scope, about, published in (
        (Scope.NATURAL, "natural controversial pairs", "gpt2, roberta, electra"),
        (Scope.SYNTHETIC, "synthetic controversial pairs", "gpt2"),
        (Scope.ACCEPT, "natural vs. synthetic, models that accept the synthetic sentence", "none"),
        (
            Scope.REJECT,
            "natural vs. synthetic, models that reject the synthetic sentence",
            ", ".join(_ORDER),
        ),
    ):
        below = analysis.result(scope, measures.ACCURACY).below_ceiling()
        yield f"{about}: not below the ceiling", published, _join_models(set(_ORDER) - below)


def _overall_claims(analysis: Analysis) -> Iterator[Claim]:
    result = analysis.result(Scope.OVERALL, measures.COSINE)
    scores = result.evaluation
    means = dict(zip(scores.models, scores.values.mean(axis=0), strict=True))
    ours = _join_with_models(_decimals(means[model]) for model in _ORDER)
    yield "all trials: signed-rank cosine", _join_with_models(_COSINES.split()), ours
    lower = _published_ceiling(analysis.ratings)
    ceiling = f"{_decimals(lower)} to {_decimals(scores.upper.mean())}"
    yield "all trials: noise ceiling of the cosine", ".720220 to .773509", ceiling
    # In the paper, each of the first three models is significantly better than the next.
    for better, worse in pairwise(_ORDER[:4]):
        ours = "significantly" if worse in result.beaten_by(better) else "not significantly"
        yield f"all trials: {better} is better than {worse}", "significantly", ours
    (cell,) = (r for r in analysis.roles if (r["accept"], r["reject"]) == ("gpt2", "bigram"))
    about = "gpt2 accepts, bigram rejects: people prefer the synthetic sentence"
    yield about, "22 of 100", f"{cell['prefer_synthetic']} of {cell['ratings']}"
    unanimous = {row["condition"]: row for row in analysis.unanimity}
    ours = ", ".join(
        f"{unanimous[c]['near_unanimous']} of {unanimous[c]['trials']} {name}"
        for c, name in _CONDITIONS.items()
        if c is not Condition.CATCH
    )
    yield "at least nine of ten people agree on", _UNANIMOUS, ours


def _published_ceiling(ratings: Ratings) -> float:
    """Compute the lower noise ceiling of the cosine from unrounded means, as in the paper.

    Means that are equal in exact arithmetic may differ in the last bit of the floating-point
    numbers. In this case, their ranks differ, too. `analyze` rounds the means, so that their ranks
    are equal.
    """
    cosines: list[float] = []
    for group in ratings.groups:
        ranks = measures.signed_ranks(group.preferences)
        unit = ranks / np.sqrt(measures.rank_squares(ranks))[:, None]
        others = [np.delete(unit, person, axis=0).mean(axis=0) for person in range(len(unit))]
        # Row i, column j: cosine of participant i with the mean of all participants except j. Only
        # the diagonal compares a participant with the others.
        matrix = measures.signed_rank_cosine(np.stack(others), group.preferences)
        cosines += np.diag(matrix).tolist()
    return float(np.mean(cosines))


def _join_models(models: Collection[str]) -> str:
    return ", ".join(model for model in _ORDER if model in models) or "none"


def _join_with_models(values: Iterable[str]) -> str:
    return ", ".join(f"{model} {value}" for model, value in zip(_ORDER, values, strict=True))


def _decimals(value: float) -> str:
    return f"{value:.6f}".removeprefix("0")
