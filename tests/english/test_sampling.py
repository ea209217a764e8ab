"""What a stream of sentences promises: distinct, repeatable, of the wanted length, varied."""

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
    """The categories of the words: two sentences of one skeleton are of one pattern."""
    return tuple(entry.category for entry in derivation.entries())


def test_same_seed_same_sentences() -> None:
    assert generate(300, seed=5) == generate(300, seed=5)
    assert generate(300, seed=5) != generate(300, seed=6)


def test_longer_list_begins_like_the_shorter() -> None:
    assert generate(400, seed=5)[:150] == generate(150, seed=5)


def test_sentences_are_distinct() -> None:
    """Outside witness: their texts in a set."""
    assert len({sentence.text for sentence in generate(2000, seed=2)}) == 2000


@settings(max_examples=examples(10))
@given(words=st.integers(3, 16), seed=st.integers(0, 2**32))
def test_exact_number_of_words(words: int, seed: int) -> None:
    """Outside witness: the spaces in the text."""
    assert {s.text.count(" ") + 1 for s in generate(5, seed=seed, words=words)} == {words}


def test_lengths_are_those_of_everyday_sentences() -> None:
    lengths = [len(sentence) for sentence in generate(2000, seed=3)]
    assert min(lengths) >= 3
    assert max(lengths) <= 16
    assert 7.5 < sum(lengths) / len(lengths) < 8.7
    assert lengths.count(8) / len(lengths) >= 0.12


def test_more_than_30000_sentences_of_eight_words() -> None:
    """Outside witness: the birthday problem.

    If m draws bring r pairs of equal sentences, there are at least about m (m - 1) / 2 r sentences,
    and more where some are likelier than others.
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
    """Outside witness: the set of forms, and a pattern for plain words."""
    for sentence in generate(1500, seed=9):
        first, *rest = sentence.words
        assert first[0].isupper()
        assert sentence.end in (".", "?")
        assert first in lexicon().forms or first[0].lower() + first[1:] in lexicon().forms
        assert set(rest) <= lexicon().forms
        assert all(re.fullmatch(r"[A-Za-zé]+('[a-z]+)?", word) for word in sentence.words)


def test_article_before_every_word() -> None:
    """Outside witness: vowel letters, and the exceptions written by hand."""
    odd = {"hour", "honest", "university", "uniform", "uniforms", "useful", "used"}
    for sentence in generate(1500, seed=4):
        lowered = [word.lower() for word in sentence.words]
        for article, word in itertools.pairwise(lowered):
            if article in ("a", "an") and word not in odd:
                assert article == ("an" if word[0] in "aeiou" else "a"), sentence


def test_times_fit_tenses() -> None:
    """Outside witness: adverbs of past and future never meet."""
    for sentence in generate(1500, seed=11):
        words = {word.lower() for word in sentence.words}
        assert not (words & PAST and words & FUTURE), sentence


def test_one_question_in_five_at_most() -> None:
    questions = sum(sentence.end == "?" for sentence in generate(2000, seed=12))
    assert 0.05 < questions / 2000 <= 0.2


def test_no_pattern_rules(derivations: list[Derivation]) -> None:
    """Outside witness: counts of part-of-speech skeletons, and of top-level constructions."""
    skeletons = collections.Counter(map(skeleton, derivations))
    assert skeletons.most_common(1)[0][1] <= 0.05 * len(derivations)
    tops = collections.Counter(
        tuple(child.category for child in derivation.children[0].children)
        for derivation in derivations
    )
    assert len(tops) > 25
    rng = random.Random(1)
    hundred = collections.Counter(skeleton(sample_tree(rng)) for _ in range(100))
    assert hundred.most_common(1)[0][1] <= 5


def test_no_content_word_comes_twice(derivations: list[Derivation]) -> None:
    for derivation in derivations:
        names = [e.lemma for e in derivation.entries() if e.category in ("N", "NAME", "ADJ")]
        assert len(set(names)) == len(names)


def test_documented_sentences_are_true() -> None:
    """Outside witness: the list in the documentation, written once.

    Hash seeds differ from run to run, so this also shows that nothing depends on them.
    """
    section = DOCUMENT.read_text(encoding="utf-8").split("## Ten sentences")[1]
    listed = re.findall(r"^\d+\. (.+)$", section, flags=re.MULTILINE)
    assert listed == [sentence.text for sentence in generate(10, seed=1)]
