"""N-gram models under the contract, against kenlm and against separate queries."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.errors import ModelError
from contstim.models.base import Continuation, LanguageModel, Scorer
from contstim.models.ngram import adapter
from contstim.models.ngram.adapter import KenlmQuery, NgramModel
from contstim.models.ngram.arpa import parse_arpa
from contstim.models.ngram.tables import NgramTables
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


class TestContractOfBinaryFile(LanguageModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> LanguageModel:
        pytest.importorskip("kenlm")
        return NgramModel(HERE / "tiny.trie.binary")

    def test_the_sentence_matters(self, model: Scorer) -> None:
        assert len(set(model.scores(SENTENCES[:4]).tolist())) > 1


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), order=st.integers(1, 4))
def test_replacements_equal_kenlm_bit_for_bit(
    trained: Path, english: list[Sentence], data: st.DataObject, order: int
) -> None:
    """Witness: KenLM's own scores of the rewritten sentences."""
    model = NgramModel(trained / f"{order}gram.arpa")
    sentence = data.draw(st.sampled_from(english))
    position = data.draw(st.integers(0, len(sentence) - 1))
    assert model.tables is not None
    words = (*model.tables.words[3:200], "zyzzyva", *sentence.words)
    expected = model.log_probs([sentence.replace(position, word) for word in words])
    assert (model.replacement_log_probs(sentence, position, words) == expected).all()


@pytest.mark.parametrize("order", [1, 3])
def test_entropies_include_all_next_words(trained: Path, order: int) -> None:
    """Witness: probabilities of each word, of an unknown word and of the end, one by one."""
    model = NgramModel(trained / f"{order}gram.arpa")
    assert model.tables is not None
    all_words = (*model.tables.words[3:], "zyzzyva")
    (terms,) = model.token_log_probs([sentence := Sentence.parse("The old zyzzyva sleeps")])
    for i in range(1, len(terms)):
        prefix = sentence.words[:i]
        following = [Continuation(Sentence((*prefix, word)), i) for word in all_words]
        end = model.token_log_probs([Sentence(prefix)])[0][-1].log_prob
        log_probs = np.append(model.continuation_log_probs(following), end)
        assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)
        assert terms[i].entropy == pytest.approx(-np.exp(log_probs) @ log_probs, abs=1e-4)


def test_fingerprint_depends_on_the_content_of_the_file(trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "renamed.arpa"
    copy.write_bytes((trained / "2gram.arpa").read_bytes())
    fingerprint = NgramModel(trained / "2gram.arpa").convention.fingerprint
    assert NgramModel(copy).convention.fingerprint == fingerprint
    assert NgramModel(trained / "3gram.arpa").convention.fingerprint != fingerprint


def test_vocabulary_is_selected_by_counts(
    bigram: NgramModel, english: list[Sentence], tmp_path: Path
) -> None:
    """Witness: words counted one by one."""
    words = bigram.vocabulary(20)
    starts = [s.words[0] for s in english]
    assert all(starts.count(word) >= 20 for word in words.initial)
    assert set(words.initial) == {w for w in set(starts) if starts.count(w) >= 20}
    without_counts = tmp_path / "alone.arpa"
    without_counts.write_bytes(bigram.path.read_bytes())
    with pytest.raises(ModelError, match="Use a vocabulary"):
        NgramModel(without_counts).vocabulary(20)


def test_long_sentences_have_correct_replacement_scores(trained: Path) -> None:
    """Witness: the model's score of the whole sentence."""
    model = NgramModel(trained / "3gram.arpa")
    long = Sentence(("the", "dog", "sleeps") * 400, ".")
    for position in (0, 600, 1199):
        scores = model.replacement_log_probs(long, position, ("the", "cat"))
        expected = model.log_probs([long.replace(position, word) for word in ("the", "cat")])
        assert (scores == expected).all()


def test_parallel_searches_read_the_file_once(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths_read: list[Path | str] = []

    def record_path(content: bytes, path: Path | str) -> NgramTables:
        paths_read.append(path)
        return parse_arpa(content, path)

    monkeypatch.setattr(adapter, "parse_arpa", record_path)
    model = NgramModel(trained / "2gram.arpa")
    for _ in range(3):
        model.for_another_search().replacement_log_probs(SENTENCES[0], 0, ("The", "A"))
    assert len(paths_read) == 1


@pytest.mark.parametrize("kind", ["tiny.trie.binary", "tiny.probing.binary"])
def test_only_arpa_files_have_cheap_replacements(kind: str) -> None:
    """KenLM's binary files are queried word by word."""
    pytest.importorskip("kenlm")
    assert NgramModel(HERE / "tiny.arpa").cheap_replacements
    assert not NgramModel(HERE / kind).cheap_replacements


Queries = list[tuple[NgramTables, KenlmQuery]]
# Words of the models, unknown ones, and boundaries, which are unknown words within a text
WORDS = ("The", "the", "old", "dog", "man", "of", "saw", "house", "zyzzyva", "<s>", "</s>", "<unk>")
RANDOM = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(tuple).map(Sentence)


def write_pruned(path: Path, folder: Path, share: float, seed: int) -> Path:
    """Write the ARPA file without a share of the n-grams that no longer n-gram extends."""
    rng = np.random.default_rng(seed)
    sections = path.read_text().split("\n\n")
    needed: set[tuple[str, ...]] = set()
    for number in reversed(range(2, len(sections) - 1)):
        lines = []
        for line in sections[number].splitlines()[1:]:
            words = tuple(line.split("\t")[1].split(" "))
            if words in needed or rng.random() > share:
                lines.append(line)
                needed |= {words[:-1], words[1:]}
        sections[number] = "\n".join([f"\\{number}-grams:", *lines])
        sections[0] = "\n".join(
            f"ngram {number}={len(lines)}" if line.startswith(f"ngram {number}=") else line
            for line in sections[0].splitlines()
        )
    smaller = folder / f"pruned{seed}.arpa"
    smaller.write_text("\n\n".join(sections))
    return smaller


@pytest.fixture(scope="module")
def queries(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Queries:
    """Queries from tables and by KenLM: full models of orders 1 to 4, and pruned models."""
    pytest.importorskip("kenlm")
    folder = tmp_path_factory.mktemp("pruned")
    paths = [trained / f"{order}gram.arpa" for order in range(1, 5)]
    paths += [
        write_pruned(trained / f"{order}gram.arpa", folder, share, seed)
        for seed, (order, share) in enumerate(product((2, 3, 4), (0.5, 0.95)))
    ]
    return [(parse_arpa(path.read_bytes(), path), KenlmQuery(path)) for path in paths]


@given(st.integers(0, 9), st.lists(RANDOM, max_size=12), st.data())
def test_probabilities_equal_kenlm_bit_for_bit(
    queries: Queries, number: int, sentences: list[Sentence], data: st.DataObject
) -> None:
    """Witness: the kenlm package, on full and on pruned models."""
    ours, theirs = queries[number]
    for sentence in sentences:
        assert ours.log10_probs(sentence) == theirs.log10_probs(sentence)
    starts = [data.draw(st.integers(0, len(sentence))) for sentence in sentences]
    for first_words, end in ((None, True), (None, False), (starts, False)):
        np.testing.assert_array_equal(
            ours.totals(sentences, first_words, end=end),
            theirs.totals(sentences, first_words, end=end),
        )


def test_tables_and_kenlm_contain_the_same_words(queries: Queries) -> None:
    """Witness: the kenlm package."""
    for ours, theirs in queries:
        assert [ours.holds(word) for word in WORDS[:-3]] == [theirs.holds(w) for w in WORDS[:-3]]


WEIGHTED = """\\data\\
ngram 1=5
ngram 2={bigrams}

\\1-grams:
-1\t<unk>
-99\t<s>\t-0.5
-1\t</s>
-0.5\ta\t-0.25
-0.75\tb\t-0.125

\\2-grams:
{lines}
\\end\\
"""


def test_back_off_weights_apply_if_an_order_is_empty(tmp_path: Path) -> None:
    """Witnesses: KenLM's numbers for this file, added by hand; each replacement separately."""
    path = tmp_path / "empty.arpa"
    path.write_text(WEIGHTED.format(bigrams=0, lines=""))
    sentence = Sentence(("a", "a", "b"))
    assert parse_arpa(path.read_bytes(), path).log10_probs(sentence) == [-1.0, -0.75, -1.0, -1.125]
    model = NgramModel(path)
    expected = model.log_probs([sentence.replace(1, word) for word in ("a", "b", "c")])
    np.testing.assert_array_equal(
        model.replacement_log_probs(sentence, 1, ("a", "b", "c")), expected
    )
    assert model.order == 1


def test_back_off_weights_of_longest_ngrams_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.arpa"
    path.write_text(WEIGHTED.format(bigrams=1, lines="-0.3\t<s> a\t-0.7\n"))
    with pytest.raises(ModelError, match=r"line 13: the longest n-grams cannot have"):
        parse_arpa(path.read_bytes(), path)


def test_batches_of_sentences_do_not_change_scores(
    trained: Path, english: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Property: batches of sentences change neither scores nor their order."""
    query = parse_arpa((trained / "3gram.arpa").read_bytes(), "3gram.arpa")
    sentences = english[:300]
    one_batch = query.totals(sentences, end=True)
    expected = [query.totals([sentence], end=True)[0] for sentence in sentences]
    monkeypatch.setattr("contstim.models.ngram.tables._SENTENCES_AT_ONCE", 7)
    np.testing.assert_array_equal(query.totals(sentences, end=True), expected)
    np.testing.assert_array_equal(one_batch, expected)


def test_binary_file_without_kenlm_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(
        ModelError, match=r"pip install 'contstim\[kenlm\]'.*use the original ARPA file"
    ):
        NgramModel(HERE / "tiny.trie.binary")
