"""Tags of sentences, and tables of tags from treebanks and files.

Witness of the most probable tag sequence: the product of probabilities of every sequence.
"""

from itertools import product
from math import exp, isclose, log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import english_tags
from contstim.errors import InputError
from contstim.words.sentence import Sentence
from contstim.words.tags import END, START, TaggedWord, TagTable, read_tags

TREEBANK = """\
# text = Der Hund schläft im Haus.
1\tDer\tder\tDET\t_\tCase=Nom|Gender=Masc\t2\tdet\t_\t_
2\tHund\tHund\tNOUN\t_\tCase=Nom|Gender=Masc\t3\tnsubj\t_\t_
3\tschläft\tschlafen\tVERB\t_\t_\t0\troot\t_\t_
4-5\tim\t_\t_\t_\t_\t_\t_\t_\t_
4\tin\tin\tADP\t_\t_\t6\tcase\t_\t_
5\tdem\tder\tDET\t_\tCase=Dat\t6\tdet\t_\t_
6\tHaus\tHaus\tNOUN\t_\tCase=Dat\t3\tobl\t_\t_
7\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

1\tMaria\tMaria\tPROPN\t_\t_\t2\tnsubj\t_\t_
2\tschläft\tschlafen\tVERB\t_\t_\t0\troot\t_\t_
"""

counts = st.integers(1, 50)
words = st.dictionaries(
    st.sampled_from("abc"), st.dictionaries(st.sampled_from("XYZ"), counts, min_size=1), min_size=1
)
pairs = st.dictionaries(
    st.tuples(st.sampled_from([START, *"XYZ"]), st.sampled_from([*"XYZ", END])), counts
)


@given(words, pairs, st.data())
def test_tags_are_the_most_probable_sequence(
    words: dict[str, dict[str, int]], pairs: dict[tuple[str, str], int], data: st.DataObject
) -> None:
    """Witness: p(tags) p(words | tags) of every sequence, with 0.1 added to each pair count.

    The share of all probability in sequences without a tag is the probability that no word has the
    tag.
    """
    text = data.draw(st.lists(st.sampled_from([*words]), min_size=1, max_size=4))
    table = TagTable(
        "small",
        tuple(TaggedWord(w, tag, n) for w, tags in words.items() for tag, n in tags.items()),
        pairs,
    )
    n_tags = len({tag for tags in words.values() for tag in tags})

    def log_share(previous: str | None, tag: str) -> float:
        following_counts = {p: n for p, n in pairs.items() if previous is None or p[0] == previous}
        tag_count = sum(n for (_, second), n in following_counts.items() if second == tag)
        return log((tag_count + 0.1) / (sum(following_counts.values()) + 0.1 * n_tags))

    def log_prob(sequence: tuple[str, ...]) -> float:
        total = 0.0
        previous_tags, tags = (START, *sequence), (*sequence, END)
        for word, previous, tag in zip([*text, ""], previous_tags, tags, strict=True):
            total += log_share(previous, tag)
            if tag != END and tag:
                share = words[word][tag] / sum(words[word].values())
                total += log(share) - log_share(None, tag)
        return total

    sentence = Sentence(tuple(text))
    tags = table.tags(sentence)
    sequences = product(*(words[word] for word in text))
    probs = {sequence: exp(log_prob(sequence)) for sequence in sequences}
    assert isclose(log_prob(tags), log(max(probs.values())), abs_tol=1e-9)
    without_tag = sum(p for sequence, p in probs.items() if "X" not in sequence)
    expected = without_tag / sum(probs.values())
    assert table.prob_without(sentence, "X".__eq__) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("They speak of May and march", "PNP VVB PRF NP0 CJC NN1"),
        ("She wants to speak", "PNP VVZ TO0 VVI"),
        ("For a while the light is red", "PRP AT0 NN1 AT0 NN1 VBZ AJ0"),
        ("The zyzzq was", "AT0  VBD"),
        ("He said I can't see women's cups", "PNP VVD PNP VM0+XX0 VVI NN2+POS NN2"),
        ("It's time they've gone", "PNP+VBZ NN1 PNP+VHB VVN"),
    ],
)
def test_english_tags_in_context(text: str, tags: str) -> None:
    """Witness: by hand, in the basic tagset of the British National Corpus; + joins two tags."""
    assert english_tags().tags(Sentence.parse(text)) == tuple(tags.split(" "))


def test_treebank_in_the_format_of_universal_dependencies(tmp_path: Path) -> None:
    """Punctuation is not a word; `im` counts as its two words."""
    path = tmp_path / "german.conllu"
    path.write_text(TREEBANK, encoding="utf-8")
    table = read_tags(path)
    assert table.shares("schläft") == {"VERB": 1.0}
    assert table.shares("im") == {}
    assert table.shares("der") == {"DET Case=Nom|Gender=Masc": 1.0}
    assert table.shares("Maria") == {"PROPN": 1.0}
    assert table.pairs["NOUN Case=Nom|Gender=Masc", "VERB"] == 1
    assert table.pairs["VERB", END] == 1
    words = "schläft Maria Katze".split()
    assert [*map(table.lemma, words)] == ["schlafen", "maria", "katze"]


def test_forms_of_a_word_have_one_lemma() -> None:
    """Witness: by hand, from a dictionary."""
    table = english_tags()
    words = "runs Ran running women better was zyzzq"
    assert [*map(table.lemma, words.split())] == "run run run woman good was zyzzq".split()
    assert {"run", "runs", "ran", "running"} <= table.forms("run")
    assert table.forms("zyzzq") == {"zyzzq"}
    # The past tense "found" is not a form of the verb "found"
    assert table.lemma("found") == "find"
    assert "found" not in table.forms("found")


def test_table_without_pairs_uses_the_most_frequent_tag(tmp_path: Path) -> None:
    path = tmp_path / "tags.csv"
    path.write_text("word,tag,count\nrun,V,7\nrun,N,3\n", encoding="utf-8")
    assert read_tags(path).tags(Sentence.parse("Run run")) == ("V", "V")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "word,tag\nrun,V\n", "lacks count"),
        ("a.csv", "word,tag,count\nrun,V,-1\n", "is not a whole number from 1"),
        ("a.csv", "word,tag,count\nrun,V,0\n", "is not a whole number from 1"),
        ("a.csv", 'word,tag,count\n"",V,1\n', "is not a word or tag"),
        ("a.conllu", "1\trun\tV\n", "has 3 columns; CoNLL-U has 10"),
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_tags(path)


def test_parts_of_speech_are_named_if_the_tag_is_known() -> None:
    """Witness: by hand."""
    names = {"NN1": "noun", "VVD": "verb", "PNP+VBZ": "pronoun + “be”", "": "not listed"}
    assert {tag: english_tags().part_of_speech(tag) for tag in names} == names
    assert TagTable("small", ()).part_of_speech("NOUN Case=Nom|Number=Sing") == "NOUN"
