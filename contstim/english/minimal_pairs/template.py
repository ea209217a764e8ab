"""Template of a paradigm's sentence: a row of constituents and words, and what goes wrong in it.

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
from typing import TypeAlias

from contstim.errors import InputError

_ITEM = re.compile(
    r"""(?:(?P<name>[A-Za-z_]\w*):)?
        (?:"(?P<text>[^"]*)"|(?P<word>[A-Za-z_]\w*)(?:\[(?P<pattern>[^\]]*)\]|\{(?P<changes>[^}]*)\})?)
        (?:\s+|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Constituent:
    """Something that the grammar derives: `pattern` is written as in its rules."""

    name: str
    pattern: str


@dataclass(frozen=True)
class Words:
    """Words as they stand; one of the alternatives is drawn."""

    name: str
    alternatives: tuple[str, ...]


@dataclass(frozen=True)
class Reference:
    """Constituent of the good sentence under that name, with other features if it has changes."""

    name: str
    changes: tuple[tuple[str, str], ...] = ()


Item: TypeAlias = Constituent | Words | Reference


def read_good(text: str) -> tuple[Item, ...]:
    """The items of a good sentence, each with a name of its own.

    Raises:
        InputError: the text is not a row of items, or two items share a name.
    """
    items = _distinct(tuple(_read(text, "good")))
    for item in items:
        if isinstance(item, Reference):
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
        is_bare = isinstance(item, Constituent) and item.pattern == item.name
        if is_bare and item.name in names:
            items.append(Reference(item.name))
        elif (is_bare or isinstance(item, Reference)) and item.name not in names:
            raise InputError(
                f"{item.name!r} is not in the good sentence, which has {', '.join(names)}; "
                f"write {item.name}[] for one of the bad sentence's own."
            )
        elif item.name in names and not isinstance(item, Reference):
            raise InputError(
                f"{item.name!r} names something in the good sentence; give the bad "
                f"sentence's own another name, as in new:{item.name}[...]."
            )
        else:
            items.append(item)
    # The same constituent may stand twice in the bad sentence; what is drawn for it alone may not.
    _distinct(tuple(item for item in items if not isinstance(item, Reference)))
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
            items.append(Words(name or f"{which} word {len(items) + 1}", alternatives))
        elif changes is not None:
            pairs = [tuple(map(str.strip, change.split("="))) for change in changes.split(",")]
            if any(len(pair) != 2 or not all(pair) for pair in pairs):
                raise InputError(
                    f"{{{changes}}} must be {{feature=value}}, or several with commas."
                )
            items.append(Reference(word, tuple((feature, value) for feature, value in pairs)))
        else:
            # N and N[] are both nouns, but only the first can refer to the good sentence's.
            written = word if pattern is None else f"{word}[{pattern}]"
            items.append(Constituent(name or word, written))
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
