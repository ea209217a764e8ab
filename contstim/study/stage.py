"""A stage of a study: one step, what it reads and writes, and what else its result depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from contstim.steps.watching import Watcher


@dataclass(frozen=True)
class StudyStage:
    """A step of a study with all that decides its result.

    Attributes:
        name: such as `scores` or `model bigram`.
        about: what it does, in a phrase that begins with a verb.
        step: does it; the current folder is the study's.
        reads: the files and folders that it reads, of the user or of stages before.
        writes: the files and folders that it writes; all of each folder is its own.
        options: all that a user may choose about it, as JSON has it.
        libraries: those whose version may change the result.
        models: specifications of the models that it loads, whose commits on the hub count.
        texts: files in its folders that it writes where they are lacking, for the user to edit;
            what the user made of them, it reads.
    """

    name: str
    about: str
    step: Callable[[Watcher], object]
    reads: tuple[Path, ...]
    writes: tuple[Path, ...]
    options: Mapping[str, Any]
    libraries: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    texts: tuple[Path, ...] = ()

    @property
    def kind(self) -> str:
        """The first word of the name: `model` of `model bigram`."""
        return self.name.partition(" ")[0]
