"""`contstim vocabulary`, `sentences` and `generate minimal-pairs` as a user runs them."""

import json
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.testing.platform import read_csv_rows
from contstim.words.vocabulary import Vocabulary
from tests.cli.running import invoke, run, succeed

TEXT = """\
The dog saw the old house in Rome today
The dog saw the old house in Rome yesterday
Department of Health and Human Services n d
April https www linkedin com pulse why-how rome
We can see the old house of Anna now
We met Anna and Peter in Rome last May
In the old house the dog has met us
The fucking dog of Anna saw the old house
We saw the house of the U S
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def _vocabulary(folder: Path, *options: str) -> Vocabulary:
    command = ("vocabulary", "--text", "text.txt", "--min-count", "1", "--out", "v.txt")
    succeed(folder, *command, *options)
    return Vocabulary.load(folder / "v.txt")


def test_words_of_a_messy_text_by_hand(folder: Path) -> None:
    """Witness: sorted by hand."""
    (folder / "mine.txt").write_text("# too old\nold\n", encoding="utf-8")
    words = _vocabulary(folder, "--without", "mine.txt")
    assert set(words.initial) == {"The", "We", "In"}
    assert set(words.inner) == {
        *("dog", "saw", "the", "house", "in", "today", "yesterday", "of", "and", "can", "see"),
        *("now", "met", "last", "has", "us"),
    }
    rows = read_csv_rows(folder / "v.txt.dropped.csv")
    reasons = {row["word"]: row["reason"] for row in rows}
    assert reasons["Rome"] == reasons["Anna"] == reasons["May"] == "a name"
    assert reasons["n"] == reasons["U"] == "a single letter"
    assert reasons["fucking"] == "on the block list"
    assert reasons["old"] == "excluded by the user"
    record = json.loads((folder / "v.txt.meta.json").read_text(encoding="utf-8"))
    assert record["left_out"]["a single letter"] == 4
    assert {"Rome", "Anna"} <= set(_vocabulary(folder, "--names", "keep").inner)
    assert "linkedin" in _vocabulary(folder, "--every-word").inner


def test_whole_sentences_of_a_messy_text_by_hand(folder: Path) -> None:
    """Witness: chosen by hand. Of the first two, which differ by a word, one stays."""
    command = ("sentences", "--text", "text.txt", "--repeats", "--words", "8-9")
    succeed(folder, *command, "--out", "s.txt")
    assert (folder / "s.txt").read_text(encoding="utf-8").splitlines() == [
        "The dog saw the old house in Rome today.",
        "We can see the old house of Anna now.",
        "In the old house the dog has met us.",
    ]
    succeed(folder, *command, "--every-line", "--out", "all.txt")
    assert len((folder / "all.txt").read_text(encoding="utf-8").splitlines()) == 9
    succeed(folder, *command, "--names", "0", "--out", "few.txt")
    assert (folder / "few.txt").read_text(
        encoding="utf-8"
    ) == "In the old house the dog has met us.\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("vocabulary --text text.txt --every-word --names drop --out v.txt", "excludes no words"),
        ("vocabulary --text text.txt --zipf 3 --out v.txt", "got '3'"),
        ("vocabulary --text text.txt --zipf 5-3 --out v.txt", "--zipf must be a range"),
        ("vocabulary --published x --names keep --out v.txt", "are not filtered"),
        ("vocabulary --text text.txt --without text.txt --out v.txt", "is not a single word"),
        ("sentences --text text.txt --words eight --out s.txt", "got 'eight'"),
        ("sentences --text text.txt --words 9-8 --out s.txt", "got '9-8'"),
        ("sentences --text text.txt --groups 3 --out s.txt", "need --for-models"),
    ],
)
def test_bad_choices_are_named(folder: Path, command: str, message: str) -> None:
    done = run(folder, command, status=2)
    assert message in done.stderr


STUDY = "--for-models 2 --triplets-per-pair 1 --pairs-per-pair 0 --random-per-group 0"


def test_needs_of_a_study_and_what_rules_cost_are_told(folder: Path) -> None:
    """Witness: the same command with the rule loosened, and the sum by hand."""
    command = ("sentences", "--text", "text.txt", "--repeats", "--words", "9", "--out", "s.txt")
    enough = run(
        folder, *command, *STUDY.split(), "--groups", "3", "--catch-per-group", "0", status=0
    )
    assert "in all" in enough.stdout
    few = run(folder, *command, *STUDY.split(), "--groups", "3", "--catch-per-group", "2", status=3)
    stay = len((folder / "s.txt").read_text(encoding="utf-8").splitlines())
    assert f"{7 - stay} sentences are missing for a study of 2 models" in few.stderr
    record = json.loads((folder / "s.txt.meta.json").read_text(encoding="utf-8"))
    assert record["needed"]["in all"] == 7
    for option, name in (("--words", "8-9"), ("--words", "9-10"), ("--names", "2")):
        run(folder, *command, option, name)
        gained = len((folder / "s.txt").read_text(encoding="utf-8").splitlines()) - stay
        said = f"+{gained} excluded only because" if gained else f"({option} {name})"
        lines = [line for line in few.stderr.splitlines() if f"({option} {name})" in line]
        assert [said in line for line in lines] == [True] * bool(gained)
    assert "+1 excluded only because it differs from an earlier sentence by one word" in few.stderr


def test_a_file_for_each_paradigm_and_a_record(tmp_path: Path) -> None:
    invoke("generate minimal-pairs --per-paradigm 4 --only binding --seed 2 --out", tmp_path)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert [file.stem for file in files] == [
        *("reflexive_in_own_clause", "reflexive_is_no_subject", "reflexive_needs_c_command")
    ]
    assert [len(file.read_text().splitlines()) for file in files] == [4, 4, 4]
    record = json.loads((tmp_path / "minimal-pairs.meta.json").read_text())
    assert (record["seed"], record["per_paradigm"]) == (2, 4)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'field = "syntax"\nphenomenon = "order"\n'
        '[swap]\ngood = "NAME[agr=he] REFL[agr=he]"\nbad = "REFL NAME"\n'
    )
    options = ("--paradigms", own, "--out", tmp_path / "pairs")
    invoke("generate minimal-pairs --per-paradigm 2 --quiet", *options)
    rows = (tmp_path / "pairs" / "swap.jsonl").read_text().splitlines()
    assert json.loads(rows[0])["sentence_bad"].startswith("Himself ")


def test_an_unknown_name_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="paradigm or phenomenon nonsense; the names are"):
        invoke("generate minimal-pairs --only nonsense --out", tmp_path)
