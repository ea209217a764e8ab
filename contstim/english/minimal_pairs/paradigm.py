"""A paradigm: a short entry in a TOML file that says what a good sentence is and what goes wrong.

A file names a `field` and a `phenomenon`, then has a table for each paradigm:

    [determiner_noun_number]
    good = "NP[role=subj, sem=adult, agr=?a] V[frame=np, form=past, ...] DEM[agr=it] N[num=sg, ...]"
    bad = "NP V DEM N{num=pl}"
    prefix = "one"

`either` lists what "$name" may stand for, `with` constituents that are drawn but not shown, `end`
is the end mark; `prefix = "two"` needs `critical`, the name of the word that follows both prefixes.
Phrases of a file's own are `rules`, in the notation of the grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from contstim.documents import parse_toml, read_toml
from contstim.english.minimal_pairs.template import Item, read_bad, read_good
from contstim.errors import InputError
from contstim.sentence import END_MARKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_NAME = re.compile(r"[\w-]+")
_TEXTS = ("good", "bad", "with", "end", "prefix", "critical")


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
    either = table.get("either", [{}])
    if not isinstance(either, list) or not either or not all(isinstance(e, dict) for e in either):
        raise InputError("'either' must be a list of tables, such as [{a = 'he', b = 'she'}].")
    versions = tuple(_version(table, values) for values in either)
    paradigm = Paradigm(
        uid, common["phenomenon"], common["field"], versions, end, prefix,
        table.get("critical", ""), common.get("rules", ""),
    )  # fmt: skip
    _check_critical(paradigm)
    return paradigm


def _version(table: Mapping[str, Any], values: Mapping[str, Any]) -> Version:
    def text(name: str) -> str:
        return Template(table.get(name, "")).safe_substitute({k: str(v) for k, v in values.items()})

    good = read_good(text("good"))
    hidden = read_good(text("with")) if "with" in table else ()
    bad = read_bad(text("bad"), good)
    shown = {"good": {item.name for item in good}, "bad": {item.name for item in bad}}
    for which, names in shown.items():
        twice = sorted(names & {item.name for item in hidden})
        if twice:
            raise InputError(f"'{which}' and 'with' both name {', '.join(twice)}.")
    return Version(good, bad, hidden)


def _check_critical(paradigm: Paradigm) -> None:
    if (paradigm.prefix == "two") != bool(paradigm.critical):
        raise InputError("prefix = 'two' and 'critical' belong together.")
    for version in paradigm.versions if paradigm.critical else ():
        for which, items in (("good", version.good), ("bad", version.bad)):
            names = [item.name for item in items]
            if paradigm.critical not in names[1:]:
                raise InputError(
                    f"critical = {paradigm.critical!r} does not follow anything in the {which} "
                    f"sentence, whose items are {', '.join(names)}."
                )


def _refuse_unknown(table: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    unknown = sorted(set(table) - set(names))
    if unknown:
        raise InputError(f"{what} has {', '.join(unknown)}, which is not among {', '.join(names)}.")


def _require(table: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    missing = [name for name in names if not isinstance(table.get(name), str)]
    if missing:
        raise InputError(f"{what} lacks {', '.join(missing)}.")
