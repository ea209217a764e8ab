"""Sentences of the embedded English as a text, for practice and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.english import generate
from contstim.files import write_text
from contstim.records import write_record
from contstim.steps.watching import SILENT
from contstim.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from contstim.steps.watching import Watcher


def write_embedded_text(
    out: Path, n_sentences: int, *, words: int | None = None, seed: int = 0, watch: Watcher = SILENT
) -> None:
    """Write sentences of the embedded English, one a line.

    Args:
        out: the text to write.
        n_sentences: how many; some may be the same.
        words: how many words each has; None for any number.
        seed: decides which.
        watch: told what is done.

    Raises:
        InputError: there are no sentences of so many words, or the file cannot be written.
    """
    text = generate(n_sentences, seed=seed, words=words)
    write_text(out, "".join(f"{sentence.text}\n" for sentence in text))
    write_record(out, sentences=n_sentences, words=words, seed=seed)
    watch.remark(f"{out}: {counted(n_sentences, 'sentence')} of the embedded English.")
