"""Heat maps, against numbers by hand, and fonts of saved figures in the style for readers."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from contstim.files.arrays import FloatArray
from contstim.reporting import canvas
from contstim.reporting.canvas import heat_map
from tests.conftest import STYLE_OF_READERS


def test_text_in_a_pdf_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the names in PDF (ISO 32000, 9.6) of fonts with and without embedded programs."""
    monkeypatch.setattr(canvas, "_STYLE", STYLE_OF_READERS)
    with canvas.styled():
        figure = canvas.new_figure(2, 2)
        figure.text(0.5, 0.5, "sentence")
        canvas.save(figure, tmp_path / "figure")
    content = (tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


VALUES = np.array([[np.nan, 0.256], [0.744, -0.001]])


def read_cells(figure: Figure) -> list[tuple[tuple[float, float], str]]:
    return [(text.get_position(), text.get_text()) for text in figure.axes[0].texts]


def test_cells_show_numbers_and_are_empty_if_missing() -> None:
    """Witness: by hand."""
    shares, decimals = (
        heat_map("ab", "ab", VALUES, title="t", middle=0.0, numbers=numbers)
        for numbers in ("hundredths", "decimals")
    )
    assert read_cells(shares) == [((1, 0), "26"), ((0, 1), "74"), ((1, 1), "0")]
    assert read_cells(decimals) == [((1, 0), "0.26"), ((0, 1), "0.74"), ((1, 1), "0.00")]
    negative = heat_map("a", "b", -VALUES[1:, :1], title="t", middle=0.0, numbers="decimals")
    assert read_cells(negative) == [((0, 0), "\N{MINUS SIGN}0.74")]


def test_scale_starts_below_the_minimum_or_is_symmetric() -> None:
    """Witness: by hand."""
    sequential = heat_map("ab", "ab", np.abs(VALUES) + 0.3, title="t").axes[0].images[0]
    assert sequential.get_clim() == pytest.approx((0.3, 1))
    diverging = heat_map("ab", "ab", VALUES, title="t", middle=0.25).axes[0].images[0]
    assert diverging.get_clim() == (-0.5, 1)


@pytest.mark.parametrize("middle", [None, 0.5])
def test_numbers_have_enough_contrast(middle: float | None) -> None:
    """Witness: the contrast of WCAG 2, which must be at least 3 : 1 for parts of figures."""
    values = np.linspace(0, 1, 21)[None]
    axes = heat_map("a", [str(i) for i in range(21)], values, title="t", middle=middle).axes[0]

    def luminance(colour: object) -> float:
        rgb: FloatArray = np.array(to_rgb(colour))  # type: ignore[arg-type]
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    for text, value in zip(axes.texts, values[0], strict=True):
        luminances = [luminance(text.get_color()), luminance(axes.images[0].to_rgba(value)[:3])]
        assert (max(luminances) + 0.05) / (min(luminances) + 0.05) >= 3
