"""Caches between calls, and how often the host waits for a GPU.

`simulated_gpu` replaces the GPU and notes each wait: questions to a device, and copies.
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
EVERY = tuple(sorted({word for text in TEXTS for word in Sentence.parse(text).words}))
N_SHORT = 12


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 200))
def test_results_are_the_functions_and_few_are_kept(calls: list[int], most: int) -> None:
    """Witness: the function itself; and a plain list, its oldest dropped while it is too heavy."""
    asked: list[int] = []

    def repeat(n: int) -> list[int]:
        asked.append(n)
        return [n] * n

    remembered, kept = SizedCache(repeat, len, most), list[int]()
    for n in calls:
        before = len(asked)
        assert remembered(n) == [n] * n
        assert (len(asked) == before) == (n in kept)
        kept = [*(k for k in kept if k != n), n]
        while sum(max(16, k) for k in kept) > most and len(kept) > 1:
            del kept[0]


@pytest.fixture
def tokenised(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All texts that a tokenizer was given."""
    texts: list[str] = []

    def counted(tokenizer: Any, sentences: list[Sentence], **options: Any) -> list[Encoding]:
        texts.extend(sentence.text for sentence in sentences)
        return encode_batch(tokenizer, sentences, **options)

    for module in (subwords, adapter):
        monkeypatch.setattr(module, "encode_batch", counted)
    return texts


def network(kind: str, folder: Path) -> LanguageModel:
    checkpoint = load_checkpoint(str(folder), Loading(device="cpu"))
    if kind in {"spaced", "gpt2"}:
        return CausalModel(checkpoint)
    return MaskedModel(checkpoint, rule="pll-word-l2r")


@pytest.mark.parametrize(
    ("kind", "position"),
    [("spaced", 0), ("spaced", 2), ("gpt2", 4), ("roberta", 2), ("roberta", 4)],
)
def test_a_vocabulary_is_tokenised_once(
    tiny_checkpoint: Folder, tokenised: list[str], kind: str, position: int
) -> None:
    model = network(kind, tiny_checkpoint(kind))
    first = model.replacements(SENTENCE, position, EVERY)
    assert len(tokenised) > len(EVERY)
    for start in range(N_SHORT):
        model.replacements(SENTENCE, position, EVERY[start : start + 3])
        model.replacement_log_probs(SENTENCE, position, EVERY[start : start + 3])
    tokenised.clear()
    again = model.replacements(SENTENCE, position, EVERY)
    assert len(tokenised) <= 1
    assert (first.estimate == again.estimate).all()


@pytest.mark.parametrize(("kind", "n"), [("spaced", 6), ("roberta", 3)])
def test_a_model_remembers_what_did_not_fit_into_memory(
    tiny_checkpoint: Folder, load: Load, monkeypatch: pytest.MonkeyPatch, kind: str, n: int
) -> None:
    """Witness: the scores of the same sentences where memory suffices."""
    model = network(kind, tiny_checkpoint(kind))
    sentences = [Sentence.parse(text) for text in sorted(TEXTS, key=len)[:n]]
    expected = model.log_probs(sentences)
    checkpoint = load(kind)
    forward, failed = checkpoint.model.forward, []

    def in_little_memory(*arguments: Any, input_ids: Any, **options: Any) -> Any:
        if input_ids.numel() > 100:
            failed.append(input_ids.shape)
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`")
        return forward(*arguments, input_ids=input_ids, **options)

    monkeypatch.setattr(checkpoint.model, "forward", in_little_memory)
    with pytest.warns(RuntimeWarning, match="made smaller"):
        model.log_probs(sentences)
    first = len(failed)
    for _ in range(2):  # any further warning would be an error
        found = model.log_probs(sentences)
    assert first == len(failed) > 0
    assert found == pytest.approx(expected, abs=1e-4)


SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS]


def waits(gpu: SimulatedGPU, model: Any, sentences: list[Sentence]) -> tuple[list[str], int]:
    """For what the host waits in one call beside copying results, and the batches of the call."""
    gpu.waits.clear()
    with counting(Tally()) as tally:
        model.scores(sentences)
    return [wait for wait in gpu.waits if wait != "copy to the host"], tally.total.calls


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2@chain", "llama", "bert@pll-original"])
def test_questions_do_not_grow_with_the_batches(tiny_checkpoint: Folder, name: str) -> None:
    with simulated_gpu() as gpu:
        model: Any = load_scorer(tiny.specification(tiny_checkpoint, name), device="cuda")
        # Sentences of one length each: rows of several would be padded, and the library asks
        # whether a mask hides anything, once for a batch
        by_length: dict[int, list[Sentence]] = {}
        counts = model.token_counts(SENTENCES)
        for sentence, count in zip(SENTENCES, counts, strict=True):
            by_length.setdefault(int(count), []).append(sentence)
        alike = max(by_length.values(), key=len)[:2]
        assert len(alike) > 1
        model.scores(alike)  # what is read once for all
        asked, batches = {}, {}
        for tokens in (10**6, 16):
            for network in _budgets(model):
                network.tokens = tokens
            gpu.at_copies.clear()
            asked[tokens], batches[tokens] = waits(gpu, model, alike)
    # A copy for each batch of the last call; something is computed only between those of 32 batches
    # and the next
    assert len(gpu.at_copies) == batches[16]
    assert np.count_nonzero(np.diff(gpu.at_copies) > 1) == (batches[16] - 1) // 32
    assert batches[16] > batches[10**6]
    assert asked[16] == asked[10**6] == []


def test_words_before_a_place_are_read_with_one_wait(tiny_checkpoint: Folder) -> None:
    """A search reads the words before each place that it visits."""
    with simulated_gpu() as gpu:
        checkpoint = load_checkpoint(str(tiny_checkpoint("gpt2")), Loading(device="cuda"))
        network = CausalNetwork(checkpoint, by_words=True)
        context = network.begin((5,))
        gpu.waits.clear()
        network.extend(context, (7, 8, 9))
    assert gpu.waits == ["copy to the host"]


def _budgets(model: Any) -> list[batching.Budget]:
    network = getattr(model, "_network", None) or model._passes
    return [getattr(network, "_budget", None) or network.budget]
