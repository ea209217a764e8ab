"""Classes of tokens, and probabilities within classes."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models
from transformers.convert_slow_tokenizer import bytes_to_unicode

from contstim.errors import ModelError
from contstim.models.boundaries import BOUNDARY, NO_CLASS, WITHIN, Normaliser, token_classes
from contstim.models.masked.network import MaskedNetwork
from contstim.models.masked.rules import orders_plan
from contstim.models.words import END_MARK, SPECIAL, Encoding
from tests.models.tiny import Load, Tokenizers

EXPECTED_CLASSES = {
    "bert": {"the": BOUNDARY, ".": BOUNDARY, "-": BOUNDARY, "##a": WITHIN, "[UNK]": NO_CLASS},
    "roberta": {"Ġthe": BOUNDARY, ".": BOUNDARY, "a": WITHIN, "-": WITHIN, "<mask>": NO_CLASS},
    "gpt2": {"Ġthe": BOUNDARY, "!": BOUNDARY, "a": WITHIN, "<|endoftext|>": NO_CLASS},
    "albert": {"▁the": BOUNDARY, "?": BOUNDARY, "a": WITHIN, "[CLS]": NO_CLASS},
    "llama": {"▁the": BOUNDARY, ".": BOUNDARY, "a": WITHIN, "<0x41>": WITHIN, "<s>": NO_CLASS},
    "xlm": {"the</w>": BOUNDARY, ".</w>": WITHIN, "a": WITHIN, "<special1>": NO_CLASS},
}


@pytest.mark.parametrize("kind", EXPECTED_CLASSES)
def test_marks_determine_the_classes_of_tokens(tokenizer_of: Tokenizers, kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    classes = token_classes(tokenizer, len(tokenizer))
    vocabulary = tokenizer.get_vocab()
    assigned = {token: classes[vocabulary[token]] for token in EXPECTED_CLASSES[kind]}
    assert assigned == EXPECTED_CLASSES[kind]


def test_end_marks_of_all_scripts_are_boundaries() -> None:
    """By hand: bytes as byte-level BPE writes them. A closing quotation mark ends no sentence."""
    texts = ("。", "।", "…", '."', '"', "।a", ";")
    letters: dict[int, str] = bytes_to_unicode()  # type: ignore[no-untyped-call]
    tokens = ["".join(letters[byte] for byte in text.encode()) for text in texts]
    vocabulary = {token: i for i, token in enumerate([*tokens, "Ġthe", "Ġa"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.decoder = decoders.ByteLevel()
    fast_tokenizer: Any = transformers.PreTrainedTokenizerFast
    wrapped = fast_tokenizer(tokenizer_object=tokenizer)
    classes = token_classes(wrapped, len(vocabulary)).tolist()
    assert classes == [BOUNDARY] * 4 + [WITHIN] * 3 + [BOUNDARY] * 2


def test_tokenizer_without_marks_is_refused() -> None:
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "<unk>": 2}, unk_token="<unk>"))
    fast_tokenizer: Any = transformers.PreTrainedTokenizerFast
    tokenizer = fast_tokenizer(tokenizer_object=words, unk_token="<unk>")
    with pytest.raises(ModelError, match="chain-unrestricted"):
        token_classes(tokenizer, 3)


def test_probabilities_are_normalized_within_classes() -> None:
    classes = np.array([NO_CLASS, WITHIN, BOUNDARY, BOUNDARY, WITHIN, WITHIN])
    logits = torch.randn(3, 6, generator=torch.manual_seed(0))
    rows, tokens = np.array([0, 0, 1, 2, 2, 0]), np.array([1, 2, 3, 5, 0, 0])
    log_probs = Normaliser(classes).log_probs(logits.clone(), rows, tokens)
    expected = []
    for row, token in zip(rows, tokens, strict=True):
        same_class = classes == classes[token] if classes[token] != NO_CLASS else np.full(6, True)
        expected.append(
            float(logits[row, token] - logits[row, torch.from_numpy(same_class)].logsumexp(0))
        )
    np.testing.assert_allclose(log_probs.numpy(), expected, atol=1e-6)
    all_log_probs = Normaliser(classes).log_softmax(logits)
    np.testing.assert_allclose(all_log_probs.numpy()[rows, tokens], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert", "xlm"])
@pytest.mark.parametrize("words", [(0, 1), (0, 0)], ids=["two words", "a word of two tokens"])
def test_probabilities_of_a_pattern_sum_to_1(load: Load, kind: str, words: tuple[int, int]) -> None:
    """For one order of the words, probabilities of sentences with this pattern add up to 1."""
    checkpoint = load(kind)
    network = MaskedNetwork(checkpoint, by_words=True)
    classes = network.normaliser.classes
    marks_ends = kind == "xlm"
    first = BOUNDARY if words == (0, 1) or not marks_ends else WITHIN
    second = BOUNDARY if words == (0, 1) or marks_ends else WITHIN
    choices = [np.flatnonzero(classes == c).tolist() for c in (first, second)]
    frame = checkpoint.tokenizer(".")["input_ids"]
    sentences = [(frame[0], *pair, *frame[-2:]) for pair in product(*choices)]
    pattern = (SPECIAL, *words, END_MARK, SPECIAL)
    plan = orders_plan(pattern, seed=0, n_orders=1)
    encodings = [Encoding(ids, pattern) for ids in sentences]
    scores = [float(answers.sum()) for _, answers in network.answer(encodings, lambda _: plan)]
    assert np.exp(scores).sum() == pytest.approx(1, abs=1e-4)
