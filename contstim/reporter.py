"""Interface for messages and progress of a running step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from contstim.reporting.report import Part

_Item = TypeVar("_Item")
_ITEMS_PER_UPDATE = 10_000


class Reporter:
    """Receiver of messages and progress. This class ignores both; its subclasses print them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        """Stop reporting the step."""

    def say(self, text: str) -> None:
        """Report a message of one line."""

    def say_once(self, text: str) -> None:
        """Report a message with `say`, unless the same message was reported before."""
        lines: set[str] = vars(self).setdefault("_said", set())
        if text not in lines:
            lines.add(text)
            self.say(text)

    def warn(self, text: str) -> None:
        """Report a warning, which even quiet reporters print; an empty text is ignored."""

    def record(self, name: str, facts: Mapping[str, object]) -> None:
        """Add facts to the entry `name` in the step's record, a JSON file next to its output."""

    def progress(self, task: str, done: float, total: float | None, note: str = "") -> None:
        """Report the progress of a task.

        Args:
            task: name of the task, such as `triplets`.
            done: number of finished parts; in the first call of a resumed task, the number finished
                before the interruption.
            total: number of all parts; None if unknown.
            note: text about the current state, such as the loss of a neural network.
        """

    def show(self, tables: Callable[[], Iterable[Part]]) -> None:
        """Offer preliminary results.

        The function `tables` makes them. Only a reporter that shows results calls this function.
        """

    def reading(self, task: str, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items; after every 10,000 items, report the number of items so far."""
        for number, item in enumerate(items, start=1):
            if number % _ITEMS_PER_UPDATE == 0:
                self.progress(task, number, None)
            yield item


def forwarding(reporter: Reporter, **replacements: Callable[..., None]) -> Reporter:
    """Return a reporter that forwards calls to `reporter`, except for methods in `replacements`."""
    forwarder = Reporter()
    for name in ("say", "say_once", "warn", "record", "progress", "show"):
        setattr(forwarder, name, replacements.get(name) or getattr(reporter, name))
    return forwarder


SILENT = Reporter()
