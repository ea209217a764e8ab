"""Folders of published data and trained checkpoints; tests skip if a folder is missing."""

import os
from pathlib import Path

import pytest

DEFAULT = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def published_data() -> Path:
    """The folder in CONTSTIM_DATA, or ../shared/data relative to the checkout."""
    folder = Path(os.environ.get("CONTSTIM_DATA", DEFAULT)).resolve()
    if not (folder / "contstimlang").is_dir():
        pytest.skip(f"no published data in {folder} (set CONTSTIM_DATA)")
    return folder


@pytest.fixture(scope="session")
def small_models() -> Path:
    """The folder of small trained checkpoints in CONTSTIM_MODELS, or ../shared/models."""
    folder = Path(os.environ.get("CONTSTIM_MODELS", DEFAULT.parent / "models"))
    if not (folder / "bert-mini").is_dir():
        pytest.skip(f"no bert-mini in {folder} (set CONTSTIM_MODELS)")
    return folder
