"""Size of a study's design: items, trials, minutes, and sentences to score."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from contstim.counts import read_pair_counts
from contstim.errors import ContstimError
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.study.feasibility import counts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.study.study import Study


@dataclass(frozen=True)
class StudyNumbers:
    """Numbers that follow from the design.

    Attributes:
        models: that are compared.
        model_pairs: every two of them.
        searched: triplets that are searched, in all.
        selected: triplets that become trials, three each, in all.
        natural_pairs: in all.
        groups: of participants; 0 without a design, as for all below.
        trials: in all groups.
        trials_each: for a participant, at most.
        minutes: for a participant, pauses and instructions left out.
        new_sentences: of the trials, that are not natural sentences of the study.
    """

    models: int
    model_pairs: int
    searched: int
    selected: int
    natural_pairs: int
    groups: int
    trials: int
    trials_each: int
    minutes: float
    new_sentences: int


def numbers_of(study: Study) -> StudyNumbers:
    """Numbers that follow from a study's design, with the numbers of single model pairs."""
    counts, design = counts_of(study), study.sections.get("design")
    selected = sum(_of_pairs(study, "selection", counts.selected))
    natural_pairs = sum(_of_pairs(study, "pairs", counts.pairs))
    fillers = counts.groups * (counts.random_per_group + counts.catch_per_group)
    trials = 3 * selected + natural_pairs + fillers if counts.groups else 0
    each = -(-trials // counts.groups) if counts.groups else 0
    seconds = SECONDS_PER_TRIAL if design is None else design.seconds_per_trial
    return StudyNumbers(
        counts.models,
        counts.model_pairs,
        counts.model_pairs * counts.searched,
        selected,
        natural_pairs,
        counts.groups,
        trials,
        each,
        each * seconds / 60,
        # Two synthetic sentences of each triplet, and the shuffled one of each catch trial
        2 * selected + counts.groups * counts.catch_per_group,
    )


def _of_pairs(study: Study, section: str, per_pair: int) -> list[int]:
    """The number of each pair of models: of the file of counts, or that of all."""
    names = [model.name for model in study.models]
    file = getattr(study.sections.get(section), "counts", None)
    own: dict[tuple[str, str], int] = {}
    if file is not None:
        try:
            own = read_pair_counts(file)
        except ContstimError:
            own = {}  # `count_cautions` says why
    return [own.get(pair, per_pair) for pair in combinations(names, 2)]


def count_cautions(study: Study) -> Iterator[str]:
    """Errors in the numbers of single model pairs, which a stage would refuse."""
    names = [model.name for model in study.models]
    counts = counts_of(study)
    for name in ("pairs", "selection"):
        settings = study.sections.get(name)
        file = getattr(settings, "counts", None)
        if settings is None or file is None:
            continue
        try:
            own = read_pair_counts(file)
        except ContstimError as error:
            yield f"[{name}] counts: {error}"
            continue
        pairs = list(combinations(names, 2))
        for pair in own.keys() - set(pairs):
            yield (
                f"[{name}] counts: {file} has a number for {', '.join(pair)}, which are not two "
                f"models of the study in its order: {', '.join(names)}."
            )
        for pair in pairs:
            number = own.get(pair, settings.per_pair)
            between = f"{pair[0]} and {pair[1]}"
            if name == "selection" and number > counts.searched:
                yield (
                    f"[selection] counts: {number} triplets of {between} cannot be selected from "
                    f"the {counts.searched} that are searched for each pair."
                )
            quantiles = getattr(settings, "quantiles", 0)
            if quantiles and number % quantiles:
                yield (
                    f"[selection] counts: {number} triplets of {between} cannot be spread evenly "
                    f"over {quantiles} quantiles."
                )
            if counts.groups and number % counts.groups:
                yield (
                    f"[{name}] counts: {number} of {between} cannot be dealt out evenly to "
                    f"{counts.groups} groups."
                )
