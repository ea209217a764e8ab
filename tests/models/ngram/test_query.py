"""Scores from tables: equal to KenLM's bit for bit, to the recursion by hand, and never a crash."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import ModelError
from contstim.models.ngram.adapter import KenlmQuery, NgramModel
from contstim.models.ngram.arpa import parse_arpa
from contstim.models.ngram.tables import NgramTables
from contstim.words.sentence import Sentence

Queries = list[tuple[NgramTables, KenlmQuery]]
HERE = Path(__file__).parent
# Words of the models, unknown ones, and boundaries, which are unknown words within a text
WORDS = ("The", "the", "old", "dog", "man", "of", "saw", "house", "zyzzyva", "<s>", "</s>", "<unk>")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(tuple).map(Sentence)


def pruned(path: Path, folder: Path, share: float, seed: int) -> Path:
    """The ARPA file without a share of its n-grams of which no longer n-gram is made."""
    rng = np.random.default_rng(seed)
    sections = path.read_text().split("\n\n")
    kept: set[tuple[str, ...]] = set()
    for number in reversed(range(2, len(sections) - 1)):
        lines = []
        for line in sections[number].splitlines()[1:]:
            words = tuple(line.split("\t")[1].split(" "))
            if words in kept or rng.random() > share:
                lines.append(line)
                kept |= {words[:-1], words[1:]}
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
    """From tables and by KenLM: whole models of orders 1 to 4, and some with n-grams taken out."""
    pytest.importorskip("kenlm")
    folder = tmp_path_factory.mktemp("pruned")
    paths = [trained / f"{order}gram.arpa" for order in range(1, 5)]
    paths += [
        pruned(trained / f"{order}gram.arpa", folder, share, seed)
        for seed, (order, share) in enumerate(product((2, 3, 4), (0.5, 0.95)))
    ]
    return [(parse_arpa(path.read_bytes(), path), KenlmQuery(path)) for path in paths]


@given(st.integers(0, 9), st.lists(SENTENCES, max_size=12), st.data())
def test_every_probability_is_kenlms_bit_for_bit(
    queries: Queries, number: int, sentences: list[Sentence], data: st.DataObject
) -> None:
    """Witness: the kenlm package, on whole models and on models without many of their n-grams."""
    ours, theirs = queries[number]
    for sentence in sentences:
        assert ours.log10_probs(sentence) == theirs.log10_probs(sentence)
    starts = [data.draw(st.integers(0, len(sentence))) for sentence in sentences]
    for of, end in ((None, True), (None, False), (starts, False)):
        np.testing.assert_array_equal(
            ours.totals(sentences, of, end=end), theirs.totals(sentences, of, end=end)
        )


def test_both_ways_hold_the_same_words(queries: Queries) -> None:
    """Witness: the kenlm package."""
    for ours, theirs in queries:
        assert [ours.holds(word) for word in WORDS[:-3]] == [theirs.holds(w) for w in WORDS[:-3]]


def test_a_bigram_model_by_hand() -> None:
    """Witness: the numbers of `tiny.arpa`, added up by hand.

    The model has `<s> The`, `The dog` and `dog sees`, and not `sees dog`: there it backs off with
    the weight of `sees`, -.30103, to `dog`, -1.0704776.
    """
    query = parse_arpa((HERE / "tiny.arpa").read_bytes(), "tiny.arpa")
    terms = query.log10_probs(Sentence.parse("The dog sees dog"))
    expected = [-0.56072056, -0.5338591, -0.5338591, -0.30103 - 1.0704776, -0.44046974]
    assert terms == pytest.approx(expected, abs=1e-6)
    assert query.totals([Sentence.parse("The dog sees dog")], end=True) == pytest.approx(
        [sum(expected)], abs=1e-6
    )


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


def test_weights_count_where_an_order_is_empty(tmp_path: Path) -> None:
    """Witnesses: KenLM's numbers for this file, added up by hand; every replacement one by one."""
    path = tmp_path / "empty.arpa"
    path.write_text(WEIGHTED.format(bigrams=0, lines=""))
    sentence = Sentence(("a", "a", "b"))
    assert parse_arpa(path.read_bytes(), path).log10_probs(sentence) == [-1.0, -0.75, -1.0, -1.125]
    model = NgramModel(path)
    fresh = model.log_probs([sentence.replace(1, word) for word in ("a", "b", "c")])
    np.testing.assert_array_equal(model.replacement_log_probs(sentence, 1, ("a", "b", "c")), fresh)
    assert model.order == 1


def test_weights_of_the_longest_n_grams_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.arpa"
    path.write_text(WEIGHTED.format(bigrams=1, lines="-0.3\t<s> a\t-0.7\n"))
    with pytest.raises(ModelError, match=r"line 13: the longest n-grams cannot have"):
        parse_arpa(path.read_bytes(), path)


def test_sentences_in_many_parts_are_scored_like_each_alone(
    trained: Path, english: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Property: which sentences are looked up together changes nothing, and order is kept."""
    query = parse_arpa((trained / "3gram.arpa").read_bytes(), "3gram.arpa")
    sentences = english[:300]
    together = query.totals(sentences, end=True)
    alone = [query.totals([sentence], end=True)[0] for sentence in sentences]
    monkeypatch.setattr("contstim.models.ngram.tables._MAX_BATCH_WORDS", 64)
    np.testing.assert_array_equal(query.totals(sentences, end=True), alone)
    np.testing.assert_array_equal(together, alone)


@pytest.mark.usefixtures("without_kenlm")
def test_a_binary_file_without_kenlm_names_the_extra() -> None:
    with pytest.raises(
        ModelError, match=r"pip install 'contstim\[kenlm\]'.*use the original ARPA file"
    ):
        NgramModel(HERE / "tiny.trie.binary")
