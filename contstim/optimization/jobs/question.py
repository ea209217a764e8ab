"""What a study asks of its searches, and the part of it that decides a result."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from contstim.errors import InputError
from contstim.files.files import checksum
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.settings import SearchSettings, model_and_number
from contstim.options import Help
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from contstim.models.specifications import Specification

_OF_OTHERS = frozenset({"per_pair", "exclude", "allow_unknown", "fluency", "plausible"})
"""Fields that decide no result by themselves: tasks hold words, floors and fingerprints."""

_WITHOUT = {"frame": "none", "enough": 0}
"""Values that decide nothing either: they are the search that there was before these fields."""


# Fields stand in the order of the help page: those of the base come first.
@dataclass(frozen=True, kw_only=True)
class SearchRules(SearchSettings):
    """All that a study asks of its searches: how many, how, and constraints on their sentences."""

    per_pair: Annotated[int, Help("Triplets of two models; may change later.", at_least=1)] = 100
    capitals: Annotated[
        Literal["rules", "anywhere"] | None,
        Help(
            "Put capitalised words that are no names only at the start of sentences (rules), "
            "or anywhere. By default rules with the default recipe."
        ),
    ] = None
    plausible: Annotated[
        str | None,
        Help(
            "No sentence may be rarer than this quantile of natural ones with as many words, "
            "under a further model or each under the one that accepts it; none for no floor. By "
            "default 0.25 with the default recipe.",
            metavar="[[NAME=]MODEL:]QUANTILE",
        ),
    ] = None
    word_cap: Annotated[int | None, Help("Sentences in which a word may stand.", at_least=3)] = None

    @property
    def plausibility(self) -> tuple[Specification | None, float]:
        """The model that judges plausibility, None for the two of each triplet, and the quantile.

        Each of the two judges the sentence that it is to accept. The quantile is the share of
        natural sentences that may be rarer; 0 for no floor.
        """
        text = self.plausible
        if text is None:
            return None, recipe_named(self.recipe).plausible
        if text == "none":
            return None, 0.0
        example = "none, a number such as 0.25, or a model, a colon and a number"
        named, quantile = model_and_number("plausible", text, example)
        if not 0 <= quantile < 1:
            raise InputError(f"plausible must be a quantile from 0 to below 1, not {quantile:g}.")
        return named if quantile else None, quantile

    @property
    def further(self) -> Specification | None:
        """The further model that every sentence must please; None for none."""
        return self.plausibility[0] if self.judge is None else self.judge[0]


@dataclass(frozen=True, kw_only=True)
class SearchQuestion(SearchRules):
    """The same with the files that say more read, and the seed.

    Attributes:
        seed: decides everything that is left to chance.
        uncapped: words that do not count for `word_cap`, whatever their case.

    Raises:
        InputError: an unknown recipe, a number out of range, two further models, or a text that is
            no floor.
        ModelError: a further model is no specification.
    """

    seed: int = 0
    uncapped: frozenset[str] = REPEATABLE_ENGLISH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, not {self.seed}.")
        # For their errors alone: a wrong name is told before any model is loaded.
        _ = recipe_named(self.recipe), self.budget
        if None not in (self.judge, self.plausibility[0]):
            raise InputError(
                f"One further model judges sentences: give fluency ({self.fluency}) or "
                f"plausible ({self.plausible}), not both."
            )

    @property
    def excluded(self) -> frozenset[str]:
        """Words that may not be put in, in lower case."""
        return frozenset(map(str.lower, self.exclude))

    @property
    def resolved(self) -> Self:
        """The same with what the recipe decides where nothing else was asked for."""
        rules = recipe_named(self.recipe).capitals
        return replace(
            super().resolved, capitals=self.capitals or ("rules" if rules else "anywhere")
        )

    @cached_property
    def key(self) -> dict[str, Any]:
        """The fields that decide a result and are not the defaults, as JSON has them.

        A new field with a default so makes no earlier result another one.
        """
        others = _OF_OTHERS if self.word_cap is not None else _OF_OTHERS | {"uncapped"}
        chosen: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in others or value in (field.default, _WITHOUT.get(field.name)):
                continue
            if isinstance(value, tuple | frozenset):
                value = sorted({text.lower() for text in value})
            chosen[field.name] = value
        if self.tags is not None:
            chosen["tags"] = checksum(self.tags)
        return chosen
