"""All rows and tokens that pass through a network are counted, and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from contstim.models.batching import computing
from contstim.models.causal.adapter import CausalModel
from contstim.models.costs import Cost, Tally, count, counting
from contstim.models.masked.adapter import MaskedModel
from contstim.words.sentence import Sentence
from tests.models.tiny import Load

SENTENCE = Sentence.parse("The old teacher reads")
WORDS = ("dog", "small", "neighbours")


def measure_cost(model: torch.nn.Module, task: Callable[[], object]) -> Cost:
    """Return the cost of a task for a network, measured by a hook on the network."""
    costs: list[Cost] = []

    def record_cost(_module: Any, _args: Any, inputs: dict[str, Any]) -> None:
        ids, attention = inputs["input_ids"], inputs.get("attention_mask")
        cached = inputs.get("cache", inputs.get("past_key_values"))  # until transformers 5.23
        n_cached = 0 if cached is None else cached.get_seq_length() * len(ids)
        attended = ids.numel() if attention is None else int(attention.sum()) - n_cached
        costs.append(Cost(len(ids), attended, 1))

    handle = model.register_forward_pre_hook(record_cost, with_kwargs=True)
    try:
        task()
    finally:
        handle.remove()
    return sum(costs, Cost())


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "pythia"])
def test_tally_counts_what_passes_through_the_network(load: Load, kind: str) -> None:
    """Witness: a hook on the network itself."""
    checkpoint = load(kind)
    model: Any = CausalModel(checkpoint) if checkpoint.kind == "causal" else MaskedModel(checkpoint)
    drafts = [] if model.draft() is None else [model.draft(effort) for effort in range(3)]
    for scorer in (model, *drafts):
        for task in (
            lambda m=scorer: m.log_probs([SENTENCE, Sentence.parse("She sleeps")]),
            lambda m=scorer: m.replacements(SENTENCE, 2, WORDS),
            lambda m=scorer: m.replacement_log_probs(SENTENCE, 2, WORDS),
            lambda m=scorer: m.token_log_probs([SENTENCE]),
        ):
            with counting(Tally()) as tally:
                cost = measure_cost(checkpoint.model, task)
            assert tally.total == cost
            assert cost.rows > 0 or scorer is not model


def test_tallies_nest() -> None:
    with counting(Tally()) as outer:
        count(1, 10)
        with counting(Tally()) as inner:
            count(2, 5)
        count(0, 3, calls=0)
    count(100, 100)
    assert inner.total == Cost(2, 5, 1)
    assert outer.total == Cost(3, 18, 2)
    assert outer.total == inner.total + Cost(1, 13, 1)


def test_network_seconds_count_in_all_active_tallies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: a clock that advances by one second per reading."""
    ticks = iter(range(100))
    monkeypatch.setattr("contstim.models.costs.perf_counter", lambda: float(next(ticks)))
    with computing():  # without a tally
        pass
    with counting(Tally()) as outer:
        with counting(Tally()) as inner, computing():
            pass
        with pytest.raises(ValueError, match="broken"), computing():
            raise ValueError("broken")
    assert (outer.seconds, inner.seconds) == (2.0, 1.0)
