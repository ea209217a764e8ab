"""N-gram models as where the kenlm package is not installed."""

import sys

import pytest


@pytest.fixture
def without_kenlm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the import of kenlm fail."""
    monkeypatch.setitem(sys.modules, "kenlm", None)
