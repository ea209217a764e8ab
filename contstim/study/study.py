"""The study that a file describes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.models.catalog import model_files
from contstim.models.specifications import parse_model, with_name
from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.models.loading import Loading
    from contstim.models.training.settings import (
        RecurrentSettings,
        TrainingSettings,
        TransformerSettings,
    )
    from contstim.study.sections import TextsSection, TrainingPlace

RESULTS = Path("results")
"""The folder of everything that a study writes but its page, beside the study file."""

_EMBEDDED = re.compile(r"english:([1-9][0-9]{0,8})")


@dataclass(frozen=True, kw_only=True)
class NgramSettings:
    """An n-gram model.

    Attributes:
        order: the length of its longest n-grams, 1 to 6.
    """

    order: Annotated[int, Help("1 to 6.", at_least=1, at_most=6)] = 3


@dataclass(frozen=True)
class ModelTraining:
    """Training of a model of the study.

    Attributes:
        network: what it is.
        settings: how it is trained; None for an n-gram model, which is counted.
        place: on what text, and where.
    """

    network: NgramSettings | RecurrentSettings | TransformerSettings
    settings: TrainingSettings | None
    place: TrainingPlace


@dataclass(frozen=True)
class StudyModel:
    """A model of the study.

    Attributes:
        name: in tables and figures.
        specification: how it is loaded; of a trained one, from where it will be.
        training: None for a model that is there already.
    """

    name: str
    specification: str
    training: ModelTraining | None = None

    @property
    def own_text(self) -> str | None:
        """The text that it alone is trained on, or `english:N`; None for that of the study."""
        return None if self.training is None else self.training.place.text

    @property
    def embedded_text(self) -> Path:
        """Where sentences of the embedded English stand that it alone is trained on."""
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
        parsed = parse_model(self.specification, self.name)
        return (Path(parsed.location), *([Path(parsed.argument)] if parsed.argument else []))


@dataclass(frozen=True)
class Study:
    """Content of a study file. Its paths are relative to its folder.

    Attributes:
        path: of the file.
        title: of its page.
        seed: decides everything that is left to chance.
        texts: where words and sentences come from.
        models: in the order of the file.
        loading: how models are loaded.
        sections: the settings of each section that the file names.
        exports: the settings of each platform that the file names.
        steps: the options of each step that the file names by its command, such as `mixed`.
        questions: to participants, the cells of a table of them, row by row.
    """

    path: Path
    title: str
    seed: int
    texts: TextsSection
    models: tuple[StudyModel, ...]
    loading: Loading
    sections: Mapping[str, Any]
    exports: Mapping[str, Any]
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    questions: tuple[dict[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent


def embedded_text(text: str | None) -> int | None:
    """The number N of sentences that `english:N` asks for; None where a text is a file or none."""
    match = _EMBEDDED.fullmatch(text or "")
    return None if match is None else int(match[1])
