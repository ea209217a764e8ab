"""The lexicon, against lists written by hand from an English dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english import lexicon
from contstim.english.lexicon import add_ed, add_ing, add_s, read_lexicon
from contstim.english.words import indefinite_article
from contstim.errors import InputError

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
def test_article_goes_by_sound(article: str, words: str) -> None:
    """Outside witness: exceptions and plain cases from a dictionary."""
    assert {word: indefinite_article(word) for word in words.split()} == dict.fromkeys(
        words.split(), article
    )


def test_inflection_of_irregular_words() -> None:
    """Outside witness: forms and non-forms of English written by hand."""
    assert set(FORMS) <= lexicon().forms
    assert not set(NO_FORMS) & lexicon().forms


@pytest.mark.parametrize(("rule", "words", "expected"), INFLECTED)
def test_spelling_rules(rule: type[str], words: str, expected: str) -> None:
    """Outside witness: written by hand."""
    assert [rule(word) for word in words.split()] == expected.split()


def test_row_with_two_columns_is_refused() -> None:
    with pytest.raises(InputError, match="Line 2 of the lexicon has 2 columns"):
        read_lexicon("# comment\nN\tapple\n")


def test_class_stands_for_its_members() -> None:
    text = (
        "class\tfood\tfruit soup\nclass\tthing\tfood tool\nV\tframe=np obj=thing\teat:ate,eaten\n"
    )
    (entry, *_) = read_lexicon(text).entries["V"]
    assert entry.features["obj"] == ("fruit", "soup", "tool")


@given(st.text(alphabet="abcdefghilmnoprstuvy", min_size=2, max_size=8))
def test_regular_noun_has_singular_and_plural(noun: str) -> None:
    """Outside witness: every regular English plural ends in s and is longer than its singular."""
    singular, plural = read_lexicon(f"N\tsem=tool\t{noun}/2\n").entries["N"]
    assert (singular.form, singular.features["agr"]) == (noun, ("it",))
    assert plural.form.endswith("s")
    assert len(plural.form) > len(noun)
    assert plural.features["num"] == ("pl",)
