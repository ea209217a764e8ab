"""Numbers that follow from a study's design: items, trials, minutes, sentences that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from contstim.counts import read_pair_counts
from contstim.errors import ContstimError
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.experiments.design.sentence_needs import SentenceNeeds, sentences_needed
from contstim.files import is_file
from contstim.study.places import StudyFiles
from contstim.study.study import embedded_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.study.study import Study

ModelPair = tuple[str, str]


@dataclass(frozen=True)
class StudyNumbers:
    """Numbers that follow from the design; 0 of what a study does not have.

    Attributes:
        models: that are compared.
        searched_each: triplets that are searched for each pair of models.
        selected_of: triplets that become trials, three each, of every pair of models.
        pairs_of: natural pairs of every pair of models.
        pairs_each: natural pairs of a pair of models without a number of its own.
        groups: of participants.
        random_per_group: random natural pairs.
        catch_per_group: catch trials.
        seconds_per_trial: that a trial takes.
    """

    models: int
    searched_each: int
    selected_of: Mapping[ModelPair, int]
    pairs_of: Mapping[ModelPair, int]
    pairs_each: int
    groups: int
    random_per_group: int
    catch_per_group: int
    seconds_per_trial: float

    @property
    def model_pairs(self) -> int:
        """Number of pairs of models."""
        return len(self.pairs_of)

    @property
    def searched(self) -> int:
        """Number of triplets that are searched, in all."""
        return self.model_pairs * self.searched_each

    @property
    def selected(self) -> int:
        """Number of triplets that become trials, in all."""
        return sum(self.selected_of.values())

    @property
    def natural_pairs(self) -> int:
        """Number of natural pairs, in all."""
        return sum(self.pairs_of.values())

    @property
    def trials(self) -> int:
        """Number of trials in all groups."""
        fillers = self.groups * (self.random_per_group + self.catch_per_group)
        return 3 * self.selected + self.natural_pairs + fillers if self.groups else 0

    @property
    def trials_each(self) -> int:
        """Number of trials for a participant, at most."""
        return -(-self.trials // self.groups) if self.groups else 0

    @property
    def minutes(self) -> float:
        """Minutes for a participant, without pauses and instructions."""
        return self.trials_each * self.seconds_per_trial / 60

    @property
    def new_sentences(self) -> int:
        """Number of sentences of the trials that are not natural sentences of the study."""
        # Two synthetic sentences of each triplet, and the shuffled one of each catch trial
        return 2 * self.selected + self.groups * self.catch_per_group

    @property
    def needs(self) -> SentenceNeeds | None:
        """Natural sentences that the study needs, where each serves once; None for none."""
        if self.models < 2 or (self.searched_each and 0 < self.groups < 3):
            return None
        needs = sentences_needed(
            self.models,
            triplets_per_pair=self.searched_each,
            pairs_per_pair=self.pairs_each,
            groups=self.groups,
            random_per_group=self.random_per_group,
            catch_per_group=self.catch_per_group,
        )
        return needs if needs.in_all else None


def numbers_of(study: Study) -> StudyNumbers:
    """Numbers that follow from a study's design, with those of single pairs of models."""
    sections, design = study.sections, study.sections.get("design")
    searched = sections["triplets"].per_pair if "triplets" in sections else 0
    pairs = sections["pairs"].per_pair if "pairs" in sections else 0
    selected = sections["selection"].per_pair if "selection" in sections else searched
    return StudyNumbers(
        len(study.models),
        searched,
        _of_pairs(study, "selection", selected),
        _of_pairs(study, "pairs", pairs),
        pairs,
        design.groups if design else 0,
        design.random_per_group if design else 0,
        design.catch_per_group if design else 0,
        design.seconds_per_trial if design else SECONDS_PER_TRIAL,
    )


def _of_pairs(study: Study, section: str, per_pair: int) -> dict[ModelPair, int]:
    """The number of each pair of models: of the file of counts, or that of all."""
    file = getattr(study.sections.get(section), "counts", None)
    own: dict[ModelPair, int] = {}
    if file is not None:
        try:
            own = read_pair_counts(file)
        except ContstimError:
            own = {}  # `feasibility` says why
    names = [model.name for model in study.models]
    return {pair: own.get(pair, per_pair) for pair in combinations(names, 2)}


def most_sentences(study: Study) -> int | None:
    """No more natural sentences than these can come of the study's text; None where unknown."""
    files = StudyFiles(study)
    text = study.texts.natural
    embedded = None if text is None else embedded_text(text)
    if embedded is not None:
        return embedded.sentences
    path = files.natural if files.natural_text is None else files.natural_text
    if path is None or study.texts.prose or not is_file(path):
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
