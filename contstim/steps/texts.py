"""Texts that steps read, with remarks on unusual properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.items.stimuli import read_stimuli
from contstim.words.corpus import TextNotes, read_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence


def read_text(path: Path, reporter: Reporter, *, prose: bool = False) -> Iterator[Sentence]:
    """The sentences of a text, see `read_sentences`; reports progress and, at the end, oddities."""
    notes = TextNotes()
    yield from reporter.reading("sentences", read_sentences(path, prose=prose, notes=notes))
    _report(path, notes, reporter)


def read_sentence_file(path: Path, reporter: Reporter) -> list[Sentence]:
    """The sentences of a text or table, see `read_stimuli`; reports oddities."""
    notes = TextNotes()
    sentences = read_stimuli(path, notes)
    _report(path, notes, reporter)
    return sentences


def report_sentences(path: Path, sentences: Iterable[Sentence], reporter: Reporter) -> None:
    """Report oddities of sentences that were read already, such as those of minimal pairs."""
    notes = TextNotes()
    for sentence in sentences:
        notes.normalise(sentence.text)
    _report(path, notes, reporter)


def _report(path: Path, notes: TextNotes, reporter: Reporter) -> None:
    for remark in notes.remarks(path):
        reporter.say(remark)
    for warning in notes.warnings(path):
        reporter.warn(warning)
    if notes.facts:
        reporter.record("texts", {path.name: notes.facts})
