"""A study that has been run once, to be copied and changed."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from contstim.words.sentence import Sentence
from tests.experiments.platforms.conftest import chromium as chromium
from tests.study import small


@pytest.fixture(scope="session")
def done_study(
    tmp_path_factory: pytest.TempPathFactory, english: list[Sentence], unseen: list[Sentence]
) -> Path:
    """The folder of the small study, all of whose stages have been done; one for all workers."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # of the folders of all workers
    finished, folder = root / "done-study", root / "study-at-work"
    with FileLock(root / "study.lock"):
        if finished.exists():
            return finished
        folder.mkdir()
        for name, sentences in (("corpus.txt", english[:800]), ("more.txt", unseen)):
            text = "".join(f"{sentence.text}\n" for sentence in sentences)
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "study.toml").write_text(small.STUDY, encoding="utf-8")
        with small.blank_figures():
            done = small.run(folder)
        assert done.done == small.STAGES
        return folder.rename(finished)


@pytest.fixture(scope="module", autouse=True)
def _blank_figures() -> Iterator[None]:
    with small.blank_figures():
        yield


@pytest.fixture
def study(done_study: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(done_study, tmp_path / "small"))
