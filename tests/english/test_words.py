"""What verbs take in sentences, read by hand, and new verbs that take the same."""

from collections import defaultdict

import pytest

from contstim.english import generate
from contstim.english.words import english_tags, verb_uses
from contstim.optimization.search.constraints import Candidates, same_tags
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

TABLE = english_tags()


def uses_of(sentence: Sentence) -> dict[int, str]:
    return verb_uses(sentence.words, TABLE.tags(sentence), TABLE.main_kind)


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("The boy walked slowly to the old school.", "to"),
        ("He told me that she had slept well.", "somebody nothing"),
        ("The book my wife wrote was sold.", "something passive"),
        ("The glass that Clara bought is nice.", "something"),
        ("The man who left was sick.", "nothing"),
        ("I think they need it.", "clause something"),
        ("The man knows their daughter is funny.", "clause"),
        ("She visited my uncle last week.", "somebody"),
        ("The women were talking yesterday morning.", "nothing"),
        ("He brought his friend a cookie.", "two"),
        ("We sent students money.", "two"),
        ("The man lent his book to me.", "something-to"),
        ("They asked their friend to call him.", "object-infinitive somebody"),
        ("She wanted to sleep.", "infinitive nothing"),
        ("The soup seemed cold.", "adjective"),
        ("They kept talking.", "ing nothing"),
        ("Did she fix the table in the garage?", "something"),
        ("It is cold.", ""),
    ],
)
def test_what_verbs_take(text: str, uses: str) -> None:
    """Witness: by hand."""
    assert " ".join(uses_of(Sentence.parse(text)).values()) == uses


def test_new_verbs_take_what_the_sentence_has() -> None:
    """Witness: the kinds of each allowed word as rows of the table, for 30 sentences."""
    rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in TABLE.words:
        rows[row.word, row.tag] += row.kinds.split()
    verbs = {row.word for row in TABLE.words if row.tag.startswith("VV") and row.count > 20}
    words, n_new = Vocabulary((), tuple(sorted(verbs))), 0
    for sentence in generate(30, seed=5):
        candidates = Candidates(words, sentence, (same_tags(sentence, TABLE, verb_uses),))
        for index, use in uses_of(sentence).items():
            tag = TABLE.tags(sentence)[index]
            allowed = candidates.allowed(sentence, index)
            for word in (word for word, yes in zip(words.at(index), allowed, strict=True) if yes):
                assert use in rows[word, tag], (sentence.text, word)
                n_new += 1
            assert use != "two" or not allowed.any()
    assert n_new > 300
