"""Searches in bfloat16: checked with room for its rounding, judged and reported in float32."""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from contstim.errors import ModelError, VerificationError
from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.models.tensors import fingerprint_of_network
from contstim.optimization.search.recipes import GOLAN2023, RECIPES
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize, synthesize_pair
from contstim.testing.contract import SENTENCES
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models.tiny import TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contstim.models.base import LanguageModel

    Make = Callable[..., LanguageModel]

NATURALS = [
    Sentence.parse(text)
    for text in ("The teacher reads.", "The dogs never travel more.", "Some people read it.")
]
WORDS = Vocabulary.from_sentences([*map(Sentence.parse, TEXTS[:6]), *NATURALS])


@pytest.fixture(scope="module")
def make(tiny_checkpoint: Callable[[str], Path]) -> Make:
    def make(kind: str, dtype: Any = "bfloat16", *, doubled: bool = False) -> LanguageModel:
        checkpoint = load_checkpoint(str(tiny_checkpoint(kind)), Loading(device="cpu", dtype=dtype))
        if doubled:  # the same weights as float32 numbers, by PyTorch's own means
            network = copy.deepcopy(checkpoint.model).float()
            checkpoint = Checkpoint(network, checkpoint.tokenizer, "x", "cpu", checkpoint.kind)
        if checkpoint.kind == "causal":
            return CausalModel(checkpoint, name=kind)
        return MaskedModel(checkpoint, rule="pll-word-l2r", name=kind)

    return make


@pytest.mark.parametrize(
    ("pair", "recipe", "seed"),
    [
        (("roberta", "gpt2"), "golan2023", 0),
        (("gpt2", "pythia"), "default", 0),
        *(
            pytest.param(pair, recipe, seed, marks=pytest.mark.slow)
            for pair in (("gpt2", "pythia"), ("roberta", "gpt2"))
            for recipe in RECIPES
            for seed in (1, 2)
        ),
    ],
)
def test_searches_in_bfloat16_end_with_what_holds_in_float32(
    make: Make, pair: tuple[str, str], recipe: str, seed: int
) -> None:
    """Witness: the same weights in networks that PyTorch cast to float32."""
    accept, reject = map(make, pair)
    natural = NATURALS[seed % len(NATURALS)]
    found = synthesize(
        accept, reject, natural, WORDS, recipe=RECIPES[recipe], seed=seed, restarts=SINGLE
    )
    for kind, before, after in zip(pair, found.natural_log_probs, found.log_probs, strict=True):
        scores = make(kind, doubled=True).log_probs([natural, found.synthetic])
        assert (before, after) == pytest.approx(tuple(scores), abs=1e-4)
    assert found.log_probs[0] >= found.natural_log_probs[0]
    assert found.log_probs[1] < found.natural_log_probs[1] or found.synthetic == natural


@pytest.mark.slow
def test_pairs_in_bfloat16_have_float32_scores(make: Make) -> None:
    """Witness: the same weights in networks that PyTorch cast to float32."""
    models = make("gpt2"), make("pythia")
    found = synthesize_pair(*models, NATURALS[0], WORDS, seed=1, restarts=SINGLE)
    both = [found.sentence_1, found.sentence_2]
    expected = [make(kind, doubled=True).log_probs(both) for kind in ("gpt2", "pythia")]
    np.testing.assert_allclose(found.log_probs, expected, atol=1e-4)
    assert found.disagreement > 0


@pytest.mark.parametrize("kind", ["gpt2", "pythia", "llama", "roberta", "modernbert"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_model_can_score_in_float32_and_stays_what_it_was(
    make: Make, kind: str, dtype: str
) -> None:
    """Witness: a copy of the network that PyTorch cast to float32."""
    model, twin = make(kind, dtype), make(kind, dtype, doubled=True)
    network = model.checkpoint.model  # type: ignore[attr-defined]
    weights, scores = fingerprint_of_network(network), model.log_probs(SENTENCES)
    np.testing.assert_allclose(
        model.float32_log_probs(SENTENCES), twin.log_probs(SENTENCES), atol=1e-4
    )
    assert fingerprint_of_network(network) == weights
    assert (model.log_probs(SENTENCES) == scores).all()


def test_conventions_tell_precision_and_tolerance(make: Make) -> None:
    coarse, fine = make("gpt2").convention, make("gpt2", "float32").convention
    assert (fine.precision, fine.tolerance) == ("float32", 1e-6)
    assert coarse.precision == "bfloat16"
    assert 2**-8 <= coarse.tolerance < 0.1
    assert make("gpt2").convention == coarse


def test_where_float32_does_not_fit_the_search_is_refused_and_weights_stay(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast, n_casts = torch.Tensor.to, itertools.count(1)

    def room_for_two(tensor: torch.Tensor, *options: Any, **more: Any) -> torch.Tensor:
        if options == (torch.float32,) and next(n_casts) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return cast(tensor, *options, **more)

    model, other = make("gpt2"), make("pythia")
    assert isinstance(model, CausalModel)
    before = fingerprint_of_network(model.checkpoint.model)
    monkeypatch.setattr(torch.Tensor, "to", room_for_two)
    with pytest.raises(
        ModelError, match="computed in float32, which does not fit into the memory of cpu"
    ):
        synthesize(model, other, NATURALS[0], WORDS)
    assert fingerprint_of_network(model.checkpoint.model) == before


def test_scores_beyond_the_tolerance_still_fail_the_check(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make("gpt2")
    replacement_log_probs = model.replacement_log_probs

    def lying(*arguments: Any) -> Any:
        return replacement_log_probs(*arguments) + 30

    monkeypatch.setattr(model, "replacement_log_probs", lying)
    with pytest.raises(VerificationError, match="its scores are"):
        synthesize(model, make("pythia"), NATURALS[0], WORDS, recipe=GOLAN2023)
