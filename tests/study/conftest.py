"""A study that is run once; tests copy and change it."""

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
    """The folder of the small study with all stages done, shared by all workers."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # shared by all workers
    final_folder, work_folder = root / "done-study", root / "study-at-work"
    with FileLock(root / "study.lock"):
        if final_folder.exists():
            return final_folder
        work_folder.mkdir()
        for name, sentences in (("corpus.txt", english[:800]), ("more.txt", unseen)):
            text = "".join(f"{sentence.text}\n" for sentence in sentences)
            (work_folder / name).write_text(text, encoding="utf-8")
        (work_folder / "study.toml").write_text(small.STUDY, encoding="utf-8")
        with small.blank_figures():
            study_run = small.run(work_folder)
        assert study_run.done == small.STAGES
        return work_folder.rename(final_folder)


@pytest.fixture(scope="module", autouse=True)
def _blank_figures() -> Iterator[None]:
    with small.blank_figures():
        yield


@pytest.fixture
def study(done_study: Path, tmp_path: Path) -> Path:
    """A copy of the folder of the small study."""
    return Path(shutil.copytree(done_study, tmp_path / "small"))
