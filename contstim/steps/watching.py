"""Messages and progress of a step."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contstim.models.base import Scorer
    from contstim.sentence import Sentence


class Watcher:
    """Told what a step does. This one is silent; a command's prints, with a bar for long work."""

    def remark(self, text: str) -> None:
        """A line about what was done."""

    def warn(self, text: str) -> None:
        """A text that the user should read even if nothing else is told; empty for nothing."""

    def reading(self, sentences: Iterable[Sentence]) -> Iterable[Sentence]:
        """Passes sentences on while they are read."""
        return sentences

    @contextmanager
    def scoring(
        self, n_sentences: int, *, together: bool = False
    ) -> Iterator[Callable[[Scorer, int], None]]:
        """To be told each model and how many distinct sentences more have their score.

        Args:
            n_sentences: distinct sentences for each model.
            together: whether models are scored at the same time.
        """
        del n_sentences, together
        yield lambda _model, _more: None

    @contextmanager
    def training(self) -> Iterator[Callable[..., None]]:
        """To be told where a training is after every step of it."""
        yield lambda *_where: None

    @contextmanager
    def searching(self) -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
        """A pair: to be told what happens, in words; how many searches of how many have ended."""
        yield self.remark, lambda _settled, _wanted: None

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """To be told how many parts of how many of a single piece of work are done.

        Args:
            what: a name for the work, such as `simulating`.
        """
        del what
        yield lambda _done, _total: None


SILENT = Watcher()
