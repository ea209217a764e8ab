"""Folders of tiny checkpoints that tests may damage, and their undamaged scores."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from contstim.files.arrays import FloatArray
from contstim.models.catalog import load_scorer
from contstim.words.sentence import Sentence
from tests.models import tiny
from tests.models.classifier.test_adapter import build
from tests.models.tiny import Folder

Copy = Callable[[str], Path]
Scores = Callable[[str], FloatArray]

SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS[:2]]


@pytest.fixture(scope="session")
def folders(
    tiny_checkpoint: Folder, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return the folder of a tiny checkpoint or of `classifier`; tests must not change it."""
    root = tmp_path_factory.mktemp("undamaged")

    def folder(name: str) -> Path:
        if name != "classifier":
            return tiny_checkpoint(name)
        if not (root / name).is_dir():
            build(tiny_checkpoint("bert"), root / name, num_labels=2)
        return root / name

    return folder


@pytest.fixture
def copy(folders: Callable[[str], Path], tmp_path: Path) -> Copy:
    def make(name: str) -> Path:
        return shutil.copytree(folders(name), tmp_path / name)

    return make


@pytest.fixture(scope="session")
def undamaged_scores(folders: Callable[[str], Path]) -> Scores:
    """Return the scores of an undamaged tiny checkpoint."""
    return cache(lambda name: score(folders(name)))


def score(folder: Path) -> FloatArray:
    """Return log-probabilities or signed confidences of two sentences, pseudo if masked."""
    family = "classifier" if folder.name == "classifier" else "hf"
    masked = "Masked" in json.dumps(_read_object(folder / "config.json").get("architectures", ""))
    rule = "@pll-original" if masked else ""
    return load_scorer(f"{family}:{folder}{rule}", device="cpu").scores(SENTENCES)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def edit(path: Path, **changes: object) -> None:
    """Set entries of a JSON file; `...` removes an entry."""
    content = {**_read_object(path), **changes}
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
