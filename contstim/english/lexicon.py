"""The embedded lexicon: words, their forms and their features, read from `lexicon.tsv`.

The table is data: nothing here knows any grammar beyond inflection. Its format is described in its
first lines and in `docs/english.md`. Regular forms are spelled by the orthographic rules of Quirk,
Greenbaum, Leech & Svartvik (1985), *A Comprehensive Grammar of the English Language*, sections
3.5-3.10 (verbs), 5.79-5.80 (nouns); irregular ones stand in the table.
"""

from __future__ import annotations

import functools
import itertools
import operator
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Features = dict[str, tuple[str, ...]]
Rows = tuple[tuple[str, ...], ...]

VOWELS = "aeiou"
SIBILANTS = ("s", "x", "z", "ch", "sh")
# Plurals are rarer than singulars.
PLURAL_SHARE = 0.18
PERSONS = ("i", "you", "he", "she", "it", "we", "they", "one")
HE_SHE_IT = ("he", "she", "it", "one")
OTHER_PERSONS = ("i", "you", "we", "they")
# What an object may look like unless its verb says otherwise.
REFERENCES = ("def", "indef", "bare", "own", "quant", "pron")
# The forms of "to be" as a full verb: tense, then persons.
BE_FORMS = {
    "am": ("pres", "i"),
    "is": ("pres", *HE_SHE_IT),
    "are": ("pres", "you", "we", "they"),
    "was": ("past", "i", *HE_SHE_IT),
    "were": ("past", "you", "we", "they"),
}
# Features whose values are semantic classes, so that a group of classes may stand there.
CLASS_FEATURES = ("sem", "subj", "obj", "place", "fits", "agr", "of")
# A value may leave a choice open: "dish|baked" is what cooks prepare. Words that *are* something
# (nouns, names, places) need only be one of the alternatives; words that *apply to* something must
# fit them all, and are of these categories.
OR = "|"
PREDICATES = frozenset({"V", "ADJ", "CMP", "LOOK", "RP"})
# Features whose alternatives are never left open, because several words must agree on one.
SEPARATE = frozenset({"agr", "num", "mode", "at", "by"})


class Symbol(NamedTuple):
    """A category and the features it must have; features are sorted by name.

    A named tuple and not a dataclass: half a million of them are hashed when the grammar is
    written out.
    """

    category: str
    features: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, category: str, **features: str) -> Symbol:
        """The symbol with these features, in whatever order they are given."""
        return cls(category, tuple(sorted(features.items())))

    def get(self, name: str) -> str | None:
        """The value of a feature, or None where the symbol leaves it open."""
        return dict(self.features).get(name)

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.features)
        return f"{self.category}[{inside}]" if inside else self.category


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


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All entries by category; they are found by features, and every answer is remembered."""

    entries: Mapping[str, tuple[Entry, ...]]
    _fitting: dict[Symbol, tuple[Entry, ...]] = field(default_factory=dict)
    _values: dict[tuple[Symbol, tuple[str, ...]], Rows] = field(default_factory=dict)
    _combinations: dict[tuple[str, ...], Rows] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Entry]:
        return itertools.chain.from_iterable(self.entries.values())

    @functools.cached_property
    def forms(self) -> frozenset[str]:
        """Every word form that can stand in a sentence, "an" included."""
        return frozenset(itertools.chain.from_iterable(entry.words for entry in self)) | {"an"}

    @functools.cached_property
    def _index(self) -> dict[tuple[str, str, str], int]:
        """For each category, feature and value a number whose bit i says whether entry i has it.

        Several features at once are then one operation on whole numbers. Values that leave a choice
        are added when they are asked for.
        """
        index: dict[tuple[str, str, str], int] = {}
        for category, entries in self.entries.items():
            for i, entry in enumerate(entries):
                for name, values in entry.features.items():
                    for value in values:
                        key = (category, name, value)
                        index[key] = index.get(key, 0) | 1 << i
        return index

    def _having(self, category: str, name: str, value: str) -> int:
        """The entries with a value of a feature, or with values of which it leaves the choice."""
        key = (category, name, value)
        if key not in self._index:
            combine = operator.and_ if category in PREDICATES else operator.or_
            choices = ((category, name, choice) for choice in value.split(OR))
            self._index[key] = functools.reduce(combine, (self._index.get(c, 0) for c in choices))
        return self._index[key]

    def fitting(self, symbol: Symbol) -> tuple[Entry, ...]:
        """The entries of a symbol's category that have all of its features."""
        if symbol not in self._fitting:
            candidates = self.entries.get(symbol.category, ())
            # Begin with all entries, bit i for entry i; each feature takes away those that lack it
            bits = (1 << len(candidates)) - 1
            for name, value in symbol.features:
                bits &= self._having(symbol.category, name, value)
            found = []
            while bits:
                # Two's complement: a number and its negative share the lowest bit alone
                lowest = bits & -bits
                found.append(candidates[lowest.bit_length() - 1])
                bits ^= lowest
            self._fitting[symbol] = tuple(found)
        return self._fitting[symbol]

    def values(self, symbol: Symbol, names: tuple[str, ...]) -> Rows:
        """The values that the entries of a symbol give to further features, without repeats.

        Alternatives stay together as one value where they may.
        """
        if (symbol, names) not in self._values:
            rows: dict[tuple[str, ...], None] = {}
            for entry in self.fitting(symbol):
                # An entry without one of the features gives an empty product: no row
                values = [entry.features.get(name, ()) for name in names]
                joined = (
                    choices if name in SEPARATE or not choices else (OR.join(choices),)
                    for name, choices in zip(names, values, strict=True)
                )
                rows.update(dict.fromkeys(itertools.product(*joined)))
            self._values[symbol, names] = tuple(rows)
        return self._values[symbol, names]

    def combinations(self, names: tuple[str, ...]) -> Rows:
        """All values that features have together in some entry, whatever its category."""
        if names not in self._combinations:
            rows: dict[tuple[str, ...], None] = {}
            for entry in self:
                values = (entry.features.get(name, ()) for name in names)
                rows.update(dict.fromkeys(itertools.product(*values)))
            self._combinations[names] = tuple(rows)
        return self._combinations[names]


def _ends_in_consonant_y(word: str) -> bool:
    return len(word) > 1 and word.endswith("y") and word[-2] not in VOWELS


def _doubled(word: str) -> str:
    """The word, its last letter twice where it must be.

    That is one vowel letter before one consonant letter, in a word of one syllable: stop, plan,
    chat. Not show, fix, play: w, x and y are never doubled.
    """
    doubles = len(word) > 2 and word[-1] not in VOWELS + "wxy" and word[-2] in VOWELS
    return word + word[-1] if doubles and sum(map(VOWELS.__contains__, word)) == 1 else word


def add_s(word: str) -> str:
    """The plural of a noun, and the third person singular of a verb."""
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(SIBILANTS) or word in ("go", "do") else "s")


def add_ed(word: str) -> str:
    """The regular past tense and past participle."""
    if word.endswith("e"):
        return word + "d"
    return (word[:-1] + "i" if _ends_in_consonant_y(word) else _doubled(word)) + "ed"


def add_ing(word: str) -> str:
    """The present participle."""
    # die, dying; make, making; but see, dye and canoe keep their e
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
        return word[:-1] + "ing"
    return _doubled(word) + "ing"


class _Reader:
    """Turns rows into entries, remembering classes, inheritance and irregular forms."""

    def __init__(self, text: str) -> None:
        self.classes: dict[str, tuple[str, ...]] = {}
        self.inherited: dict[str, Features] = {}
        self.irregular: dict[tuple[str, str], tuple[str, ...]] = {}
        self.entries: dict[str, list[Entry]] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            columns = line.split("\t")
            if len(columns) != 3:
                raise InputError(
                    f"Line {number} of the lexicon has {len(columns)} columns; it needs three, "
                    "separated by tabs: category, features, words."
                )
            self._read(*columns)

    def _read(self, category: str, features: str, text: str) -> None:
        words = text.split()
        if category == "class":
            self.classes[features] = tuple(words)
        elif category == "inherit":
            for name in self._expand(tuple(words)):
                self.inherited.setdefault(name, {}).update(self._features(features))
        else:
            for word in words:
                self._add(category, word, self._features(features))

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

    def _add(self, category: str, text: str, features: Features) -> None:
        """Add the forms of a word as the table spells it: `lemma:irregular,forms/weight`."""
        name, _, share = text.partition("/")
        lemma, _, irregular = name.replace("_", " ").partition(":")
        own = tuple(irregular.split(",")) if irregular else ()
        # A word may stand in several rows, one for each use: the first one spells its irregular
        # forms
        own = self.irregular.setdefault((category, lemma), own)
        forms: Iterator[tuple[str, Features]] = iter([(lemma, features)])
        if category in ("N", "V"):
            forms = (self._noun if category == "N" else self._verb)(lemma, own, features)
        for form, form_features in forms:
            plural = category == "N" and "they" in form_features["agr"]
            # agr=they: the form is a plural, by rule or because the noun has no other
            weight = float(share or 1) * (PLURAL_SHARE if plural else 1)
            entry = Entry(category, lemma, form, weight, form_features)
            self.entries.setdefault(category, []).append(entry)

    def _noun(
        self, lemma: str, irregular: tuple[str, ...], features: Features
    ) -> Iterator[tuple[str, Features]]:
        no = dict.fromkeys(("kin", "hum", "live", "shared"), ("no",))
        features = {"count": ("count",), **no, "by": PERSONS} | features
        for name in features.get("sem", ()):
            # Later features win: what a row says outdoes these defaults, and what a class hands on
            # outdoes the row
            features = features | self.inherited.get(name, {})
        plural = irregular[0] if irregular else add_s(lemma)
        is_regular = plural in (lemma + "s", lemma + "es", add_s(lemma))
        features = features | {
            "kind": features.get("sem", ()),
            "regular": ("yes",) if is_regular else ("no",),
        }
        only = features.get("num", ("sg", "pl") if features["count"] == ("count",) else ("sg",))
        if only == ("pl",):
            yield lemma, features | {"agr": ("they",), "fixed": ("yes",), "kind": features["sem"]}
            return
        gender = features.get("gender", ("m", "f"))
        persons = tuple({"m": "he", "f": "she"}[value] for value in gender)
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
            for form, persons in BE_FORMS.items():
                yield form, features | {"form": persons[:1], "agr": persons[1:]}
            return
        # Only the first word of a verb such as "look at" is inflected
        head, space, rest = lemma.partition(" ")
        regular = {"past": add_ed, "part": add_ed, "ing": add_ing}
        forms = {name: add(head) + space + rest for name, add in regular.items()}
        # Fewer irregular forms than three leave the later ones regular
        forms |= dict(zip(forms, irregular, strict=False))
        # The only verb but "be" whose third person is irregular ("does" is regular in spelling)
        third = "has" if lemma == "have" else add_s(head) + space + rest
        # The same spelling twice: after "to" or a modal it fits all persons, as a present tense not
        # he, she or it
        yield lemma, features | {"form": ("base",), "agr": PERSONS}
        yield lemma, features | {"form": ("pres",), "agr": OTHER_PERSONS}
        yield third, features | {"form": ("pres",), "agr": HE_SHE_IT}
        for name, form in forms.items():
            yield form, features | {"form": (name,), "agr": PERSONS}


def read_lexicon(text: str) -> Lexicon:
    """The lexicon written in a table.

    Raises:
        InputError: a row does not have three columns.
    """
    reader = _Reader(text)
    entries = {category: tuple(entries) for category, entries in reader.entries.items()}
    return Lexicon(entries)


@functools.cache
def lexicon() -> Lexicon:
    """The lexicon that ships with contstim."""
    table = resources.files("contstim.english").joinpath("lexicon.tsv")
    return read_lexicon(table.read_text(encoding="utf-8"))
