"""A paradigm: a short entry in a TOML file that says what a good sentence is and what goes wrong.

A file names a `field` and a `phenomenon`, then has a table for each paradigm:

    [determiner_noun_number]
    good = "NP[role=subj, sem=adult, agr=?a] V[frame=np, form=past, ...] DEM[agr=it] N[num=sg, ...]"
    bad = "NP V DEM N{num=pl}"
    prefix = "one"

`either` lists what "$name" may stand for, `with` constituents that are drawn but not shown, `end`
is the end mark; `prefix = "two"` needs `critical`, the name of the word that follows both prefixes.
Phrases of a file's own are `rules`, in the notation of the grammar.

The good sentence is a row of

    CATEGORY[feature=value, feature=?variable]    a constituent in the notation of the grammar
    name:CATEGORY[...]                            the same under a name of its own
    "word"  or  "this|that one"                   words as they stand, or one of several

The bad sentence is written from the same, and from

    name                      a constituent of the good sentence as it is
    name{feature=value}       the same word in the form that has other features
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from contstim.documents import parse_toml, read_toml
from contstim.errors import InputError
from contstim.sentence import END_MARKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_NAME = re.compile(r"[\w-]+")
_ITEM = re.compile(
    r"""(?:(?P<name>[A-Za-z_]\w*):)?
        (?:"(?P<text>[^"]*)"|(?P<word>[A-Za-z_]\w*)(?:\[(?P<pattern>[^\]]*)\]|\{(?P<changes>[^}]*)\})?)
        (?:\s+|$)""",
    re.VERBOSE,
)
_TEXTS = ("good", "bad", "with", "end", "prefix", "critical")


@dataclass(frozen=True)
class Item:
    """A constituent or words of a sentence, or a reference to those of the good sentence.

    Attributes:
        name: that of no other item, but of what a reference refers to.
        pattern: of a constituent, which the grammar derives, as in its rules; else empty.
        alternatives: words as they stand, of which one is drawn; else none.
        changes: features that a reference has in place of those in the good sentence.
    """

    name: str
    pattern: str = ""
    alternatives: tuple[str, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def is_reference(self) -> bool:
        """True if it refers to the good sentence."""
        return not (self.pattern or self.alternatives)


@dataclass(frozen=True)
class Version:
    """A good sentence, its bad twin, and what is drawn with them but not shown."""

    good: tuple[Item, ...]
    bad: tuple[Item, ...]
    hidden: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Paradigm:
    """Sentences that go wrong in one way.

    Attributes:
        uid: BLiMP's name for a paradigm's name.
        phenomenon: what it is a case of, such as `island_effects`.
        field: of linguistics, such as `syntax`.
        versions: each as likely as the others.
        end: the end mark of both sentences.
        prefix: which of BLiMP's prefix methods applies, "one", "two", or "" for none.
        critical: for "two", the name of the constituent that follows both prefixes.
        rules: phrases of its own, in the notation of the grammar.
    """

    uid: str
    phenomenon: str
    field: str
    versions: tuple[Version, ...]
    end: str = "."
    prefix: str = ""
    critical: str = ""
    rules: str = ""


def read_paradigms(path: Path | str) -> list[Paradigm]:
    """The paradigms of a TOML file.

    Raises:
        InputError: the file cannot be read, or an entry lacks something or cannot be understood
            (names it).
    """
    return _parsed(read_toml(path), str(path))


def shipped_paradigms() -> list[Paradigm]:
    """The paradigms that come with contstim, by phenomenon."""
    folder = resources.files("contstim.english.minimal_pairs").joinpath("paradigms")
    files = [file for file in folder.iterdir() if file.name.endswith(".toml")]
    files.sort(key=lambda file: file.name)
    return [
        paradigm
        for file in files
        for paradigm in _parsed(parse_toml(file.read_bytes(), file.name), file.name)
    ]


def choose_paradigms(paradigms: Sequence[Paradigm], names: Sequence[str]) -> list[Paradigm]:
    """Those paradigms whose own name or phenomenon is among the names; all of them without names.

    Raises:
        InputError: a name is neither a paradigm's nor a phenomenon's.
    """
    possible = {name for paradigm in paradigms for name in (paradigm.uid, paradigm.phenomenon)}
    unknown = [name for name in names if name not in possible]
    if unknown:
        raise InputError(
            f"There is no paradigm or phenomenon {', '.join(unknown)}; there are "
            f"{', '.join(sorted(possible))}."
        )
    return [p for p in paradigms if not names or {p.uid, p.phenomenon} & set(names)]


def _parsed(content: Mapping[str, Any], source: str) -> list[Paradigm]:
    # What stands above the first table of a TOML file is common to all its paradigms.
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    common = {name: value for name, value in content.items() if name not in tables}
    _refuse_unknown(common, ("field", "phenomenon", "rules"), source)
    _require(common, ("field", "phenomenon"), source)
    if not tables:
        raise InputError(f"{source} has no paradigm; write one as [name] with 'good' and 'bad'.")
    paradigms = []
    for uid, table in tables.items():
        try:
            paradigms.append(_paradigm(uid, table, common))
        except InputError as error:
            raise InputError(f"{source}, [{uid}]: {error}") from error
    return paradigms


def _paradigm(uid: str, table: Mapping[str, Any], common: Mapping[str, str]) -> Paradigm:
    if not _NAME.fullmatch(uid):
        raise InputError(f"{uid!r} names a file: use letters, digits, '-' and '_' only.")
    _refuse_unknown(table, (*_TEXTS, "either"), "the paradigm")
    _require(table, ("good", "bad"), "the paradigm")
    for name in _TEXTS:
        if not isinstance(table.get(name, ""), str):
            raise InputError(f"{name!r} must be a text, not {table[name]!r}.")
    end, prefix = table.get("end", "."), table.get("prefix", "")
    if end not in END_MARKS:
        raise InputError(f"end = {end!r} must be one of {' '.join(END_MARKS)}")
    if prefix not in ("", "one", "two"):
        raise InputError(f"prefix = {prefix!r} must be 'one' or 'two', or left out.")
    # Without "either" there is one version, in which nothing is put in place of a "$name".
    either = table.get("either", [{}])
    if not isinstance(either, list) or not either or not all(isinstance(e, dict) for e in either):
        raise InputError("'either' must be a list of tables, such as [{a = 'he', b = 'she'}].")
    versions = tuple(_version(table, values) for values in either)
    paradigm = Paradigm(
        uid, common["phenomenon"], common["field"], versions, end, prefix,
        table.get("critical", ""), common.get("rules", ""),
    )  # fmt: skip
    if (prefix == "two") != bool(paradigm.critical):
        raise InputError("prefix = 'two' and 'critical' belong together.")
    for version in versions if paradigm.critical else ():
        for which, items in (("good", version.good), ("bad", version.bad)):
            names = [item.name for item in items]
            # The method compares the word after two beginnings, so something must stand before it.
            if paradigm.critical not in names[1:]:
                raise InputError(
                    f"critical = {paradigm.critical!r} does not follow anything in the {which} "
                    f"sentence, whose items are {', '.join(names)}."
                )
    return paradigm


def _version(table: Mapping[str, Any], values: Mapping[str, Any]) -> Version:
    def text(name: str) -> str:
        return Template(table.get(name, "")).safe_substitute({k: str(v) for k, v in values.items()})

    good = read_good(text("good"))
    hidden = read_good(text("with")) if "with" in table else ()
    bad = read_bad(text("bad"), good)
    # What is drawn and not shown needs names of its own; the bad sentence may share the good one's.
    shown = {"good": {item.name for item in good}, "bad": {item.name for item in bad}}
    for which, names in shown.items():
        twice = sorted(names & {item.name for item in hidden})
        if twice:
            raise InputError(f"'{which}' and 'with' both name {', '.join(twice)}.")
    return Version(good, bad, hidden)


def _refuse_unknown(table: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    unknown = sorted(set(table) - set(names))
    if unknown:
        raise InputError(f"{what} has {', '.join(unknown)}, which is not among {', '.join(names)}.")


def _require(table: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    missing = [name for name in names if not isinstance(table.get(name), str)]
    if missing:
        raise InputError(f"{what} lacks {', '.join(missing)}.")


def read_good(text: str) -> tuple[Item, ...]:
    """The items of a good sentence, each with a name of its own.

    Raises:
        InputError: the text is not a row of items, or two items share a name.
    """
    items = _distinct(tuple(_read(text, "good")))
    for item in items:
        if item.is_reference:
            raise InputError(
                f"{item.name}{{...}} changes a form; only the bad sentence may do that."
            )
    return items


def read_bad(text: str, good: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items of a bad sentence; a bare name refers to the good one.

    Raises:
        InputError: the text is not a row of items, or names what the good sentence lacks.
    """
    # A name alone, as NP, may be a constituent of its own or the good sentence's: by what that has.
    names = {item.name for item in good}
    items: list[Item] = []
    for item in _read(text, "bad"):
        is_bare = item.pattern == item.name
        if is_bare and item.name in names:
            items.append(Item(item.name))
        elif (is_bare or item.is_reference) and item.name not in names:
            raise InputError(
                f"{item.name!r} is not in the good sentence, which has {', '.join(names)}; "
                f"write {item.name}[] for one of the bad sentence's own."
            )
        elif item.name in names and not item.is_reference:
            raise InputError(
                f"{item.name!r} names something in the good sentence; give the bad "
                f"sentence's own another name, as in new:{item.name}[...]."
            )
        else:
            items.append(item)
    # The same constituent may stand twice in the bad sentence; what is drawn for it alone may not.
    _distinct(tuple(item for item in items if not item.is_reference))
    return tuple(items)


def _read(text: str, which: str) -> list[Item]:
    items: list[Item] = []
    position, text = 0, text.strip()
    while position < len(text):
        match = _ITEM.match(text, position)
        if not match:
            raise InputError(
                f'Cannot read {text[position:]!r}: expected CATEGORY[feature=value], "word", or, '
                f"in a bad sentence, a name or name{{feature=value}}."
            )
        name, quoted, word, pattern, changes = match.group(
            "name", "text", "word", "pattern", "changes"
        )
        if quoted is not None:
            alternatives = tuple(words.strip() for words in quoted.split("|"))
            if not all(alternatives):
                raise InputError(f'"{quoted}" has an empty alternative.')
            # Unnamed words get a name that no constituent can have, because it has spaces.
            items.append(Item(name or f"{which} word {len(items) + 1}", "", alternatives))
        elif changes is not None:
            pairs = [tuple(map(str.strip, change.split("="))) for change in changes.split(",")]
            if any(len(pair) != 2 or not all(pair) for pair in pairs):
                raise InputError(
                    f"{{{changes}}} must be {{feature=value}}, or several with commas."
                )
            items.append(Item(word, changes=tuple((pair[0], pair[1]) for pair in pairs)))
        else:
            # N and N[] are both nouns, but only the first can refer to the good sentence's.
            written = word if pattern is None else f"{word}[{pattern}]"
            items.append(Item(name or word, written))
        position = match.end()
    if not items:
        raise InputError("A sentence needs at least one constituent or word.")
    return items


def _distinct(items: tuple[Item, ...]) -> tuple[Item, ...]:
    names = [item.name for item in items]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"Two items are called {', '.join(twice)}; name them, as in a:NP b:NP.")
    return items
