"""Word frequencies, against the published formula by hand."""

import math
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.models.ngram.training import train_ngram
from contstim.words.frequencies import WordFrequencies, read_frequencies
from contstim.words.sentence import Sentence

TEXT = "The cat saw the dog.\nthe end\n"


def test_zipf_scale() -> None:
    """External witness: van Heuven et al. (2014) on 7 tokens of 5 types, ignoring case.

    (3 + 1) and (0 + 1) occurrences in (7 + 5) / 1,000,000 millions of words.
    """
    frequencies = WordFrequencies.of(
        [Sentence.parse("The cat saw the dog"), Sentence.parse("the end")]
    )
    assert frequencies.zipf("the") == pytest.approx(math.log10(4 / 12e-6) + 3)
    assert frequencies.zipf("THE") == frequencies.zipf("the")
    assert frequencies.zipf("owl") == pytest.approx(math.log10(1 / 12e-6) + 3)
    mean = (2 * math.log10(4 / 12e-6) + math.log10(2 / 12e-6)) / 3 + 3
    assert frequencies.mean_zipf(Sentence.parse("The the end.")) == pytest.approx(mean)


def test_anchors_of_the_zipf_scale() -> None:
    """External witness: the published anchors, once per million and once per thousand words."""
    frequencies = WordFrequencies({"rare": 10**3, "common": 10**6, "rest": 10**9 - 10**6 - 10**3})
    assert frequencies.zipf("rare") == pytest.approx(3, abs=1e-3)
    assert frequencies.zipf("common") == pytest.approx(6, abs=1e-3)


@pytest.mark.filterwarnings("ignore:The text is too small")
def test_text_list_and_model_give_the_same_frequencies(tmp_path: Path) -> None:
    """One text, counted by `read_frequencies`, by hand, and by n-gram training."""
    sentences = [Sentence.parse(line) for line in TEXT.splitlines()]
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "list.csv").write_text("word,count\nthe,3\ncat,1\nsaw,1\ndog,1\nend,1\n")
    train_ngram(sentences, 1, tmp_path / "model.arpa")
    zipf_values = [
        [*map(read_frequencies(tmp_path / name).mean_zipf, sentences)]
        for name in ("text.txt", "list.csv", "model.arpa", "model.arpa.counts.csv")
    ]
    assert zipf_values[0] == zipf_values[1] == zipf_values[2] == zipf_values[3]


def test_frequencies_of_a_text_a_list_or_the_folder_of_a_recurrent_model(tmp_path: Path) -> None:
    contents = {
        "text.txt": TEXT,
        "list.csv": "word,count\ncat,3\nX-ray,0\n",
        "vocabulary.csv": "word,initial,inner\ncat,1,2\ndog,0,4\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    frequencies = read_frequencies(tmp_path / "text.txt")
    assert frequencies.counts == {"The": 1, "cat": 1, "saw": 1, "the": 2, "dog": 1, "end": 1}
    assert read_frequencies(tmp_path / "list.csv").counts == {"cat": 3, "X-ray": 0}
    assert read_frequencies(tmp_path).counts == {"cat": 3, "dog": 4}
    assert frequencies.sample(3, seed=1) == frequencies.sample(3, seed=1)
    assert set(frequencies.sample(99, seed=0)) == {"cat", "saw", "the", "dog", "end"}
    with pytest.raises(InputError, match="no lower-case word"):
        WordFrequencies({"X-ray": 3}).sample(1, seed=0)
    with pytest.raises(InputError, match="no words to count"):
        WordFrequencies.of([])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,n\ncat,3\n", "lacks the columns count"),
        ("word,count\ncat,3\ncat,4\n", "two counts for 'cat'"),
        ("word,count\ncat,-3\n", "row 0: '-3' under count is not a count"),
        ("word,count\ncat,many\n", "row 0: 'many' under count is not a count"),
    ],
)
def test_invalid_frequency_lists_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_frequencies(path)
