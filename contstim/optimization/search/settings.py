"""Settings of a search, for one sentence or for all of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.models.specifications import parse_models
from contstim.optimization.search.constraints import WordLimits
from contstim.optimization.search.restarts import SearchBudget
from contstim.options import Help
from contstim.tables import number

if TYPE_CHECKING:
    from contstim.models.specifications import Specification


@dataclass(frozen=True, kw_only=True)
class SearchSettings(WordLimits):
    """Choices of a search: recipe, words, a model of fluency, and how often and how long."""

    recipe: Annotated[str, Help("How to search: default or golan2023.")] = "default"
    allow_unknown: Annotated[
        bool,
        Help("Also use words that a word-level model cannot tell."),
    ] = False
    fluency: Annotated[
        str | None,
        Help(
            "A further model, and the least log-probability (nats) that it must give.",
            metavar="[NAME=]MODEL:FLOOR",
        ),
    ] = None
    restarts: Annotated[
        int | None,
        Help(
            "Searches of a sentence, at most, each with another seed; the best result is kept. "
            "They end when five in a row gain next to nothing. By default 1; up to 20 between "
            "small networks, whose searches are cheap.",
            at_least=1,
        ),
    ] = None
    seconds: Annotated[
        float | None,
        Help(
            "Search a sentence again as long as another search is expected to end within so many "
            "seconds. The first always finishes. Results then depend on the machine."
        ),
    ] = None

    @property
    def budget(self) -> SearchBudget | None:
        """How often and how long to search; None as the recipe says."""
        if self.restarts is None and self.seconds is None:
            return None
        return SearchBudget(self.restarts, self.seconds)

    @property
    def judge(self) -> tuple[Specification, float] | None:
        """The further model, and the least log-probability, nats, that it must give.

        Raises:
            InputError: there is no model, or no number.
            ModelError: the model is no specification.
        """
        if self.fluency is None:
            return None
        named, floor = model_and_number("fluency", self.fluency, "kenlm:trigram.arpa:-60")
        if named is None:
            raise InputError(f"fluency {self.fluency!r} names no model.")
        return named, floor


def model_and_number(field: str, text: str, example: str) -> tuple[Specification | None, float]:
    """Read `[[NAME=]MODEL:]NUMBER`.

    Raises:
        InputError: there is no number behind the last colon; names the field.
        ModelError: the model is no specification.
    """
    # Specifications have colons of their own, as kenlm:trigram.arpa, so the last one counts.
    model, _, last = text.rpartition(":")
    try:
        value = number(last)
    except ValueError:
        raise InputError(f"{field} {text!r} ends with no number: write {example}.") from None
    return (parse_models([model])[0] if model else None), value
