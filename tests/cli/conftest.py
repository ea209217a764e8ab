"""A user's folder for the tests of several commands."""

import shutil
from collections.abc import Callable, Iterator
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
    """End searches between n-gram models after one restart without gain, not six.

    These tests do not check how good the sentences are.
    """
    strategies = (Oscillation(patience=1), SINGLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RECIPES, "default", replace(DEFAULT, with_cheap_words=strategies))
        yield


@pytest.fixture
def unsaved_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not save the figures of an evaluation, which takes seconds."""
    monkeypatch.setattr("contstim.evaluation.folder.save", lambda *_: b"")


@pytest.fixture
def empty_design_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write empty files instead of the figures of designs."""
    monkeypatch.setattr("contstim.steps.design.write_figure", lambda _make, path: path.touch())


@pytest.fixture
def folder(
    tmp_path: Path,
    trained: Path,
    english: list[Sentence],
    unseen: list[Sentence],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """The working folder: `1.arpa`, `2.arpa`, `3.arpa`, `vocab.txt` and `natural.txt`."""
    vocabulary = Vocabulary.from_sentences(english, min_count=5)
    vocabulary.save(tmp_path / "vocab.txt")
    # In "There is …", n-grams admit no other words: such searches find nothing
    sentences = [s for s in unseen if not vocabulary.missing_words(s) and s.words[0] != "There"]
    (tmp_path / "natural.txt").write_text("".join(f"{s.text}\n" for s in sentences[:20]))
    for n in (1, 2, 3):
        shutil.copy(trained / f"{n}gram.arpa", tmp_path / f"{n}.arpa")
        shutil.copy(counts_path(trained / f"{n}gram.arpa"), counts_path(tmp_path / f"{n}.arpa"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def tiny_folder(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path]
) -> Path:
    """A folder with `bigram.arpa`, and the checkpoints `gpt2` (causal) and `bert` (masked)."""
    from tests.models import tiny  # imports torch

    folder = tmp_path_factory.mktemp("tiny")
    tiny.train_ngrams(2, folder / "bigram.arpa")
    for name in ("gpt2", "bert"):
        (folder / name).symlink_to(tiny_checkpoint(name))
    return folder
