"""Served models against the same network in this process, in all dialects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim.models.base import LanguageModel
from contstim.models.catalog import load_model
from contstim.sentence import Sentence
from contstim.testing.contract import LanguageModelContract
from tests.models.server.fakes import MODEL, FakeServer
from tests.models.tiny import TEXTS

if TYPE_CHECKING:
    from contstim.models.causal.adapter import CausalModel
    from contstim.models.checkpoints import Checkpoint

PARSED = [Sentence.parse(text) for text in TEXTS]
WAYS = ("completions", "completions&max_tokens=0", "vllm", "sglang")


@pytest.fixture(scope="module", params=["completions", "vllm", "sglang"])
def served(
    healthy: FakeServer, checkpoint: Checkpoint, request: pytest.FixtureRequest
) -> Iterator[LanguageModel]:
    with healthy.running() as url:
        options = f"tokenizer={checkpoint.location}&dialect={request.param}"
        yield load_model(f"server:{url}#{MODEL}?{options}")


class TestContract(LanguageModelContract):
    @pytest.fixture
    def model(self, served: LanguageModel) -> LanguageModel:
        return served

    def reads_as_text(self, model: object, sentence: Sentence, position: int) -> bool:
        """Sentences are cut as for the local model, whose own contract covers this."""
        del model, sentence, position
        return True


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_those_of_the_local_network(
    way: str, healthy: FakeServer, checkpoint: Checkpoint, local: CausalModel
) -> None:
    with healthy.running() as url:
        served = load_model(f"server:{url}#{MODEL}?tokenizer={checkpoint.location}&dialect={way}")
        scores = served.log_probs(PARSED)
        np.testing.assert_allclose(scores, local.log_probs(PARSED), rtol=0, atol=1e-4)
