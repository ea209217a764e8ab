"""Content of a study file: texts, models, and the stages that follow from its sections."""

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
"""Folder next to the study file that contains all outputs of a study except its page."""

STORE = RESULTS / "contstim.sqlite"
"""Store of scores and searches; a cache for later runs, not a result."""

PAGE = Path("index.html")
"""Page of the study, next to the study file."""

LOCK = RESULTS / ".lock"
"""Lock of the process that runs the study."""

BEGUN = RESULTS / "begun"
"""Folder with a file for each stage that has begun but is not done."""

ARCHIVED = Path("archived-results")
"""Folder of the original results in an archive of a study; a new run writes to `RESULTS`."""

TRAINING, NATURAL_TEXT = RESULTS / "training.txt", RESULTS / "natural-text.txt"
"""Files for the training text and the natural text, if the study names `english:N` as this text.

`english:N` means N generated sentences of the embedded English.
"""

QUESTIONS = RESULTS / "questions.csv"
"""Table of the questions to participants."""

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
        """Path of the text from which natural sentences are taken; None if there is none."""
        return text_path(self.natural, NATURAL_TEXT)


@dataclass(frozen=True)
class Section:
    """A section of a study file: `[select.natural]`, or one of several `[[train.ngram]]`.

    Attributes:
        name: words of the command. If the section has double brackets, a number follows: the name
            of the second section `[[train.ngram]]` ends in `2`.
        key: key of the section, such as `("select", "natural")` or `("train", "ngram", "2")`.
        values: name of a field of the step → value that the section sets.
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
        specification: specification for loading. If the study trains the model, the specification
            contains the path to which the study writes the model.
        training: step that trains the model; None for an existing model.
        own_text: training text of this model only: a path, or `english:N`. If None, the model is
            trained on the training text of the study.
    """

    name: str
    specification: str
    training: TrainNgram | TrainNetwork | None = None
    own_text: str | None = None

    @property
    def embedded_text(self) -> Path:
        """File for the sentences of `english:N`, if `own_text` is `english:N`."""
        return Path(f"{self.location}.txt")

    @property
    def text(self) -> str:
        """`NAME=SPECIFICATION`, the form in which steps take models."""
        return with_name(self.name, self.specification)

    @property
    def location(self) -> str:
        """File, folder or name on the hub from which the model is loaded."""
        return parse_model(self.specification, self.name).location

    @property
    def files(self) -> tuple[Path, ...]:
        """Local files from which the model is loaded; none for models on the hub or a server."""
        if self.training is None:
            return model_files([self.specification])
        return tuple(map(Path, parse_model(self.specification, self.name).files))


@dataclass(frozen=True)
class StudyStage:
    """A step of a study.

    Attributes:
        name: command, such as `design`. If a section has several stages, the kind of the input
            follows, as in `review pairs`. Stages without a command have names such as
            `text training`, `model bigram` and `questions`.
        about: task of the stage, a phrase that begins with a verb.
        step: the step; its paths are relative to the study's folder.
        key: key of the section from which the stage follows.
        models: files of the models that the stage loads; earlier stages may write these files.
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
        """Files and folders that the stage reads, including outputs of earlier stages."""
        return tuple(dict.fromkeys((*self.step.reads(), *self.models)))

    @property
    def writes(self) -> tuple[Path, ...]:
        """Files and folders that the stage writes; no other stage writes into these folders."""
        return self.step.writes()


@dataclass(frozen=True)
class Study:
    """Content of a study file. Paths in the content are relative to the folder of the file.

    Attributes:
        seed: seed of random choices, for sections that do not set a seed.
        models: models, in the order of the file.
        questions: questions to participants. Each question is a row of a table: column → cell.
        judge: models that choose sensible sentences.
        stages: stages, each after the stages whose files it reads.
        files: kind (`Help.kind`), such as `vocabulary` → path of the study's file of this kind. A
            kind with several files is left out.
        planned_participants: total number of participants according to [power] and [design]; None
            if either is missing.
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
        """Models that can be loaded now: they need no training, or have been trained."""
        return [m for m in self.models if not m.training or all(f.exists() for f in m.files)]

    @property
    def specifications(self) -> tuple[str, ...]:
        """`NAME=SPECIFICATION` of each model, the form in which steps take models."""
        return tuple(model.text for model in self.models)

    def steps(self, kind: type[StepOf]) -> list[StepOf]:
        """Return the steps of a class, in the order of the stages."""
        return [stage.step for stage in self.stages if isinstance(stage.step, kind)]

    def step(self, kind: type[StepOf]) -> StepOf | None:
        """Return the first step of a class; None if there is none."""
        return next(iter(self.steps(kind)), None)

    @property
    def training_texts(self) -> tuple[Path, ...]:
        """Training text of the study, and training texts of single models."""
        own_texts = (model.training.text for model in self.models if model.training is not None)
        texts = dict.fromkeys((self.texts.training_text, *own_texts))
        return tuple(text for text in texts if text is not None)

    def is_prose(self, text: Path) -> bool:
        """Return True if a text is running prose; generated sentences are not prose."""
        embedded = {TRAINING, NATURAL_TEXT, *(model.embedded_text for model in self.models)}
        return self.texts.prose and text not in embedded

    def loaded_by(self, step: Step[Any]) -> tuple[Path, ...]:
        """Return the local files of the models that a step loads.

        For a model of the study, return all of its files. For another model, such as a judge,
        return its path if a section trains the model. This path is in the folder of results.
        """
        loaded = {parse_model(text, text).location for text in step.specifications()}
        models = [model for model in self.models if model.location in loaded]
        # Models that are not models of the study
        locations = sorted(loaded - {model.location for model in models})
        paths = (Path(relpath(location)) for location in locations)
        written = (path for path in paths if RESULTS in path.parents)
        return (*(file for model in models for file in model.files), *written)


def text_path(text: str | None, written: Path) -> Path | None:
    """Return the path of a text; for `english:N`, this is `written`, the file for N sentences."""
    if text is None:
        return None
    return written if embedded_text(text) else Path(text)


def embedded_text(text: str | None) -> int | None:
    """Return the number N of sentences if a text is `english:N`; otherwise None."""
    match = _EMBEDDED.fullmatch(text or "")
    return None if match is None else int(match[1])


def move_paths(text: str, moved: Mapping[str, str]) -> str:
    """Replace paths in a value of a study file by their new paths; see `path_pattern`."""
    for path, new in moved.items():
        text = re.sub(path_pattern(path), new.replace("\\", r"\\"), text)
    return text


def path_pattern(path: str) -> str:
    """Return a regular expression that finds a path in a value of a study file.

    The path must be the whole value, or a part of a model's specification, as in `kenlm:PATH`.
    """
    return rf"(?:^|(?<=[:=])){re.escape(path)}(?=$|[@+:?])"


def check_links() -> None:
    """Check that the page and the results contain no link that leads out of the study's folder.

    Users copy a study as a folder, so all results must be in this folder. The current folder must
    be the study's folder.

    Raises:
        InputError: if there is such a link.
    """
    folders = (RESULTS, ARCHIVED)
    inside = (path for folder in folders for path in folder.rglob("*"))
    for path in (PAGE, *folders, *inside):
        if path.is_symlink():
            path_inside("", path.as_posix())
