"""Generated sentences are distinct, repeatable, varied, and of the requested length."""

import collections
import itertools
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.english import Derivation, generate, lexicon, sample_tree
from contstim.errors import InputError
from tests.examples import examples

DOCUMENT = Path(__file__).parents[2] / "docs" / "english.md"
PAST = {"yesterday", "ago"}
FUTURE = {"tomorrow", "will", "tonight"}


def skeleton(derivation: Derivation) -> tuple[str, ...]:
    """Return the categories of the words."""
    return tuple(entry.category for entry in derivation.entries())


def test_same_seed_gives_the_same_sentences() -> None:
    assert generate(400, seed=5)[:150] == generate(150, seed=5)
    assert generate(150, seed=5) != generate(150, seed=6)


@settings(max_examples=examples(10))
@given(words=st.integers(3, 16), seed=st.integers(0, 2**32))
def test_exact_number_of_words(words: int, seed: int) -> None:
    """External witness: the spaces in the text."""
    assert {s.text.count(" ") + 1 for s in generate(5, seed=seed, words=words)} == {words}


def test_sentences_are_distinct_and_as_long_as_everyday_ones() -> None:
    """External witness: a set of their texts."""
    sentences = generate(2000, seed=3)
    assert len({sentence.text for sentence in sentences}) == 2000
    lengths = [len(sentence) for sentence in sentences]
    assert min(lengths) >= 3
    assert max(lengths) <= 16
    assert 7.5 < sum(lengths) / len(lengths) < 8.7
    assert lengths.count(8) / len(lengths) >= 0.12


def test_more_than_30000_sentences_of_eight_words() -> None:
    """External witness: the birthday problem.

    If m draws have r pairs of equal sentences, there are at least about m (m - 1) / 2 r sentences,
    and more if some are more frequent than others.
    """
    rng = random.Random(8)
    draws = collections.Counter(sample_tree(rng, words=8).sentence for _ in range(3000))
    pairs = sum(count * (count - 1) // 2 for count in draws.values())
    assert 3000 * 2999 / 2 / max(pairs, 1) > 30_000


@pytest.mark.parametrize(("n", "words"), [(0, 8), (-3, 8), (1, 0), (1, 2), (1, 17)])
def test_impossible_numbers_are_refused(n: int, words: int) -> None:
    with pytest.raises(InputError, match="must be at least 1" if n < 1 else "from 3 to 16"):
        generate(n, seed=0, words=words)


def test_too_many_sentences_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contstim.english.sampling.PATIENCE", 1)
    with pytest.raises(InputError, match="distinct sentences of 3 words, but 5000 were requested"):
        generate(5000, seed=0, words=3)


def test_words_come_from_the_lexicon_without_punctuation() -> None:
    """External witness: the set of forms, and a pattern for plain words."""
    for sentence in generate(1500, seed=9):
        first_word, *other_words = sentence.words
        assert first_word[0].isupper()
        assert sentence.end in (".", "?")
        assert {first_word, first_word[0].lower() + first_word[1:]} & lexicon().forms
        assert set(other_words) <= lexicon().forms
        assert all(re.fullmatch(r"[A-Za-zé]+('[a-z]+)?", word) for word in sentence.words)


def test_article_agrees_with_the_next_word() -> None:
    """External witness: vowel letters, and exceptions written by hand."""
    exceptions = {"hour", "honest", "university", "uniform", "uniforms", "useful", "used"}
    for sentence in generate(1500, seed=4):
        lowered = [word.lower() for word in sentence.words]
        for article, word in itertools.pairwise(lowered):
            if article in ("a", "an") and word not in exceptions:
                assert article == ("an" if word[0] in "aeiou" else "a"), sentence


def test_times_fit_tenses_and_at_most_a_fifth_are_questions() -> None:
    """External witness: adverbs of past and future never occur together."""
    sentences = generate(2000, seed=12)
    for sentence in sentences:
        words = {word.lower() for word in sentence.words}
        assert not (words & PAST and words & FUTURE), sentence
    assert 0.05 < sum(sentence.end == "?" for sentence in sentences) / 2000 <= 0.2


def test_no_pattern_dominates(derivations: list[Derivation]) -> None:
    """External witness: counts of part-of-speech skeletons and of top-level constructions."""
    skeletons = collections.Counter(map(skeleton, derivations))
    assert skeletons.most_common(1)[0][1] <= 0.05 * len(derivations)
    constructions = collections.Counter(
        tuple(child.category for child in derivation.children[0].children)
        for derivation in derivations
    )
    assert len(constructions) > 25
    rng = random.Random(1)
    small_sample = collections.Counter(skeleton(sample_tree(rng)) for _ in range(100))
    assert small_sample.most_common(1)[0][1] <= 5


def test_no_content_word_is_repeated(derivations: list[Derivation]) -> None:
    for derivation in derivations:
        names = [e.lemma for e in derivation.entries() if e.category in ("N", "NAME", "ADJ")]
        assert len(set(names)) == len(names)


def test_documented_sentences_are_generated() -> None:
    """External witness: the list in the documentation, which was written once.

    Hash seeds differ between runs, so this also shows that the result does not depend on them.
    """
    section = DOCUMENT.read_text(encoding="utf-8").split("## Ten sentences")[1]
    documented = re.findall(r"^\d+\. (.+)$", section, flags=re.MULTILINE)
    assert documented == [sentence.text for sentence in generate(10, seed=1)]
