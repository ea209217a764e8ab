"""Caches between calls, and how often the host waits for a GPU.

`simulated_gpu` replaces the GPU and records each wait: synchronizing operations and copies.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.models import batching, subwords
from contstim.models.base import LanguageModel
from contstim.models.caching import SizedCache
from contstim.models.catalog import load_scorer
from contstim.models.causal.adapter import CausalModel
from contstim.models.causal.network import CausalNetwork
from contstim.models.checkpoints import load_checkpoint
from contstim.models.costs import Tally, counting
from contstim.models.loading import Loading
from contstim.models.masked import adapter
from contstim.models.masked.adapter import MaskedModel
from contstim.models.words import Encoding, encode_batch
from contstim.words.sentence import Sentence
from tests.models import tiny
from tests.models.simulated_gpu import SimulatedGPU, simulated_gpu
from tests.models.tiny import TEXTS, Folder, Load

SENTENCE = Sentence.parse("She sleeps in the house.")
ALL_WORDS = tuple(sorted({word for text in TEXTS for word in Sentence.parse(text).words}))
N_SHORT = 12


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 200))
def test_cache_returns_function_values(calls: list[int], max_weight: int) -> None:
    """Witness: the function, and a plain list that drops its oldest entry while it is too heavy."""
    calls_made: list[int] = []

    def repeat(n: int) -> list[int]:
        calls_made.append(n)
        return [n] * n

    cached, entries = SizedCache(repeat, len, max_weight), list[int]()
    for n in calls:
        n_before = len(calls_made)
        assert cached(n) == [n] * n
        assert (len(calls_made) == n_before) == (n in entries)
        entries = [*(entry for entry in entries if entry != n), n]
        while sum(max(16, entry) for entry in entries) > max_weight and len(entries) > 1:
            del entries[0]


@pytest.fixture
def tokenized_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All texts that were passed to a tokenizer."""
    texts: list[str] = []

    def record_texts(tokenizer: Any, sentences: list[Sentence], **options: Any) -> list[Encoding]:
        texts.extend(sentence.text for sentence in sentences)
        return encode_batch(tokenizer, sentences, **options)

    for module in (subwords, adapter):
        monkeypatch.setattr(module, "encode_batch", record_texts)
    return texts


def make_model(kind: str, folder: Path) -> LanguageModel:
    checkpoint = load_checkpoint(str(folder), Loading(device="cpu"))
    if kind in {"spaced", "gpt2"}:
        return CausalModel(checkpoint)
    return MaskedModel(checkpoint, rule="pll-word-l2r")


@pytest.mark.parametrize(
    ("kind", "position"),
    [("spaced", 0), ("spaced", 2), ("gpt2", 4), ("roberta", 2), ("roberta", 4)],
)
def test_vocabulary_is_tokenized_once(
    tiny_checkpoint: Folder, tokenized_texts: list[str], kind: str, position: int
) -> None:
    model = make_model(kind, tiny_checkpoint(kind))
    first = model.replacements(SENTENCE, position, ALL_WORDS)
    assert len(tokenized_texts) > len(ALL_WORDS)
    for start in range(N_SHORT):
        model.replacements(SENTENCE, position, ALL_WORDS[start : start + 3])
        model.replacement_log_probs(SENTENCE, position, ALL_WORDS[start : start + 3])
    tokenized_texts.clear()
    second = model.replacements(SENTENCE, position, ALL_WORDS)
    assert len(tokenized_texts) <= 1
    assert (first.estimate == second.estimate).all()


@pytest.mark.parametrize(("kind", "n"), [("spaced", 6), ("roberta", 3)])
def test_model_remembers_oversized_batches(
    tiny_checkpoint: Folder, load: Load, monkeypatch: pytest.MonkeyPatch, kind: str, n: int
) -> None:
    """Witness: scores of the same sentences with enough memory."""
    model = make_model(kind, tiny_checkpoint(kind))
    sentences = [Sentence.parse(text) for text in sorted(TEXTS, key=len)[:n]]
    expected = model.log_probs(sentences)
    checkpoint = load(kind)
    forward, failed_shapes = checkpoint.model.forward, []

    def fail_if_large(*arguments: Any, input_ids: Any, **options: Any) -> Any:
        if input_ids.numel() > 100:
            failed_shapes.append(input_ids.shape)
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`")
        return forward(*arguments, input_ids=input_ids, **options)

    monkeypatch.setattr(checkpoint.model, "forward", fail_if_large)
    with pytest.warns(RuntimeWarning, match="made smaller"):
        model.log_probs(sentences)
    n_failed = len(failed_shapes)
    for _ in range(2):  # another warning would be an error
        scores = model.log_probs(sentences)
    assert n_failed == len(failed_shapes) > 0
    assert scores == pytest.approx(expected, abs=1e-4)


SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS]


def count_waits(gpu: SimulatedGPU, model: Any, sentences: list[Sentence]) -> tuple[list[str], int]:
    """Return the waits in one call, except copies of results, and its number of batches."""
    gpu.waits.clear()
    with counting(Tally()) as tally:
        model.scores(sentences)
    return [wait for wait in gpu.waits if wait != "copy to the host"], tally.total.calls


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2@chain", "llama", "bert@pll-original"])
def test_waits_do_not_grow_with_the_batches(tiny_checkpoint: Folder, name: str) -> None:
    with simulated_gpu() as gpu:
        model: Any = load_scorer(tiny.specification(tiny_checkpoint, name), device="cuda")
        # Sentences of equal length, because the library checks the mask of each padded batch
        by_length: dict[int, list[Sentence]] = {}
        counts = model.token_counts(SENTENCES)
        for sentence, count in zip(SENTENCES, counts, strict=True):
            by_length.setdefault(int(count), []).append(sentence)
        equally_long = max(by_length.values(), key=len)[:2]
        assert len(equally_long) > 1
        model.scores(equally_long)  # fills the caches
        waits_of, n_of = {}, {}
        for tokens in (10**6, 16):
            for budget in _find_budgets(model):
                budget.tokens = tokens
            gpu.at_copies.clear()
            waits_of[tokens], n_of[tokens] = count_waits(gpu, model, equally_long)
    # One copy for each batch of the last call; computation happens only between groups of 32 copies
    assert len(gpu.at_copies) == n_of[16]
    assert np.count_nonzero(np.diff(gpu.at_copies) > 1) == (n_of[16] - 1) // 32
    assert n_of[16] > n_of[10**6]
    assert waits_of[16] == waits_of[10**6] == []


def test_words_before_a_position_are_read_with_one_wait(tiny_checkpoint: Folder) -> None:
    """A search reads the words before each position that it visits."""
    with simulated_gpu() as gpu:
        checkpoint = load_checkpoint(str(tiny_checkpoint("gpt2")), Loading(device="cuda"))
        network = CausalNetwork(checkpoint, by_words=True)
        context = network.begin((5,))
        gpu.waits.clear()
        network.extend(context, (7, 8, 9))
    assert gpu.waits == ["copy to the host"]


def _find_budgets(model: Any) -> list[batching.Budget]:
    passes = getattr(model, "_network", None) or model._passes
    return [getattr(passes, "_budget", None) or passes.budget]
