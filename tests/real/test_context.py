"""The context of a real pretrained model, SmolLM2-135M-Instruct, against plain forward passes."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from contstim.english import generate
from contstim.evaluation.overview import context_scores
from contstim.files.arrays import FloatArray
from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.loading import Loading
from contstim.words.sentence import Sentence

FOLDER = os.environ.get("CONTSTIM_REAL_MODEL", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not FOLDER, reason="CONTSTIM_REAL_MODEL names no folder of a real model"),
]
SENTENCE = Sentence.parse("The actor wrote a book last year.")


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load_checkpoint(str(Path(FOLDER)), Loading(device="cpu"))


def _plain_score(checkpoint: Checkpoint, context: str, sentence: Sentence) -> float:
    """Witness: one forward pass over context and sentence, without our code."""
    ids = checkpoint.tokenizer(context + sentence.text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logits = checkpoint.model(torch.tensor([ids])).logits[0].double()
    log_probs = logits.log_softmax(dim=-1)[range(len(ids) - 1), ids[1:]]
    return float(log_probs.sum())


@pytest.mark.parametrize(
    ("context", "token", "expected"),
    [
        (None, "<|endoftext|>", -40.1405),
        ("<|endoftext|>", "<|endoftext|>", -40.1405),
        ("<|im_start|>", "<|im_start|>", -49.6024),
    ],
)
def test_scores_with_each_context(
    checkpoint: Checkpoint, context: str | None, token: str, expected: float
) -> None:
    model = CausalModel(checkpoint, context=context)
    assert model.convention.context_tokens == (token,)
    assert model.log_probs([SENTENCE])[0] == pytest.approx(expected, abs=0.01)
    assert _plain_score(checkpoint, token, SENTENCE) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_batch_scores_equal_those_of_plain_passes(checkpoint: Checkpoint, size: int) -> None:
    model = CausalModel(checkpoint)
    sentences = generate(64, seed=1)[:: 64 // 16] if size == 1 else generate(64, seed=1)
    starts = range(0, len(sentences), size)
    batches: list[FloatArray] = [model.log_probs(sentences[i : i + size]) for i in starts]
    expected = [_plain_score(checkpoint, "<|endoftext|>", sentence) for sentence in sentences]
    np.testing.assert_allclose(np.concatenate(batches), expected, rtol=0, atol=1e-3)


def test_the_default_context_is_the_best_candidate(checkpoint: Checkpoint) -> None:
    model = CausalModel(checkpoint)
    best, *other_contexts = context_scores(model, generate(10, seed=0))
    assert best == model.convention
    assert {convention.context_tokens for convention in other_contexts} == {
        ("<|im_start|>",),
        ("<|im_end|>",),
        (".",),
    }
