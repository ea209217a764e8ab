"""The study that a file describes: texts, models, and the stages that follow from its sections."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from contstim.files.files import path_inside
from contstim.models.catalog import model_files
from contstim.models.specifications import parse_model, with_name
from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.models.loading import Loading
    from contstim.steps.step import Step
    from contstim.steps.training import TrainNetwork, TrainNgram
    from contstim.study.problems import Key

RESULTS = Path("results")
"""The folder of everything that a study writes but its page, next to the study file."""

STORE = RESULTS / "contstim.sqlite"
"""Scores as they come; a cache for later runs, not a result."""

PAGE = Path("index.html")
"""The page of the study, next to its file."""

LOCK = RESULTS / ".lock"
"""Held by the process that runs the study."""

BEGUN = RESULTS / "begun"
"""The folder of notes on stages that have begun and are not done."""

ARCHIVED = Path("archived-results")
"""The results of a study in an archive of it, next to those of running it again."""

TRAINING, NATURAL_TEXT = RESULTS / "training.txt", RESULTS / "natural-text.txt"
"""Sentences of the embedded English."""

QUESTIONS = RESULTS / "questions.csv"

StepOf = TypeVar("StepOf", bound="Step[Any]")

_EMBEDDED = re.compile(r"english:([1-9][0-9]{0,8})")


@dataclass(frozen=True, kw_only=True)
class TextsSection:
    """Sources of words and sentences: files, or `english:N` for the embedded English."""

    training: Annotated[
        str | None, Help("Text that models are trained on and that words are counted in.")
    ] = None
    natural: Annotated[
        str | None, Help("Text that natural sentences are taken from; by default none.")
    ] = None
    prose: Annotated[bool, Help("The files are running prose, not one sentence a line.")] = False

    @property
    def training_text(self) -> Path | None:
        """Path of the training text; None if there is none."""
        return text_path(self.training, TRAINING)

    @property
    def natural_text(self) -> Path | None:
        """Path of the text of natural sentences; None if there is none."""
        return text_path(self.natural, NATURAL_TEXT)


@dataclass(frozen=True)
class Section:
    """A section of a study file, or one of several in double brackets.

    Attributes:
        name: words of the command, and the number in `[[train.ngram]]`.
        key: such as `("select", "natural")`.
        step: step of the command.
        values: values of the keys, by the names of the step's fields.
    """

    name: str
    key: Key
    step: type[Step[Any]]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class StudyModel:
    """A model of the study.

    Attributes:
        name: name in tables and figures.
        specification: how it is loaded; of a trained model, from where it will be.
        training: step that trains it; None for a model that exists.
        own_text: its own training text, or `english:N`; None for the training text of the study.
    """

    name: str
    specification: str
    training: TrainNgram | TrainNetwork | None = None
    own_text: str | None = None

    @property
    def embedded_text(self) -> Path:
        """File for the sentences of the embedded English that only this model is trained on."""
        return Path(f"{self.location}.txt")

    @property
    def text(self) -> str:
        """`NAME=SPECIFICATION`, as steps take it."""
        return with_name(self.name, self.specification)

    @property
    def location(self) -> str:
        """Where it is loaded from: a file, a folder, or a name on the hub."""
        return parse_model(self.specification, self.name).location

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that it is loaded from, from the study's folder; none of a model on the hub."""
        if self.training is None:
            return model_files([self.specification])
        return tuple(map(Path, parse_model(self.specification, self.name).files))


@dataclass(frozen=True)
class StudyStage:
    """A step of a study.

    Attributes:
        name: command and, if its section has several stages, its input, such as `review pairs`; or
            `text training`, `model bigram`, `questions`.
        about: its task, in a phrase that begins with a verb.
        step: the step; the current folder is the study's.
        key: key of the section that it follows from.
        models: files of models that it loads, which earlier stages may have to write.
    """

    name: str
    about: str
    step: Step[Any]
    key: Key
    models: tuple[Path, ...] = ()

    @property
    def kind(self) -> str:
        """The first word of the name: `model` of `model bigram`."""
        return self.name.partition(" ")[0]

    @property
    def reads(self) -> tuple[Path, ...]:
        """Files and folders that it reads, of the user or of earlier stages."""
        return tuple(dict.fromkeys((*self.step.reads(), *self.models)))

    @property
    def writes(self) -> tuple[Path, ...]:
        """Files and folders that it writes; all of each folder is its own."""
        return self.step.writes()


@dataclass(frozen=True)
class Study:
    """Content of a study file. Its paths are relative to its folder.

    Attributes:
        path: path of the file.
        title: title of its page.
        seed: seed of all random choices.
        texts: sources of words and sentences.
        models: models, in the order of the file.
        loading: how models are loaded.
        questions: questions to participants: cells of a table, row by row.
        judge: models that choose sensible sentences.
        stages: stages, each after those whose files it reads.
        files: files of the study by their kind, such as `vocabulary` (`Help.kind`).
        planned_participants: participants in all by [power] and [design]; None if either is
            missing.
    """

    path: Path
    title: str
    seed: int
    texts: TextsSection
    models: tuple[StudyModel, ...]
    loading: Loading
    questions: tuple[dict[str, str], ...] = ()
    judge: tuple[str, ...] = ()
    stages: tuple[StudyStage, ...] = ()
    files: Mapping[str, Any] = field(default_factory=dict)
    planned_participants: int | None = None

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(model.name for model in self.models)

    @property
    def existing_models(self) -> list[StudyModel]:
        """Models that can be loaded now, because they need no training or are trained."""
        return [m for m in self.models if not m.training or all(f.exists() for f in m.files)]

    @property
    def specifications(self) -> tuple[str, ...]:
        """The models, as steps take them."""
        return tuple(model.text for model in self.models)

    def steps(self, kind: type[StepOf]) -> list[StepOf]:
        """Return the steps of a class, in the order of the stages."""
        return [stage.step for stage in self.stages if isinstance(stage.step, kind)]

    def step(self, kind: type[StepOf]) -> StepOf | None:
        """Return the first step of a class; None if there is none."""
        return next(iter(self.steps(kind)), None)

    def training_text_of(self, model: StudyModel) -> Path | None:
        """Path of the text that a model is trained on."""
        return text_path(model.own_text, model.embedded_text) or self.texts.training_text

    @property
    def training_texts(self) -> tuple[Path, ...]:
        """All texts that models of the study are trained on, the study's own first."""
        trained = (model for model in self.models if model.training is not None)
        texts = dict.fromkeys((self.texts.training_text, *map(self.training_text_of, trained)))
        return tuple(text for text in texts if text is not None)

    def is_prose(self, text: Path) -> bool:
        """True if a text is running prose; the embedded English is not."""
        embedded = {TRAINING, NATURAL_TEXT, *(model.embedded_text for model in self.models)}
        return self.texts.prose and text not in embedded

    def loaded_by(self, step: Step[Any]) -> tuple[Path, ...]:
        """Files of the models in the study's folder that a step loads; none of others."""
        loaded = {parse_model(text, text).location for text in step.specifications()}
        models = [model for model in self.models if model.location in loaded]
        # Models that sections train, such as a judge of sentences
        locations = sorted(loaded - {model.location for model in models})
        paths = (Path(relpath(location)) for location in locations)
        written = (path for path in paths if RESULTS in path.parents)
        return (*(file for model in models for file in model.files), *written)


def text_path(text: str | None, written: Path) -> Path | None:
    """Path of a text: its file, or for `english:N` the path at which its sentences are written."""
    if text is None:
        return None
    return written if embedded_text(text) else Path(text)


def embedded_text(text: str | None) -> int | None:
    """The number N of sentences that `english:N` asks for; None where a text is a file or none."""
    match = _EMBEDDED.fullmatch(text or "")
    return None if match is None else int(match[1])


def check_links() -> None:
    """Refuse links in results that lead out of the study's folder, which is the current one.

    A study is handed on as a folder: its results, and the archived results that a receiver reads,
    must not be files elsewhere.

    Raises:
        InputError: if there is such a link.
    """
    folders = (RESULTS, ARCHIVED)
    inside = (path for folder in folders for path in folder.rglob("*"))
    for path in (PAGE, *folders, *inside):
        if path.is_symlink():
            path_inside("", path.as_posix())
