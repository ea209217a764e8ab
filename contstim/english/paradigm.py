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
from functools import cached_property
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, Field, ValidationError, model_validator

from contstim.errors import InputError
from contstim.files.documents import read_toml
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Paradigm", "choose_paradigms", "read_paradigms", "shipped_paradigms"]

_ITEM = re.compile(
    r"""(?:(?P<name>[A-Za-z_]\w*):)?
        (?:"(?P<text>[^"]*)"|(?P<word>[A-Za-z_]\w*)(?:\[(?P<pattern>[^\]]*)\]|\{(?P<changes>[^}]*)\})?)
        (?:\s+|$)""",
    re.VERBOSE,
)


class Item(NamedTuple):
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


Version: TypeAlias = tuple[tuple[Item, ...], tuple[Item, ...], tuple[Item, ...]]
"""Items of the good sentence, of its bad twin, and what is drawn with them but not shown."""


class Paradigm(BaseModel, strict=True, extra="forbid", frozen=True):
    """Sentences that go wrong in one way; fields are the keys of its table and those above it.

    Attributes:
        uid: BLiMP's name for a paradigm's name.
        phenomenon: what it is a case of, such as `island_effects`.
        field: of linguistics, such as `syntax`.
        good: the items of a good sentence.
        bad: those of its twin.
        hidden: what is drawn with them but not shown.
        either: texts by the names that stand for them, of each version.
        end: the end mark of both sentences.
        prefix: which of BLiMP's prefix methods applies, "one", "two", or "" for none.
        critical: for "two", the name of the constituent that follows both prefixes.
        rules: phrases of its own, in the notation of the grammar.
    """

    uid: str
    phenomenon: str
    field: str
    good: str
    bad: str
    hidden: str = Field("", alias="with")
    # Without it there is one version, in which nothing is put in place of a "$name"
    either: list[dict[str, Any]] = Field([{}], min_length=1)
    end: Literal[".", "!", "?"] = "."
    prefix: Literal["", "one", "two"] = ""
    critical: str = ""
    rules: str = ""

    @cached_property
    def versions(self) -> tuple[Version, ...]:
        """The sentences, each version as likely as the others."""
        return tuple(map(self._version, self.either))

    @model_validator(mode="after")
    def _is_understood(self) -> Paradigm:
        if not re.fullmatch(r"[\w-]+", self.uid):
            raise ValueError(f"{self.uid!r} names a file: use letters, digits, '-' and '_' only.")
        if (self.prefix == "two") != bool(self.critical):
            raise ValueError("prefix = 'two' and 'critical' belong together.")
        for *shown, hidden in self.versions:
            for which, items in zip(("good", "bad"), shown, strict=True):
                names = [item.name for item in items]
                # The bad sentence may share the good one's names, what is not shown may not
                if twice := sorted({*names} & {item.name for item in hidden}):
                    raise ValueError(f"'{which}' and 'with' both name {', '.join(twice)}.")
                # The method compares the word after two beginnings: something must precede it
                if self.critical and self.critical not in names[1:]:
                    raise ValueError(
                        f"critical = {self.critical!r} does not follow anything in the {which} "
                        f"sentence, whose items are {', '.join(names)}."
                    )
        return self

    def _version(self, values: Mapping[str, object]) -> Version:
        good, bad, hidden = (
            Template(text).safe_substitute({name: str(value) for name, value in values.items()})
            for text in (self.good, self.bad, self.hidden)
        )
        shown = _read_good(good)
        return shown, _read_bad(bad, shown), _read_good(hidden) if hidden else ()


def read_paradigms(path: Path | str) -> list[Paradigm]:
    """The paradigms of a TOML file.

    Raises:
        InputError: the file cannot be read, or an entry lacks something or cannot be understood
            (names it).
    """
    content = read_toml(path)
    # What stands above the first table of a TOML file is common to all its paradigms.
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    common = {name: value for name, value in content.items() if name not in tables}
    if not tables:
        raise InputError(f"{path} has no paradigm; write one as [name] with 'good' and 'bad'.")
    paradigms = []
    for uid, table in tables.items():
        try:
            paradigms.append(Paradigm.model_validate({**common, **table, "uid": uid}))
        except ValidationError as error:
            first = error.errors()[0]
            where = "".join(f"`{part}`: " for part in first["loc"][:1])
            what = first["msg"].removeprefix("Value error, ").removesuffix(".")
            raise InputError(f"{path}, [{uid}]: {where}{what}.") from None
    return paradigms


def shipped_paradigms() -> list[Paradigm]:
    """The paradigms that come with contstim, by phenomenon."""
    files = sorted(Path(__file__).with_name("paradigms").glob("*.toml"))
    return [paradigm for file in files for paradigm in read_paradigms(file)]


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


def _read_good(text: str) -> tuple[Item, ...]:
    """The items of a good sentence, each with a name of its own."""
    items = _distinct(_read(text, "good"))
    if changed := [item.name for item in items if item.is_reference]:
        raise ValueError(f"{changed[0]}{{...}} changes a form; only the bad sentence may do that.")
    return tuple(items)


def _read_bad(text: str, good: Sequence[Item]) -> tuple[Item, ...]:
    """The items of a bad sentence; a bare name refers to the good one."""
    # A name alone, as NP, may be a constituent of its own or the good sentence's: by what that has.
    names = [item.name for item in good]
    items: list[Item] = []
    for item in _read(text, "bad"):
        is_bare = item.pattern == item.name
        if (is_bare or item.is_reference) and item.name not in names:
            raise ValueError(
                f"{item.name!r} is not in the good sentence, which has {', '.join(names)}; "
                f"write {item.name}[] for one of the bad sentence's own."
            )
        if item.name in names and not (is_bare or item.is_reference):
            raise ValueError(
                f"{item.name!r} names something in the good sentence; give the bad "
                f"sentence's own another name, as in new:{item.name}[...]."
            )
        items.append(Item(item.name) if is_bare else item)
    # The same constituent may stand twice in the bad sentence; what is drawn for it alone may not.
    _distinct([item for item in items if not item.is_reference])
    return tuple(items)


def _read(text: str, which: str) -> list[Item]:
    items: list[Item] = []
    position, text = 0, text.strip()
    while position < len(text):
        match = _ITEM.match(text, position)
        if not match:
            raise ValueError(
                f'Cannot read {text[position:]!r}: expected CATEGORY[feature=value], "word", or, '
                f"in a bad sentence, a name or name{{feature=value}}."
            )
        name, quoted, word, pattern, changes = match.groups()
        if quoted is not None:
            alternatives = tuple(words.strip() for words in quoted.split("|"))
            if not all(alternatives):
                raise ValueError(f'"{quoted}" has an empty alternative.')
            # Unnamed words get a name that no constituent can have, because it has spaces.
            items.append(Item(name or f"{which} word {len(items) + 1}", "", alternatives))
        elif changes is not None:
            pairs = [tuple(map(str.strip, change.split("="))) for change in changes.split(",")]
            if any(len(pair) != 2 or not all(pair) for pair in pairs):
                raise ValueError(
                    f"{{{changes}}} must be {{feature=value}}, or several with commas."
                )
            items.append(Item(word, changes=tuple((pair[0], pair[1]) for pair in pairs)))
        else:
            # N and N[] are both nouns, but only the first can refer to the good sentence's.
            written = word if pattern is None else f"{word}[{pattern}]"
            items.append(Item(name or word, written))
        position = match.end()
    if not items:
        raise ValueError("A sentence needs at least one constituent or word.")
    return items


def _distinct(items: list[Item]) -> list[Item]:
    if twice := sorted(repeated(item.name for item in items)):
        raise ValueError(f"Two items are called {', '.join(twice)}; name them, as in a:NP b:NP.")
    return items
