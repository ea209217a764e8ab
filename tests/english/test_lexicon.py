"""The lexicon against hand-written lists of English, and complements of verbs by hand."""

from collections import defaultdict
from itertools import compress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english import generate, lexicon
from contstim.english.lexicon import add_ed, add_ing, add_s, read_lexicon
from contstim.english.words import english_tags, indefinite_article, verb_uses
from contstim.errors import InputError
from contstim.optimization.search.constraints import Candidates, same_tags
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

ARTICLES = [
    ("an", "apple orange umbrella idea egg old honest hour email early uncle important elderly"),
    (
        "an",
        "unanswered unannounced uninteresting unimportant FBI MRI NGO x-ray 8-year 11 18-year-old",
    ),
    ("a", "university uniform useful European one dog house young yellow woman hotel unit"),
    ("a", "unanimous Ukrainian Ugandan uranium urinary USDA US unidirectional utensil 10"),
]
FORMS = """mice men women children teeth geese wolves knives shelves sheep deer went gone wrote
    written brought taught caught drove driven lying putting swimming preferred planned carries
    tries tried studying watches goes does has was were broke broken leaves scarves potatoes
    cherries stopped dropped making taking""".split()
NO_FORMS = """mouses mans womans childs gooses writed bringed teached goed haves cutted putted
    visitted openning planed sheeps deers informations furnitures""".split()
INFLECTED = [
    (add_s, "try watch play pass go fox", "tries watches plays passes goes foxes"),
    (add_ed, "try stop visit play like open", "tried stopped visited played liked opened"),
    (add_ing, "lie make stop see try visit", "lying making stopping seeing trying visiting"),
]


@pytest.mark.parametrize(("article", "words"), ARTICLES)
def test_article_depends_on_the_sound(article: str, words: str) -> None:
    """External witness: exceptions and regular cases from a dictionary."""
    assert {word: indefinite_article(word) for word in words.split()} == dict.fromkeys(
        words.split(), article
    )


def test_inflection_of_irregular_words() -> None:
    """External witness: forms and non-forms of English, written by hand."""
    assert set(FORMS) <= lexicon().forms
    assert not set(NO_FORMS) & lexicon().forms


@pytest.mark.parametrize(("rule", "words", "expected"), INFLECTED)
def test_spelling_rules(rule: type[str], words: str, expected: str) -> None:
    """External witness: written by hand."""
    assert [rule(word) for word in words.split()] == expected.split()


def test_row_with_two_columns_is_refused() -> None:
    with pytest.raises(InputError, match="Line 2 of the lexicon has 2 columns"):
        read_lexicon("# comment\nN\tapple\n")


def test_class_expands_to_its_members() -> None:
    classes = "class\tfood\tfruit soup\nclass\tthing\tfood tool\n"
    (entry, *_) = read_lexicon(f"{classes}V\tframe=np obj=thing\teat:ate,eaten\n").entries["V"]
    assert entry.features["obj"] == ("fruit", "soup", "tool")


@given(st.text(alphabet="abcdefghilmnoprstuvy", min_size=2, max_size=8))
def test_regular_noun_has_singular_and_plural(noun: str) -> None:
    """External witness: every regular plural ends in s and is longer than its singular."""
    singular, plural = read_lexicon(f"N\tsem=tool\t{noun}/2\n").entries["N"]
    assert (singular.form, singular.features["agr"]) == (noun, ("it",))
    assert plural.form.endswith("s")
    assert len(plural.form) > len(noun)
    assert plural.features["num"] == ("pl",)


TABLE = english_tags()


def classify_verbs(sentence: Sentence) -> dict[int, str]:
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
def test_complements_of_verbs(text: str, uses: str) -> None:
    """Witness: by hand."""
    assert " ".join(classify_verbs(Sentence.parse(text)).values()) == uses


def test_new_verbs_allow_the_complements_of_the_sentence() -> None:
    """Witness: the kinds of each allowed word in the table, for 30 sentences."""
    kinds_by_word: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in TABLE.words:
        kinds_by_word[row.word, row.tag] += row.kinds.split()
    verbs = {row.word for row in TABLE.words if row.tag.startswith("VV") and row.count > 20}
    vocabulary, n_new = Vocabulary((), tuple(sorted(verbs))), 0
    for sentence in generate(30, seed=5):
        candidates = Candidates(vocabulary, sentence, (same_tags(sentence, TABLE, verb_uses),))
        for index, use in classify_verbs(sentence).items():
            tag = TABLE.tags(sentence)[index]
            allowed = candidates.allowed(sentence, index)
            for word in compress(vocabulary.at(index), allowed):
                assert use in kinds_by_word[word, tag], (sentence.text, word)
                n_new += 1
            assert use != "two" or not allowed.any()
    assert n_new > 300
