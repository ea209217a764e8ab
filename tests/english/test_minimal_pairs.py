"""The built-in paradigms against witnesses that do not use templates."""

import difflib
import re
from collections import defaultdict
from itertools import chain

import pytest

from contstim.english.minimal_pairs import LabelledPair, generate_pairs
from contstim.english.paradigm import shipped_paradigms
from contstim.words.sentence import Sentence
from tests.english.recognition import derives

PER_PARADIGM = 2
PHENOMENA = {
    *("anaphor_agreement", "argument_structure", "binding", "control_raising"),
    *("determiner_noun_agreement", "filler_gap_dependency", "irregular_forms", "island_effects"),
    *("npi_licensing", "quantifiers", "subject_verb_agreement"),
}
# Paradigms whose good sentences are all derived by the embedded grammar
COVERED = {
    *("anaphor_number", "clause_after_verb", "count_and_mass", "ditransitive", "do_number"),
    *("any_under_negation", "ever_in_questions", "ever_needs_a_licensor", "have_number"),
    *("existential_there_number", "infinitive_after_verb", "left_branch_island", "past_tense"),
    *("reflexive_is_no_subject", "verb_number", "weak_quantifier_after_there"),
}
REFLEXIVES = r"(my|your|him|her|it)self|(our|your|them)selves"
BE = r"(am|is|are|was|were)(n't)?"
# Words that may differ between the two sentences
ALLOWED_DIFFERENCES = {
    "anaphor_agreement": REFLEXIVES,
    "determiner_number": "this|that|these|those",
    "be_number": BE,
    "have_number": "has|have",
    "do_number": "(do|does)(n't)?",
    "ever_needs_a_licensor": "ever|never",
}
Pairs = dict[str, list[LabelledPair]]
LICENSORS = {"not", "never", "only", "no", "nobody", "yet?"}


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    pairs_by_uid: Pairs = defaultdict(list)
    for pair in generate_pairs(PER_PARADIGM, seed=3):
        pairs_by_uid[pair.UID].append(pair)
    return pairs_by_uid


def _words(text: str) -> list[str]:
    return list(Sentence.parse(text).words)


def test_57_paradigms_cover_11_phenomena() -> None:
    """External witness: the names of BLiMP's phenomena (Warstadt et al. 2020, Table 4)."""
    paradigms = shipped_paradigms()
    assert len(paradigms) == len({paradigm.uid for paradigm in paradigms}) == 57
    assert {paradigm.phenomenon for paradigm in paradigms} == PHENOMENA
    assert all(len(paradigm.versions) >= 1 for paradigm in paradigms)


def test_grammar_derives_good_sentences_and_no_bad_ones(pairs: Pairs) -> None:
    """External witness: a recogniser of the grammar that shares no code with sampling."""
    for uid, paradigm_pairs in pairs.items():
        for pair in paradigm_pairs:
            assert not derives(Sentence.parse(pair.sentence_bad)), pair.sentence_bad
            if uid in COVERED:
                assert derives(Sentence.parse(pair.sentence_good)), pair.sentence_good


@pytest.mark.parametrize("name", ALLOWED_DIFFERENCES)
def test_only_the_words_of_the_paradigm_differ(pairs: Pairs, name: str) -> None:
    """External witness: Python's difflib, and lists of English function words."""
    allowed = re.compile(ALLOWED_DIFFERENCES[name])
    all_pairs = chain.from_iterable(pairs.values())
    relevant_pairs = [p for p in all_pairs if name in (p.UID, p.linguistics_term)]
    assert relevant_pairs
    for pair in relevant_pairs:
        good, bad = _words(pair.sentence_good), _words(pair.sentence_bad)
        assert len(good) == len(bad)
        for tag, i, j, k, m in difflib.SequenceMatcher(None, good, bad).get_opcodes():
            if tag != "equal":
                assert all(map(allowed.fullmatch, good[i:j] + bad[k:m])), pair


def test_moved_words_are_the_same_words(pairs: Pairs) -> None:
    """External witness: sorting."""
    for uid in ("adjunct_island", "complex_np_island", "left_branch_island", "ever_in_questions"):
        for pair in pairs[uid]:
            texts = pair.sentence_good, pair.sentence_bad
            good, bad = (sorted(map(str.lower, _words(text))) for text in texts)
            assert good == bad
            assert pair.lexically_identical


def test_ever_lacks_a_licensor_only_in_bad_sentences(pairs: Pairs) -> None:
    """External witness: a list of English licensors of negative polarity items."""
    for uid in ("ever_needs_a_licensor", "ever_under_only", "ever_under_no"):
        for pair in pairs[uid]:
            texts = pair.sentence_good, pair.sentence_bad
            good, bad = ({word.lower() for word in _words(text)} for text in texts)
            assert good & LICENSORS
            assert "ever" in bad
            assert not bad & LICENSORS


def test_sentences_begin_with_their_prefixes_and_words(pairs: Pairs) -> None:
    """External witness: BLiMP's definition of its two prefix methods (section 4.2)."""
    methods = set()
    for pair in chain.from_iterable(pairs.values()):
        good, bad = f"{pair.sentence_good[:-1]} ", f"{pair.sentence_bad[:-1]} "
        if pair.one_prefix:
            prefix, word_good, word_bad = pair.one_prefix
            assert good.startswith(f"{prefix} {word_good} ")
            assert bad.startswith(f"{prefix} {word_bad} ")
            assert word_good != word_bad
        if pair.two_prefix:
            prefix_good, prefix_bad, word = pair.two_prefix
            assert good.startswith(f"{prefix_good} {word} ")
            assert bad.startswith(f"{prefix_bad} {word} ")
            assert prefix_good != prefix_bad
        methods.add((bool(pair.one_prefix), bool(pair.two_prefix)))
    assert methods == {(True, False), (False, True), (False, False)}


def test_pairs_are_numbered_and_distinct(pairs: Pairs) -> None:
    for paradigm_pairs in pairs.values():
        assert [pair.pairID for pair in paradigm_pairs] == [str(i) for i in range(PER_PARADIGM)]
        texts = {(pair.sentence_good, pair.sentence_bad) for pair in paradigm_pairs}
        assert len(texts) == PER_PARADIGM
        assert all(good != bad for good, bad in texts)


def test_pairs_depend_only_on_the_seed_and_the_paradigm(pairs: Pairs) -> None:
    (paradigm,) = (p for p in shipped_paradigms() if p.uid == "adjunct_island")
    new_pairs = generate_pairs(PER_PARADIGM, seed=3, paradigms=[paradigm])
    assert new_pairs == pairs["adjunct_island"]
    assert generate_pairs(PER_PARADIGM, seed=4, paradigms=[paradigm]) != new_pairs
