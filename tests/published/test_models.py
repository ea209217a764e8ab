"""Models on published texts: real tokenizers, n-gram models against lmplz, estimates."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from contstim.experiments.reproduce.published import read_vocabulary
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import estimate, train_ngram
from contstim.models.vocabularies import shared_vocabulary
from contstim.models.words import (
    Encoding,
    encode_batch,
    place_of,
    word_and_rest,
    words_are_independent,
    words_in_places,
)
from contstim.optimization.search.synthesize import synthesize
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence

pytestmark = pytest.mark.published


@pytest.fixture(scope="module")
def models(published_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, NgramModel]:
    folder = tmp_path_factory.mktemp("openstax")
    text = published_data / "text" / "openstax.train.txt"
    for order in (2, 3, 5):
        train_ngram(read_sentences(text), order, folder / f"{order}.arpa")
    return {order: NgramModel(folder / f"{order}.arpa") for order in (2, 3, 5)}


@pytest.mark.parametrize(("order", "column"), [(2, 0), (3, 1), (5, 2)])
def test_scores_of_new_sentences_equal_those_of_lmplz(
    published_data: Path, models: dict[int, NgramModel], order: int, column: int
) -> None:
    """Witness: KenLM's lmplz on the same text."""
    file = published_data / "text" / "openstax.heldout.lmplz.tsv"
    rows = [line.rstrip("\n").split("\t") for line in file.read_text().splitlines()[1:]]
    log_probs = models[order].log_probs([Sentence.parse(row[3]) for row in rows]) / math.log(10)
    expected = np.array([float(row[column]) for row in rows])
    assert len(rows) == 2_000
    assert np.abs(log_probs - expected).max() < 0.005


def test_discounts_and_sizes_equal_those_of_lmplz(published_data: Path) -> None:
    """Witness: what lmplz prints for order 3, to five digits."""
    estimated = estimate(read_sentences(published_data / "text" / "openstax.train.txt"), 3)
    expected_by_order = (
        (0.588411, 1.14952, 1.47297),
        (0.774255, 1.10376, 1.36303),
        (0.85022, 1.27877, 1.42078),
    )
    for discounts, expected_discounts in zip(estimated.discounts, expected_by_order, strict=True):
        assert discounts == pytest.approx(expected_discounts, abs=6e-6)
    assert [len(table.keys) for table in estimated.tables.orders] == [61_063, 679_808, 1_414_634]


def test_synthesis_keeps_constraints(published_data: Path, models: dict[int, NgramModel]) -> None:
    """With the published vocabulary; a fifth of its words is unknown to these models."""
    words = read_vocabulary(published_data / "contstimlang")
    assert (len(words.initial), len(words.inner), len(words.repeatable)) == (5_977, 23_180, 42)
    natural = Sentence.parse("Luke has a ton of experience with winning")
    accept, reject = models[3], models[2]
    known_words, unknown_words = shared_vocabulary([accept, reject], words)
    assert len(unknown_words) / len(words.words) == pytest.approx(0.2, abs=0.02)
    pair = synthesize(accept, reject, natural, known_words, seed=0)
    accepted, rejected = (model.log_probs([natural, pair.synthetic]) for model in (accept, reject))
    assert accepted[1] >= accepted[0]
    assert rejected[1] < rejected[0] - 5
    assert not set(pair.synthetic.words) & set(unknown_words)
    second_pair = synthesize(accept, reject, natural, known_words, seed=0)
    assert second_pair.synthetic == pair.synthetic


def test_estimates_correlate_with_exact_scores(small_models: Path) -> None:
    """Witness: exact scores of the rewritten sentences."""
    model = MaskedModel(load_checkpoint(str(small_models / "bert-mini"), Loading(device="cpu")))
    sentence = Sentence.parse("The old man saw the house in winter")
    words = tuple("city river king war book child law church cell energy idea road".split())
    replacements = model.replacements(sentence, 5, words)
    exact = model.replacement_log_probs(sentence, 5, words)
    assert spearmanr(replacements.estimate, exact).statistic > 0.8
    assert (replacements.upper_bound >= exact - 1e-4).all()


@pytest.fixture(scope="session")
def tokenizers(published_data: Path) -> Path:
    """The folder of real tokenizers with tiny networks, next to the published data."""
    folder = published_data.parent / "tokenizers"
    if not folder.is_dir():
        pytest.skip(f"no tokenizers in {folder}")
    return folder


@pytest.mark.parametrize("name", ["gpt2", "roberta"])
def test_tokens_are_independent(published_data: Path, tokenizers: Path, name: str) -> None:
    """Witness: the tokenizer on whole sentences of the study's words."""
    tokenizer = load_checkpoint(str(tokenizers / name), Loading(device="cpu")).tokenizer
    assert words_are_independent(tokenizer)

    def encode(sentences: Sequence[Sentence]) -> list[Encoding]:
        return encode_batch(tokenizer, sentences, special_tokens=False, end_apart=False)

    encode_word, words = words_in_places(encode), read_vocabulary(published_data / "contstimlang")
    rng = np.random.default_rng(0)
    for _ in range(300):
        inner_words = rng.choice(words.inner, 7).tolist()
        sentence = Sentence((str(rng.choice(words.initial)), *inner_words))
        (encoding,) = encode([sentence])
        for position, word in enumerate(sentence.words):
            word_encoding = encode_word((word,), place_of(sentence, position))
            assert word_encoding.tokens[0] == word_and_rest(encoding, position)[0]
