import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import CorpusError, InputError
from contstim.models.ngram.tables import NgramTables
from contstim.models.ngram.training import FALLBACK_DISCOUNTS, DiscountWarning, estimate
from contstim.words.sentence import Sentence
from tests.examples import examples

Gram = tuple[str, ...]


def estimate_literally(
    sentences: Sequence[Sentence], order: int, discounts: Sequence[Sequence[float]]
) -> dict[Gram, float]:
    """Estimate interpolated modified Kneser-Ney word by word, as in Chen & Goodman (1998)."""
    padded = [("<s>", *s.words, "</s>") for s in sentences]
    words = {w for s in padded for w in s} | {"<unk>"}
    raw = [
        Counter(s[i : i + n] for s in padded for i in range(len(s) - n + 1))
        for n in range(1, order + 1)
    ]

    def adjusted_count(gram: Gram) -> int:
        if gram == ("<s>",):
            return 0
        if len(gram) == order or gram[0] == "<s>":
            return raw[len(gram) - 1][gram]
        return len({g[0] for g in raw[len(gram)] if g[1:] == gram})

    def probability(gram: Gram) -> float:
        n, context = len(gram), gram[:-1]
        siblings = [adjusted_count((*context, w)) for w in words]
        total = sum(siblings)
        lower = probability(gram[1:]) if n > 1 else 1 / (len(words) - 1)
        if not total:
            return lower
        discount_by_count = [0.0, *discounts[n - 1]]
        weight = sum(discount_by_count[min(a, 3)] for a in siblings) / total
        count = adjusted_count(gram)
        return (count - discount_by_count[min(count, 3)]) / total + weight * lower

    return {g: probability(g) for counter in raw for g in counter if g != ("<s>",)}


def read_probabilities(tables: NgramTables) -> dict[Gram, float]:
    probabilities_by_gram: dict[Gram, float] = {}
    grams: list[Gram] = [(w,) for w in tables.words]
    for order, table in enumerate(tables.orders, start=1):
        if order > 1:
            rows = np.arange(len(table.keys))
            grams = [
                (*grams[prefix], tables.words[word])
                for prefix, word in zip(
                    tables.prefix_of(order, rows), tables.word_of(order, rows), strict=True
                )
            ]
        probabilities_by_gram |= dict(
            zip(grams, (10.0 ** table.log10_prob.astype(float)).tolist(), strict=True)
        )
    return probabilities_by_gram


texts = st.lists(
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=6).map(
        lambda words: Sentence(tuple(words))
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(40))
@given(sentences=texts, order=st.integers(1, 4))
def test_estimates_equal_the_definition(sentences: list[Sentence], order: int) -> None:
    """Witness: the definition, one n-gram at a time in plain Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscountWarning)
        try:
            model = estimate(sentences, order)
        except CorpusError:
            assert max(map(len, sentences)) + 2 < order
            return
    ours = read_probabilities(model.tables)
    for gram, expected in estimate_literally(sentences, order, model.discounts).items():
        assert ours[gram] == pytest.approx(expected, rel=1e-5)


def test_discounts_follow_the_closed_form() -> None:
    """Witness: exact fractions from counts of counts, computed by hand for a unigram model."""
    counts = {1: 40, 2: 20, 3: 12, 4: 8}  # number of words by their count
    words = [f"w{k}_{i}" for k, n in counts.items() for i in range(n) for _ in range(k)]
    # </s> occurs once per sentence: fifty sentences keep it out of the counts of one to four.
    length = -(-len(words) // 50)
    sentences = [Sentence(tuple(words[i : i + length])) for i in range(0, len(words), length)]
    y = Fraction(40, 40 + 2 * 20)
    expected = (1 - 2 * y * 20 / 40, 2 - 3 * y * 12 / 20, 3 - 4 * y * 8 / 12)
    assert estimate(sentences, 1).discounts[0] == pytest.approx([float(e) for e in expected])


def test_small_text_gets_fixed_discounts_and_a_warning() -> None:
    with pytest.warns(DiscountWarning, match="too small to estimate 1-gram discounts"):
        model = estimate([Sentence.parse("a b c")], 1)
    assert model.discounts == (FALLBACK_DISCOUNTS,)


@pytest.mark.parametrize(
    ("texts", "order", "message"),
    [
        *((["a b c"], order, "from 1 to 6") for order in (0, 7, -1)),
        # KenLM reads <UNK> as <unk>, so a file with both would lack a unigram
        *(
            ([f"the {words} dog"] * 3, 2, "reserved")
            for words in ("<s>", "</s>", "<unk>", "<UNK>", "</S>", "<s> old </s>")
        ),
        ([], 2, "no sentences"),
        (["a"], 4, "long enough for order 4"),
    ],
)
def test_unusable_texts_and_orders_are_refused(texts: list[str], order: int, message: str) -> None:
    with pytest.raises((InputError, CorpusError), match=message):
        estimate([*map(Sentence.parse, texts)], order)


def test_end_marks_are_excluded_and_case_is_preserved() -> None:
    with pytest.warns(DiscountWarning):
        model = estimate([Sentence.parse("The cat?"), Sentence.parse("the cat!")], 1)
    assert model.tables.words[3:] == ("The", "cat", "the")
    assert model.words.initial == (1, 0, 1)
    assert model.words.inner == (0, 2, 0)
