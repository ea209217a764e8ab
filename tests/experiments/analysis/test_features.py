"""Features of sentences, against counts by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.controls import count_tokens, read_features
from contstim.models.ngram.adapter import NgramModel
from contstim.words.sentence import Sentence


def parse(*texts: str) -> list[Sentence]:
    return [Sentence.parse(text) for text in texts]


def test_features_are_read_by_sentence(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text('sentence,length,"mean GloVe"\n"No, never.",2,0.5\nYes it is,3,-1e-3\n')
    assert read_features(path) == {
        "length": {"No, never.": 2.0, "Yes it is.": 3.0},
        "mean GloVe": {"No, never.": 0.5, "Yes it is.": -0.001},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence\nYes\n", "must have a column `sentence` and one for each feature"),
        ("text,length\nYes,1\n", "its columns are text, length"),
        ("sentence,length\nYes,one\n", "row 0: 'one' under length is not a number"),
        ("sentence,length\nYes,nan\n", "'nan' under length is not a number"),
        ("sentence,length\nYes,1\nYes.,2\n", "'Yes.' has two values of length"),
    ],
)
def test_what_is_no_table_of_features_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "features.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_features(path)


def test_word_level_models_count_words_and_the_end(bigram: NgramModel) -> None:
    sentences = parse("She went home.", "He did not go there!")
    assert count_tokens([bigram], sentences) == {
        "2-gram": {"She went home.": 4.0, "He did not go there!": 6.0}
    }
