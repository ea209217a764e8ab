"""Which row of a table of scores belongs to which judged sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contstim.errors import ScoreError, SentenceError
from contstim.evaluation.acceptability.reading import MISSING
from contstim.sentence import END_MARKS, Sentence
from contstim.tables import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contstim.evaluation.acceptability.judgements import Judgements

_ENDS = str.maketrans("", "", "".join(END_MARKS))


def matching_keys(
    path: Path, table: Mapping[str, Sequence[Any]], judgements: Judgements
) -> tuple[list[str], list[str]]:
    """What names each row of a table, and what names each judged sentence in the same way.

    Raises:
        ScoreError: the table names sentences in no known way, or an identifier stands for another
            sentence (names the first).
    """
    ids = [one.id for one in judgements.sentences]
    known = [str(value) for value in table.get("id", ())]
    if judgements.named and set(known) & set(ids):
        if "sentence" in table:
            _refuse_other_sentences(path, known, table["sentence"], judgements)
        return known, ids
    if "sentence" not in table:
        raise ScoreError(
            f"{path} tells neither by 'id' nor by 'sentence' whose scores it holds; its columns "
            f"are {listed(table)}. The judged sentences have "
            f"{'identifiers such as ' + repr(ids[0]) if judgements.named else 'no identifiers'}."
        )
    return [_normal(text) for text in table["sentence"]], [
        one.sentence.text for one in judgements.sentences
    ]


def _refuse_other_sentences(
    path: Path, ids: Sequence[str], texts: Sequence[Any], judgements: Judgements
) -> None:
    """Refuse a table that numbers its rows in its own way."""
    judged = {one.id: one.sentence.text for one in judgements.sentences}
    for name, text in zip(ids, texts, strict=True):
        given = "" if text is None else str(text)
        if given.strip() in MISSING or name not in judged:
            continue
        if _words(given) != _words(judged[name]):
            raise ScoreError(
                f"{path}: the sentence with the id {name!r} is {given!r}, and {judged[name]!r} "
                f"among the judged ones. Correct the column 'id', or remove it to match sentences "
                f"by their text."
            )


def _words(text: str) -> list[str]:
    """A text's words without stops, which differ between published files."""
    return text.translate(_ENDS).split()


def _normal(text: Any) -> str:
    try:
        return Sentence.parse(text).text
    except SentenceError:
        return ""
