"""Tokenizers without their networks' weights: the same words and tokens, no scores."""

from __future__ import annotations

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.catalog import load_model
from contstim.models.loading import Loading
from tests.models import tiny
from tests.models.checkpoints.conftest import SENTENCES, Copy

CPU = Loading(device="cpu")
WORDS = ("the", "teacher", "unbelievably", "3rd", "猫")


QUICK = ("bert", "gpt2", "roberta", "xlm")


@pytest.mark.parametrize(
    "kind",
    [
        *QUICK,
        *(pytest.param(k, marks=pytest.mark.slow) for k in sorted({*tiny.BUILDERS} - {*QUICK})),
    ],
)
def test_words_and_tokens_are_those_of_the_whole_model(copy: Copy, kind: str) -> None:
    """Witness: the model with its weights; the file of weights is gone for the other."""
    folder = copy(kind)
    whole = load_model(f"hf:{folder}", device="cpu")
    for file in folder.glob("*.safetensors"):
        file.write_bytes(b"")
    words = load_model(f"hf:{folder}", CPU.without_weights)
    assert np.array_equal(words.knows(WORDS), whole.knows(WORDS))
    assert np.array_equal(words.token_counts(SENTENCES), whole.token_counts(SENTENCES))
    for initial in (True, False):
        cheap, full = (m.tokens_per_word(WORDS, initial=initial) for m in (words, whole))
        assert cheap is not None
        assert full is not None
        assert cheap.tolist() == full.tolist()
    assert words.unscorable(SENTENCES) == whole.unscorable(SENTENCES)
    assert words.convention.fingerprint.startswith("tokenizer-")
    with pytest.raises(ModelError, match=r"without its weights.*cannot score"):
        words.log_probs(SENTENCES)


def test_a_tokenizer_that_is_made_up_is_refused_without_weights(copy: Copy) -> None:
    folder = copy("bert")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ModelError, match=r"tokenizer of 5 tokens for a network of 220"):
        load_model(f"hf:{folder}", CPU.without_weights)
