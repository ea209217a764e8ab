"""Each constraint by hand, and all constraints on the results of searches."""

from __future__ import annotations

from itertools import compress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import indefinite_article
from contstim.errors import InputError, VocabularyError
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.search.constraints import (
    Candidates,
    Constraint,
    articles,
    capitals,
    fixed,
    max_changes,
    no_repeats,
    only_words,
    same_frequency,
    same_length,
    same_tags,
    without_words,
)
from contstim.optimization.search.settings import SearchSettings, SentenceSearchSettings
from contstim.optimization.search.synthesize import synthesize
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import Sentence
from contstim.words.tags import TaggedWord, TagTable
from contstim.words.vocabulary import Vocabulary
from tests.optimization.search.toys import NATURAL, WORDS, TableModel

DOG = Sentence.parse("The dog sees a cat")
ANIMALS = Vocabulary(("The", "Two"), ("cat", "dog", "horse", "in", "sees", "a", "the", "Cat", "ox"))


@pytest.mark.parametrize(
    ("constraint", "text", "position", "expected"),
    [
        (no_repeats(), "The dog sees a cat", 1, "horse in ox"),
        (no_repeats({"the", "in"}), "The dog sees a cat", 4, "horse in the Cat ox"),
        (fixed({1}), "The dog sees a cat", 1, ""),
        (fixed({1}), "The dog sees a cat", 4, "dog horse in sees a the Cat ox"),
        (only_words({"cat", "ox"}), "The dog sees a cat", 1, "cat Cat ox"),
        (without_words({"cat", "ox"}), "The dog sees a cat", 1, "horse in sees a the"),
        (same_length(), "The dog sees a cat", 1, "cat the Cat"),
        (same_length(1), "The dog sees a cat", 1, "cat in sees the Cat ox"),
        (same_length(), "The horse sees a cat", 4, "a"),
        (max_changes(1), "The dog sees a cat", 1, "cat horse in sees a the Cat ox"),
        (max_changes(1), "The ox sees a cat", 1, "cat dog horse in sees a the Cat"),
        (max_changes(1), "The ox sees a cat", 4, ""),
        (max_changes(2), "The ox sees a horse", 4, "cat dog in sees a the Cat ox"),
        (max_changes(1), "The ox sees a horse", 4, "cat"),
    ],
)
def test_constraints_allow_the_expected_words(
    constraint: Constraint, text: str, position: int, expected: str
) -> None:
    """Witness: by hand; `Cat` and `cat` are one word, and a word does not replace itself."""
    candidates = Candidates(ANIMALS, DOG, (constraint,))
    allowed = candidates.allowed(Sentence.parse(text), position)
    assert {*compress(ANIMALS.at(position), allowed)} == {*expected.split()}


@pytest.mark.parametrize(
    ("constraint", "text", "fault"),
    [
        (no_repeats(), "The dog sees the cat", "'the' as word 4"),
        (no_repeats({"the"}), "The dog sees the cat", ""),
        (fixed({1, 4}), "The dog sees a horse", "fixed does not allow 'horse'"),
        (fixed({1}), "The dog sees a horse", ""),
        (only_words({"ox"}), "The ox sees a horse", "'horse' as word 5"),
        (without_words({"ox"}), "The ox sees a horse", "'ox' as word 2"),
        (same_length(1), "The dog sees a horse", "'horse' as word 5"),
        (same_length(2), "The dog sees a horse", ""),
        (max_changes(1), "The ox sees a horse", "'ox' as word 2"),
        (max_changes(2), "The ox sees a horse", ""),
        (max_changes(1), "The owl sees a cat", "outside the vocabulary: owl"),
    ],
)
def test_violations_are_named(constraint: Constraint, text: str, fault: str) -> None:
    """Witness: by hand."""
    violations = Candidates(ANIMALS, DOG, (constraint,)).broken(Sentence.parse(text))
    assert (fault in violations[0]) if fault else not violations


@pytest.mark.parametrize(
    ("constraints", "fixed_positions", "limit", "letters"),
    [
        ((fixed({0, 2}),), {0, 2}, 4, None),
        ((max_changes(2),), set(), 2, None),
        ((only_words("bcdefgh"), fixed({0})), {0}, 4, set("bcdefgh")),
        ((without_words("xyzuvw"),), set(), 4, set("abcdefghijklmnopqrst")),
        ((max_changes(1), without_words("e")), set(), 1, set("abcdfghijklmnopqrstuvwxyz")),
    ],
)
def test_search_results_satisfy_every_constraint(
    constraints: tuple[Constraint, ...],
    fixed_positions: set[int],
    limit: int,
    letters: set[str] | None,
) -> None:
    """Property of the text of the result."""
    n_changed = 0
    for seed in range(5):
        pair = TableModel(seed), TableModel(seed + 50)
        synthetic = synthesize(*pair, NATURAL, WORDS, constraints=constraints).synthetic
        pairs = enumerate(zip(NATURAL.words, synthetic.words, strict=True))
        new_words = {index: word.lower() for index, (old, word) in pairs if word != old}
        assert not fixed_positions & new_words.keys()
        assert len(new_words) <= limit
        assert letters is None or {*new_words.values()} <= letters
        n_changed += synthetic != NATURAL
    assert n_changed


def test_a_position_without_admissible_words_is_named() -> None:
    pair = TableModel(1), TableModel(2)
    short = Vocabulary(("A",), WORDS.inner)
    with pytest.raises(VocabularyError, match=r"'A', word 1 of 'A b c d\.'"):
        synthesize(*pair, NATURAL, short)
    synthesis = synthesize(*pair, NATURAL, short, constraints=[fixed({0})])
    assert synthesis.synthetic.words[0] == "A"
    with pytest.raises(VocabularyError, match="All positions"):
        synthesize(*pair, NATURAL, WORDS, constraints=[fixed(range(4))])


def test_repeated_words_of_the_natural_sentence_are_allowed() -> None:
    natural = Sentence(("A", "b", "c", "b"))
    for seed in range(5):
        synthetic = synthesize(TableModel(seed), TableModel(seed + 50), natural, WORDS).synthetic
        words = [w.lower() for w in synthetic.words if w.lower() != "a"]
        assert len(set(words)) == len(words) or synthetic.words[1] == synthetic.words[3] == "b"


def test_possible_words_are_checked_like_the_whole_vocabulary() -> None:
    """Witness: the same check of the whole vocabulary."""
    rules = (no_repeats(), without_words({"ox"}), same_length(1), only_words({"cat", "horse"}))
    candidates = Candidates(ANIMALS, DOG, rules)
    changed = DOG.replace(1, "cat")
    for sentence, index in ((DOG, 1), (DOG, 4), (changed, 2), (changed, 4)):
        mask = candidates.allowed_now(sentence, index)
        assert len(mask) == len(candidates.possible[index])
        expected = [*compress(ANIMALS.inner, candidates.allowed(sentence, index))]
        assert [*compress(candidates.possible[index], mask)] == expected
    assert candidates.possible[4] == ("horse", "Cat")  # not the current word


@given(st.data())
def test_lasting_constraints_ignore_the_current_sentence(data: st.DataObject) -> None:
    """Property of all constraints of a study: their mask is that of the natural sentence."""
    natural = Sentence.parse("Ann often sees an old dog")
    vocabulary = Vocabulary(
        ("Ann", "The", "the"), ("often", "sees", "sleeps", "an", "a", "old", "new", "dog", "The")
    )
    settings = SentenceSearchSettings(
        fix=("old",), allow=("dog", "new"), exclude=("often",), max_changes=1
    )
    rule = capitals(vocabulary)
    assert rule is not None
    rules = (*settings.constraints(natural, every_fix=True), rule, no_repeats())
    assert {rule.name for rule in rules if rule.lasting} == {
        *("fixed", "only_words", "without_words", "same_tags", "capitals")
    }
    index = data.draw(st.integers(0, len(natural) - 1))
    current = Sentence(tuple(data.draw(st.sampled_from(vocabulary.inner)) for _ in natural.words))
    words = vocabulary.at(index)
    for rule in (rule for rule in rules if rule.lasting):
        mask, expected = (rule.allowed(natural, s, index, words) for s in (current, natural))
        np.testing.assert_array_equal(mask, expected)


def test_capitalized_words_are_allowed_by_position() -> None:
    """In a text with headings, `The` and `the` both occur inside sentences; a name has one form."""
    words = Vocabulary(("The", "the", "Ann"), ("the", "The", "THE", "Ann", "iPhone", "I"))
    rule = capitals(words)
    assert rule is not None
    natural = Sentence(("Ann", "saw", "The", "the"))
    inside = rule.allowed(natural, natural, 1, words.inner)
    assert inside.tolist() == [True, False, False, True, True, True]
    # The natural sentence's word is always allowed
    assert rule.allowed(natural, natural, 2, words.inner).tolist()[1]
    assert rule.allowed(natural, natural, 0, words.initial).tolist() == [True, False, True]
    natural = Sentence(("Ann", "the"))
    candidates = Candidates(words, natural, (rule,))
    assert not candidates.broken(natural)
    assert "'The' as word 2" in candidates.broken(natural.replace(1, "The"))[0]
    assert "'the' as word 1" in candidates.broken(natural.replace(0, "the"))[0]


def make_tag_table(text: str) -> TagTable:
    """Return a table of words and tags, each with a count of 1."""
    pairs = [entry.split("/") for entry in text.split()]
    return TagTable("small", tuple(TaggedWord(word, tag, 1) for word, tag in pairs))


def allowed_words(constraint: Constraint, words: Vocabulary, text: str, position: int) -> set[str]:
    sentence = Sentence.parse(text)
    mask = Candidates(words, sentence, (constraint,)).allowed(sentence, position)
    return {*compress(words.at(position), mask)}


def test_new_words_keep_the_part_of_speech() -> None:
    """Witness: by hand; `quickly` is not listed, `a` is the only article, `less` is rarely N."""
    words = Vocabulary(("The", "She"), tuple("dog sees cats a red runs half less quickly".split()))
    table = make_tag_table(
        "the/D dog/N cats/N sees/V runs/V runs/N a/D red/A half/N half/V less/N less/V less/V"
    )
    text = "The dog sees a cats quickly"
    constraint = same_tags(Sentence.parse(text), table)
    allowed = [allowed_words(constraint, words, text, position) for position in range(6)]
    assert [" ".join(sorted(words)) for words in allowed] == [
        *("", "cats half runs", "half less runs", "", "dog half runs", "")
    ]
    assert Candidates(words, Sentence.parse(text), (constraint,)).blocked == [0, 3, 5]


def test_new_words_have_the_main_kind_of_the_old_word() -> None:
    """Witness: by hand; `ate` is (in)transitive, `gave` has two objects, `slept` has none."""
    kinds = {"man": "person", "boy": "person", "day": "time", "house": "", "tree": ""}
    verbs = {"ate": "something nothing", "gave": "something somebody", "slept": "nothing"}
    rows = [(word, "N", kind) for word, kind in kinds.items()]
    rows += [(word, "V", kind) for word, kind in verbs.items()]
    table = TagTable("small", tuple(TaggedWord(w, t, 1, kinds=k) for w, t, k in rows))
    words = Vocabulary((), (*kinds, *verbs))
    for word, expected in (
        *(("man", {"boy"}), ("day", set()), ("house", {"tree"})),
        *(("ate", {"gave"}), ("gave", {"ate"}), ("slept", {"ate"})),
    ):
        constraint = same_tags(Sentence.parse(f"x {word}"), table)
        assert allowed_words(constraint, words, f"x {word}", 1) == expected, word


def test_articles_match_the_following_sound() -> None:
    """Witness: by hand."""
    words = Vocabulary(("A", "An"), ("a", "an", "the", "hour", "egg", "dog", "user", "has"))
    constraint, text = articles(indefinite_article), "A dog has an egg"
    assert allowed_words(constraint, words, text, 1) == {"the", "user", "has"}
    assert allowed_words(constraint, words, text, 4) == {"a", "an", "hour"}
    assert allowed_words(constraint, words, text, 0) == set()
    expected = {"an", "hour", "egg", "dog", "user", "has"}
    assert allowed_words(constraint, words, "A dog has the egg", 3) == expected


def test_tags_of_another_language_are_refused(tmp_path: Path) -> None:
    words = Vocabulary(("Der", "Die"), ("Hund", "Katze", "sieht", "xqz"))
    natural = Sentence.parse("Der Hund sieht Katze")
    with pytest.raises(InputError, match=r"of the 6 words .* Set `tags` to a table"):
        SearchSettings().check_words(words)
    table = tmp_path / "tags.csv"
    table.write_text("word,tag,count\nder,D,1\nHund,N,1\nKatze,N,1\n", encoding="utf-8")
    settings = SearchSettings(tags=str(table), same_frequency=9.0)
    settings.check_words(words)
    key = SearchQuestion(tags=str(table)).key
    constraints = settings.constraints(natural, every_fix=False)
    assert Candidates(words, natural, constraints).blocked == [0, 2]
    names = [c.name for c in SearchSettings().constraints(DOG, every_fix=True)]
    assert names == ["same_length", "same_frequency", "same_tags", "articles"]
    table.write_text("word,tag,count\nder,D,2\n", encoding="utf-8")
    assert SearchQuestion(tags=str(table)).key != key


@given(st.data())
def test_same_frequency_keeps_the_mean_of_all_words(data: st.DataObject) -> None:
    """Witness: the mean Zipf frequency of each whole sentence."""
    counts = data.draw(st.fixed_dictionaries(dict.fromkeys("abcdef", st.integers(0, 9_999))))
    frequencies, margin = WordFrequencies(counts), data.draw(st.sampled_from([0.0, 0.1, 0.5]))
    words = Vocabulary((), tuple("abcdef"))
    natural, sentence = (
        Sentence(tuple(data.draw(st.lists(st.sampled_from("abcdef"), min_size=3, max_size=3))))
        for _ in range(2)
    )
    allowed = same_frequency(frequencies, margin).allowed(natural, sentence, 1, words.inner)
    mean = frequencies.mean_zipf(natural)
    for word, flag in zip(words.inner, allowed, strict=True):
        difference = abs(frequencies.mean_zipf(sentence.replace(1, word)) - mean)
        assert flag == (difference <= margin) or abs(difference - margin) < 1e-6


def test_fixed_words_apply_where_a_sentence_has_them() -> None:
    """Witness: the positions, counted by hand."""
    natural = Sentence.parse("The 2 men saw 2 dogs")
    for fix, positions in (("2", {1, 4}), ("3", {3}), ("DOGS", {5}), ("cats", set()), ("6", set())):
        constraints = SearchSettings(frame="none", fix=(fix,)).constraints(natural, every_fix=False)
        assert [constraint.fixed for constraint in constraints] == [positions] * bool(positions)
    with pytest.raises(InputError, match=r"fix: 'The 2 men saw 2 dogs\.' has no word 'cats'"):
        SearchSettings(fix=("cats",)).constraints(natural, every_fix=True)
    with pytest.raises(InputError, match="1 or more, not 0"):
        SearchSettings(max_changes=0)
    with pytest.raises(InputError, match="must be 0 or more, not -1"):
        SearchSettings(same_length=-1)
