"""The paradigms that ship: what they make, against witnesses that know nothing of templates."""

import difflib
import re
from collections import defaultdict

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
# paradigms all of whose good sentences are sentences of the embedded grammar as it stands
COVERED = {
    *("anaphor_number", "clause_after_verb", "count_and_mass", "ditransitive", "do_number"),
    *("any_under_negation", "ever_in_questions", "ever_needs_a_licensor", "have_number"),
    *("existential_there_number", "infinitive_after_verb", "left_branch_island", "past_tense"),
    *("reflexive_is_no_subject", "verb_number", "weak_quantifier_after_there"),
}
REFLEXIVES = r"(my|your|him|her|it)self|(our|your|them)selves"
BE = r"(am|is|are|was|were)(n't)?"
# what may differ between the words of the two sentences
DIFFERENCE = {
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
    found: Pairs = defaultdict(list)
    for pair in generate_pairs(PER_PARADIGM, seed=3):
        found[pair.UID].append(pair)
    return found


def _words(text: str) -> list[str]:
    return list(Sentence.parse(text).words)


def test_there_are_fifty_seven_of_eleven_phenomena() -> None:
    """Outside witness: the names of BLiMP's phenomena (Warstadt et al. 2020, Table 4)."""
    shipped = shipped_paradigms()
    assert len(shipped) == len({one.uid for one in shipped}) == 57
    assert {one.phenomenon for one in shipped} == PHENOMENA
    assert all(len(one.versions) >= 1 for one in shipped)


def test_the_grammar_derives_the_good_sentences_and_never_a_bad_one(pairs: Pairs) -> None:
    """Outside witness: a recogniser of the grammar that shares nothing with sampling."""
    for uid, own in pairs.items():
        for pair in own:
            assert not derives(Sentence.parse(pair.sentence_bad)), pair.sentence_bad
            if uid in COVERED:
                assert derives(Sentence.parse(pair.sentence_good)), pair.sentence_good


@pytest.mark.parametrize("name", DIFFERENCE)
def test_only_the_words_of_the_paradigm_differ(pairs: Pairs, name: str) -> None:
    """Outside witness: Python's difflib, and lists of English function words."""
    allowed = re.compile(DIFFERENCE[name])
    concerned = [p for own in pairs.values() for p in own if name in (p.UID, p.linguistics_term)]
    assert concerned
    for pair in concerned:
        good, bad = _words(pair.sentence_good), _words(pair.sentence_bad)
        assert len(good) == len(bad)
        for tag, i, j, k, m in difflib.SequenceMatcher(None, good, bad).get_opcodes():
            if tag != "equal":
                assert all(map(allowed.fullmatch, good[i:j] + bad[k:m])), pair


def test_moved_words_are_the_same_words(pairs: Pairs) -> None:
    """Outside witness: sorting."""
    for uid in ("adjunct_island", "complex_np_island", "left_branch_island", "ever_in_questions"):
        for pair in pairs[uid]:
            both = pair.sentence_good, pair.sentence_bad
            good, bad = (sorted(map(str.lower, _words(text))) for text in both)
            assert good == bad
            assert pair.lexically_identical


def test_ever_stands_without_a_licensor_in_bad_sentences_only(pairs: Pairs) -> None:
    """Outside witness: a list of English licensors of negative polarity items."""
    for uid in ("ever_needs_a_licensor", "ever_under_only", "ever_under_no"):
        for pair in pairs[uid]:
            good, bad = (
                {w.lower() for w in _words(t)} for t in (pair.sentence_good, pair.sentence_bad)
            )
            assert good & LICENSORS
            assert "ever" in bad
            assert not bad & LICENSORS


def test_prefixes_and_words_are_the_beginnings_of_their_sentences(pairs: Pairs) -> None:
    """Outside witness: BLiMP's definition of its two prefix methods (section 4.2)."""
    methods = set()
    for pair in (pair for own in pairs.values() for pair in own):
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


def test_pairs_are_distinct_numbered_and_of_two_sentences(pairs: Pairs) -> None:
    for own in pairs.values():
        assert [pair.pairID for pair in own] == [str(i) for i in range(PER_PARADIGM)]
        assert len({(pair.sentence_good, pair.sentence_bad) for pair in own}) == PER_PARADIGM
        assert all(pair.sentence_good != pair.sentence_bad for pair in own)


def test_chance_is_the_seed_and_other_paradigms_change_nothing(pairs: Pairs) -> None:
    (one,) = (p for p in shipped_paradigms() if p.uid == "adjunct_island")
    alone = generate_pairs(PER_PARADIGM, seed=3, paradigms=[one])
    assert alone == pairs["adjunct_island"]
    assert generate_pairs(PER_PARADIGM, seed=4, paradigms=[one]) != alone
