"""Minimal pairs from BLiMP's files, or from any table with a row for each pair."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_lines, shortened
from contstim.errors import InputError, SentenceError
from contstim.evaluation.minimal_pairs.pairs import MinimalPair
from contstim.models.base import Continuation
from contstim.sentence import Sentence
from contstim.tables import listed, read_table
from contstim.tables import text as cell_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

PHENOMENON_OF_TERM = {"s-selection": "argument_structure"}
"""The paper's twelve phenomena hold what the files call by a thirteenth term."""

_ENDINGS = (".jsonl", ".csv", ".parquet")
_ONE_PREFIX = ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad")
_TWO_PREFIX = ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word")


@dataclass(frozen=True)
class Fields:
    """Names of the fields of a table that hold the parts of a pair; BLiMP's by default.

    Attributes:
        good: the acceptable sentence.
        bad: the unacceptable one.
        paradigm: empty where there is none: the file's name then takes its place.
        phenomenon: empty where there is none: the paradigm's name then takes its place.
        pair_id: empty where there is none: the number of the row, from 0, then takes its place.
    """

    good: str = "sentence_good"
    bad: str = "sentence_bad"
    paradigm: str = "UID"
    phenomenon: str = "linguistics_term"
    pair_id: str = "pairID"


BLIMP_FIELDS = Fields()


def pair_files(path: Path | str) -> list[Path]:
    """The file itself; or the tables of a folder, or of the folder `data` in it, by name.

    Raises:
        InputError: there is no such file or folder, or it holds no table.
    """
    path = Path(path)
    if path.is_file():
        return [path]
    for folder in (path / "data", path):
        if folder.is_dir():
            files = sorted(file for file in folder.iterdir() if file.suffix.lower() in _ENDINGS)
            if files:
                return files
    raise InputError(
        f"There are no minimal pairs in {path}; expected a table ({', '.join(_ENDINGS)}), a folder "
        f"of them, or a checkout of alexwarstadt/blimp."
    )


def read_minimal_pairs(
    files: Iterable[Path | str], fields: Fields = BLIMP_FIELDS
) -> list[MinimalPair]:
    """The pairs of tables, in order.

    Prefix methods use the fields that BLiMP has for them: `one_prefix_prefix`,
    `one_prefix_word_good` and `one_prefix_word_bad`; `two_prefix_prefix_good`,
    `two_prefix_prefix_bad` and `two_prefix_word`. A word may be several.

    Raises:
        InputError: a file cannot be read; a row lacks a field or has it empty (names both); two
            pairs of a paradigm have the same identifier; a paradigm belongs to two phenomena; there
            are no rows at all.
    """
    pairs: list[MinimalPair] = []
    places: dict[tuple[str, str], str] = {}
    phenomena: dict[str, str] = {}
    paths = list(map(Path, files))
    for file in paths:
        if file.suffix.lower() == ".jsonl":  # whose rows may have different fields
            rows: Iterable[Row] = [row for _, row in read_json_lines(file)]
        else:
            columns = read_table(file)
            cells = zip(*columns.values(), strict=True)
            rows = [dict(zip(columns, row, strict=True)) for row in cells]
        for number, row in enumerate(rows):
            place = f"{file}, row {number + 1}"
            pair = _pair(_Source(place, row), fields, default=(file.stem, str(number)))
            # files of one paradigm may be split, so identifiers are checked over all of them
            key = (pair.paradigm, pair.pair_id)
            if key in places:
                raise InputError(
                    f"Pair {pair.pair_id} of {pair.paradigm} stands twice: {places[key]}, and "
                    f"{place}. Identifiers are distinct within a paradigm."
                )
            if phenomena.setdefault(pair.paradigm, pair.phenomenon) != pair.phenomenon:
                raise InputError(
                    f"{place}: {pair.paradigm} belongs to {pair.phenomenon} here and to "
                    f"{phenomena[pair.paradigm]} above. A paradigm belongs to one phenomenon."
                )
            places[key] = place
            pairs.append(pair)
    if not pairs:
        raise InputError(f"There are no pairs in {listed(paths)}: there are no rows.")
    return pairs


@dataclass(frozen=True)
class _Source:
    """A row and where it stands."""

    place: str
    row: Row

    def text(self, field: str) -> str:
        """The value of a field that must be there."""
        if field not in self.row:
            raise InputError(
                f"{self.place} has no field {field!r}; its fields are {listed(self.row)}. "
                f"Options say what a table calls its fields."
            )
        value = self.row[field]
        if value is None or (isinstance(value, str) and not value.strip()):
            raise InputError(f"{self.place}: the field {field!r} is empty.")
        try:
            return cell_text(value).strip()
        except ValueError:
            raise InputError(
                f"{self.place}: {shortened(value)} in the field {field!r} is not a text."
            ) from None

    def sentence(self, field: str) -> Sentence:
        self.text(field)
        try:
            return Sentence.parse(self.row[field])
        except SentenceError as error:
            raise InputError(f"{self.place}, field {field!r}: {error}") from error

    def continuation(self, prefix: str, words: str) -> Continuation:
        before, after = self.text(prefix).split(), self.text(words).split()
        try:
            return Continuation(Sentence((*before, *after)), len(before))
        except SentenceError as error:
            raise InputError(f"{self.place}, field {words!r}: {error}") from error

    def has(self, flag: str, fields: Sequence[str]) -> bool:
        """True if a method applies: as its flag says, or where there is none, its fields."""
        if flag in self.row:
            return str(self.row[flag]).strip().lower() in {"true", "1"}
        return any(field in self.row for field in fields)


def _pair(source: _Source, fields: Fields, default: tuple[str, str]) -> MinimalPair:
    paradigm = source.text(fields.paradigm) if fields.paradigm else default[0]
    # the term that the file uses, which need not be the paper's phenomenon
    term = source.text(fields.phenomenon) if fields.phenomenon else paradigm
    one_prefix = two_prefix = None
    if source.has("one_prefix_method", _ONE_PREFIX):
        prefix, good, bad = _ONE_PREFIX
        one_prefix = (source.continuation(prefix, good), source.continuation(prefix, bad))
    if source.has("two_prefix_method", _TWO_PREFIX):
        good, bad, word = _TWO_PREFIX
        two_prefix = (source.continuation(good, word), source.continuation(bad, word))
    return MinimalPair(
        paradigm=paradigm,
        phenomenon=PHENOMENON_OF_TERM.get(term, term),
        pair_id=source.text(fields.pair_id) if fields.pair_id else default[1],
        good=source.sentence(fields.good),
        bad=source.sentence(fields.bad),
        one_prefix=one_prefix,
        two_prefix=two_prefix,
    )
