"""Numbers that follow from a study's design: items, trials, minutes, sentences that it needs."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING

from contstim.errors import ContstimError
from contstim.experiments.design.golan2023 import SECONDS_PER_TRIAL
from contstim.experiments.design.sentence_needs import SentenceNeeds, sentences_needed
from contstim.files.files import is_file
from contstim.items.counts import read_pair_counts
from contstim.study.places import StudyFiles
from contstim.study.study import embedded_text

if TYPE_CHECKING:
    from contstim.study.study import Study

ModelPair = tuple[str, str]


class StudyNumbers:
    """Numbers that follow from the design; 0 of what a study does not have.

    Attributes:
        models: that are compared.
        searched_each: triplets that are searched for each pair of models.
        searched: triplets that are searched, in all.
        selected_of: triplets that become trials of every pair of models.
        selected: triplets that become trials, in all.
        pairs_of: natural pairs of every pair of models.
        pairs_each: natural pairs of a pair of models without a number of its own.
        natural_pairs: natural pairs, in all.
        minimal_pairs: minimal pairs, in all.
        model_pairs: pairs of models.
        groups: of participants.
        random_per_group: random natural pairs.
        catch_per_group: catch trials.
        trials: in all groups.
        trials_each: trials for a participant, at most.
        minutes: for a participant, without pauses and instructions.
        new_sentences: sentences of the trials that are not natural sentences of the study.
    """

    def __init__(self, study: Study) -> None:
        sections, design = study.sections, study.sections.get("design")
        self.models = len(study.models)
        self.searched_each: int = sections["triplets"].per_pair if "triplets" in sections else 0
        self.pairs_each: int = sections["pairs"].per_pair if "pairs" in sections else 0
        selected = sections["selection"].per_pair if "selection" in sections else None
        each = self.searched_each if selected is None else selected
        self.selected_of = _of_pairs(study, "selection", each)
        self.pairs_of = _of_pairs(study, "pairs", self.pairs_each)
        self.model_pairs = len(self.pairs_of)
        self.searched = self.model_pairs * self.searched_each
        self.selected, self.natural_pairs = (
            sum(numbers.values()) for numbers in (self.selected_of, self.pairs_of)
        )
        minimal = sections.get("minimal_pairs")
        self.minimal_pairs: int = self.model_pairs * minimal.per_pair if minimal else 0
        self.groups: int = design.groups if design else 0
        self.random_per_group: int = design.random_per_group if design else 0
        self.catch_per_group: int = design.catch_per_group if design else 0
        fillers = self.groups * (self.random_per_group + self.catch_per_group)
        each = 3 if design and design.twins else 1  # trials of a triplet
        of_items = each * self.selected + self.natural_pairs + self.minimal_pairs
        self.trials = of_items + fillers if self.groups else 0
        self.trials_each = -(-self.trials // self.groups) if self.groups else 0
        seconds: float = design.seconds_per_trial if design else SECONDS_PER_TRIAL
        self.minutes = self.trials_each * seconds / 60
        # Two synthetic sentences of each triplet, two of each minimal pair, and the shuffled one of
        # each catch trial
        of_items = 2 * (self.selected + self.minimal_pairs)
        self.new_sentences = of_items + self.groups * self.catch_per_group

    @property
    def needs(self) -> SentenceNeeds | None:
        """Natural sentences that the study needs, where each serves once; None for none."""
        if self.models < 2:
            return None
        needs = sentences_needed(
            self.models,
            # Pairs of models share natural sentences, except those of selected triplets
            triplets_per_pair=-(-max(self.selected, self.searched_each) // self.model_pairs),
            pairs_per_pair=self.pairs_each,
            groups=self.groups,
            random_per_group=self.random_per_group,
            catch_per_group=self.catch_per_group,
        )
        return needs if needs.in_all else None


def _of_pairs(study: Study, section: str, per_pair: int) -> dict[ModelPair, int]:
    """The number of each pair of models: of the file of counts, or that of all."""
    file = getattr(study.sections.get(section), "counts", None)
    own: dict[ModelPair, int] = {}
    if file is not None:
        with suppress(ContstimError):  # `feasibility` says why
            own = read_pair_counts(file)
    names = [model.name for model in study.models]
    return {pair: own.get(pair, per_pair) for pair in combinations(names, 2)}


def most_sentences(study: Study) -> int | None:
    """No more natural sentences than these can come of the study's text; None where unknown."""
    if (embedded := embedded_text(study.texts.natural)) is not None:
        return embedded
    files = StudyFiles(study)
    path = files.natural if files.natural_text is None else files.natural_text
    if path is None or study.texts.prose or not is_file(path):
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
