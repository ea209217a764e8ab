"""Sentences that experts accept or not, as the Corpus of Linguistic Acceptability has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import read_text, shortened
from contstim.errors import InputError, SentenceError
from contstim.sentence import Sentence
from contstim.tables import TABLE_KINDS, listed, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLA = ("source", "label", "mark", "sentence")
_LABELS = ("label", "acceptability")
_ABOUT = frozenset({"source", "domain", "mark"})


@dataclass(frozen=True, slots=True)
class LabelledSentence(Sentence):
    """A sentence and whether experts accept it."""

    acceptable: bool = True

    @property
    def plain(self) -> Sentence:
        """The sentence alone."""
        return Sentence(self.words, self.end)

    def __str__(self) -> str:
        return f"{int(self.acceptable)}\t{self.text}"


@dataclass(frozen=True)
class LabelledSet:
    """Labelled sentences of a file and, by the name of a feature, whether each has it."""

    name: str
    sentences: tuple[LabelledSentence, ...]
    features: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)


def read_cola(path: Path | str) -> list[LabelledSentence]:
    """Read labelled sentences.

    CoLA's files as published have four columns between tabs and no header: source, label (1 or 0),
    the author's mark, sentence. A table (.csv, .parquet, .jsonl), or tabs with a header, needs the
    columns `label` and `sentence`.

    Raises:
        InputError: the file cannot be read, lacks a column (names it), has another label, or all
            its labels are the same.
    """
    path = Path(path)
    sentences = _labelled(path, _columns(path))
    if len({sentence.acceptable for sentence in sentences}) < 2:
        raise InputError(f"{path} needs acceptable sentences (1) and unacceptable ones (0).")
    return sentences


def read_annotations(path: Path | str) -> LabelledSet:
    """Read labelled sentences with features, such as CoLA's grammatical annotations.

    The file has a header, a column of sentences, one of labels (`label` or `acceptability`, in
    upper or lower case), and a column of 1 and 0 for each feature.

    Raises:
        InputError: the file cannot be read, lacks a column (names it), has no feature, or another
            number in one.
    """
    path = Path(path)
    columns = _columns(path)
    others = {name for name in columns if name.lower() in {*_LABELS, *_ABOUT, "sentence", ""}}
    features = {}
    for name, cells in columns.items():
        if name in others:
            continue
        values = [str(cell).strip() for cell in cells]
        strange = set(values) - {"0", "1"}
        # a column of texts is not a feature and is passed over; one of other numbers is a mistake
        if strange and all(value.lstrip("-").isdigit() for value in values):
            row = 1 + next(i for i, value in enumerate(values) if value in strange)
            raise InputError(
                f"{path}, row {row}: {shortened(values[row - 1])} under {name} is neither 0 nor 1."
            )
        if not strange:
            features[name] = tuple(value == "1" for value in values)
    if not features:
        raise InputError(f"{path} has no feature: expected columns of 1 and 0 beside the label.")
    return LabelledSet(path.name, tuple(_labelled(path, columns)), features)


def _labelled(path: Path, columns: Mapping[str, Sequence[Any]]) -> list[LabelledSentence]:
    # annotated files may write the names of columns with capitals
    lower = {name.lower(): values for name, values in columns.items()}
    label = next((name for name in _LABELS if name in lower), "")
    missing = [what for what in (label or "label", "sentence") if what not in lower]
    if missing:
        raise InputError(
            f"{path} lacks the column {', '.join(missing)}; its columns are {listed(columns)}."
        )
    sentences = []
    for row, (mark, text) in enumerate(zip(lower[label], lower["sentence"], strict=True), start=1):
        if isinstance(mark, bool) or str(mark).strip() not in ("0", "1"):
            raise InputError(f"{path}, row {row}: the label {shortened(mark)} is neither 0 nor 1.")
        try:
            sentence = Sentence.parse(text)
        except SentenceError as error:
            raise InputError(f"{path}, row {row}: {error}") from error
        sentences.append(LabelledSentence(sentence.words, sentence.end, str(mark).strip() == "1"))
    return sentences


def _columns(path: Path) -> Mapping[str, Sequence[Any]]:
    if path.suffix.lower() in TABLE_KINDS:
        return read_table(path)
    rows = [line.split("\t") for line in read_text(path).split("\n") if line]
    if not rows:
        raise InputError(f"{path} is empty; expected {', '.join(_COLA)} between tabs.")
    # CoLA's files as published have no header
    has_header = "sentence" in (name.lower() for name in rows[0])
    names = tuple(rows.pop(0)) if has_header else _COLA
    if not rows or len(set(names)) < len(names):
        raise InputError(f"{path} has a header and no rows, or names a column twice.")
    # lines of the file, from 1: a header is the first of them
    for number, row in enumerate(rows, start=1 + has_header):
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {number}: {len(row)} columns between tabs; expected "
                f"{len(names)}: {', '.join(names)}."
            )
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
