"""How figures are saved for readers, which other tests do with quicker PDFs."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.reporting import canvas
from tests.conftest import STYLE_OF_READERS


def test_text_in_a_pdf_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the names of PDF (ISO 32000, 9.6) for fonts with and without their own programs."""
    monkeypatch.setattr(canvas, "_STYLE", STYLE_OF_READERS)
    with canvas.styled():
        figure = canvas.new_figure(2, 2)
        figure.text(0.5, 0.5, "sentence")
        canvas.save(figure, tmp_path / "figure")
    content = (tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
