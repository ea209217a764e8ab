"""Paths of a study's files, from its folder, and which of them a study has."""

from __future__ import annotations

from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.files.files import path_inside
from contstim.models.specifications import parse_model
from contstim.steps.sentences import SentenceSettings
from contstim.study.study import RESULTS, embedded_text

if TYPE_CHECKING:
    from contstim.steps.step import Step
    from contstim.study.study import Study, StudyModel

STORE = RESULTS / "contstim.sqlite"
"""Scores as they come; a memory for later runs, not a result."""

PAGE = Path("index.html")
"""The page of the study, beside its file."""

LOCK = RESULTS / ".lock"
"""Held by the process that runs the study."""

TRAINING, NATURAL_TEXT = RESULTS / "training.txt", RESULTS / "natural-text.txt"
VOCABULARY, NATURAL = RESULTS / "vocabulary.txt", RESULTS / "natural.txt"
SCORES, STANDARD_ERRORS = RESULTS / "scores.csv", RESULTS / "standard-errors.csv"
PAIRS, TRIPLETS = RESULTS / "pairs.csv", RESULTS / "triplets.csv"
SELECTED, MINIMAL_PAIRS = RESULTS / "selected.csv", RESULTS / "minimal-pairs.csv"
MINIMAL_PAIR_SCORES = RESULTS / "minimal-pair-scores"
FRONTIER = RESULTS / "frontier.csv"

ARCHIVED = Path("archived-results")
"""The results of a study in an archive of it, which stand beside those of doing it again."""

REVIEW, QUESTIONS = RESULTS / "review", RESULTS / "questions.csv"
TRIALS, TRIAL_SCORES = RESULTS / "trials.csv", RESULTS / "trial-scores.csv"
RESPONSES, ANALYSIS = RESULTS / "responses.csv", RESULTS / "analysis"


def check_links() -> None:
    """Refuse links in what a study writes that lead out of its folder, which is the current one.

    A study is handed on as a folder, and what it writes, and whoever gets an archive of it reads,
    must not be a file elsewhere.

    Raises:
        InputError: there is such a link.
    """
    folders = (RESULTS, ARCHIVED)
    inside = (path for folder in folders for path in folder.rglob("*"))
    for path in (PAGE, *folders, *inside):
        if path.is_symlink():
            path_inside("", path.as_posix())


class StudyFiles:
    """The files of a study that its stages read, of the user or written by stages before."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @property
    def planned_participants(self) -> int | None:
        """Number of people to take part, by [power] and [design]; None if either is lacking."""
        design, power = map(self.study.sections.get, ("design", "power"))
        if design is None or power is None:
            return None
        in_all: int = (power.power_groups or design.groups) * power.participants
        return in_all

    @property
    def specifications(self) -> tuple[str, ...]:
        """The models, as steps take them."""
        return tuple(model.text for model in self.study.models)

    @property
    def given(self) -> dict[str, Any]:
        """What a study gives to every step that asks for it, by the names of the step's fields."""
        return {**vars(self.study.loading), "seed": self.study.seed, "store": STORE}

    def loaded_by(self, step: Step[Any]) -> tuple[Path, ...]:
        """Files of the models in the study's folders that a step loads; none of others."""
        loaded = {parse_model(text, text).location for text in step.specifications()}
        models = [model for model in self.study.models if model.location in loaded]
        # Of a single step, such as a judge of sentences that is trained on another text
        others = sorted(loaded - {model.location for model in models})
        paths = (Path(relpath(each)) for each in others)
        written = (path for path in paths if RESULTS in path.parents)
        return (*(file for model in models for file in model.files), *written)

    @property
    def training_texts(self) -> tuple[Path, ...]:
        """All texts that models of the study are trained on."""
        trained = [model for model in self.study.models if model.training is not None]
        texts = dict.fromkeys((self.training_text, *map(self.text_of, trained)))
        return tuple(text for text in texts if text is not None)

    @property
    def training_text(self) -> Path | None:
        """The text that models are trained on and words are counted in."""
        return _text(self.study.texts.training, TRAINING)

    def text_of(self, model: StudyModel) -> Path:
        """The text that a model is trained on."""
        text = _text(model.own_text, model.embedded_text) or self.training_text
        assert text is not None, "A study without a training text is refused when it is read"
        return text

    @property
    def natural_text(self) -> Path | None:
        """The text that natural sentences are taken from."""
        return _text(self.study.texts.natural, NATURAL_TEXT)

    @property
    def vocabulary(self) -> Path | None:
        """The words that sentences may be made of; None: as the models know them."""
        section = self.study.sections.get("vocabulary")
        return None if section is None else section.file or VOCABULARY

    @property
    def natural(self) -> Path | None:
        """The natural sentences."""
        section = self.study.sections.get("sentences")
        if section is not None and section.file is not None:
            file: Path = section.file
            return file
        return None if self.natural_text is None else NATURAL

    @property
    def only_length(self) -> int | None:
        """Number of words of natural sentences; None where several lengths are asked for."""
        section: SentenceSettings = self.study.sections.get("sentences", SentenceSettings())
        return int(section.words) if section.words.isdecimal() else None

    @property
    def triplets(self) -> Path | None:
        """Triplets that trials are made of: those selected, or all that were searched."""
        if "selection" in self.study.sections:
            return SELECTED
        return TRIPLETS if "triplets" in self.study.sections else None

    @property
    def responses(self) -> Path | None:
        """The table of what people answered; None in a study without."""
        section = self.study.sections.get("responses")
        return None if section is None else section.file or RESPONSES

    @property
    def decisions(self) -> tuple[Path, ...]:
        """Tables of the decisions of reviewers."""
        section = self.study.sections.get("review")
        return () if section is None else section.decisions

    def prose(self, text: Path) -> bool:
        """True if a text is running prose; the embedded English is not."""
        embedded = {TRAINING, NATURAL_TEXT, *(model.embedded_text for model in self.study.models)}
        return self.study.texts.prose and text not in embedded


def _text(text: str | None, written: Path) -> Path | None:
    if text is None:
        return None
    return written if embedded_text(text) else Path(text)
