"""The commands of the first study as a user types them, and errors on bad input."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from contstim.cli.program import app
from contstim.english import generate
from contstim.models.ngram.adapter import NgramModel
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.cli.running import run, succeed
from tests.interrupts import wait_for_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, english: list[Sentence]) -> Path:
    """A folder with a text, its models, a vocabulary and natural sentences."""
    folder = tmp_path_factory.mktemp("study")
    text = "".join(f"{s.text}\n" for s in english)
    (folder / "corpus.txt").write_text(text, encoding="utf-8")
    other_text = "".join(f"{s.text}\n" for s in generate(400, seed=11, words=8))
    (folder / "more.txt").write_text(other_text, encoding="utf-8")
    for n, name in ((2, "bigram"), (3, "trigram")):
        out = f"{name}.arpa"
        succeed(folder, "train", "ngram", "--text", "corpus.txt", "--order", str(n), "--out", out)
    succeed(folder, "vocabulary", "--text", "corpus.txt", "--min-count", "10", "--out", "vocab.txt")
    arguments = "--words 8 --vocabulary vocab.txt --exclude corpus.txt --out natural.txt"
    succeed(folder, "sentences", "--text", "more.txt", *arguments.split())
    return folder


MODELS = ("--model", "kenlm:bigram.arpa", "--model", "kenlm:trigram.arpa")
SEARCH = ("--frame", "none", "--restarts", "1")
SYNTHESIZE = "synthesize --accept kenlm:trigram.arpa --reject kenlm:bigram.arpa"


def test_score_writes_a_column_and_the_convention_of_each_model(folder: Path) -> None:
    """Witness: KenLM in this process."""
    succeed(folder, "score", *MODELS, "--sentences", "natural.txt", "--out", "scores.csv")
    table = read_csv_rows(folder / "scores.csv")
    assert list(table[0]) == ["sentence", "kenlm:bigram.arpa", "kenlm:trigram.arpa"]
    model = NgramModel(folder / "trigram.arpa")
    expected = model.log_probs([Sentence.parse(row["sentence"]) for row in table])
    np.testing.assert_array_equal([float(r["kenlm:trigram.arpa"]) for r in table], expected)
    record = json.loads((folder / "scores.csv.meta.json").read_text())
    convention = record["models"]["kenlm:trigram.arpa"]
    assert convention["unit"] == "nats"
    assert convention["fingerprint"] == model.convention.fingerprint
    assert record["command"][1] == "score"
    assert record["versions"]["contstim"]


def test_score_accepts_a_table_of_pairs(folder: Path) -> None:
    succeed(folder, "score", *MODELS, "--sentences", "natural.txt", "--out", "scores.csv")
    options = ("--per-pair", "3", "--no-repeats", "--out", "pairs.csv")
    succeed(folder, "select", "natural", "--scores", "scores.csv", *options)
    succeed(folder, "score", *MODELS, "--sentences", "pairs.csv", "--out", "again.csv")
    rows, new_rows = (read_csv_rows(folder / f"{name}.csv") for name in ("scores", "again"))
    assert len(new_rows) == 6
    assert all(row in rows for row in new_rows)


def test_synthesize_is_deterministic_and_keeps_the_constraint(folder: Path) -> None:
    """Witness: KenLM in this process."""
    natural = (folder / "natural.txt").read_text().splitlines()[0]
    command = (f"{SYNTHESIZE} --vocabulary vocab.txt --sentence", natural, *SEARCH)
    result = json.loads(succeed(folder, *command, "--seed", "4", "--json"))
    assert result == json.loads(succeed(folder, *command, "--seed", "4", "--json"))
    texts = [Sentence.parse(result["natural"]), Sentence.parse(result["synthetic"])]
    accept_scores, reject_scores = (
        NgramModel(folder / f"{name}.arpa").log_probs(texts) for name in ("trigram", "bigram")
    )
    assert accept_scores[1] >= accept_scores[0]
    assert reject_scores[1] < reject_scores[0]
    assert result["log_probs_synthetic"] == {"accept": accept_scores[1], "reject": reject_scores[1]}
    output = succeed(folder, *command, "--seed", "4")
    assert result["end"] in " ".join(output.split())


def test_unknown_words_are_dropped_and_counted_unless_allowed(folder: Path) -> None:
    vocabulary = Vocabulary.load(folder / "vocab.txt")
    extended = Vocabulary(
        vocabulary.initial, (*vocabulary.inner, "zyzzyva", "qwx"), vocabulary.repeatable
    )
    extended.save(folder / "more-words.txt")
    natural = (folder / "natural.txt").read_text().splitlines()[0]
    command = (f"{SYNTHESIZE} --vocabulary more-words.txt --sentence", natural, *SEARCH)
    messages = run(folder, *command).stderr
    assert "2 of" in messages
    assert "not all models know them" in messages
    assert json.loads(succeed(folder, *command, "--allow-unknown", "--json"))["words_dropped"] == 0


def test_vocabulary_keeps_words_known_to_a_model(folder: Path) -> None:
    """Witness: the words of the model's training text."""
    training_words = {w.strip(".?") for w in (folder / "corpus.txt").read_text().split()}
    (folder / "other.txt").write_text("The dog helped the zyzzyva\nThe dog helped the woman\n")
    options = ("--min-count", "1", "--model", "kenlm:bigram.arpa", "--out", "known.txt")
    succeed(folder, "vocabulary", "--text", "other.txt", *options)
    expected = {"dog", "helped", "the", "zyzzyva", "woman"} & training_words
    assert set(Vocabulary.load(folder / "known.txt").inner) == expected
    assert len(expected) >= 3


def test_models_lists_families_and_published_models(folder: Path) -> None:
    output = succeed(folder, "models")
    assert "kenlm:" in output
    assert "gpt2-xl" in output


SCORES = "sentence,a,b\nThe cat sat,-1,-2\nThe dog ran,-2,-1\n"
BAD = {
    "empty.txt": b"",
    "latin.txt": "Grüße aus Köln\n".encode("latin-1"),
    "short.txt": b"Hi\n",
    "few.csv": SCORES.encode(),
    "zip.npz": b"",
    "sheet.xlsx": b"sentence\ta\n",
    "vocabulary/vocab_cap.pkl": b"\x80\x03]q\x00(X\xff\xff\xff\xff",
    "lists.txt": b"The\n",
}
SCORE = "score --model kenlm:bigram.arpa --sentences"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("train ngram --text empty.txt --out x.arpa", "empty.txt"),
        ("train ngram --text latin.txt --out x.arpa", "latin.txt.*line 1, byte 3"),
        ("train ngram --text corpus.txt --order 7 --out x.arpa", "order.* 6.* 7"),
        ("train ngram --text short.txt --order 4 --out x.arpa", "4"),
        ("train ngram --text corpus.txt --out corpus.txt/x.arpa", "corpus.txt"),
        ("vocabulary --text corpus.txt --min-count x --out v.txt", "--min-count.*'x'"),
        ("vocabulary --text corpus.txt --min-count 99999 --out v.txt", "99999"),
        ("vocabulary --out v.txt", "--text.*--published"),
        ("vocabulary --published . --out v.txt", "pickle"),
        ("vocabulary --published none --out v.txt", "none"),
        ("vocabulary --text corpus.txt --same-token-count --out v.txt", "--model"),
        ("demo --out corpus.txt", "corpus.txt"),
        (f"{SCORE} corpus.txt --out .", "--out"),
        (f"{SCORE} sheet.xlsx --out s.csv", "sheet.xlsx"),
        (f"{SCORE} short.txt --out s.csv --store corpus.txt", "corpus.txt"),
        ("score --model kenlm:none.arpa --sentences corpus.txt --out s.csv", "none.arpa"),
        ("score --model what --sentences corpus.txt --out s.csv", "what"),
        ("select natural --scores zip.npz --out p.csv", "zip.npz"),
        ("select natural --scores few.csv --repeatable lists.txt --out p.csv", "--no-repeats"),
        ("select natural --scores unequal.npz --out p.csv", "a 3, b 2"),
        ("select natural --scores few.csv --per-pair 5 --out p.csv", "a .* b"),
        ("select natural --scores few.csv --per-pair 0 --out p.csv", "per.pair"),
        ("sentences --text corpus.txt --words 99 --out n.txt", "99"),
        ("sentences --text corpus.txt --vocabulary none.txt --out n.txt", "none.txt"),
        (f"{SYNTHESIZE} --vocabulary vocab.txt --sentence .", "'.'"),
        (f"{SYNTHESIZE} --vocabulary vocab.txt --sentence The+zyzzyva+sat", "zyzzyva"),
    ],
)
def test_bad_input_ends_with_one_message_and_status_2(
    folder: Path, command: str, pattern: str
) -> None:
    for name, content in BAD.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    np.savez(folder / "unequal.npz", a=np.zeros(3), b=np.zeros(2))
    result = run(folder, *(part.replace("+", " ") for part in command.split()), status=2)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    error = result.stderr.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert re.search(pattern, error), error


def test_killed_score_resumes_where_it_stopped(folder: Path) -> None:
    """Kill the process after some scores are stored; the second run scores only the others."""
    text = "".join(f"She saw {i} dogs in the garden\n" for i in range(60_000))
    (folder / "many.txt").write_text(text)
    store = folder / "killed.sqlite"
    arguments = ["--sentences", "many.txt", "--out", "many.csv", "--store", store.name, "--quiet"]
    command = [sys.executable, "-m", "contstim", "score", *MODELS[:2], *arguments]
    process = subprocess.Popen(command, cwd=folder, text=True)
    wait_for_rows("score", store, process)
    process.kill()
    process.wait()
    connection = sqlite3.connect(store)
    counts = connection.execute("SELECT count(*), count(DISTINCT sentence) FROM score").fetchone()
    altered_row = connection.execute("SELECT sentence FROM score LIMIT 1").fetchone()
    connection.execute("UPDATE score SET log_prob = -1234.5 WHERE sentence = ?", altered_row)
    connection.commit()
    connection.close()
    assert 0 < counts[0] == counts[1] < 60_000
    assert not (folder / "many.csv").exists()
    succeed(folder, "score", *MODELS[:2], *arguments[:-1])
    table = read_csv_rows(folder / "many.csv")
    assert len({row["sentence"] for row in table}) == 60_000
    altered_sentences = [row["sentence"] for row in table if row["kenlm:bigram.arpa"] == "-1234.5"]
    assert altered_sentences == [altered_row[0]]


def test_prose_is_excluded_as_prose(folder: Path) -> None:
    """Split the excluded text into sentences too: in running text no line is a sentence."""
    prose = (Path(__file__).parents[1] / "words" / "prose.txt").read_text(encoding="utf-8")
    (folder / "train.prose.txt").write_text(prose)
    (folder / "new.prose.txt").write_text(f"{prose} A woman waited for\nher sister.\n")
    options = ("--prose", "--words", "6", "--out", "p.txt")
    succeed(folder, "sentences", "--text", "new.prose.txt", *options)
    all_sentences = (folder / "p.txt").read_text().splitlines()
    exclude = ("--exclude", "train.prose.txt")
    succeed(folder, "sentences", "--text", "new.prose.txt", *options, *exclude)
    new_sentences = (folder / "p.txt").read_text().splitlines()
    first, second = all_sentences
    assert first == "The harbour was quiet that morning."
    assert new_sentences == [second] == ["A woman waited for her sister."]


def test_training_sentences_are_counted(folder: Path, english: list[Sentence]) -> None:
    """Witness: 20 sentences of the training text among new ones, counted by hand."""
    new_lines = (folder / "natural.txt").read_text().splitlines()
    command = "score --model kenlm:bigram.arpa --sentences natural.txt --out new.csv"
    assert "training text" not in run(folder, command).stderr
    training_lines = [sentence.text for sentence in dict.fromkeys(english)][:20]
    (folder / "mixed.txt").write_text("\n".join([*training_lines, *new_lines[:60]]) + "\n")
    result = run(folder, "score --sentences mixed.txt --out mixed.csv -q", *MODELS, status=0)
    share = f"20 of 80 sentences (25.0 %) occur in the training text of {MODELS[1]}, {MODELS[3]}"
    assert f"warning: {share}" in result.stderr
    record = json.loads((folder / "mixed.csv.meta.json").read_text())
    assert record["training_text"]["kenlm:bigram.arpa"]["found"] == 20
    select = "select natural --scores mixed.csv --per-pair 5 --out mixed-pairs.csv -q"
    result = run(folder, select, status=0)
    selected = {row[n] for row in read_csv_rows(folder / "mixed-pairs.csv") for n in SIDES}
    n_training = len(selected & {*training_lines})
    record = json.loads((folder / "mixed-pairs.csv.meta.json").read_text())
    training_text = record["training_text"]["kenlm:trigram.arpa"]
    assert (training_text["sentences"], training_text["found"]) == (len(selected), n_training)
    assert f"{n_training} of {len(selected)} selected sentences" in result.stderr
    assert n_training > 0


SIDES = ("sentence_1", "sentence_2")


def test_help_fits_on_a_screen_and_starts_with_common_options() -> None:
    environment = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    overview = CliRunner().invoke(app, ["--help"], env=environment).stdout
    assert len(overview.splitlines()) <= 52
    command_help = CliRunner().invoke(app, ["triplets", "--help"], env=environment).stdout
    common, _, further_options = command_help.partition("Options")[2].partition("Further options")
    assert re.findall(r"--[a-z-]+", common.partition("--quiet")[0]) == [
        *("--model", "--sentences", "--out", "--judge", "--vocabulary")
    ]
    assert "--judge-drop" in further_options
