"""`contstim vocabulary`, `sentences` and `generate minimal-pairs` as a user runs them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from contstim.testing.platform import read_csv_rows
from contstim.words.vocabulary import Vocabulary
from tests.cli.running import invoke, model_options, run, succeed

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


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _make_vocabulary(folder: Path, *options: str) -> Vocabulary:
    command = ("vocabulary", "--text", "text.txt", "--min-count", "1", "--out", "v.txt")
    succeed(folder, *command, *options)
    return Vocabulary.load(folder / "v.txt")


def test_vocabulary_of_a_messy_text(folder: Path) -> None:
    """Witness: sorted by hand."""
    (folder / "mine.txt").write_text("# too old\nold\n", encoding="utf-8")
    vocabulary = _make_vocabulary(folder, "--without", "mine.txt")
    assert set(vocabulary.initial) == {"The", "We", "In"}
    inner = "dog saw the house in today yesterday of and can see now met last has us"
    assert set(vocabulary.inner) == set(inner.split())
    rows = read_csv_rows(folder / "v.txt.dropped.csv")
    reasons = {row["word"]: row["reason"] for row in rows}
    assert reasons["Rome"] == reasons["Anna"] == reasons["May"] == "a name"
    assert reasons["n"] == reasons["U"] == "a single letter"
    assert reasons["fucking"] == "on the block list"
    assert reasons["old"] == "excluded by the user"
    record = json.loads((folder / "v.txt.meta.json").read_text(encoding="utf-8"))
    assert record["left_out"]["a single letter"] == 4
    assert {"Rome", "Anna"} <= set(_make_vocabulary(folder, "--names", "keep").inner)
    assert "linkedin" in _make_vocabulary(folder, "--every-word").inner


def test_only_words_with_equal_token_counts_are_accepted(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path]
) -> None:
    """Witness: the table; a word is accepted only if all its token counts are equal."""
    text = "The teacher sees hospitals\nShe sees the dog\nUnbelievably the dog sees her\n" * 3
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    models = [f"hf:{tiny_checkpoint(name)}" for name in ("gpt2", "bert")]
    options = ["--same-token-count", "--every-word", "--table", "tokens.csv"]
    vocabulary = _make_vocabulary(tmp_path, *options, *model_options(models))
    rows = read_csv_rows(tmp_path / "tokens.csv")
    assert {row["word"] for row in rows} >= {"teacher", "hospitals", "Unbelievably"}
    for row in rows:
        words = vocabulary.initial if row["place"] == "initial" else vocabulary.inner
        assert (row["word"] in words) == (row[models[0]] == row[models[1]] != "0")
    record = json.loads((tmp_path / "v.txt.meta.json").read_text(encoding="utf-8"))
    assert record["options"]["same_token_count"] is True
    assert set(record["known"]) == set(record["models"]) == set(models)


def test_sentences_of_a_messy_text(folder: Path) -> None:
    """Witness: chosen by hand. The first two differ by one word, so one is excluded."""
    command = ("sentences", "--text", "text.txt", "--repeats", "--words", "8-9")
    succeed(folder, *command, "--out", "s.txt")
    assert read_lines(folder / "s.txt") == [
        "The dog saw the old house in Rome today.",
        "We can see the old house of Anna now.",
        "In the old house the dog has met us.",
    ]
    succeed(folder, *command, "--every-line", "--out", "all.txt")
    assert len(read_lines(folder / "all.txt")) == 9
    succeed(folder, *command, "--names", "0", "--out", "few.txt")
    assert read_lines(folder / "few.txt") == ["In the old house the dog has met us."]


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
def test_unsuitable_options_are_refused(folder: Path, command: str, message: str) -> None:
    assert message in run(folder, command, status=2).stderr


STUDY = "--for-models 2 --triplets-per-pair 1 --pairs-per-pair 0 --random-per-group 0 --groups 3"


def test_missing_sentences_and_costs_of_rules_are_reported(folder: Path) -> None:
    """Witness: the same command with a looser rule, and the sum by hand."""
    command = ("sentences", "--text", "text.txt", "--repeats", "--words", "9", "--out", "s.txt")
    assert "in all" in succeed(folder, *command, *STUDY.split(), "--catch-per-group", "0")
    messages = run(folder, *command, *STUDY.split(), "--catch-per-group", "2", status=3).stderr
    n_sentences = len(read_lines(folder / "s.txt"))
    assert f"{7 - n_sentences} sentences are missing for a study of 2 models" in messages
    record = json.loads((folder / "s.txt.meta.json").read_text(encoding="utf-8"))
    assert record["needed"]["in all"] == 7
    for option, value in (("--words", "8-9"), ("--words", "9-10"), ("--names", "2")):
        run(folder, *command, option, value)
        n_gained = len(read_lines(folder / "s.txt")) - n_sentences
        expected = f"+{n_gained} excluded only because" if n_gained else f"({option} {value})"
        lines = [line for line in messages.splitlines() if f"({option} {value})" in line]
        assert [expected in line for line in lines] == [True] * bool(n_gained)
    assert "+1 excluded only because it differs from an earlier sentence by one word" in messages


def test_minimal_pairs_are_one_file_per_paradigm_and_a_record(tmp_path: Path) -> None:
    invoke("generate minimal-pairs --per-paradigm 4 --only binding --seed 2 --out", tmp_path)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert [file.stem for file in files] == [
        *("reflexive_in_own_clause", "reflexive_is_no_subject", "reflexive_needs_c_command")
    ]
    assert [len(read_lines(file)) for file in files] == [4, 4, 4]
    record = json.loads((tmp_path / "minimal-pairs.meta.json").read_text())
    assert (record["seed"], record["per_paradigm"]) == (2, 4)


def test_minimal_pairs_accept_a_user_file(tmp_path: Path) -> None:
    paradigms = tmp_path / "own.toml"
    paradigms.write_text(
        'field = "syntax"\nphenomenon = "order"\n'
        '[swap]\ngood = "NAME[agr=he] REFL[agr=he]"\nbad = "REFL NAME"\n'
    )
    options = ("--paradigms", paradigms, "--out", tmp_path / "pairs")
    invoke("generate minimal-pairs --per-paradigm 2 --quiet", *options)
    rows = read_lines(tmp_path / "pairs" / "swap.jsonl")
    assert json.loads(rows[0])["sentence_bad"].startswith("Himself ")
