from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.arpa import read_arpa, write_arpa
from contstim.sentence import Sentence

FOREIGN = """
\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-1.5\t<unk>
-99\t<s>\t-0.3
-0.7\t</s>
-0.9\tüber\t-0.2
-1.1\t"cat,

\\2-grams:
-0.4\tüber </s>
-0.3\t<s> "cat,
-0.5\t<s> über

\\end\\
"""


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_reads_back_what_it_wrote_bit_for_bit(trained: Path, tmp_path: Path, order: int) -> None:
    first = read_arpa(trained / f"{order}gram.arpa")
    assert first.order == order
    write_arpa(first, tmp_path / "again.arpa")
    assert (tmp_path / "again.arpa").read_bytes() == (trained / f"{order}gram.arpa").read_bytes()


def test_reads_another_programs_file(tmp_path: Path) -> None:
    """Witness: KenLM on the same hand-written file, unsorted, with weights left out."""
    path = tmp_path / "foreign.arpa"
    path.write_text(FOREIGN, encoding="utf-8")
    model = NgramModel(path)
    words = ("über", '"cat,', "unheard")
    for position in (0, 1):
        sentence = Sentence.parse("über über")
        ours = model.replacement_log_probs(sentence, position, words)
        theirs = model.log_probs([sentence.replace(position, w) for w in words])
        np.testing.assert_array_equal(ours, theirs)
    assert model.log_probs([Sentence.parse("über")])[0] == pytest.approx(
        (-0.5 - 0.4) * np.log(10), rel=1e-6
    )


PRUNED = """
\\data\\
ngram 1=6
ngram 2=4
ngram 3=2

\\1-grams:
-1.5\t<UNK>
-99\t<s>\t-0.3
-0.7\t</s>
-0.9\ta\t-0.2
-1.1\tb\t-0.4
-1.2\tc\t-0.1

\\2-grams:
-0.4\t<s> c\t-0.25
-0.3\tc a\t-0.35
-0.5\tb c\t-0.15
-0.6\ta </s>

\\3-grams:
-0.2\tc a b
-0.1\t<s> c a

\\end\\
"""


def test_a_pruned_model_that_lacks_inner_contexts_and_writes_unk_large(tmp_path: Path) -> None:
    """Witness: KenLM on the same file, which has `c a b` but neither `a b` nor <unk> as such."""
    path = tmp_path / "pruned.arpa"
    path.write_text(PRUNED, encoding="utf-8")
    model = NgramModel(path)
    for text in ("c a b c", "a b a b", "b c a b", "x c a x"):
        sentence = Sentence.parse(text)
        for position in range(4):
            ours = model.replacement_log_probs(sentence, position, ("a", "b", "c", "x"))
            theirs = model.log_probs([sentence.replace(position, w) for w in "abcx"])
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("\\data\\", "data"), "not an ARPA file"),
        (lambda t: t[: t.index("\\2-grams")], "cut off"),
        (lambda t: t[: t.index("\\end")], "cut off"),
        (lambda t: t + t, "more sections than it announces"),
        (lambda t: t + "more\n", "goes on behind .end"),
        (lambda t: t.replace("-0.5\t<s> über\n", ""), "announces 3 n-grams where it has 2"),
        (lambda t: t.replace("<s> über", "<s> unter"), "not unigrams"),
        (lambda t: t.replace("<s> über", "<s>"), "do not have 2 words"),
        (lambda t: t.replace("-0.5\t<s>", "many\t<s>"), "not a readable ARPA file"),
        (lambda t: t.replace("</s>", "</t>"), "lacks the unigrams </s>"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: object, message: str) -> None:
    path = tmp_path / "damaged.arpa"
    assert callable(change)
    path.write_text(change(FOREIGN), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        read_arpa(path)
