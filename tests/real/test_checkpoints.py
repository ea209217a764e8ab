"""Scores of a real GGUF file against its conversion to a folder."""

from pathlib import Path

import numpy as np
import pytest

from contstim.models.catalog import load_model
from contstim.words.sentence import Sentence

pytestmark = pytest.mark.real

SENTENCES = [
    Sentence.parse(text)
    for text in (
        "The old teacher reads a book in the garden.",
        "Do you know the answer to this difficult question?",
        "The keys to the cabinet are on the table.",
        "The naïve café owner didn't remember 1,024 names!",
    )
]


def test_scores_of_a_gguf_file_equal_those_of_its_conversion(real_model: Path) -> None:
    """Witness: the folder that transformers converted without our code."""
    files = sorted((real_model / "original").glob("*.gguf"))
    if not files:
        pytest.skip(f"{real_model}/original has no GGUF file")
    pytest.importorskip("gguf")
    converted, quantized = (
        load_model(location, device="cpu").log_probs(SENTENCES)
        for location in (f"hf:{real_model}", str(files[0]))
    )
    np.testing.assert_allclose(quantized, converted, rtol=0, atol=1e-3)
