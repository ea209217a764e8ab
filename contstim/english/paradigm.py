"""A paradigm: a table in a TOML file that defines a good sentence and the error in its bad twin.

A file begins with a `field` and a `phenomenon`, and has a table for each paradigm:

    [determiner_noun_number]
    good = "NP[role=subj, sem=adult, agr=?a] V[frame=np, form=past, ...] DEM[agr=it] N[num=sg, ...]"
    bad = "NP V DEM N{num=pl}"
    prefix = "one"

`Paradigm` describes all keys. The good sentence is a sequence of

    CATEGORY[feature=value, feature=?variable]    a constituent in the notation of the grammar
    name:CATEGORY[...]                            a constituent with a name
    "word"  or  "this|that one"                   literal words, or alternatives

The bad sentence may also have

    name                      the same constituent as in the good sentence
    name{feature=value}       the same word in a form with other features
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
from contstim.wording import find_duplicates

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
    """A constituent, literal words, or a reference to an item of the good sentence.

    Attributes:
        name: unique name; for a reference, the name of the item of the good sentence.
        pattern: constituent in the notation of the grammar, if the item is a constituent.
        alternatives: alternative literal words, if the item consists of words.
        changes: for a reference, new values of features of the item in the good sentence.
    """

    name: str
    pattern: str = ""
    alternatives: tuple[str, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def is_reference(self) -> bool:
        """True if the item refers to an item of the good sentence."""
        return not (self.pattern or self.alternatives)


Version: TypeAlias = tuple[tuple[Item, ...], tuple[Item, ...], tuple[Item, ...]]
"""Items of the good sentence, items of the bad sentence, and items that occur in neither."""


class Paradigm(BaseModel, strict=True, extra="forbid", frozen=True):
    """A type of minimal pair with one kind of error; fields are keys of the TOML file.

    Attributes:
        uid: name of the paradigm (BLiMP's field `UID`).
        phenomenon: phenomenon, such as `island_effects`.
        field: field of linguistics, such as `syntax`.
        good: items of the good sentence.
        bad: items of the bad sentence.
        hidden: items that are drawn but do not occur in the sentences (key `with`). They restrict
            variables that they share with other items.
        either: one mapping for each version (variant of the sentences). If a mapping contains the
            entry name → text, the text replaces "$name" in `good`, `bad` and `hidden`.
        end: end mark of both sentences: ".", "!" or "?".
        prefix: BLiMP's prefix method that applies: "one" (different words after one beginning),
            "two" (one word after different beginnings), or "" for none.
        critical: name of the constituent that follows both prefixes; only if `prefix` is "two".
        rules: additional rules for phrases, in the notation of the grammar.
    """

    uid: str
    phenomenon: str
    field: str
    good: str
    bad: str
    hidden: str = Field("", alias="with")
    either: list[dict[str, Any]] = Field([{}], min_length=1)
    end: Literal[".", "!", "?"] = "."
    prefix: Literal["", "one", "two"] = ""
    critical: str = ""
    rules: str = ""

    @cached_property
    def versions(self) -> tuple[Version, ...]:
        """Items of each version; all versions are equally likely."""
        return tuple(map(self._version, self.either))

    @model_validator(mode="after")
    def _check(self) -> Paradigm:
        if not re.fullmatch(r"[\w-]+", self.uid):
            raise ValueError(f"A name must have only letters, digits, - and _, got {self.uid!r}.")
        if (self.prefix == "two") != bool(self.critical):
            raise ValueError("'critical' is needed with prefix = 'two', and only then.")
        for *good_and_bad, hidden in self.versions:
            for which, items in zip(("good", "bad"), good_and_bad, strict=True):
                names = [item.name for item in items]
                if twice := sorted({*names} & {item.name for item in hidden}):
                    raise ValueError(f"'{which}' and 'with' both name {', '.join(twice)}.")
                # A prefix precedes the critical word, so the critical word is not the first item
                if self.critical and self.critical not in names[1:]:
                    raise ValueError(
                        f"critical = {self.critical!r} must follow another item of the {which} "
                        f"sentence, whose items are {', '.join(names)}."
                    )
        return self

    def _version(self, values: Mapping[str, object]) -> Version:
        good, bad, hidden = (
            Template(text).safe_substitute({name: str(value) for name, value in values.items()})
            for text in (self.good, self.bad, self.hidden)
        )
        good_items = _read_good(good)
        return good_items, _read_bad(bad, good_items), _read_good(hidden) if hidden else ()


def read_paradigms(path: Path | str) -> list[Paradigm]:
    """Read the paradigms of a TOML file.

    Raises:
        InputError: if the file cannot be read, or an entry is invalid (the message names the
            entry).
    """
    content = read_toml(path)
    # Keys above the first table apply to all paradigms of the file
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
            location = "".join(f"`{part}`: " for part in first["loc"][:1])
            problem = first["msg"].removeprefix("Value error, ").removesuffix(".")
            raise InputError(f"{path}, [{uid}]: {location}{problem}.") from None
    return paradigms


def shipped_paradigms() -> list[Paradigm]:
    """Return the paradigms that ship with contstim, in the order of their files."""
    files = sorted(Path(__file__).with_name("paradigms").glob("*.toml"))
    return [paradigm for file in files for paradigm in read_paradigms(file)]


def choose_paradigms(paradigms: Sequence[Paradigm], names: Sequence[str]) -> list[Paradigm]:
    """Select the paradigms with these names or phenomena; without names, all paradigms.

    Raises:
        InputError: if a name is neither a paradigm nor a phenomenon.
    """
    possible = {name for paradigm in paradigms for name in (paradigm.uid, paradigm.phenomenon)}
    unknown = [name for name in names if name not in possible]
    if unknown:
        raise InputError(
            f"Unknown paradigm or phenomenon {', '.join(unknown)}; the names are "
            f"{', '.join(sorted(possible))}."
        )
    return [p for p in paradigms if not names or {p.uid, p.phenomenon} & set(names)]


def _read_good(text: str) -> tuple[Item, ...]:
    items = _require_distinct_names(_parse_items(text, "good"))
    if changed := [item.name for item in items if item.is_reference]:
        raise ValueError(f"{changed[0]}{{...}} is allowed in the bad sentence only.")
    return tuple(items)


def _read_bad(text: str, good: Sequence[Item]) -> tuple[Item, ...]:
    """Parse a bad sentence. A bare name, such as NP, refers to an item of the good sentence."""
    names = [item.name for item in good]
    items: list[Item] = []
    for item in _parse_items(text, "bad"):
        is_bare = item.pattern == item.name
        if (is_bare or item.is_reference) and item.name not in names:
            raise ValueError(
                f"{item.name!r} is not in the good sentence, which has {', '.join(names)}; "
                f"write {item.name}[] for a new item of the bad sentence."
            )
        if item.name in names and not (is_bare or item.is_reference):
            raise ValueError(
                f"{item.name!r} is an item of the good sentence. Give the new item of the "
                f"bad sentence another name, as in new:{item.name}[...]."
            )
        items.append(Item(item.name) if is_bare else item)
    # The bad sentence may repeat a constituent of the good sentence, but not a new item
    _require_distinct_names([item for item in items if not item.is_reference])
    return tuple(items)


def _parse_items(text: str, which: str) -> list[Item]:
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
            # Unnamed words get a name with spaces, which no constituent can have
            items.append(Item(name or f"{which} word {len(items) + 1}", "", alternatives))
        elif changes is not None:
            pairs = [tuple(map(str.strip, change.split("="))) for change in changes.split(",")]
            if any(len(pair) != 2 or not all(pair) for pair in pairs):
                raise ValueError(f"{{{changes}}} must be {{feature=value}} or {{a=b, c=d}}.")
            items.append(Item(word, changes=tuple((pair[0], pair[1]) for pair in pairs)))
        else:
            # N and N[] have the same category, but only N can refer to the good sentence
            pattern_text = word if pattern is None else f"{word}[{pattern}]"
            items.append(Item(name or word, pattern_text))
        position = match.end()
    if not items:
        raise ValueError("A sentence needs at least one constituent or word.")
    return items


def _require_distinct_names(items: list[Item]) -> list[Item]:
    if twice := sorted(find_duplicates(item.name for item in items)):
        raise ValueError(f"Several items are named {', '.join(twice)}. Name them, as in a:NP b:NP.")
    return items
