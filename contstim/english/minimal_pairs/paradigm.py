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
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from contstim.documents import parse_toml, read_toml
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_NAME = re.compile(r"[\w-]+")
_ITEM = re.compile(
    r"""(?:(?P<name>[A-Za-z_]\w*):)?
        (?:"(?P<text>[^"]*)"|(?P<word>[A-Za-z_]\w*)(?:\[(?P<pattern>[^\]]*)\]|\{(?P<changes>[^}]*)\})?)
        (?:\s+|$)""",
    re.VERBOSE,
)
_Table = TypeVar("_Table", bound=BaseModel)


class _Common(BaseModel, strict=True, extra="forbid"):
    """Keys above the first table of a file."""

    field: str
    phenomenon: str
    rules: str = ""


class _Entry(BaseModel, strict=True, extra="forbid"):
    """Keys of a paradigm."""

    good: str
    bad: str
    hidden: str = Field("", alias="with")
    # Without it there is one version, in which nothing is put in place of a "$name"
    either: list[dict[str, Any]] = Field([{}], min_length=1)
    end: Literal[".", "!", "?"] = "."
    prefix: Literal["", "one", "two"] = ""
    critical: str = ""


def _checked(kind: type[_Table], values: Mapping[str, Any]) -> _Table:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise InputError(f"`{name}`: {first['msg']}.") from None


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
    if not tables:
        raise InputError(f"{source} has no paradigm; write one as [name] with 'good' and 'bad'.")
    paradigms, where = [], ""
    try:
        common = _checked(_Common, {k: v for k, v in content.items() if k not in tables})
        for uid, table in tables.items():
            where = f", [{uid}]"
            paradigms.append(_paradigm(uid, _checked(_Entry, table), common))
    except InputError as error:
        raise InputError(f"{source}{where}: {error}") from error
    return paradigms


def _paradigm(uid: str, entry: _Entry, common: _Common) -> Paradigm:
    if not _NAME.fullmatch(uid):
        raise InputError(f"{uid!r} names a file: use letters, digits, '-' and '_' only.")
    if (entry.prefix == "two") != bool(entry.critical):
        raise InputError("prefix = 'two' and 'critical' belong together.")
    versions = tuple(_version(entry, values) for values in entry.either)
    for version in versions if entry.critical else ():
        for which, items in (("good", version.good), ("bad", version.bad)):
            names = [item.name for item in items]
            # The method compares the word after two beginnings, so something must stand before it.
            if entry.critical not in names[1:]:
                raise InputError(
                    f"critical = {entry.critical!r} does not follow anything in the {which} "
                    f"sentence, whose items are {', '.join(names)}."
                )
    return Paradigm(
        uid=uid,
        phenomenon=common.phenomenon,
        field=common.field,
        versions=versions,
        end=entry.end,
        prefix=entry.prefix,
        critical=entry.critical,
        rules=common.rules,
    )


def _version(entry: _Entry, values: Mapping[str, object]) -> Version:
    texts = (
        Template(text).safe_substitute({name: str(value) for name, value in values.items()})
        for text in (entry.good, entry.bad, entry.hidden)
    )
    good_text, bad_text, hidden_text = texts
    good = read_good(good_text)
    hidden = read_good(hidden_text) if hidden_text else ()
    bad = read_bad(bad_text, good)
    # What is drawn and not shown needs names of its own; the bad sentence may share the good one's.
    for which, shown in (("good", good), ("bad", bad)):
        twice = sorted({item.name for item in shown} & {item.name for item in hidden})
        if twice:
            raise InputError(f"'{which}' and 'with' both name {', '.join(twice)}.")
    return Version(good, bad, hidden)


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
