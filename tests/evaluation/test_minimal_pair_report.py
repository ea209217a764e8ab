"""What figures of minimal pairs call models, against names written by hand."""

from __future__ import annotations

import numpy as np

from contstim.evaluation.accuracies import BIN, Accuracies
from contstim.evaluation.minimal_pair_report import (
    correlations_figure,
    phenomena_figure,
    profile_figure,
)
from contstim.reporting.canvas import styled

MODELS = tuple(f"hf:runs/seed{n}/bert-base-uncased-finetuned@pll-original" for n in (1, 2))
NAMES = ["(1) …-finetuned@pll-original", "(2) …-finetuned@pll-original"]


def test_models_stay_apart_in_heat_maps() -> None:
    paradigms = ("a_1", "a_2", "b_1")
    values = np.array([[0.5, 0.6], [0.7, 0.9], [0.8, 0.7]])
    found = Accuracies(paradigms, ("a", "a", "b"), np.full(3, 10), MODELS, values)
    with styled():
        for figure in (phenomena_figure(found, "t"), correlations_figure(found)):
            assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == NAMES


def test_models_stay_apart_in_profiles() -> None:
    bins = [
        dict(zip(BIN, (model, "length", x, x + 1, x, 9, 0.5, 0.2, 0.8), strict=True))
        for model in MODELS
        for x in (1.0, 2.0)
    ]
    with styled():
        figure = profile_figure(bins)
        assert [text.get_text() for text in figure.legends[0].get_texts()] == NAMES
