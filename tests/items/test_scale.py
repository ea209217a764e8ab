"""The response scales."""

import numpy as np
import pytest

from contstim.items.scale import Scale


@pytest.mark.parametrize(
    ("scale", "middle", "preferred", "mirrored"),
    [
        (Scale.CONFIDENCE, 3.5, [1, 1, 1, 2, 2, 2], [6, 5, 4, 3, 2, 1]),
        (Scale.CHOICE, 1.5, [1, 2], [2, 1]),
        (Scale.SLIDER, 50, [1] * 50 + [0] + [2] * 50, list(range(100, -1, -1))),
    ],
)
def test_preferred_sentence_and_mirrored_answer(
    scale: Scale, middle: float, preferred: list[int], mirrored: list[int]
) -> None:
    assert scale.middle == middle
    assert [scale.preferred(answer) for answer in scale.answers] == preferred
    assert [scale.mirrored(answer) for answer in scale.answers] == mirrored
    assert scale.mirrored(999) == 999  # not on the scale, returned unchanged


def test_slider_answers_are_grouped_by_degree() -> None:
    """Witness: a third of a side is 16 2/3 answers, so 66 is the last of the first degree."""
    slider = Scale.SLIDER
    grouped = slider.grouped(np.array(slider.answers, np.float64))
    expected = [50] + [66] * 16 + [83] * 17 + [100] * 17
    assert grouped[50:].tolist() == expected
    assert grouped.tolist() == [slider.mirrored(int(answer)) for answer in grouped[::-1]]
    assert slider.grouped(grouped).tolist() == grouped.tolist()
