"""All that decides which triplets are found, and texts by which a store knows it again."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.models.base import FLOAT32
from contstim.models.specifications import parse_models
from contstim.optimization.jobs.plausibility import NO_FLOOR, Plausibility
from contstim.optimization.search.constraints import NO_LIMITS, WordLimits, fixed_positions
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.restarts import SINGLE
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.optimization.jobs.plausibility import Floors
    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.optimization.jobs.word_cap import WordCap
    from contstim.optimization.search.restarts import SearchBudget
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary

MAY_GROW = frozenset({"per pair"})
"""The settings that may be larger than those that a store was made with."""

MAY_GAIN = frozenset({"exclude"})
"""The settings, words set apart by spaces, that may have words more than in a store."""


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
        limits: which words may be replaced, and by which. What a sentence does not have of the
            words to fix fixes nothing in it; a natural sentence with an excluded word is passed
            over.
        capitals: put capitalised words only where capitals may stand.
        fluency: the specification of a further model, and the least log-probability, nats, that it
            must give every sentence; None for no such model.
        plausible: how rare sentences may be, as a quantile of the natural ones.
        cap: in how many sentences of the whole study a word may stand; None for any number.
        restarts: how often and how long to search in each direction; None as the recipe says, but
            see `resumed`.

    Raises:
        InputError: fewer than two models, an unknown recipe, a number out of range, a word to fix
            that no sentence has, or two further models.
        ModelError: a model is given twice or is no specification.
    """

    models: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    vocabulary: Vocabulary | None
    per_pair: int
    recipe: str = "default"
    seed: int = 0
    allow_unknown: bool = False
    limits: WordLimits = NO_LIMITS
    capitals: bool = False
    fluency: tuple[str, float] | None = None
    plausible: Plausibility = NO_FLOOR
    cap: WordCap | None = None
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
        for text in self.limits.fix:
            if not any(fixed_positions(text, sentence) for sentence in self.sentences):
                raise InputError(f"--fix {text}: no sentence has such a word or position.")
        if self.fluency is not None and self.plausible.model and self.plausible.quantile:
            raise InputError(
                f"One further model judges sentences: give --fluency {self.fluency[0]}:… or "
                f"--plausible {self.plausible.model}:…, not both."
            )
        if self.judge is not None:
            parse_models((self.judge,))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All unordered pairs of models, in the order of the models."""
        return tuple(combinations(self.models, 2))

    @property
    def judge(self) -> str | None:
        """The specification of the further model that every sentence must please; None for none."""
        if self.fluency is not None:
            return self.fluency[0]
        return self.plausible.model or None if self.plausible.quantile else None

    def with_defaults(
        self,
        stored: Mapping[str, str],
        *,
        capitals: bool | None,
        plausible: Plausibility | None,
    ) -> SynthesisPlan:
        """The plan with what a user may leave open: as in the store, in a new one as usual.

        Args:
            stored: the settings of the store; none if it is new.
            capitals: as in the plan; None for what is usual.
            plausible: as in the plan; None for what is usual.
        """
        usual = recipe_named(self.recipe)
        if capitals is None:
            capitals = "capitals" in stored if stored else usual.capitals
        if plausible is None:
            # Stores from before there were floors have none, and go on without.
            kept = Plausibility.parse(stored.get("plausible", "none"))
            plausible = kept if stored else Plausibility(usual.plausible)
        return replace(self, capitals=capitals, plausible=plausible)

    def ordered(self, before: Sequence[str]) -> SynthesisPlan:
        """The plan with its models in the order that decides pairs, their sentences and seeds.

        Models of the store come first, in its order, whatever it is; others in the alphabet's.

        Args:
            before: the models of the store, in its order; none if it is new.
        """
        # Pairs, seeds and columns of results follow from the order, which the user need not keep.
        old = [model for model in before if model in self.models]
        return replace(self, models=(*old, *sorted({*self.models} - {*old})))

    def resumed(self, before: Mapping[str, str]) -> SynthesisPlan:
        """The plan with one search in each direction where a store was made so and none asks more.

        Args:
            before: the settings of the store; none if it is new.
        """
        if before and "restarts" not in before and self.restarts is None:
            return replace(self, restarts=SINGLE)
        return self

    @property
    def sentences_setting(self) -> str:
        """Entry of `settings` for the natural sentences: their number and a digest."""
        # Neither order nor repetition of sentences matters to what each pair gets.
        texts = sorted({sentence.text for sentence in self.sentences})
        return f"{len(texts):,} sentences, {_digest(texts)}"

    def settings(
        self,
        profiles: Sequence[ModelProfile],
        judge: ModelProfile | None = None,
        floors: Floors | None = None,
        order: Sequence[str] = (),
    ) -> dict[str, str]:
        """Name and value of everything that decides the triplets, as texts to be compared.

        Constraints and floors that are not wanted are not there, as in stores from before there
        were any.

        Args:
            profiles: of the models, in their order.
            judge: of the further model, where there is one.
            floors: of plausibility.
            order: the models of the study, those that were left out among them, whose places in it
                number them; by default those of the plan.
        """
        settings = {
            "contstim": __version__,
            "recipe": self.recipe,
            "seed": str(self.seed),
            "per pair": str(self.per_pair),
            "sentences": self.sentences_setting,
            "vocabulary": _describe(self.vocabulary, "the models' own"),
            "allow unknown": str(self.allow_unknown).lower(),
        }
        restarts = self.restarts or recipe_named(self.recipe).restarts
        if restarts != SINGLE:  # as stores made before there were several searches
            settings["restarts"] = restarts.text
        limits = self.limits
        wishes = {
            "fix": ", ".join(sorted({text.lower() for text in limits.fix})),
            "max changes": str(limits.max_changes or ""),
            "allow": "" if limits.allow is None else _describe_words(limits.allow),
            "exclude": " ".join(sorted(limits.exclude)),
            "same length": "" if limits.same_length is None else str(limits.same_length),
            "capitals": "only where they may stand" if self.capitals else "",
            "fluency": "" if self.fluency is None else f"{self.fluency[0]}:{self.fluency[1]!r}",
            "plausible": str(self.plausible) if self.plausible.quantile else "",
            "word cap": "" if self.cap is None else str(self.cap.sentences),
            "uncapped": "" if self.cap is None else _describe_words(self.cap.uncapped),
        }
        settings |= {name: value for name, value in wishes.items() if value}
        for model, by_length in (floors or {}).items():
            settings |= floor_settings(model, by_length)
        models = [
            (f"model {1 + (order or self.models).index(name)}", name, profile)
            for name, profile in zip(self.models, profiles, strict=True)
        ]
        if judge is not None and self.judge is not None:
            models.append(("judge", self.judge, judge))
        for role, name, profile in models:
            settings[role] = name
            settings[f"{role} words"] = _describe(profile.words, "all")
            if profile.is_black_box and role != "judge":  # searched otherwise in earlier stores
                settings[f"{role} search"] = "learns from all of its scores"
            for aspect, value in asdict(profile.convention).items():
                settings[f"{role} {aspect}"] = str(value)
            del settings[f"{role} tolerance"]  # measured: another machine's may differ
            if profile.convention.precision == FLOAT32:  # as stores made before it was recorded
                del settings[f"{role} precision"]
        return settings


def stored_floors(settings: Mapping[str, str], model: str) -> dict[int, float]:
    """A model's floors of plausibility that a store was made with, nats, by number of words."""
    floors = {}
    for name, value in settings.items():
        # Specifications may hold commas: the name is compared as a whole.
        n_words = name.removesuffix(" words").rpartition(" ")[2]
        if n_words.isdecimal() and name == f"floor of {model}, {n_words} words":
            floors[int(n_words)] = float(value)
    return floors


def floor_settings(model: str, floors: Mapping[int, float]) -> dict[str, str]:
    """Name and value of the settings by which `stored_floors` knows a model's floors."""
    return {f"floor of {model}, {n} words": repr(floor) for n, floor in floors.items()}


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


def _describe_words(words: frozenset[str]) -> str:
    return f"{len(words):,} words, {_digest(sorted(words))}"


def _digest(texts: Iterable[str]) -> str:
    content = "\n".join(texts).encode()
    return f"sha256 {hashlib.sha256(content).hexdigest()[:16]}"
