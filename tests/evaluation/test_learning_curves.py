"""Learning curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from contstim.errors import InputError
from contstim.evaluation.accuracies import Accuracies, curves
from contstim.evaluation.learning_curves import nested_texts, train_on_parts
from contstim.evaluation.settings import MinimalPairSettings
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from pathlib import Path

    from contstim.files.arrays import FloatArray


def test_texts_are_nested_random_parts(english: list[Sentence]) -> None:
    small, middle, whole = nested_texts(english[:50], [20, 5, 999], seed=1)
    assert [len(small), len(middle), len(whole)] == [5, 20, 50]
    assert middle[:5] == small
    assert whole[:20] == middle
    assert sorted(s.text for s in whole) == sorted(s.text for s in english[:50])
    assert whole != english[:50]
    assert (
        nested_texts(english[:50], [5], seed=1)
        == [small]
        != nested_texts(english[:50], [5], seed=2)
    )


@pytest.mark.parametrize("sizes", [[0, 5], [5, 5], [60, 70]])
def test_sizes_that_make_no_curve_are_refused(english: list[Sentence], sizes: list[int]) -> None:
    with pytest.raises(InputError, match="distinct numbers of the text's 50 sentences"):
        nested_texts(english[:50], sizes, seed=0)


@pytest.mark.filterwarnings("ignore::contstim.models.ngram.training.DiscountWarning")
def test_a_learned_ngram_is_one_that_is_trained_alone(
    english: list[Sentence], tmp_path: Path
) -> None:
    settings = MinimalPairSettings(order=2, sizes="50,999")
    told: list[str] = []
    (small, part), (model, text) = train_on_parts(
        english[:200], settings, tmp_path, say=told.append
    )
    assert [small.name, model.name, len(part), len(text)] == ["ngram-50", "ngram-200", 50, 200]
    assert told[0] == "The text has 200 sentences, not 999: all are used."
    train_ngram(text, 2, tmp_path / "alone.arpa")
    alone = NgramModel(tmp_path / "alone.arpa")
    assert (model.log_probs(english[200:220]) == alone.log_probs(english[200:220])).all()
    with pytest.raises(InputError, match="'ngram-50' is what a model is called"):
        train_on_parts(english[:200], settings, tmp_path, taken={"ngram-50"})


@pytest.mark.parametrize("kind", ["rnn", "gpt2"])
def test_networks_learn_too_and_once(
    english: list[Sentence], tmp_path: Path, kind: Literal["rnn", "gpt2"]
) -> None:
    settings = MinimalPairSettings(train=kind, epochs=1, sizes="60")
    names: list[str] = []

    def train() -> FloatArray:
        ((model, _),) = train_on_parts(
            english[:60],
            settings,
            tmp_path,
            device="cpu",
            on_progress=lambda name, _now: names.append(name),
        )
        return model.log_probs(english[60:63])

    scores = train()
    assert set(names) == {f"{kind}-60"}
    assert np.isfinite(scores).all()
    done = len(names)
    assert (train() == scores).all()
    assert len(names) == done


def test_slopes_are_least_squares_over_doublings() -> None:
    """Witnesses: a line drawn by hand, numpy.polyfit, and statsmodels for intervals."""
    sizes = (100, 200, 800)
    texts = {f"ngram-{n}": n * [Sentence(("a", "b"))] for n in sizes[::-1]}
    values = np.array([[0.5, 0.6, 0.8, 0.1], [0.5, 0.7, 0.6, 0.1]])
    names = tuple(f"ngram-{n}" for n in sizes)
    found = Accuracies(("x_1", "y_1"), ("x", "y"), np.array([9, 9]), (*names, "other"), values)
    overall, x, y = curves(found, texts)
    assert overall["phenomenon"] == "overall"
    assert overall["sentences"].tolist() == list(sizes)
    assert overall["words"].tolist() == [200, 400, 1600]
    assert x["slope_per_doubling"] == pytest.approx(0.1)  # .5, .6, and after two more doublings .8
    assert x["standard_error"] == pytest.approx(0, abs=1e-9)
    assert overall["accuracy"] == pytest.approx([0.5, 0.65, 0.7])
    points = (x[name] for name in ("accuracy_low", "accuracy_high", "accuracy"))
    for low, high, share in zip(*points, strict=True):  # of nine pairs
        wilson = proportion_confint(round(9 * share, 6), 9, method="wilson")
        assert (low, high) == pytest.approx(wilson)
    for curve in (overall, y):
        (slope, _), covariance = np.polyfit(np.log2(sizes), curve["accuracy"], 1, cov="unscaled")
        line = np.polyval(np.polyfit(np.log2(sizes), curve["accuracy"], 1), np.log2(sizes))
        residual = ((np.array(curve["accuracy"]) - line) ** 2).sum()
        assert curve["slope_per_doubling"] == pytest.approx(slope)
        assert curve["standard_error"] == pytest.approx(math.sqrt(residual * covariance[0, 0]))
    del texts["ngram-800"]
    assert math.isnan(curves(found, texts)[0]["standard_error"])
    del texts["ngram-200"]
    assert curves(found, texts) == []
