"""A user's folder, which the tests of several commands begin with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contstim.models.vocabularies import counts_path
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary


@pytest.fixture
def folder(
    tmp_path: Path,
    trained: Path,
    english: list[Sentence],
    unseen: list[Sentence],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Where commands run: `1.arpa`, `2.arpa` and `3.arpa`, `vocab.txt` and `natural.txt`."""
    words = Vocabulary.from_sentences(english, min_count=5)
    words.save(tmp_path / "vocab.txt")
    # "There is …" has no other admissible words under n-grams: such searches find nothing
    usual = [s for s in unseen if not words.missing(s) and s.words[0] != "There"]
    (tmp_path / "natural.txt").write_text("".join(f"{s.text}\n" for s in usual[:20]))
    for n in (1, 2, 3):
        shutil.copy(trained / f"{n}gram.arpa", tmp_path / f"{n}.arpa")
        shutil.copy(counts_path(trained / f"{n}gram.arpa"), counts_path(tmp_path / f"{n}.arpa"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
