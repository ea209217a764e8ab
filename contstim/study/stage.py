"""A stage of a study: a step with its place in the study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contstim.steps.step import Step


@dataclass(frozen=True)
class StudyStage:
    """A step of a study.

    Attributes:
        name: such as `scores` or `model bigram`.
        about: what it does, in a phrase that begins with a verb.
        step: does it; the current folder is the study's.
        models: files of models that it loads, which stages before may have to write.
        texts: files in its folders that it writes where they are lacking, for the user to edit;
            what the user made of them, it reads.
        prepare: does what is to be done before the step.
    """

    name: str
    about: str
    step: Step[Any]
    models: tuple[Path, ...] = ()
    texts: tuple[Path, ...] = ()
    prepare: Callable[[], None] = lambda: None

    @property
    def kind(self) -> str:
        """The first word of the name: `model` of `model bigram`."""
        return self.name.partition(" ")[0]

    @property
    def reads(self) -> tuple[Path, ...]:
        """Files and folders that it reads, of the user or of stages before."""
        return tuple(dict.fromkeys((*self.step.reads(), *self.models)))

    @property
    def writes(self) -> tuple[Path, ...]:
        """Files and folders that it writes; all of each folder is its own."""
        return self.step.writes()
