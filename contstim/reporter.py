"""Messages and progress of long work: what a step tells while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from contstim.reporting.report import Part

_Item = TypeVar("_Item")
_ITEMS_PER_UPDATE = 10_000


class Reporter:
    """Receiver of messages and progress. This one is silent; that of the commands prints."""

    def __enter__(self) -> Self:
        """Begin to be told of a step."""
        return self

    def __exit__(self, *_raised: object) -> None:
        """End it."""

    def say(self, text: str) -> None:
        """Take a line about what was done."""

    def say_once(self, text: str) -> None:
        """Pass a line to `say`, unless this reporter was given the same line before."""
        said: set[str] = vars(self).setdefault("_said", set())
        if text not in said:
            said.add(text)
            self.say(text)

    def warn(self, text: str) -> None:
        """Take a text that the user should read even if nothing else is told; empty for nothing."""

    def record(self, name: str, facts: Mapping[str, object]) -> None:
        """Take facts for the record of the step; those of one name are merged."""

    def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
        """Take how far a piece of work is.

        Args:
            what: a name for the work, such as `triplets`.
            done: number of parts that are done; the first number of a work that goes on where it
                was interrupted is what was done before.
            total: number of all parts; None where it is not known.
            note: what else is known now, such as the loss of a network.
        """

    def show(self, tables: Callable[[], Iterable[Part]]) -> None:
        """Be offered what there is of a result before the work ends: tables, made when called."""

    def reading(self, what: str, items: Iterable[_Item]) -> Iterator[_Item]:
        """Pass items on, and tell how many of them have been read."""
        for number, item in enumerate(items, start=1):
            if number % _ITEMS_PER_UPDATE == 0:
                self.progress(what, number, None)
            yield item


def forwarding(reporter: Reporter, **own: Callable[..., None]) -> Reporter:
    """A reporter that passes on what it is told, save what functions of these names take."""
    passing = Reporter()
    for name in ("say", "say_once", "warn", "record", "progress", "show"):
        setattr(passing, name, own.get(name) or getattr(reporter, name))
    return passing


SILENT = Reporter()
