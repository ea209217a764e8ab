"""Searches in bfloat16, which are checked and reported in float32."""

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

    ModelFactory = Callable[..., LanguageModel]

NATURALS = [
    Sentence.parse(text)
    for text in ("The teacher reads.", "The dogs never travel more.", "Some people read it.")
]
WORDS = Vocabulary.from_sentences([*map(Sentence.parse, TEXTS[:6]), *NATURALS])


@pytest.fixture(scope="module")
def make_model(tiny_checkpoint: Callable[[str], Path]) -> ModelFactory:
    def make_model(kind: str, dtype: Any = "bfloat16", *, doubled: bool = False) -> LanguageModel:
        checkpoint = load_checkpoint(str(tiny_checkpoint(kind)), Loading(device="cpu", dtype=dtype))
        if doubled:  # the same weights, cast to float32 by PyTorch
            network = copy.deepcopy(checkpoint.model).float()
            checkpoint = Checkpoint(network, checkpoint.tokenizer, "x", "cpu", checkpoint.kind)
        if checkpoint.kind == "causal":
            return CausalModel(checkpoint, name=kind)
        return MaskedModel(checkpoint, rule="pll-word-l2r", name=kind)

    return make_model


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
def test_bfloat16_searches_report_float32_scores(
    make_model: ModelFactory, pair: tuple[str, str], recipe: str, seed: int
) -> None:
    """Witness: the same weights in networks that PyTorch cast to float32."""
    accept, reject = map(make_model, pair)
    natural = NATURALS[seed % len(NATURALS)]
    options: dict[str, Any] = {"recipe": RECIPES[recipe], "seed": seed, "restarts": SINGLE}
    synthesis = synthesize(accept, reject, natural, WORDS, **options)
    scores = zip(synthesis.natural_log_probs, synthesis.log_probs, strict=True)
    for kind, pair_scores in zip(pair, scores, strict=True):
        expected = make_model(kind, doubled=True).log_probs([natural, synthesis.synthetic])
        assert pair_scores == pytest.approx(tuple(expected), abs=1e-4)
    assert synthesis.log_probs[0] >= synthesis.natural_log_probs[0]
    assert synthesis.log_probs[1] < synthesis.natural_log_probs[1] or synthesis.synthetic == natural


@pytest.mark.slow
def test_bfloat16_pairs_have_float32_scores(make_model: ModelFactory) -> None:
    """Witness: the same weights in networks that PyTorch cast to float32."""
    models = make_model("gpt2"), make_model("pythia")
    pair = synthesize_pair(*models, NATURALS[0], WORDS, seed=1, restarts=SINGLE)
    sentences = [pair.sentence_1, pair.sentence_2]
    expected = [make_model(kind, doubled=True).log_probs(sentences) for kind in ("gpt2", "pythia")]
    np.testing.assert_allclose(pair.log_probs, expected, atol=1e-4)
    assert pair.disagreement > 0


@pytest.mark.parametrize("kind", ["gpt2", "pythia", "llama", "roberta", "modernbert"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_float32_does_not_change_the_model(make_model: ModelFactory, kind: str, dtype: str) -> None:
    """Witness: a copy of the network that PyTorch cast to float32."""
    model = make_model(kind, dtype)
    expected = make_model(kind, dtype, doubled=True).log_probs(SENTENCES)
    network = model.checkpoint.model  # type: ignore[attr-defined]
    weights, scores = fingerprint_of_network(network), model.log_probs(SENTENCES)
    np.testing.assert_allclose(model.float32_log_probs(SENTENCES), expected, atol=1e-4)
    assert fingerprint_of_network(network) == weights
    assert (model.log_probs(SENTENCES) == scores).all()


def test_conventions_contain_precision_and_tolerance(make_model: ModelFactory) -> None:
    coarse, fine = make_model("gpt2").convention, make_model("gpt2", "float32").convention
    assert (fine.precision, fine.tolerance) == ("float32", 1e-6)
    assert coarse.precision == "bfloat16"
    assert 2**-8 <= coarse.tolerance < 0.1
    assert make_model("gpt2").convention == coarse


def test_searches_without_memory_for_float32_are_refused(
    make_model: ModelFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast, n_casts = torch.Tensor.to, itertools.count(1)

    def fail_after_two(tensor: torch.Tensor, *options: Any, **keywords: Any) -> torch.Tensor:
        if options == (torch.float32,) and next(n_casts) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return cast(tensor, *options, **keywords)

    model, opponent = make_model("gpt2"), make_model("pythia")
    assert isinstance(model, CausalModel)
    weights = fingerprint_of_network(model.checkpoint.model)
    monkeypatch.setattr(torch.Tensor, "to", fail_after_two)
    with pytest.raises(ModelError, match="float32, which does not fit into the memory of cpu"):
        synthesize(model, opponent, NATURALS[0], WORDS)
    assert fingerprint_of_network(model.checkpoint.model) == weights


def test_scores_beyond_the_tolerance_still_fail_the_check(
    make_model: ModelFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model("gpt2")
    replacement_log_probs = model.replacement_log_probs

    def add_error(*arguments: Any) -> Any:
        return replacement_log_probs(*arguments) + 30

    monkeypatch.setattr(model, "replacement_log_probs", add_error)
    with pytest.raises(VerificationError, match="its scores are"):
        synthesize(model, make_model("pythia"), NATURALS[0], WORDS, recipe=GOLAN2023)
