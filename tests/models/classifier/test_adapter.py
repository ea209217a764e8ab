"""Classifiers under the contract of scorers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models.base import Scorer
from contstim.models.catalog import load_scorer
from contstim.models.checkpoints import silence
from contstim.models.classifier import LABELS, UNIT, acceptable_label
from contstim.testing.contract import SENTENCES, ScorerContract, tolerance
from tests.models.tiny import Folder

hf: Any = transformers


def build(base: Path, folder: Path, **settings: object) -> Path:
    """Save a classifier on a tiny checkpoint, with a head at a scale where sentences differ."""
    torch.manual_seed(1)
    with silence():
        model = hf.AutoModelForSequenceClassification.from_pretrained(base, **settings)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith(("classifier", "score", "bert.pooler")) and weight.ndim > 1:
                weight.normal_(std=0.3)
    model.save_pretrained(folder)
    hf.AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["bert", "roberta", "gpt2"])
def folder(
    request: pytest.FixtureRequest,
    tiny_checkpoint: Folder,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    out: Path = tmp_path_factory.mktemp("classifiers") / request.param
    return build(tiny_checkpoint(request.param), out, num_labels=2)


class TestClassifier(ScorerContract):
    @pytest.fixture(scope="module")
    @classmethod
    def model(cls, folder: Path) -> Scorer:
        return load_scorer(f"classifier:{folder}", device="cpu")

    def test_scores_are_float64_and_never_nan(self, model: Scorer) -> None:
        """Scores may be positive and are never between -1/2 and 1/2."""
        scores = model.scores(SENTENCES)
        assert scores.dtype == np.float64
        assert scores.shape == (len(SENTENCES),)
        assert ((np.abs(scores) >= 0.5) & (np.abs(scores) <= 1)).all()

    def test_the_convention_says_how_scores_come_about(self, model: Scorer) -> None:
        assert model.convention.unit == UNIT
        assert model.convention.rule == "signed-confidence"

    def test_signed_confidence_equals_transformers(self, model: Scorer, folder: Path) -> None:
        """Witness: the `transformers` pipeline, which returns the likelier label and its share."""
        with silence():
            pipeline = hf.pipeline("text-classification", model=str(folder), device="cpu")
            predictions = [pipeline(sentence.text)[0] for sentence in SENTENCES]
        signs = {"LABEL_0": -1, "LABEL_1": 1}
        expected = np.array(
            [signs[prediction["label"]] * prediction["score"] for prediction in predictions]
        )
        ours = model.scores(SENTENCES)
        np.testing.assert_allclose(ours, expected, atol=tolerance(ours))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({0: "LABEL_0", 1: "LABEL_1"}, 1),
        ({0: "unacceptable", 1: "acceptable"}, 1),
        ({0: "Acceptable", 1: "Unacceptable"}, 0),
        ({0: "grammatical", 1: "ungrammatical"}, 0),
        (dict(enumerate(LABELS)), 1),
    ],
)
def test_acceptable_label_is_found_by_name(names: dict[int, str], expected: int) -> None:
    assert acceptable_label("here", hf.BertConfig(id2label=names)) == expected


@pytest.mark.parametrize("names", [("NEGATIVE", "POSITIVE"), ("LABEL_0", "LABEL_1", "LABEL_2")])
def test_other_labels_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match=f"and acceptable, got {', '.join(names)} in"):
        acceptable_label("here", hf.BertConfig(id2label=dict(enumerate(names))))


def test_sign_depends_on_the_name_of_the_label(tiny_checkpoint: Folder, tmp_path: Path) -> None:
    base = tiny_checkpoint("bert")
    plain = build(base, tmp_path / "plain", id2label={0: "LABEL_0", 1: "LABEL_1"})
    swapped = build(base, tmp_path / "turned", id2label={0: "acceptable", 1: "unacceptable"})
    first, second = (load_scorer(f"classifier:{f}", device="cpu") for f in (plain, swapped))
    np.testing.assert_allclose(first.scores(SENTENCES), -second.scores(SENTENCES))
    assert first.convention.fingerprint != second.convention.fingerprint


def test_classifier_is_refused_as_language_model(folder: Path) -> None:
    with pytest.raises(ModelError, match=f"write classifier:{folder}"):
        load_scorer(f"hf:{folder}", device="cpu")
