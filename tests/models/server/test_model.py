"""Served models against the same network in this process, in all dialects."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from contstim.models.base import LanguageModel
from contstim.models.catalog import load_model
from contstim.models.causal.adapter import CausalModel
from contstim.models.costs import Tally, counting
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize
from contstim.testing.contract import LanguageModelContract
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models.server.fakes import MODEL, FakeServer, MakeFake, Reply
from tests.models.server.hashed import HashedNetwork
from tests.models.tiny import TEXTS, train_ngrams

PARSED = [Sentence.parse(text) for text in TEXTS]


@pytest.fixture(scope="module")
def fake(make_fake: MakeFake) -> FakeServer:
    return make_fake()


@pytest.fixture(scope="module")
def served(fake: FakeServer) -> Iterator[LanguageModel]:
    with fake.running() as url:
        yield load_model(f"server:{url}#{MODEL}?tokenizer={fake.location}")


class TestContract(LanguageModelContract):
    @pytest.fixture
    def model(self, served: LanguageModel) -> LanguageModel:
        return served

    def reads_as_text(self, model: object, sentence: Sentence, position: int) -> bool:
        """Sentences are tokenized as for the local model, whose own contract covers this."""
        del model, sentence, position
        return True


def test_scores_equal_a_local_network(healthy_server: FakeServer, local_model: CausalModel) -> None:
    """Witness: the same network in this process; `test_faulty` covers other dialects."""
    with healthy_server.in_process() as url:
        served = load_model(f"server:{url}#{MODEL}?tokenizer={healthy_server.location}")
        scores = served.log_probs(PARSED)
        np.testing.assert_allclose(scores, local_model.log_probs(PARSED), rtol=0, atol=1e-4)


class Unhurried(FakeServer):
    """Needs a tenth of a second for each answer after the probes."""

    def replace_reply(self, reply: Reply) -> Reply:
        return replace(reply, pause=0.1 if self.is_probed else 0.0)


def test_waiting_for_a_server_counts_as_network_time(make_fake: MakeFake) -> None:
    """Witness: the pause of the server, and the clock."""
    fake = make_fake(Unhurried)
    with fake.running() as url:
        served = load_model(f"server:{url}#{MODEL}?tokenizer={fake.location}")
        fake.is_probed = True
        start = perf_counter()
        with counting(Tally()) as tally:
            served.log_probs(PARSED[:1])
        elapsed = perf_counter() - start
    assert 0.1 <= tally.seconds <= elapsed


def test_draft_is_used(fake: FakeServer, hashed_network: HashedNetwork, tmp_path: Path) -> None:
    """Witness: the result's scores under the server's own network."""
    words = Vocabulary.from_sentences(PARSED[:3])
    bigram, trigram = (
        load_model(f"kenlm:{train_ngrams(n, tmp_path / f'{n}.arpa')}") for n in (2, 3)
    )
    with fake.in_process() as url:
        options = f"tokenizer={fake.location}&draft=kenlm:{tmp_path / '2.arpa'}"
        served = load_model(f"server:{url}#{MODEL}?{options}")
        assert served.is_black_box
        replacements = served.replacements(PARSED[1], 1, ["sleeps", "walks"])
        assert np.isnan(replacements.exact).all()
        assert np.isinf(replacements.upper_bound).all()
        draft = served.draft()
        assert draft is not None
        np.testing.assert_array_equal(draft.scores(PARSED), bigram.log_probs(PARSED))
        recipe = replace(DEFAULT, perturbation=None, restarts=SINGLE)  # one search of one round
        result = synthesize(served, trigram, PARSED[1], words, seed=0, recipe=recipe)
    tokenizer = fake.tokenizer
    rows = tokenizer([PARSED[1].text, result.synthetic.text])["input_ids"]
    natural, synthetic = (hashed_network.score([tokenizer.bos_token_id, *row], 1) for row in rows)
    assert result.log_probs[0] == pytest.approx(synthetic, abs=1e-3)
    assert synthetic >= natural - 1e-3
    assert result.log_probs[1] < result.natural_log_probs[1]
