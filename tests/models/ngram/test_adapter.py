from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.errors import ModelError
from contstim.models.base import LanguageModel, Scorer
from contstim.models.ngram import adapter
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.arpa import parse_arpa
from contstim.models.ngram.replace import ReplacementScores
from contstim.models.ngram.tables import BEGIN, NgramTables
from contstim.testing.contract import SENTENCES, LanguageModelContract
from contstim.words.sentence import Sentence
from tests.examples import examples

HERE = Path(__file__).parent


class TestContract(LanguageModelContract):
    @pytest.fixture(params=[1, 3])
    def model(self, trained: Path, request: pytest.FixtureRequest) -> LanguageModel:
        return NgramModel(trained / f"{request.param}gram.arpa")

    def test_the_sentence_matters(self, model: Scorer) -> None:
        assert len(set(model.scores(SENTENCES[:4]).tolist())) == 4


class TestContractOfABinaryFile(LanguageModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> LanguageModel:
        pytest.importorskip("kenlm")
        return NgramModel(HERE / "tiny.trie.binary")

    def test_the_sentence_matters(self, model: Scorer) -> None:
        assert len(set(model.scores(SENTENCES[:4]).tolist())) > 1


def test_scores_are_kenlms_own_in_nats(trigram: NgramModel) -> None:
    """Witness: the kenlm package's total, which includes the end of the sentence."""
    kenlm = pytest.importorskip("kenlm")
    theirs = kenlm.Model(str(trigram.path))
    for sentence in SENTENCES:
        expected = theirs.score(sentence.bare) * math.log(10)
        assert trigram.log_probs([sentence])[0] == pytest.approx(expected, rel=1e-6)


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), order=st.integers(1, 4))
def test_every_word_at_a_position_equals_kenlm_one_by_one(
    trained: Path, english: list[Sentence], data: st.DataObject, order: int
) -> None:
    """Witness: KenLM's own scores of the rewritten sentences, equal bit for bit."""
    model = NgramModel(trained / f"{order}gram.arpa")
    sentence = data.draw(st.sampled_from(english))
    position = data.draw(st.integers(0, len(sentence) - 1))
    assert model.tables is not None
    words = (*model.tables.words[3:200], "zyzzyva", *sentence.words)
    fresh = model.log_probs([sentence.replace(position, word) for word in words])
    assert (model.replacement_log_probs(sentence, position, words) == fresh).all()


def test_probabilities_of_all_words_sum_to_one(trigram: NgramModel) -> None:
    """Property: after any context the vocabulary, <unk> and </s> share all probability."""
    assert trigram.tables is not None
    ids = trigram.tables.ids(["The", "old"])
    # Scoring "<s> The old ?" without an end: the last place's conditional probability varies.
    context = (BEGIN, *ids.tolist())
    with_each_word = ReplacementScores(trigram.tables)
    totals = with_each_word((*context, 0), 3, np.arange(len(trigram.tables.words)))
    (before,) = with_each_word(context, 2, ids[1:])
    probabilities = 10 ** (totals - before)
    probabilities[BEGIN] = 0
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)


def test_the_fingerprint_follows_the_files_content(trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "renamed.arpa"
    copy.write_bytes((trained / "2gram.arpa").read_bytes())
    ours = NgramModel(trained / "2gram.arpa").convention.fingerprint
    assert NgramModel(copy).convention.fingerprint == ours
    assert NgramModel(trained / "3gram.arpa").convention.fingerprint != ours


def test_the_vocabulary_comes_from_counts_beside_the_model(
    bigram: NgramModel, english: list[Sentence], tmp_path: Path
) -> None:
    """Witness: words counted one by one."""
    words = bigram.vocabulary(20)
    starts = [s.words[0] for s in english]
    assert all(starts.count(word) >= 20 for word in words.initial)
    assert set(words.initial) == {w for w in set(starts) if starts.count(w) >= 20}
    alone = tmp_path / "alone.arpa"
    alone.write_bytes(bigram.path.read_bytes())
    with pytest.raises(ModelError, match="Use a vocabulary"):
        NgramModel(alone).vocabulary(20)


def test_a_text_of_a_thousand_words_has_its_scores(trained: Path) -> None:
    """Witness: the model's score of the whole sentence."""
    model = NgramModel(trained / "3gram.arpa")
    long = Sentence(("the", "dog", "sleeps") * 400, ".")
    for position in (0, 600, 1199):
        scores = model.replacement_log_probs(long, position, ("the", "cat"))
        fresh = model.log_probs([long.replace(position, word) for word in ("the", "cat")])
        assert (scores == fresh).all()


def test_searches_beside_each_other_read_the_file_once(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path | str] = []

    def note(content: bytes, path: Path | str) -> NgramTables:
        read.append(path)
        return parse_arpa(content, path)

    monkeypatch.setattr(adapter, "parse_arpa", note)
    model = NgramModel(trained / "2gram.arpa")
    for _ in range(3):
        model.for_another_search().replacement_log_probs(SENTENCES[0], 0, ("The", "A"))
    assert len(read) == 1


@pytest.mark.parametrize("kind", ["tiny.trie.binary", "tiny.probing.binary"])
def test_words_are_cheap_to_score_from_tables_only(kind: str) -> None:
    """KenLM's binary files are asked word by word."""
    pytest.importorskip("kenlm")
    assert NgramModel(HERE / "tiny.arpa").cheap_replacements
    assert not NgramModel(HERE / kind).cheap_replacements
