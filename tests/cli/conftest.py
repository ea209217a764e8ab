"""A user's folder, which the tests of several commands begin with."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.models.vocabularies import counts_path
from contstim.optimization.search.perturbation import Oscillation
from contstim.optimization.search.recipes import DEFAULT, RECIPES
from contstim.optimization.search.restarts import SINGLE
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary


@pytest.fixture(scope="module", autouse=True)
def brief_searches() -> Iterator[None]:
    """Searches between n-gram models that end after one new start that gains nothing, not six.

    No test of a command is about how good a sentence is found.
    """
    brief = (Oscillation(patience=1), SINGLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RECIPES, "default", replace(DEFAULT, with_cheap_words=brief))
        yield


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of an evaluation are not saved, which takes seconds: for tests of its tables."""
    monkeypatch.setattr("contstim.evaluation.folder.save", lambda *_: b"")


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of designs are empty files: for tests of their tables."""
    monkeypatch.setattr("contstim.steps.design.write_figure", lambda _make, path: path.touch())


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
    usual = [s for s in unseen if not words.missing_words(s) and s.words[0] != "There"]
    (tmp_path / "natural.txt").write_text("".join(f"{s.text}\n" for s in usual[:20]))
    for n in (1, 2, 3):
        shutil.copy(trained / f"{n}gram.arpa", tmp_path / f"{n}.arpa")
        shutil.copy(counts_path(trained / f"{n}gram.arpa"), counts_path(tmp_path / f"{n}.arpa"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
