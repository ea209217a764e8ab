"""Transforms against hand computation, and the specifications that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.base import Scorer
from contstim.models.catalog import load_model, load_models, load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.models.specifications import Specification, parse_specification
from contstim.models.transforms import Transformed
from contstim.sentence import Sentence
from contstim.testing.contract import ScorerContract
from tests.models import tiny

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS]


@pytest.fixture(scope="module")
def arpa(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    folder = tmp_path_factory.mktemp("arpa")
    for order in (1, 2):
        tiny.train_ngrams(order, folder / f"{order}gram.arpa")
    return lambda order: folder / f"{order}gram.arpa"


def test_slor_by_hand(arpa: Callable[[int], Path], tiny_checkpoint: Callable[[str], Path]) -> None:
    location = tiny_checkpoint("gpt2")
    plain = load_model(f"hf:{location}", device="cpu")
    model = load_scorer(f"hf:{location}+slor:{arpa(1)}", device="cpu")
    unigram = _unigrams(arpa(1))
    for sentence, score in zip(SENTENCES, model.scores(SENTENCES), strict=True):
        words = sum(unigram.get(word, unigram["<unk>"]) for word in sentence.words)
        expected = (plain.log_probs([sentence])[0] - words) / len(sentence.words)
        assert score == pytest.approx(expected, abs=1e-5)
    assert model.convention.rule == "log-likelihood+slor"
    assert model.convention.unit == "nats per word"
    assert model.convention.fingerprint != plain.convention.fingerprint


def _unigrams(path: Path) -> dict[str, float]:
    """Word to natural log, read from the ARPA text."""
    rows = path.read_text(encoding="utf-8").split("\\1-grams:\n")[1].split("\n\n")[0]
    cells = (row.split("\t") for row in rows.splitlines())
    return {cell[1]: float(cell[0]) * np.log(10) for cell in cells}


def test_mean_by_hand(tiny_checkpoint: Callable[[str], Path]) -> None:
    location = tiny_checkpoint("gpt2")
    plain = load_model(f"hf:{location}@chain", device="cpu")
    model = load_scorer(f"hf:{location}@chain+mean", device="cpu")
    terms = plain.token_log_probs(SENTENCES)
    expected = [np.mean([term.log_prob for term in sentence]) for sentence in terms]
    np.testing.assert_allclose(model.scores(SENTENCES), expected, atol=1e-6)
    assert model.convention.unit == "nats per token"


def test_the_mean_of_an_ngram_model_counts_words_and_the_end(arpa: Callable[[int], Path]) -> None:
    plain = NgramModel(arpa(2))
    model = Transformed(plain, "mean")
    expected = plain.log_probs(SENTENCES) / [len(sentence) + 1 for sentence in SENTENCES]
    np.testing.assert_allclose(model.scores(SENTENCES), expected)


class TestMean(ScorerContract):
    @pytest.fixture
    def model(self, arpa: Callable[[int], Path]) -> Scorer:
        return load_scorer(f"kenlm:{arpa(2)}+mean")


class TestSlor(ScorerContract):
    @pytest.fixture
    def model(self, arpa: Callable[[int], Path]) -> Scorer:
        return load_scorer(f"kenlm:{arpa(2)}+slor:{arpa(1)}")


@pytest.mark.parametrize("transform", ["+mean", "+slor:1gram.arpa"])
def test_what_asks_for_a_language_model_is_not_given_a_transform(
    arpa: Callable[[int], Path], transform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(arpa(1).parent)
    with pytest.raises(ModelError, match=r"2gram.arpa\+.*unit is nats per .*in nats"):
        load_models(["kenlm:1gram.arpa", f"kenlm:2gram.arpa{transform}"])


def test_slor_needs_a_unigram_model(arpa: Callable[[int], Path]) -> None:
    with pytest.raises(ModelError, match=r"has order 2; \+slor needs order 1"):
        load_scorer(f"kenlm:{arpa(1)}+slor:{arpa(2)}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kenlm:t.arpa", ("kenlm", "t.arpa", "", "", "")),
        ("t.arpa@log-likelihood", ("kenlm", "t.arpa", "log-likelihood", "", "")),
        ("hf:gpt2+mean", ("hf", "gpt2", "", "mean", "")),
        ("gpt2-xl@chain+slor:u+v@1.arpa", ("hf", "gpt2-xl", "chain", "slor", "u+v@1.arpa")),
        ("hf:org/a@b/model", ("hf", "org/a@b/model", "", "", "")),
        ("hf:c++/model@chain", ("hf", "c++/model", "chain", "", "")),
        ("electra-large-generator", ("hf", "google/electra-large-generator", "", "", "")),
    ],
)
def test_specifications(text: str, expected: tuple[str, ...]) -> None:
    assert parse_specification(text) == Specification(text, text, *expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hf:gpt2@chains", "no rule 'chains'; they have log-likelihood, chain, chain-sampled"),
        ("hf:gpt2+median", r"'\+median' .* is not a transform; there are \+mean"),
        ("hf:gpt2+slor", r"'\+slor' .* is not a transform"),
        ("hf:gpt2+mean:3", r"'\+mean' .* is not a transform"),
        ("some-name", r"does not name a model .* hf: \(causal or masked"),
        ("", r"write \[family:\]location"),
    ],
)
def test_wrong_specifications_say_what_is_right(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse_specification(text)


def test_a_rule_of_the_other_kind_is_refused(tiny_checkpoint: Callable[[str], Path]) -> None:
    with pytest.raises(ModelError, match=r"causal model, .*'pll-original'; it has log-likelihood"):
        load_model(f"hf:{tiny_checkpoint('gpt2')}@pll-original")
    with pytest.raises(ModelError, match=r"masked model, .*'log-likelihood'; it has chain, "):
        load_model(f"hf:{tiny_checkpoint('bert')}@log-likelihood")


def test_a_folder_with_a_configuration_needs_no_family(
    tiny_checkpoint: Callable[[str], Path],
) -> None:
    location = str(tiny_checkpoint("llama"))
    model = load_model(location, device="cpu")
    assert model.name == location
    assert model.convention.rule == "log-likelihood"
