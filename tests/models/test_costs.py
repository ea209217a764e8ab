"""Every row and token that passes through a network is counted, and nothing else is."""

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


def watched(model: torch.nn.Module, task: Callable[[], object]) -> Cost:
    """What really passed through a network: rows, attended tokens, calls."""
    seen: list[Cost] = []

    def look(_module: Any, _args: Any, inputs: dict[str, Any]) -> None:
        ids, attention = inputs["input_ids"], inputs.get("attention_mask")
        cached = inputs.get("cache", inputs.get("past_key_values"))  # until transformers 5.23
        before = 0 if cached is None else cached.get_seq_length() * len(ids)
        attended = ids.numel() if attention is None else int(attention.sum()) - before
        seen.append(Cost(len(ids), attended, 1))

    handle = model.register_forward_pre_hook(look, with_kwargs=True)
    try:
        task()
    finally:
        handle.remove()
    return sum(seen, Cost())


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "pythia"])
def test_what_is_counted_is_what_passed_through_the_network(load: Load, kind: str) -> None:
    """Witness: a hook on the network itself."""
    checkpoint = load(kind)
    model: Any = CausalModel(checkpoint) if checkpoint.kind == "causal" else MaskedModel(checkpoint)
    drafts = [] if model.draft() is None else [model.draft(effort) for effort in range(3)]
    for asked in (model, *drafts):
        for task in (
            lambda m=asked: m.log_probs([SENTENCE, Sentence.parse("She sleeps")]),
            lambda m=asked: m.replacements(SENTENCE, 2, WORDS),
            lambda m=asked: m.replacement_log_probs(SENTENCE, 2, WORDS),
            lambda m=asked: m.token_log_probs([SENTENCE]),
        ):
            with counting(Tally()) as tally:
                passed = watched(checkpoint.model, task)
            assert tally.total == passed
            assert passed.rows > 0 or asked is not model


def test_tallies_nest_and_end() -> None:
    with counting(Tally()) as outer:
        count(1, 10)
        with counting(Tally()) as inner:
            count(2, 5)
        count(0, 3, calls=0)
    count(100, 100)
    assert inner.total == Cost(2, 5, 1)
    assert outer.total == Cost(3, 18, 2)
    assert outer.total == inner.total + Cost(1, 13, 1)


def test_seconds_of_networks_count_in_every_tally(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: a clock that goes on by one at every look."""
    ticks = iter(range(100))
    monkeypatch.setattr("contstim.models.costs.perf_counter", lambda: float(next(ticks)))
    with computing():  # while nobody counts
        pass
    with counting(Tally()) as outer:
        with counting(Tally()) as inner, computing():
            pass
        with pytest.raises(ValueError, match="broken"), computing():
            raise ValueError("broken")
    assert (outer.seconds, inner.seconds) == (2.0, 1.0)
