"""Settings of a study's searches, and the part of them that determines a result."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InputError
from contstim.files.files import checksum
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.settings import SearchSettings, model_and_number
from contstim.options import Help

if TYPE_CHECKING:
    from contstim.models.specifications import Specification

_NOT_IN_KEY = frozenset({"per_pair", "exclude", "allow_unknown", "plausible"})
"""Fields that are not in the key: tasks have the words, floors and fingerprints themselves."""

_WITHOUT_EFFECT = {"frame": "none", "enough": 0}
"""Values that mean the same as the default of their field."""


# Fields are in the order of the help page: those of the base come first.
@dataclass(frozen=True, kw_only=True)
class SearchRules(SearchSettings):
    """Settings of a study's searches: number of triplets, search, constraints on sentences."""

    per_pair: Annotated[int, Help("Triplets of two models; may change later.", at_least=1)] = 100
    plausible: Annotated[
        str | None,
        Help(
            "No sentence may be rarer than this quantile of natural ones with as many words, "
            "under a further model or each under the one that accepts it; none for no floor. By "
            "default 0.25 with the default recipe.",
            metavar="[[NAME=]MODEL:]QUANTILE",
        ),
    ] = None

    @property
    def plausibility(self) -> tuple[Specification | None, float]:
        """The judge of plausibility, and the share of natural sentences that may be rarer.

        The judge is None if each of the two models judges the sentence that it is to accept. The
        share is 0 for no floor.
        """
        text = self.plausible
        if text is None:
            return None, recipe_named(self.recipe).plausible
        if text == "none":
            return None, 0.0
        example = "none, a number such as 0.25, or a model, a colon and a number"
        judge, quantile = model_and_number("plausible", text, example)
        if not 0 <= quantile < 1:
            raise InputError(f"plausible must be a quantile from 0 to below 1, not {quantile:g}.")
        return judge if quantile else None, quantile

    @property
    def judge(self) -> Specification | None:
        """The further model that judges the plausibility of every sentence; None for none."""
        return self.plausibility[0]


@dataclass(frozen=True, kw_only=True)
class SearchQuestion(SearchRules):
    """Settings of a study's searches, with word lists loaded from their files, and the seed.

    Attributes:
        seed: seed of everything that is left to chance.

    Raises:
        InputError: if a recipe is unknown, a number is out of range, or `plausible` is no floor.
        ModelError: if the judge is no specification of a model.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, not {self.seed}.")
        # For their errors alone, before any model is loaded
        _ = recipe_named(self.recipe), self.budget, self.judge

    @property
    def excluded(self) -> frozenset[str]:
        """Words, in lower case, that no sentence may contain."""
        return frozenset(map(str.lower, self.exclude))

    @cached_property
    def key(self) -> dict[str, Any]:
        """The fields that determine a result and are not the defaults, as JSON values.

        A new field with a default thus leaves earlier keys as they are.
        """
        chosen: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            without_effect = (field.default, _WITHOUT_EFFECT.get(field.name))
            if field.name in _NOT_IN_KEY or value in without_effect:
                continue
            if isinstance(value, tuple):
                value = sorted({text.lower() for text in value})
            chosen[field.name] = value
        if self.tags is not None:
            chosen["tags"] = checksum(self.tags)
        return chosen
