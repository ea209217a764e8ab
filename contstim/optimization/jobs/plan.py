"""All that decides which triplets are found, and texts by which a store knows it again."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.models.base import FLOAT32
from contstim.models.specifications import parse_models
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.restarts import SINGLE
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.optimization.search.restarts import SearchBudget
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary

MAY_GROW = frozenset({"per pair"})
"""The settings that may be larger than those that a store was made with."""


@dataclass(frozen=True)
class SynthesisPlan:
    """All that decides which triplets are found.

    Attributes:
        models: specifications; every two of them are a pair. In which order they are given does
            not matter: see `ordered`.
        sentences: natural sentences.
        vocabulary: words to use; None for those frequent in the two models' own training text.
        per_pair: how many natural sentences, and so triplets, each pair of models gets.
        recipe: the name of the way to search.
        seed: decides which sentences each pair gets, and every search.
        allow_unknown: also use words that a word-level model cannot tell.
        restarts: how often and how long to search in each direction; None as the recipe says, but
            see `resumed`.

    Raises:
        InputError: fewer than two models, an unknown recipe, or a number out of range.
        ModelError: a model is given twice or is no specification.
    """

    models: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    vocabulary: Vocabulary | None
    per_pair: int
    recipe: str = "default"
    seed: int = 0
    allow_unknown: bool = False
    restarts: SearchBudget | None = None

    def __post_init__(self) -> None:
        if len(self.models) < 2:
            raise InputError("Triplets need two models or more: give --model at least twice.")
        if self.per_pair < 1:
            raise InputError(f"Triplets for each pair must be 1 or more, not {self.per_pair}.")
        if self.seed < 0:
            raise InputError(f"The seed must not be negative, but is {self.seed}.")
        # For their errors alone: a wrong name is told before any worker loads a model.
        recipe_named(self.recipe)
        parse_models(self.models)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All unordered pairs of models, in the order of the models."""
        return tuple(combinations(self.models, 2))

    def ordered(self, before: Sequence[str]) -> SynthesisPlan:
        """The plan with its models in the order that decides pairs, their sentences and seeds.

        That of the alphabet; of a store made with the same models, its own, whatever it is.

        Args:
            before: the models of the store, in its order; none if it is new.
        """
        # Pairs, seeds and columns of results follow from the order, which the user need not keep.
        models = sorted(self.models)
        return replace(self, models=tuple(before if sorted(before) == models else models))

    def resumed(self, before: Mapping[str, str]) -> SynthesisPlan:
        """The plan with one search in each direction where a store was made so and none asks more.

        Args:
            before: the settings of the store; none if it is new.
        """
        if before and "restarts" not in before and self.restarts is None:
            return replace(self, restarts=SINGLE)
        return self

    def settings(self, profiles: Sequence[ModelProfile]) -> dict[str, str]:
        """Name and value of everything that decides the triplets, as texts to be compared.

        Args:
            profiles: of the models, in their order.
        """
        # Neither order nor repetition of sentences matters to what each pair gets.
        texts = sorted({sentence.text for sentence in self.sentences})
        settings = {
            "contstim": __version__,
            "recipe": self.recipe,
            "seed": str(self.seed),
            "per pair": str(self.per_pair),
            "sentences": f"{len(texts):,} sentences, {_digest(texts)}",
            "vocabulary": _describe(self.vocabulary, "the models' own"),
            "allow unknown": str(self.allow_unknown).lower(),
        }
        restarts = self.restarts or recipe_named(self.recipe).restarts
        if restarts != SINGLE:  # as stores made before there were several searches
            settings["restarts"] = restarts.text
        for number, (name, profile) in enumerate(zip(self.models, profiles, strict=True), start=1):
            settings[f"model {number}"] = name
            settings[f"model {number} words"] = _describe(profile.words, "all")
            for aspect, value in asdict(profile.convention).items():
                settings[f"model {number} {aspect}"] = str(value)
            del settings[f"model {number} tolerance"]  # measured: another machine's may differ
            if profile.convention.precision == FLOAT32:  # as stores made before it was recorded
                del settings[f"model {number} precision"]
        return settings


def seed_for(seed: int, fingerprints: Iterable[str], natural: str) -> int:
    """A seed for one job, from what is searched and nothing else."""
    # A sign that no text holds stands between the parts, so that no two lists read alike.
    text = "\x1f".join((str(seed), *fingerprints, natural))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def _describe(vocabulary: Vocabulary | None, default: str) -> str:
    if vocabulary is None:
        return default
    lists = (vocabulary.initial, vocabulary.inner, sorted(vocabulary.repeatable))
    return f"{len(vocabulary.words):,} words, {_digest(' '.join(words) for words in lists)}"


def _digest(texts: Iterable[str]) -> str:
    content = "\n".join(texts).encode()
    return f"sha256 {hashlib.sha256(content).hexdigest()[:16]}"
