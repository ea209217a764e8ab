"""The embedded lexicon: words, their forms and their features, read from `lexicon.tsv`.

The table is data: nothing here knows any grammar beyond inflection. Its format is described in its
first lines and in `docs/english.md`.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING

from contstim.english.inflection import add_s, verb_forms
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Features = dict[str, tuple[str, ...]]

VOWEL_LETTERS = "aeiou"
# Plurals are rarer than singulars.
PLURAL_SHARE = 0.18
PERSONS = ("i", "you", "he", "she", "it", "we", "they", "one")
HE_SHE_IT = ("he", "she", "it", "one")
OTHER_PERSONS = ("i", "you", "we", "they")
# What an object may look like unless its verb says otherwise.
REFERENCES = ("def", "indef", "bare", "own", "quant", "pron")
# The forms of "to be" as a full verb: tense, then persons.
BE_FORMS = (
    ("am", ("pres", "i")),
    ("is", ("pres", *HE_SHE_IT)),
    ("are", ("pres", "you", "we", "they")),
    ("was", ("past", "i", *HE_SHE_IT)),
    ("were", ("past", "you", "we", "they")),
)
# Features whose values are semantic classes, so that a group of classes may stand there.
CLASS_FEATURES = ("sem", "subj", "obj", "place", "fits", "agr", "of")


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """One form of one word in one use; compared by identity.

    `form` may hold a space ("last night", "looked at"). Each feature has one or more values: the
    entry is at home in a place of the grammar that asks for any one of them.
    """

    category: str
    lemma: str
    form: str
    weight: float
    features: Mapping[str, tuple[str, ...]]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the form as they stand inside a sentence."""
        return tuple(self.form.split())


@dataclass(frozen=True)
class Lexicon:
    """All entries by category, and the two lists that decide between "a" and "an"."""

    entries: Mapping[str, tuple[Entry, ...]]
    vowel_sounds: frozenset[str] = field(default_factory=frozenset)
    consonant_sounds: frozenset[str] = field(default_factory=frozenset)

    def __iter__(self) -> Iterator[Entry]:
        return itertools.chain.from_iterable(self.entries.values())

    @functools.cached_property
    def forms(self) -> frozenset[str]:
        """Every word form that can stand in a sentence, "an" included."""
        return frozenset(itertools.chain.from_iterable(entry.words for entry in self)) | {"an"}

    def article(self, next_word: str) -> str:
        """The indefinite article before a word: "an" before a vowel sound, else "a"."""
        # By sound, not by letter: "a university", "an hour" stand in lists
        if next_word in self.consonant_sounds:
            return "a"
        starts = next_word in self.vowel_sounds or next_word[0].lower() in VOWEL_LETTERS
        return "an" if starts else "a"


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as the table spells it: `lemma:irregular,forms/weight`."""

    lemma: str
    irregular: tuple[str, ...]
    weight: float

    @classmethod
    def parse(cls, text: str) -> _Word:
        name, _, weight = text.partition("/")
        lemma, _, irregular = name.replace("_", " ").partition(":")
        return cls(lemma, tuple(irregular.split(",")) if irregular else (), float(weight or 1))


class _Reader:
    """Turns rows into entries, remembering classes, inheritance and irregular forms."""

    def __init__(self) -> None:
        self.classes: dict[str, tuple[str, ...]] = {}
        self.inherited: dict[str, Features] = {}
        self.sounds: dict[str, frozenset[str]] = {}
        self.irregular: dict[tuple[str, str], tuple[str, ...]] = {}
        self.entries: dict[str, list[Entry]] = {}

    def read(self, line: str, number: int) -> None:
        columns = line.split("\t")
        if len(columns) != 3:
            raise InputError(
                f"Line {number} of the lexicon has {len(columns)} columns; it needs three, "
                "separated by tabs: category, features, words."
            )
        category, features, words = columns
        if category == "class":
            self.classes[features] = tuple(words.split())
        elif category == "sound":
            self.sounds[features] = frozenset(words.split())
        elif category == "inherit":
            for name in self._expand(tuple(words.split())):
                self.inherited.setdefault(name, {}).update(self._features(features))
        else:
            for text in words.split():
                self._add(category, _Word.parse(text), self._features(features))

    def _expand(self, names: tuple[str, ...]) -> tuple[str, ...]:
        members = [
            self._expand(self.classes[name]) if name in self.classes else (name,) for name in names
        ]
        return tuple(dict.fromkeys(itertools.chain.from_iterable(members)))

    def _features(self, text: str) -> Features:
        features = {}
        for item in text.split() if text != "-" else ():
            name, _, values = item.partition("=")
            alternatives = tuple(values.split("|"))
            features[name] = self._expand(alternatives) if name in CLASS_FEATURES else alternatives
        return features

    def _add(self, category: str, word: _Word, features: Features) -> None:
        key = (category, word.lemma)
        # A word may stand in several rows, one for each use: the first one spells its irregular
        # forms
        forms = self.irregular.setdefault(key, word.irregular)
        inflect = {"N": self._noun, "V": self._verb}.get(category, self._invariable)
        for form, form_features in inflect(word.lemma, forms, features):
            plural = category == "N" and "they" in form_features["agr"]
            # agr=they: the form is a plural, by rule or because the noun has no other
            weight = word.weight * (PLURAL_SHARE if plural else 1)
            entry = Entry(category, word.lemma, form, weight, form_features)
            self.entries.setdefault(category, []).append(entry)

    def _invariable(
        self, lemma: str, _irregular: tuple[str, ...], features: Features
    ) -> Iterator[tuple[str, Features]]:
        yield lemma, features

    def _noun(
        self, lemma: str, irregular: tuple[str, ...], features: Features
    ) -> Iterator[tuple[str, Features]]:
        features = {
            "count": ("count",),
            "kin": ("no",),
            "hum": ("no",),
            "live": ("no",),
            "shared": ("no",),
            "by": PERSONS,
        } | features
        for name in features.get("sem", ()):
            # Later features win: what a row says outdoes these defaults, and what a class hands on
            # outdoes the row
            features = features | self.inherited.get(name, {})
        features = features | {"kind": features.get("sem", ())}
        plural = irregular[0] if irregular else add_s(lemma)
        is_regular = plural in (lemma + "s", lemma + "es", add_s(lemma))
        features = features | {"regular": ("yes",) if is_regular else ("no",)}
        only = features.get("num", ("sg", "pl") if features["count"] == ("count",) else ("sg",))
        gender = features.get("gender", ("m", "f"))
        persons = tuple({"m": "he", "f": "she"}[value] for value in gender)
        if only == ("pl",):
            yield lemma, features | {"agr": ("they",), "fixed": ("yes",), "kind": features["sem"]}
            return
        singular = persons if features["hum"] == ("yes",) else ("it",)
        yield lemma, features | {"num": ("sg",), "agr": singular}
        if "pl" in only:
            yield plural, features | {"num": ("pl",), "agr": ("they",)}

    def _verb(
        self, lemma: str, irregular: tuple[str, ...], features: Features
    ) -> Iterator[tuple[str, Features]]:
        features = {"asp": ("act",), "ref": REFERENCES, "pas": ("no",), "bare": ("yes",)} | features
        # A verb that names an action, in one of its uses at least: it can be planned, done again
        # and dated
        if "state" not in features["asp"] or len(features["asp"]) > 1:
            dated = ("near", "week") if "big" in features else ("near",)
            usual = {"plan": ("yes",), "hab": ("yes",), "day": dated}
            features = usual | features | {"dyn": ("yes",)}
        # The only verb with a form for a person
        if lemma == "be":
            for form, persons in BE_FORMS:
                yield form, features | {"form": persons[:1], "agr": persons[1:]}
            return
        forms = verb_forms(lemma, irregular)
        # The same spelling twice: after "to" or a modal it fits all persons, as a present tense not
        # he, she or it
        yield forms["base"], features | {"form": ("base",), "agr": PERSONS}
        yield forms["base"], features | {"form": ("pres",), "agr": OTHER_PERSONS}
        yield forms["s"], features | {"form": ("pres",), "agr": HE_SHE_IT}
        for name in ("past", "part", "ing"):
            yield forms[name], features | {"form": (name,), "agr": PERSONS}


def read_lexicon(text: str) -> Lexicon:
    """The lexicon written in a table.

    Raises:
        InputError: a row does not have three columns.
    """
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            reader.read(line, number)
    return Lexicon(
        {category: tuple(entries) for category, entries in reader.entries.items()},
        reader.sounds.get("vowel", frozenset()),
        reader.sounds.get("consonant", frozenset()),
    )


@functools.cache
def lexicon() -> Lexicon:
    """The lexicon that ships with contstim."""
    table = resources.files("contstim.english").joinpath("lexicon.tsv")
    return read_lexicon(table.read_text(encoding="utf-8"))
