"""Fixtures shared by all tests: small texts, n-gram models trained on them, checkpoints."""

import gc
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contstim.english import generate
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.reporting import canvas
from contstim.words.sentence import Sentence
from tests.examples import register_profiles

# Makes records of two runs equal; tests of dates set other values
os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")
pytest.register_assert_rewrite("contstim.testing.contract")
register_profiles()
STYLE_OF_READERS = dict(canvas._STYLE)
"""Default style of figures, which `quick_figures` changes."""
N_MODULES = [0]
"""Number of modules at the last call of `freeze_objects`."""


def pytest_collection() -> None:
    """Disable the garbage collector while test files are loaded, to save time."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_runtest_teardown() -> None:
    """Close the figures that a test has shown."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def freeze_objects() -> None:
    """Exclude all existing objects from garbage collection, to save time.

    Libraries, tests and the grammar of the embedded English are millions of objects, which the
    collector would otherwise visit whenever a model is deleted.
    """
    gc.collect()
    gc.freeze()
    N_MODULES[0] = len(sys.modules)


@pytest.fixture(scope="module", autouse=True)
def frozen_libraries() -> None:
    """Exclude libraries that the previous test file has imported."""
    if len(sys.modules) > N_MODULES[0]:
        freeze_objects()


@pytest.fixture(scope="session", autouse=True)
def quick_figures() -> Iterator[None]:
    """Draw figures with fewer pixels, and PDF files without embedded fonts.

    No test reads single pixels, and fonts need a quarter of the time of an analysis.
    `reporting/test_canvas.py` tests the default style.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "_DPI", 72)
        patch.setitem(canvas._STYLE, "pdf.fonttype", 3)
        yield


@pytest.fixture(scope="session")
def english() -> list[Sentence]:
    """3,000 sentences of the embedded English."""
    sentences = generate(3_000, seed=7)
    freeze_objects()
    return sentences


@pytest.fixture(scope="session")
def unseen() -> list[Sentence]:
    """300 eight-word sentences on which most test models were not trained."""
    return generate(300, seed=11, words=8)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, english: list[Sentence]) -> Path:
    """A folder with 1gram.arpa to 4gram.arpa trained on the embedded English."""
    folder = tmp_path_factory.mktemp("ngrams")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for order in range(1, 5):
            train_ngram(english, order, folder / f"{order}gram.arpa")
    return folder


@pytest.fixture(scope="session")
def bigram(trained: Path) -> NgramModel:
    return NgramModel(trained / "2gram.arpa", name="2-gram")


@pytest.fixture(scope="session")
def trigram(trained: Path) -> NgramModel:
    return NgramModel(trained / "3gram.arpa", name="3-gram")


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that builds a tiny checkpoint, named in `tests.models.tiny.BUILDERS`."""
    from tests.models import tiny  # imports torch, which is slow

    root = tmp_path_factory.mktemp("checkpoints")
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            folders[name] = tiny.build(name, root)
        return folders[name]

    return folder


@pytest.fixture
def hub_model(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """A function that puts a model at a commit into a local hub cache and returns its name."""
    from huggingface_hub import constants

    cache = tmp_path / ".cache"  # hidden, so that tests do not list its files
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))

    def put(commit: str) -> str:
        model = cache / "models--someone--small"
        shutil.copytree(tiny_checkpoint("gpt2"), model / "snapshots" / commit)
        (model / "refs").mkdir(exist_ok=True)
        (model / "refs" / "main").write_text(commit)
        return "someone/small"

    return put
