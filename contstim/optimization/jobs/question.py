"""Settings of a study's searches.

`SearchQuestion.key` contains a part of these settings and identifies stored results. A stored
result is used again only if this key is unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from contstim.files.files import checksum
from contstim.models.specifications import parse_models
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.settings import SearchSettings
from contstim.options import Help, Seed

if TYPE_CHECKING:
    from contstim.models.specifications import Specification

# Fields that are not in `SearchQuestion.key`.
#
# `per_pair` does not affect a single search. The effects of the other fields are already part of
# `TripletTask.key`, the complete key of a result: it contains the excluded words, a digest of the
# words that may be used, and the judges. A judge is another model, which chooses plausible
# sentences
_NOT_IN_KEY = frozenset({"per_pair", "exclude", "allow_unknown", "judge"})

# Field → value that has no effect; the key omits fields with these values
_WITHOUT_EFFECT = {"frame": "none", "enough": 0}


@dataclass(frozen=True, kw_only=True)
class SearchRules(SearchSettings):
    """Settings of a study's searches, before word lists are loaded from their files.

    These are the number of triplets, the settings of each search, and constraints on sentences.
    """

    per_pair: Annotated[
        int, Help("Number of triplets for each pair of models.", at_least=1, kind="items of waves")
    ] = 100


@dataclass(frozen=True, kw_only=True)
class SearchQuestion(SearchRules):
    """Settings of a study's searches, with word lists loaded from their files, and the seed.

    Attributes:
        seed: seed of all random choices.

    Raises:
        InputError: if a recipe (search method) is unknown; if a number is out of range; or if two
            settings contradict each other.
        ModelError: if a judge is not a specification of a model.
    """

    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        # Compute these values now, so that their errors are raised before any model is loaded
        _ = recipe_named(self.recipe), self.budget, self.judges

    @property
    def judges(self) -> tuple[Specification, ...]:
        """Specifications of the judges."""
        return tuple(parse_models(self.judge))

    @property
    def floor_quantile(self) -> float:
        """Level of the quantile that serves as the floor, from 0 to 1; 0 means no floor.

        The floor is a quantile of the log-probabilities of natural sentences. Searches skip natural
        sentences whose log-probability is below the floor. With judges, there is no floor.
        """
        return 0.0 if self.judge else recipe_named(self.recipe).plausible

    @property
    def excluded(self) -> frozenset[str]:
        """Words, in lower case, that no sentence may contain."""
        return frozenset(map(str.lower, self.exclude))

    @cached_property
    def key(self) -> dict[str, Any]:
        """The fields that determine a result and differ from their defaults, as JSON values.

        Use the key of `resolved`, in which None is replaced by defaults. Fields with their default
        values are omitted, so that a new field does not change earlier keys.
        """
        chosen: dict[str, Any] = {}
        for field in fields(self):
            value = self.nats if field.name == "enough" else getattr(self, field.name)
            without_effect = (field.default, _WITHOUT_EFFECT.get(field.name))
            if field.name in _NOT_IN_KEY or value in without_effect:
                continue
            if isinstance(value, tuple):
                value = sorted({text.lower() for text in value})
            chosen[field.name] = value
        if self.tags is not None:
            chosen["tags"] = checksum(self.tags)
        return chosen
