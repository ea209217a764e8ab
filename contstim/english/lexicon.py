"""The embedded lexicon: words, their forms and their features, read from `lexicon.tsv`.

The table contains all words, their features and irregular forms. The first lines of the table and
`docs/english.md` describe its format. This module derives regular forms by the spelling rules of
Quirk, Greenbaum, Leech & Svartvik (1985), *A Comprehensive Grammar of the English Language*,
sections 3.5-3.10 (verbs) and 5.79-5.80 (nouns).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Features = dict[str, tuple[str, ...]]
Rows = tuple[tuple[str, ...], ...]
Forms = Iterator[tuple[str, Features]]

VOWELS = "aeiou"
SIBILANTS = ("s", "x", "z", "ch", "sh")
# Weight of a plural relative to its singular: plurals are rarer.
PLURAL_SHARE = 0.18
PERSONS = ("i", "you", "he", "she", "it", "we", "they", "one")
HE_SHE_IT = ("he", "she", "it", "one")
OTHER_PERSONS = ("i", "you", "we", "they")
# Possible types of an object, unless its verb restricts them.
REFERENCES = ("def", "indef", "bare", "own", "quant", "pron")
# The forms of "to be" as a full verb: tense, then persons.
BE_FORMS = {
    "am": ("pres", "i"),
    "is": ("pres", *HE_SHE_IT),
    "are": ("pres", "you", "we", "they"),
    "was": ("past", "i", *HE_SHE_IT),
    "were": ("past", "you", "we", "they"),
}
# Features whose values are semantic classes; a value may also be the name of a group of classes.
CLASS_FEATURES = ("sem", "subj", "obj", "place", "fits", "agr", "of")
# A required value may have alternatives: the object of "cook" is a "dish|baked". A noun, name or
# place fits if it has one of them. A word of the categories PREDICATES fits if it has all of them,
# because any noun with one of these values may become its subject or object.
OR = "|"
PREDICATES = frozenset({"V", "ADJ", "CMP", "LOOK", "RP"})
# Features that never have alternatives. Several words of a sentence agree in such a feature, so
# they must have the same single value.
SEPARATE = frozenset({"agr", "num", "mode", "at", "by"})


class Symbol(NamedTuple):
    """A category and its required features, sorted by name.

    An expansion hashes half a million symbols; a named tuple is hashed faster than a dataclass.
    """

    category: str
    features: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, category: str, **features: str) -> Symbol:
        """Create a symbol from features in any order."""
        return cls(category, tuple(sorted(features.items())))

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.features)
        return f"{self.category}[{inside}]" if inside else self.category


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """One form of a word in one of its uses. Entries are compared by identity.

    `form` may contain a space ("last night", "looked at"). An entry may have several values of a
    feature. It fits a symbol if it has each value that the symbol requires.
    """

    category: str
    lemma: str
    form: str
    weight: float
    features: Mapping[str, tuple[str, ...]]

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the form, as written inside a sentence."""
        return tuple(self.form.split())


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All entries by category; the results of searches by features are cached."""

    entries: Mapping[str, tuple[Entry, ...]]
    _matches: dict[Symbol, tuple[Entry, ...]] = field(default_factory=dict)
    _values: dict[tuple[Symbol, tuple[str, ...]], Rows] = field(default_factory=dict)
    _combinations: dict[tuple[str, ...], Rows] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Entry]:
        return itertools.chain.from_iterable(self.entries.values())

    @functools.cached_property
    def forms(self) -> frozenset[str]:
        """All word forms that can occur in a sentence, "an" included."""
        return frozenset(itertools.chain.from_iterable(entry.words for entry in self)) | {"an"}

    @functools.cached_property
    def _index(self) -> dict[tuple[str, str, str], int]:
        """A bit mask for each category, feature and value.

        Bit i is set if entry i of the category has the value. Masks of values with alternatives are
        added on demand.
        """
        index: dict[tuple[str, str, str], int] = {}
        for category, entries in self.entries.items():
            for i, entry in enumerate(entries):
                for name, values in entry.features.items():
                    for value in values:
                        key = (category, name, value)
                        index[key] = index.get(key, 0) | 1 << i
        return index

    def _entry_bits(self, category: str, name: str, value: str) -> int:
        key = (category, name, value)
        if key not in self._index:
            combine = operator.and_ if category in PREDICATES else operator.or_
            choices = ((category, name, choice) for choice in value.split(OR))
            self._index[key] = functools.reduce(combine, (self._index.get(c, 0) for c in choices))
        return self._index[key]

    def fitting(self, symbol: Symbol) -> tuple[Entry, ...]:
        """Return the entries that have the category and all features of a symbol."""
        if symbol not in self._matches:
            candidates = self.entries.get(symbol.category, ())
            bits = (1 << len(candidates)) - 1
            for name, value in symbol.features:
                bits &= self._entry_bits(symbol.category, name, value)
            entries = []
            while bits:
                lowest = bits & -bits  # lowest set bit (two's complement)
                entries.append(candidates[lowest.bit_length() - 1])
                bits ^= lowest
            self._matches[symbol] = tuple(entries)
        return self._matches[symbol]

    def values(self, symbol: Symbol, names: tuple[str, ...]) -> Rows:
        """Return the distinct combinations of values that a symbol's entries have for `names`.

        `names` are names of features.

        If an entry has several values of a feature, these values are joined to one value with
        alternatives. Values of features in `SEPARATE` are not joined; each value gives a separate
        combination.
        """
        if (symbol, names) not in self._values:
            rows: dict[tuple[str, ...], None] = {}
            for entry in self.fitting(symbol):
                # For an entry without one of the features, the product is empty
                values = [entry.features.get(name, ()) for name in names]
                joined = (
                    choices if name in SEPARATE or not choices else (OR.join(choices),)
                    for name, choices in zip(names, values, strict=True)
                )
                rows.update(dict.fromkeys(itertools.product(*joined)))
            self._values[symbol, names] = tuple(rows)
        return self._values[symbol, names]

    def combinations(self, names: tuple[str, ...]) -> Rows:
        """Return the distinct combinations of values of the features `names` in the lexicon.

        A combination is listed if at least one entry has it.
        """
        if names not in self._combinations:
            values = ([entry.features.get(name, ()) for name in names] for entry in self)
            rows = itertools.chain.from_iterable(itertools.starmap(itertools.product, values))
            self._combinations[names] = tuple(dict.fromkeys(rows))
        return self._combinations[names]


def _ends_in_consonant_y(word: str) -> bool:
    return len(word) > 1 and word.endswith("y") and word[-2] not in VOWELS


def _double_last_letter(word: str) -> str:
    """Double the last letter of a word if the letter before it is the only vowel: stop, plan.

    The letters w, x and y are never doubled: show, fix, play.
    """
    doubles = len(word) > 2 and word[-1] not in VOWELS + "wxy" and word[-2] in VOWELS
    return word + word[-1] if doubles and sum(map(VOWELS.__contains__, word)) == 1 else word


def add_s(word: str) -> str:
    """Return the plural of a noun, or the third person singular of a verb."""
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(SIBILANTS) or word in ("go", "do") else "s")


def add_ed(word: str) -> str:
    """Return the regular past tense, which is also the regular past participle."""
    if word.endswith("e"):
        return word + "d"
    return (word[:-1] + "i" if _ends_in_consonant_y(word) else _double_last_letter(word)) + "ed"


def add_ing(word: str) -> str:
    """Return the present participle."""
    # die, dying; make, making; but see, dye and canoe keep their e
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
        return word[:-1] + "ing"
    return _double_last_letter(word) + "ing"


def _class_members(names: Iterable[str], classes: Features) -> tuple[str, ...]:
    """Replace the names of groups of classes by the classes in these groups."""
    members = (_class_members(classes.get(name, ()), classes) or (name,) for name in names)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(members)))


def _parse_features(text: str, classes: Features) -> Features:
    features = {}
    for item in text.split() if text != "-" else ():
        name, _, values = item.partition("=")
        alternatives = tuple(values.split("|"))
        in_classes = name in CLASS_FEATURES
        features[name] = _class_members(alternatives, classes) if in_classes else alternatives
    return features


def _noun_forms(lemma: str, irregular: str, features: Features) -> Forms:
    no = dict.fromkeys(("kin", "hum", "live", "shared"), ("no",))
    features = {"count": ("count",), **no, "by": PERSONS} | features
    plural = irregular or add_s(lemma)
    regular = "yes" if plural in (lemma + "s", lemma + "es", add_s(lemma)) else "no"
    features = features | {"kind": features.get("sem", ()), "regular": (regular,)}
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


def _verb_forms(lemma: str, irregular: str, features: Features) -> Forms:
    features = {"asp": ("act",), "ref": REFERENCES, "pas": ("no",), "bare": ("yes",)} | features
    # If a verb denotes an action in at least one use, it can describe actions that are planned,
    # repeated, or happen at a stated time
    if "state" not in features["asp"] or len(features["asp"]) > 1:
        dated = ("near", "week") if "big" in features else ("near",)
        usual = {"plan": ("yes",), "hab": ("yes",), "day": dated}
        features = usual | features | {"dyn": ("yes",)}
    # Only "be" has different forms for "i" and "you"
    if lemma == "be":
        for form, persons in BE_FORMS.items():
            yield form, features | {"form": persons[:1], "agr": persons[1:]}
        return
    # Only the first word of a multi-word verb ("look at") is inflected
    head, space, particles = lemma.partition(" ")
    regular = {"past": add_ed, "part": add_ed, "ing": add_ing}
    forms = {name: add(head) + space + particles for name, add in regular.items()}
    # If a verb has fewer than three irregular forms, its other forms are regular
    forms |= dict(zip(forms, filter(None, irregular.split(",")), strict=False))
    # "have" is the only verb except "be" with an irregular third person
    third = "has" if lemma == "have" else add_s(head) + space + particles
    # The base form ("to see", "can see") fits all persons. In the present tense, this form fits
    # only the persons in `OTHER_PERSONS`
    yield lemma, features | {"form": ("base",), "agr": PERSONS}
    yield lemma, features | {"form": ("pres",), "agr": OTHER_PERSONS}
    yield third, features | {"form": ("pres",), "agr": HE_SHE_IT}
    for name, form in forms.items():
        yield form, features | {"form": (name,), "agr": PERSONS}


_INFLECTIONS = {"N": _noun_forms, "V": _verb_forms}


def read_lexicon(text: str) -> Lexicon:
    """Read a lexicon from the text of a table.

    Raises:
        InputError: if a row does not have three columns.
    """
    classes: Features = {}  # group of semantic classes → classes or groups
    inherited: dict[str, Features] = {}  # semantic class → features of its nouns
    irregular: dict[tuple[str, str], str] = {}  # category and lemma → forms
    entries: dict[str, list[Entry]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 3:
            raise InputError(
                f"Line {number} of the lexicon has {len(columns)} columns; it needs three, "
                "separated by tabs: category, features, words."
            )
        category, features, words = columns
        if category == "class":
            classes[features] = tuple(words.split())
            continue
        values = _parse_features(features, classes)
        if category == "inherit":
            for name in _class_members(words.split(), classes):
                inherited.setdefault(name, {}).update(values)
            continue
        for name in values.get("sem", ()) if category == "N" else ():
            # Features of the class override those of the row
            values = values | inherited.get(name, {})
        for word in words.split():  # each word is `lemma:irregular,forms/weight`
            spelling, _, share = word.replace("_", " ").partition("/")
            lemma, _, listed = spelling.partition(":")
            # A word has a row for each use; only the first row lists its irregular forms
            listed = irregular.setdefault((category, lemma), listed)
            forms = [(lemma, values)]
            if category in _INFLECTIONS:
                forms = [*_INFLECTIONS[category](lemma, listed, values)]
            for form, form_features in forms:
                plural = category == "N" and "they" in form_features["agr"]
                weight = float(share or 1) * (PLURAL_SHARE if plural else 1)
                entry = Entry(category, lemma, form, weight, form_features)
                entries.setdefault(category, []).append(entry)
    return Lexicon({category: tuple(rows) for category, rows in entries.items()})


@functools.cache
def lexicon() -> Lexicon:
    """Return the lexicon that ships with contstim."""
    return read_lexicon(Path(__file__).with_name("lexicon.tsv").read_text(encoding="utf-8"))
