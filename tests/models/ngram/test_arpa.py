"""Reading of ARPA files; damaged files raise a model error or have the same scores.

KenLM's `build_binary` made `tiny.probing.binary` and `tiny.trie.binary` from `tiny.arpa`.
"""

import gzip
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.arpa import parse_arpa, write_arpa
from contstim.words.sentence import Sentence
from tests.models.damages import DAMAGES, check_refused_or_same

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
def test_written_files_are_read_back_bit_for_bit(trained: Path, tmp_path: Path, order: int) -> None:
    tables = parse_arpa((trained / f"{order}gram.arpa").read_bytes(), "")
    assert tables.order == order
    write_arpa(tables, tmp_path / "again.arpa")
    assert (tmp_path / "again.arpa").read_bytes() == (trained / f"{order}gram.arpa").read_bytes()


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


@pytest.mark.parametrize(
    ("content", "texts", "words"),
    [
        (FOREIGN, ["über über"], ("über", '"cat,', "unheard")),
        (PRUNED, ["c a b c", "a b a b", "b c a b", "x c a x"], ("a", "b", "c", "x")),
    ],
)
def test_replacements_work_without_weights_contexts_or_unk(
    tmp_path: Path, content: str, texts: list[str], words: tuple[str, ...]
) -> None:
    """Witness: each sentence separately; one file has `c a b`, but neither `a b` nor <unk>."""
    path = tmp_path / "foreign.arpa"
    path.write_text(content, encoding="utf-8")
    model = NgramModel(path)
    for sentence in map(Sentence.parse, texts):
        for position in range(len(sentence)):
            ours = model.replacement_log_probs(sentence, position, words)
            expected = model.log_probs([sentence.replace(position, word) for word in words])
            np.testing.assert_array_equal(ours, expected)


DIALECTS = Path(__file__).parent / "dialects"
DIALECT_SENTENCES = [
    Sentence.parse(text)
    for text in ("the dog sleeps", "the cat runs", "the dog runs", "the zebra sleeps", "the runs")
]
EXPECTED = (-2.5328, -8.9801, -7.2531, -236.4755, -7.0229)  # nats


@pytest.mark.parametrize("path", sorted(DIALECTS.glob("*.arpa")), ids=lambda path: path.stem)
def test_dialects_are_read_or_refused_with_a_line_number(path: Path) -> None:
    """Witness: kenlm, on the same numbers in its own dialect."""
    refused = {"12": 7, "15": 27, "17": 6, "19": 16, "28": 30}.get(path.name[:2])
    if refused:
        with pytest.raises(ModelError, match=rf"{path.name}, line {refused}: "):
            parse_arpa(path.read_bytes(), path)
        return
    if path.name.startswith("32"):
        with pytest.raises(ModelError, match=r"is UTF-16, not UTF-8"):
            parse_arpa(path.read_bytes(), path)
        return
    if path.name.startswith("43"):
        pytest.skip("another model, for tests of end marks")
    expected = [*EXPECTED]
    changes: dict[str, tuple[int, float]] = {
        "02": (3, -11.9734),  # <unk> is -2.5
        "30": (4, -230.3736),  # `the runs` is -99
        "42": (3, -np.inf),  # <unk> is -inf
    }
    if path.name[:2] in changes:
        index, value = changes[path.name[:2]]
        expected[index] = value
    if path.name.startswith("13"):  # no trigrams
        expected[0], expected[2] = -4.3749, -8.4044
    totals = NgramModel(path).log_probs(DIALECT_SENTENCES)
    np.testing.assert_allclose(totals, expected, atol=1e-4)


BASE = (DIALECTS / "00-base.arpa").read_bytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\\1-grams:", b"\\1-grams :"),
        (b"\\data\\", b"\n  \\DATA\\\t"),
        (b"-grams:", b"-GRAMS:"),
        (b"\\end\\", b"\\END\\ \n \n"),
        (b"\n", b"\r"),
        (b"\n", b" \t\n"),
        (b"\n\n", b"\n \t \n"),
        (b"\n\n", b"\n"),
        (b"\n-", b"\n  -"),
        (b" dog", b"   dog"),
        (b" dog", b" \t dog"),
        (b"\n-1.7\tcat", b"\n-1.7\tcat\xe9\t-0.1\n-1.7\tcat"),
        (b"ngram 1=", b"NGRAM  1=     "),
        (b"\t-0.10\n", b"\t-1e-1\n"),
        (b"\n\n\\2-", b"\n-9\tthe\t-9\n\n\\2-"),
        (b"<s>\t-0.30", b"<s>\t-0.30\n-100\t<UNK>"),
        (b"\n-1.7\tcat", b"\n-5\t\\end\\\n-1.7\tcat"),
    ],
)
def test_files_are_read_in_any_layout(old: bytes, new: bytes, tmp_path: Path) -> None:
    """Witness: kenlm on the file before the change, which keeps its numbers."""
    text = BASE.replace(old, new)
    assert text != BASE
    size = 7 + any(line in text for line in (b"cat\xe9", b"-9\tthe", b"<UNK>", b"-5\t\\end"))
    text = re.sub(rb"(?i)(ngram +1= *)7", b"\\g<1>%d" % size, text)
    path = tmp_path / "layout.arpa"
    path.write_bytes(text)
    np.testing.assert_allclose(NgramModel(path).log_probs(DIALECT_SENTENCES), EXPECTED, atol=1e-4)


def test_non_utf_8_words_match_no_sentence(tmp_path: Path) -> None:
    """Witness: KenLM, which compares bytes, and the same word in UTF-8."""
    kenlm = pytest.importorskip("kenlm")
    path = tmp_path / "latin.arpa"
    path.write_bytes(FOREIGN.encode("latin-1"))
    sentence = Sentence.parse("über")
    expected = kenlm.Model(str(path)).score("über")
    totals = parse_arpa(path.read_bytes(), path).totals([sentence], end=True)
    assert totals == pytest.approx([expected], abs=1e-6)
    path.write_text(FOREIGN, encoding="utf-8")
    assert NgramModel(path).log_probs([sentence])[0] == pytest.approx((-0.5 - 0.4) * np.log(10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("\\data\\", "data"), "not an ARPA file"),
        (lambda t: t[:0], "it is empty"),
        (lambda t: t[: t.index("\\2-grams")], "line 11: the file is truncated"),
        (lambda t: t[: t.index("\\end")], "line 16: the file is truncated"),
        (lambda t: t[: t.index("\\1-grams")], "line 4: the file is truncated"),
        (lambda t: t + t, r"line 20: text follows .end"),
        (lambda t: t + "more\n", r"line 19: text follows .end.*more"),
        (lambda t: t.replace("-0.5\t<s> über\n", ""), "line 4: .* is 2, not: 'ngram 2=3'"),
        (lambda t: t.replace("1=5", "1=6"), "line 3: .* is 5, not: 'ngram 1=6'"),
        (lambda t: t.replace("2=3", "2=0"), "line 4: .* is 3, not: 'ngram 2=0'"),
        (lambda t: t.replace("ngram 2=3\n", ""), r"line 12: the header lists no"),
        (lambda t: t.replace("2=3", "2=3\nngram 3=1"), r"the line .3-grams: is missing"),
        (lambda t: t.replace("ngram 2", "n-gram 2"), "line 4: expected 'ngram 2='"),
        (lambda t: t.replace("\\2-grams:", "\\2-gram"), r"line 13: .*'..2-gram'"),
        (lambda t: t.replace("<s> über", "<s> unter"), "line 16: 'unter' is not a unigram"),
        (lambda t: t.replace("<s> über", "<s>"), "line 16: .* 2 words"),
        (lambda t: t.replace("<s> über", "<s> über über über"), "line 16: .* 2 words"),
        (lambda t: t.replace('"cat,\n\n', '"big cat, 0\n\n'), "line 11: .* 1 word "),
        (lambda t: t.replace("-0.5\t<s>", "many\t<s>"), "line 16: the log-probability"),
        (lambda t: t.replace("-0.5\t<s>", "nan\t<s>"), "line 16: the log-probability"),
        (lambda t: t.replace("\t-0.2", "\tinf"), "line 10: the back-off weight"),
        (lambda t: t.replace("</s>", "</t>"), "line 6: the unigrams must contain </s>"),
        (lambda t: t.replace("über\t", "üb\0er\t"), "line 10: the file is damaged, it has a null"),
    ],
)
@pytest.mark.parametrize("separator", ["\t", " "])
def test_invalid_files_are_refused(
    tmp_path: Path, change: object, message: str, separator: str
) -> None:
    path = tmp_path / "damaged.arpa"
    assert callable(change)
    path.write_text(change(FOREIGN).replace("\t", separator), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        parse_arpa(path.read_bytes(), path)


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


def copy_model(kind: str, folder: Path) -> Path:
    path = folder / kind
    if kind.endswith(".gz"):
        path.write_bytes(gzip.compress(ARPA))
    else:
        shutil.copyfile(HERE / kind, path)
    return path


@pytest.mark.parametrize("kind", [*ARPA_KINDS, *BINARY_KINDS])
def test_all_formats_give_the_same_scores(kind: str, tmp_path: Path) -> None:
    """Witness: the ARPA file from which KenLM's own program made the others."""
    if kind in BINARY_KINDS:
        pytest.importorskip("kenlm")
    model = NgramModel(copy_model(kind, tmp_path))
    expected = NgramModel(HERE / "tiny.arpa").log_probs(SENTENCES)
    np.testing.assert_allclose(model.log_probs(SENTENCES), expected, rtol=1e-6)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ARPA_KINDS)
def test_damage_is_refused_or_harmless(kind: str, damage: str, tmp_path: Path) -> None:
    path = copy_model(kind, tmp_path)
    check_refused_or_same(path, damage, lambda: NgramModel(path).log_probs(SENTENCES))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_counts_are_refused(damage: str, tmp_path: Path) -> None:
    path = copy_model("tiny.arpa", tmp_path)
    counts = tmp_path / "tiny.arpa.counts.csv"
    counts.write_text('"word","initial","inner"\n"the",1,5\n"dog",0,4\n')
    check_refused_or_same(counts, damage, lambda: NgramModel(path).vocabulary(1))


@pytest.mark.parametrize("value", [b"nan", b"inf", b"5.0", b"", b"x", b"\xff\xfe\x00"])
def test_invalid_log_probabilities_are_refused(value: bytes, tmp_path: Path) -> None:
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
    ("offset", "value"),
    [
        (88, b"\x00"),  # order of the model; KenLM would end the process: signal 11
        (88, b"\xff"),
        (92, struct.pack("<f", float("nan"))),  # load factor of the tables; signal 8
        (92, struct.pack("<f", 0.0)),
        (108, struct.pack("<Q", 0)),  # number of words; KenLM would not terminate
        (108, struct.pack("<Q", 2**62)),
        (116, struct.pack("<Q", 2**63)),
    ],
)
def test_binary_headers_are_checked(kind: str, offset: int, value: bytes, tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    path = copy_model(kind, tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:offset] + value + content[offset + len(value) :])
    with pytest.raises(ModelError, match=kind):
        NgramModel(path)


def test_first_of_repeated_ngrams_counts(tmp_path: Path) -> None:
    """Witness: the kenlm package, which uses the last <unk> instead."""
    kenlm = pytest.importorskip("kenlm")
    path = tmp_path / "twice.arpa"
    path.write_bytes(TWICE)
    model = kenlm.Model(str(path))
    for text in ("a b", "b a", "x"):
        ours = parse_arpa(path.read_bytes(), path).totals([Sentence.parse(text)], end=True)
        assert ours == pytest.approx([model.score(text)], abs=1e-6)


def test_invalid_size_of_hash_tables_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("kenlm")
    content = (HERE / "tiny.probing.binary").read_bytes()
    path = tmp_path / "odd.binary"
    path.write_bytes(content[:92] + struct.pack("<f", 0.5) + content[96:])
    with pytest.raises(ModelError, match=r"odd\.binary is damaged: it has 0.5 hash-table slots"):
        NgramModel(path)
