"""Shared batches for calls of several searches give the results of separate calls."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from contstim.models import merging
from contstim.models.batching import Budget
from contstim.models.catalog import load_model
from contstim.models.causal.network import CausalNetwork, Prefix
from contstim.models.costs import Tally, counting, timed
from contstim.models.masked.network import MaskedNetwork
from contstim.words.sentence import Sentence
from tests.models.tiny import Folder, Load


def make_call(
    numbers: torch.Tensor,
    module: torch.nn.Module,
    budget: Budget,
    sizes: list[int],
    max_size: int = 10**6,
) -> merging.NetworkCall:
    """Return a call that doubles rows; it fails for negative numbers and large batches."""

    def together(calls: Sequence[merging.NetworkCall]) -> list[torch.Tensor]:
        assert torch.is_inference_mode_enabled()
        longest = max(call.shape[1] for call in calls)
        size = longest * sum(call.shape[0] for call in calls)
        if size > max_size:
            raise torch.OutOfMemoryError("no room")
        if any((call.ids < 0).any() for call in calls):
            raise ValueError("a negative number")
        sizes.append(size)
        return [2 * call.ids for call in calls]

    call = merging.NetworkCall(module, budget, numbers, None, lambda: together([call])[0], together)
    return call


def compute_result(call: merging.NetworkCall) -> Any:
    return merging.answer(call) if merging.is_merged() else call.compute()


def doubled(number: float) -> list[float]:
    """Double a number in a call that may be merged; used by tests of executors."""
    call = make_call(number * torch.ones(1, 1), torch.nn.Identity(), Budget(10), [])
    with merging.merged():
        numbers: list[float] = compute_result(call).flatten().tolist()
    return numbers


def test_calls_of_a_network_share_batches_within_its_budget() -> None:
    module = torch.nn.Identity()
    sizes: list[int] = []
    budget = Budget(12)
    calls = [
        make_call(number * torch.ones(2, length), module, budget, sizes)
        for number, length in enumerate([2, 3, 1, 2])
    ]
    results = merging.compute_all(calls)
    # Rows of length 3 with two padded rows of length 2; then the other rows, which did not fit
    assert sizes == [12, 8]
    for call, values in zip(calls, results, strict=True):
        assert torch.equal(values[0], 2 * call.ids)


def test_error_of_a_call_does_not_affect_other_calls() -> None:
    module, sizes = torch.nn.Identity(), list[int]()
    calls = [make_call(sign * torch.ones(1, 2), module, Budget(100), sizes) for sign in (1, -1, 1)]
    values, errors, _ = zip(*merging.compute_all(calls), strict=True)
    assert isinstance(errors[1], ValueError)
    assert errors[0] is errors[2] is None
    assert torch.equal(values[0], values[2])


def test_batches_stay_halved_after_memory_runs_out() -> None:
    module, sizes, budget = torch.nn.Identity(), list[int](), Budget(100)
    calls = [make_call(torch.ones(1, 2), module, budget, sizes, max_size=4) for _ in range(4)]
    with pytest.warns(RuntimeWarning, match="too small for 4 inputs of 2 tokens"):
        results = merging.compute_all(calls)
    assert [error for _, error, _ in results] == [None] * 4
    assert (sizes, budget.tokens) == ([4, 4], 4)
    # A call that does not fit alone makes its own batches smaller; see `forward_in_batches`
    call = make_call(torch.ones(3, 2), module, budget, sizes, max_size=4)
    ((_, too_large, _),) = merging.compute_all([call])
    assert isinstance(too_large, torch.OutOfMemoryError)


def test_calls_wait_only_where_they_may_be_merged() -> None:
    call = make_call(torch.ones(1, 1), torch.nn.Identity(), Budget(10), [])
    calls: list[merging.NetworkCall] = []

    def run(call: merging.NetworkCall) -> merging.Answer:
        calls.append(call)
        return "merged", None, 0.0

    with torch.inference_mode():
        assert compute_result(call) == 2
        with merging.merged():
            assert compute_result(call) == 2  # no runner
        with merging.runner(run):
            assert compute_result(call) == 2
            with merging.merged():
                assert compute_result(call) == "merged"
                with merging.alone():
                    assert compute_result(call) == 2
    assert calls == [call]


def test_seconds_of_other_calls_are_counted_separately() -> None:
    """Witness: an answer that reports zero seconds."""
    call = make_call(torch.ones(1, 1), torch.nn.Identity(), Budget(10), [])

    def run(_call: merging.NetworkCall) -> merging.Answer:
        torch.randn(200, 200).matrix_power(50)  # takes a while
        return None, None, 0.0

    with counting(Tally()) as tally, timed(), merging.merged(), merging.runner(run):
        merging.answer(call)
    assert tally.others_seconds > 0
    assert tally.seconds < tally.others_seconds


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm", "modernbert"])
def test_masked_networks_give_the_same_in_shared_batches(load: Load, kind: str) -> None:
    """Witness: the plain network, call by call, with the attention mask of the padding."""
    checkpoint: Any = load(kind)
    network = MaskedNetwork(checkpoint)
    generator = torch.Generator().manual_seed(1)
    calls = []
    for n_rows, length, padded in ((3, 6, 0), (2, 9, 2), (1, 4, 0), (4, 9, 0)):
        ids = torch.randint(10, 40, (n_rows, length), generator=generator)
        attention = torch.ones_like(ids)
        attention[-1, length - padded :] = 0
        ids[attention == 0] = network.pad
        positions = torch.randperm(n_rows * length - padded, generator=generator)[:5]
        mask = attention if padded else None
        compute = partial(network.logits, ids, mask, positions)
        arguments = (network.budget, ids, mask, compute, network._together, positions)
        calls.append(merging.NetworkCall(checkpoint.model, *arguments))
    for call, (logits, _, _) in zip(calls, merging.compute_all(calls), strict=True):
        with torch.inference_mode():
            all_logits = checkpoint.model(input_ids=call.ids, attention_mask=call.attention).logits
        expected = all_logits.flatten(0, 1)[call.about]
        torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", ["gpt2", "pythia", "llama"])
def test_causal_networks_give_the_same_in_shared_batches(load: Load, kind: str) -> None:
    """Witness: the plain network, row by row, without padding or cache."""
    checkpoint: Any = load(kind)
    network = CausalNetwork(checkpoint, by_words=False)
    assert network.merges_prefixes
    context = network.begin((5,))
    generator = torch.Generator().manual_seed(1)
    calls, shapes = [], ((0, 1, 4, 0), (3, 2, 3, 1), (0, 1, 2, 0), (6, 4, 1, 0))
    for n_before, n_rows, length, padded in shapes:
        ids = torch.randint(10, 40, (n_rows, length), generator=generator)
        prefix_ids = tuple(torch.randint(10, 40, (n_before,), generator=generator).tolist())
        prefix = network.extend(context, prefix_ids) if prefix_ids else context
        attention = torch.ones_like(ids)
        attention[-1, length - padded :] = 0
        mask = attention if padded else None
        calls.append(network.call(prefix, ids, mask, keeps=not prefix_ids))
    assert all(network.merges(call) for call in calls)
    for call, ((logits, cache), _, _) in zip(calls, merging.compute_all(calls), strict=True):
        prefix, keeps = call.about
        assert logits.shape[:2] == call.ids.shape
        for row, ids in enumerate(call.ids):
            n_tokens = len(ids) if call.attention is None else int(call.attention[row].sum())
            full_row = torch.tensor([[*prefix.ids, *ids[:n_tokens].tolist()]])
            with torch.inference_mode():
                expected = checkpoint.model(input_ids=full_row).logits[0, len(prefix.ids) :]
            torch.testing.assert_close(logits[row, :n_tokens], expected, rtol=1e-4, atol=1e-4)
        if keeps:
            # The cache keeps nothing else of the batch in memory
            for layer in cache.layers:
                n_bytes = layer.keys.untyped_storage().nbytes()
                assert n_bytes == layer.keys.numel() * layer.keys.element_size()
                assert layer.keys.shape[2] == len(prefix.ids) + len(call.ids[0])
            extended = Prefix((*prefix.ids, *call.ids[0].tolist()), 0.0, np.empty(0), cache)
            row_after = torch.tensor([[*extended.ids, 12]])
            with torch.inference_mode():
                next_logits, _ = network._forward(extended, torch.tensor([[12]]))
                expected = checkpoint.model(input_ids=row_after).logits[:, -1:]
            torch.testing.assert_close(next_logits, expected, rtol=1e-4, atol=1e-4)


def test_large_causal_calls_are_not_merged(load: Load) -> None:
    checkpoint: Any = load("gpt2")
    network = CausalNetwork(checkpoint, by_words=False)
    prefix = network.begin((5,))
    few, many = (network.call(prefix, torch.full((n_rows, 3), 7), None) for n_rows in (32, 33))
    assert network.merges(few)
    assert not network.merges(many)


def test_trial_without_memory_is_repeated_later(load: Load) -> None:
    checkpoint: Any = load("gpt2")
    network = CausalNetwork(checkpoint, by_words=False)

    def run_out(_network: Any, _inputs: Any, _output: Any) -> Any:
        raise torch.OutOfMemoryError("no room")

    hook = checkpoint.model.register_forward_hook(run_out)
    with pytest.raises(torch.OutOfMemoryError):
        _ = network.merges_prefixes
    hook.remove()
    assert network.merges_prefixes


def test_convention_and_float32_scores_are_never_merged(tiny_checkpoint: Folder) -> None:
    """All searches share the tolerance. Two searches that wait for each other would hang."""
    model = load_model(f"hf:{tiny_checkpoint('bert')}", device="cpu", dtype="bfloat16")

    def refuse(_call: merging.NetworkCall) -> merging.Answer:
        raise AssertionError("asked")

    with merging.merged(), merging.runner(refuse):
        assert model.convention.tolerance > 1e-3
        with pytest.raises(AssertionError, match="asked"):
            model.log_probs([Sentence.parse("She sleeps.")])
        model.float32_log_probs([Sentence.parse("She sleeps.")])
