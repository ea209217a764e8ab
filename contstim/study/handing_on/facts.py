"""Facts in the records, certificates and tables of a study, read once for all texts about it."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_object
from contstim.records import record_path
from contstim.reviews import Review, read_reviews
from contstim.scale import Scale
from contstim.steps.design import DesignSettings, word_frequencies
from contstim.stimuli import (
    Condition,
    Kind,
    read_pairs,
    read_stimuli,
    read_trials,
    read_triplets,
)
from contstim.study.places import (
    ANALYSIS,
    PAIRS,
    SCORES,
    SELECTED,
    TRIAL_SCORES,
    TRIALS,
    TRIPLETS,
    VOCABULARY,
    StudyFiles,
)
from contstim.study.stages import responses_of, stages_of
from contstim.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.responses.table import Response
    from contstim.frequencies import WordFrequencies
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Trial, Triplet
    from contstim.study.study import Study


class StudyFacts:
    """The facts of a study; of what it has not done, none.

    The current folder is the study's.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.files = StudyFiles(study)
        self._written = {path for stage in stages_of(study) for path in stage.writes}

    def record(self, path: Path) -> dict[str, Any]:
        """The record of a file that a stage of the study writes; empty where there is none."""
        return self._beside(path, record_path(path))

    def vocabulary_record(self) -> dict[str, Any]:
        """The record of the vocabulary, with words counted in the file as it stands now."""
        record = self.record(VOCABULARY)
        if record and VOCABULARY.is_file():
            words = Vocabulary.load(VOCABULARY)
            now = {"initial": len(words.initial), "inner": len(words.inner)}
            record["words"] = {**record["words"], **now}
        return record

    def certificate(self, path: Path) -> dict[str, Any]:
        """The certificate of a table that a stage writes; empty where there is none."""
        return self._beside(path, Path(f"{path}.certificate.json"))

    def _beside(self, path: Path, record: Path) -> dict[str, Any]:
        # Files of stages that the study has no longer may lie about
        if self._written.isdisjoint((path, *path.parents)) or not record.is_file():
            return {}
        return read_json_object(record)

    @cached_property
    def conventions(self) -> dict[str, dict[str, Any]]:
        """Scoring convention of each model, by its name: rule, unit, fingerprint and the like."""
        for path in (SCORES, TRIAL_SCORES, TRIPLETS, VOCABULARY):
            models = self.record(path).get("models", {})
            if models:
                return {m.name: models[m.name] for m in self.study.models if m.name in models}
        return {}

    @cached_property
    def model_pairs(self) -> list[tuple[str, str]]:
        """Every two models, in the order of the study."""
        return list(combinations([model.name for model in self.study.models], 2))

    @cached_property
    def natural(self) -> Sequence[Sentence]:
        """The natural sentences."""
        path = self.files.natural
        return read_stimuli(path) if path is not None and path.is_file() else ()

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The natural pairs."""
        return read_pairs(PAIRS) if self._is_there(PAIRS) else ()

    @cached_property
    def found(self) -> Sequence[Triplet]:
        """The triplets that searches found."""
        return read_triplets(TRIPLETS) if self._is_there(TRIPLETS) else ()

    @cached_property
    def selected(self) -> Sequence[Triplet]:
        """The triplets that were selected among these."""
        return read_triplets(SELECTED) if self._is_there(SELECTED) else ()

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """The trials of all groups."""
        return read_trials(TRIALS) if self._is_there(TRIALS) else ()

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions that the trials have."""
        return [each for each in Condition if any(trial.condition is each for trial in self.trials)]

    @cached_property
    def groups(self) -> int:
        """Number of groups of participants."""
        return len({trial.group for trial in self.trials})

    def per_group(self, condition: Condition | None = None) -> int:
        """Number of trials for a participant, of a condition or all; the same in all groups."""
        return sum(
            trial.group == 1 and condition in (None, trial.condition) for trial in self.trials
        )

    @cached_property
    def review(self) -> Review | None:
        """Decisions of reviewers; None where the study has no reviews."""
        files = [path for path in self.files.decisions if path.is_file()]
        return read_reviews(files) if files else None

    @cached_property
    def responses(self) -> Sequence[Response]:
        """Responses of people, or of artificial participants."""
        return responses_of(self.files)

    @property
    def scale(self) -> Scale:
        """On which people answer: what the design asks for, or else what the responses say."""
        settings = self.files.section("design", DesignSettings)
        if settings is not None and settings.scale is Scale.CHOICE:
            return settings.scale
        return self.responses[0].scale if self.responses else Scale.CONFIDENCE

    @cached_property
    def participants(self) -> dict[str, bool]:
        """Who answered, and whether artificial."""
        return {response.participant: response.simulated for response in self.responses}

    @cached_property
    def analysis(self) -> dict[str, Any]:
        """The record of the analysis; empty where there is none."""
        return self.record(ANALYSIS / "report.html")

    @cached_property
    def frequencies(self) -> WordFrequencies | None:
        """Word frequencies as the design's summary has them; None without trials."""
        text = self.record(TRIALS).get("text")
        if not self.trials:
            return None
        return word_frequencies(None if text is None else Path(text), self.natural, self.trials)

    def trials_of_pair(self, condition: Condition, first: str, second: str) -> int:
        """Number of trials of a condition that set two models against each other."""
        return sum(
            trial.condition is condition and {trial.model_1, trial.model_2} == {first, second}
            for trial in self.trials
        )

    def sentences_of(self, condition: Condition) -> dict[Kind, list[Sentence]]:
        """The distinct sentences of a condition, by where they come from."""
        kinds: dict[Kind, dict[Sentence, None]] = {}
        for trial in self.trials:
            if trial.condition is condition:
                kinds.setdefault(trial.kind_1, {})[trial.sentence_1] = None
                kinds.setdefault(trial.kind_2, {})[trial.sentence_2] = None
        return {kind: list(sentences) for kind, sentences in sorted(kinds.items())}

    def _is_there(self, path: Path) -> bool:
        return path in self._written and path.is_file()


def between(items: Iterable[Pair | Triplet], first: str, second: str) -> int:
    """Number of pairs or triplets that set two models against each other."""
    return sum({item.model_1, item.model_2} == {first, second} for item in items)


def mean(values: Sequence[float]) -> float:
    """The mean; nan of nothing."""
    return math.fsum(values) / len(values) if values else math.nan


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample; nan of fewer than two."""
    if len(values) < 2:
        return math.nan
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))
