"""Damaged n-gram files: a model error, or the same scores; never the end of the process.

`tiny.probing.binary` and `tiny.trie.binary` are what KenLM's `build_binary` makes of `tiny.arpa`.
"""

from __future__ import annotations

import gzip
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import ContstimError, ModelError
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.arpa import parse_arpa
from contstim.words.sentence import Sentence
from tests.models.damages import DAMAGES

HERE = Path(__file__).parent
ARPA = (HERE / "tiny.arpa").read_bytes()
ARPA_KINDS = ("tiny.arpa", "tiny.arpa.gz")
BINARY_KINDS = ("tiny.probing.binary", "tiny.trie.binary")
TWICE = b"""\\data\\
ngram 1=7
ngram 2=3

\\1-grams:
-2\t<unk>
-3\t<UNK>
-1\t</s>
-99\t<s>\t-0.3
-0.5\ta\t-0.2
-0.9\ta\t-0.4
-0.7\tb\t-0.1

\\2-grams:
-0.1\t<s> a
-0.25\ta b
-0.6\ta b

\\end\\
"""
SENTENCES = [Sentence.parse(text) for text in ("The dog sees cats", "A zyzzyva sleeps", "cat")]


def copied(kind: str, folder: Path) -> Path:
    path = folder / kind
    if kind.endswith(".gz"):
        path.write_bytes(gzip.compress(ARPA))
    else:
        shutil.copyfile(HERE / kind, path)
    return path


@pytest.mark.parametrize("kind", [*ARPA_KINDS, *BINARY_KINDS])
def test_every_format_gives_the_same_scores(kind: str, tmp_path: Path) -> None:
    """Witness: the ARPA file and what KenLM's own program made of it."""
    if kind in BINARY_KINDS:
        pytest.importorskip("kenlm")
    model = NgramModel(copied(kind, tmp_path))
    expected = NgramModel(HERE / "tiny.arpa").log_probs(SENTENCES)
    np.testing.assert_allclose(model.log_probs(SENTENCES), expected, rtol=1e-6)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ARPA_KINDS)
def test_a_damaged_model_is_refused_or_scores_as_before(
    kind: str, damage: str, tmp_path: Path
) -> None:
    path = copied(kind, tmp_path)
    expected = NgramModel(path).log_probs(SENTENCES)
    DAMAGES[damage](path)
    try:
        scores = NgramModel(path).log_probs(SENTENCES)
    except ModelError as error:
        assert path.name in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_counts_are_refused(damage: str, tmp_path: Path) -> None:
    path = copied("tiny.arpa", tmp_path)
    counts = tmp_path / "tiny.arpa.counts.csv"
    counts.write_text('"word","initial","inner"\n"the",1,5\n"dog",0,4\n')
    expected = NgramModel(path).vocabulary(1)
    DAMAGES[damage](counts)
    try:
        assert NgramModel(path).vocabulary(1) == expected
    except ContstimError as error:
        assert counts.name in str(error)  # noqa: PT017


@pytest.mark.parametrize("value", [b"nan", b"inf", b"5.0", b"", b"x", b"\xff\xfe\x00"])
def test_log_probabilities_that_are_none_are_refused(value: bytes, tmp_path: Path) -> None:
    lines = ARPA.split(b"\n")
    for number, line in enumerate(lines):
        if line.startswith(b"-") and b"<s>" not in line:
            changed = [*lines[:number], value + b"\t" + line.split(b"\t", 1)[1]]
            path = tmp_path / "odd.arpa"
            path.write_bytes(b"\n".join([*changed, *lines[number + 1 :]]))
            with pytest.raises(ModelError, match=r"odd\.arpa"):
                NgramModel(path)


@pytest.mark.parametrize("kind", BINARY_KINDS)
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (88, b"\x00"),  # the order; KenLM ends the process: signal 11
        (88, b"\xff"),
        (92, struct.pack("<f", float("nan"))),  # how full its tables are; signal 8
        (92, struct.pack("<f", 0.0)),
        (108, struct.pack("<Q", 0)),  # how many words; KenLM does not come to an end
        (108, struct.pack("<Q", 2**62)),
        (116, struct.pack("<Q", 2**63)),
    ],
)
def test_headers_of_binary_files_are_checked(
    kind: str, place: int, value: bytes, tmp_path: Path
) -> None:
    pytest.importorskip("kenlm")
    path = copied(kind, tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:place] + value + content[place + len(value) :])
    with pytest.raises(ModelError, match=kind):
        NgramModel(path)


def test_the_first_of_n_grams_that_a_file_holds_twice_counts(tmp_path: Path) -> None:
    """Witness: the kenlm package, whose last <unk> counts instead."""
    kenlm = pytest.importorskip("kenlm")
    path = tmp_path / "twice.arpa"
    path.write_bytes(TWICE)
    model = kenlm.Model(str(path))
    for text in ("a b", "b a", "x"):
        ours = parse_arpa(path.read_bytes(), path).totals([Sentence.parse(text)], end=True)
        assert ours == pytest.approx([model.score(text)], abs=1e-6)
