"""`contstim evaluate blimp` and `contstim evaluate desiderata` as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contstim.cli.program import app
from contstim.english import generate
from contstim.errors import ContstimError, InputError
from contstim.evaluation.minimal_pairs import pair_files, read_minimal_pairs
from contstim.files.tables import read_table, write_table
from contstim.models.ngram.adapter import NgramModel
from contstim.wording import duration
from contstim.words.sentence import Sentence
from tests.evaluation.blimp_files import ROWS, write_folder, write_rows

SIDES = ("sentence_good", "sentence_bad")


def evaluate(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", "blimp", *map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with pairs in `data` and what was published beside."""
    folder = tmp_path / "blimp"
    write_folder(folder / "data")
    summary = folder / "raw_results" / "summary"
    summary.mkdir(parents=True)
    names = dict.fromkeys(row["UID"] for row in ROWS)
    rows = [{"UID": name, "linguistics_term": "x", "gpt2": 0.75} for name in names]
    write_rows(summary / "models_summary.jsonl", rows)
    return folder


def test_everything_is_written(data: Path, trained: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "out", trained / "3gram.arpa"
    done = evaluate("--model", model, "--data", data, "--out", out)
    assert done.exit_code == 0, done.output
    assert "0.750" in done.stdout
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "## Ties" in report
    assert NgramModel(model).convention.fingerprint in report
    for figure in ("phenomena-full-sentence", "phenomena-two-prefix", "correlations", "profile"):
        assert f"![{figure}]({figure}.png)" in report
        assert (out / f"{figure}.pdf").stat().st_size > 1_000
    record = json.loads((out / "report.md.meta.json").read_text(encoding="utf-8"))
    assert (record["pairs"], record["ties"], record["sample"]) == (7, "wrong", "all")
    paradigms = read_table(out / "paradigms.csv")
    assert paradigms["gpt2 (published)"] == ["0.75"] * 3 + [""] * 2
    assert paradigms["method"] == ["full-sentence"] * 3 + ["one-prefix", "two-prefix"]
    known = {row["paradigm"]: row[str(model)] for row in _rows(out / "ties.csv")}
    assert int(known["agreement_1"]) >= 1


@pytest.mark.usefixtures("unsaved")
def test_a_table_of_scores_gives_the_same(data: Path, trained: Path, tmp_path: Path) -> None:
    """Witness: `contstim score` of the same sentences."""
    model = trained / "3gram.arpa"
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("".join(f"{row[side]}\n" for row in ROWS for side in SIDES))
    score = ["score", "--model", model, "--sentences", sentences, "--out", tmp_path / "s.csv"]
    assert CliRunner().invoke(app, list(map(str, score))).exit_code == 0
    found = []
    for source in (("--scores", tmp_path / "s.csv"), ("--model", model)):
        done = evaluate(*source, "--data", data, "--out", tmp_path / "out", "--quiet")
        assert done.exit_code == 0, done.output
        found.append(read_table(tmp_path / "out" / "paradigms.csv")[str(model)][:3])
    assert found[0] == found[1]


def _rows(path: Path) -> list[dict[str, str]]:
    table = read_table(path)
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


@pytest.mark.usefixtures("unsaved")
def test_a_model_that_does_not_read_on_is_told_of(
    data: Path, tmp_path: Path, tiny_checkpoint: Callable[[str], Path]
) -> None:
    model = f"hf:{tiny_checkpoint('bert')}@pll-whole-word"
    done = evaluate("--model", model, "--data", data, "--out", tmp_path / "out", "--quiet")
    assert done.exit_code == 0, done.output
    assert f"one-prefix: {model} with rule pll-whole-word scores whole sentences" in done.stderr
    refused = _rows(tmp_path / "out" / "refusals.csv")
    assert [row["method"] for row in refused] == ["one-prefix", "two-prefix"]


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize(
    ("rule", "tick", "warns"),
    [("chain", 1800, True), ("chain", 1, False), ("pll-whole-word", 1800, False)],
)
def test_hours_under_a_rule_over_orders_are_told_before_with_the_quick_way(
    data: Path,
    tmp_path: Path,
    tiny_checkpoint: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    rule: str,
    tick: float,
    warns: bool,
) -> None:
    """Witness: a clock on which three sentences take one tick."""
    monkeypatch.setattr("contstim.steps.evaluation.perf_counter", count(0, tick).__next__)
    monkeypatch.setattr("contstim.steps.evaluation._MANY", 1)
    model = f"bert=hf:{tiny_checkpoint('bert')}@{rule}"
    arguments = ("--model", model, "--data", data, "--out", tmp_path / "out", "--quiet")
    sentences = len({row[side] for row in ROWS for side in SIDES})
    done = evaluate(*arguments)
    assert done.exit_code == 0, done.output
    text = f"bert takes about {duration(tick * sentences / 3)} for {sentences} sentences"
    assert (text in done.stderr, "@pll-word-l2r" in done.stderr) == (warns, warns)
    # Scores that are there take no time
    assert "takes about" not in evaluate(*arguments).stderr


@pytest.mark.usefixtures("unsaved")
def test_sentences_beyond_the_window_are_counted_and_listed(
    data: Path, tmp_path: Path, tiny_checkpoint: Callable[[str], Path]
) -> None:
    long = "dog " * 200
    row = {**ROWS[5], "pairID": "long", "sentence_bad": long}
    write_rows(data / "data" / "more.jsonl", [row])
    model = f"hf:{tiny_checkpoint('gpt2')}"
    done = evaluate("--model", model, "--data", data, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Without a score: 1 sentence; see left_out.csv" in done.stderr
    (left_out,) = _rows(tmp_path / "out" / "left_out.csv")
    assert left_out["sentence"] == Sentence.parse(long).text
    assert "reads at most" in left_out["reason"]
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "Some model cannot score 1 sentence (left_out.csv)" in report
    rows = _rows(tmp_path / "out" / "paradigms.csv")
    island = next(row for row in rows if row["paradigm"] == "island_1")
    assert (island["pairs"], island["unread"]) == ("2", "1")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [((), "--scores"), (("--model", "m.arpa", "--scores", "{text}"), "--scores")],
)
def test_what_cannot_be_done_is_said(
    data: Path, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The dog sleeps.\n", encoding="utf-8")
    given = [argument.format(text=text) for argument in arguments]
    done = evaluate(*given, "--data", data, "--out", tmp_path / "out")
    assert isinstance(done.exception, ContstimError)
    assert complaint in str(done.exception)


def test_a_model_called_like_a_column_is_refused(data: Path, tmp_path: Path) -> None:
    sides = {s for p in read_minimal_pairs(pair_files(data)) for s in (p.good.text, p.bad.text)}
    write_table(tmp_path / "s.csv", {"sentence": sorted(sides), "people": [-1.0] * len(sides)})
    done = evaluate("--scores", tmp_path / "s.csv", "--data", data, "--out", tmp_path / "out")
    assert "must not be 'people'" in str(done.exception)


@pytest.mark.usefixtures("unsaved")
def test_words_come_from_the_folder_of_a_model(trained: Path, tmp_path: Path) -> None:
    """A folder without the counts of a model is refused by name."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence.text}\n" for sentence in generate(60, seed=9)))
    counts = (trained / "2gram.arpa.counts.csv").read_bytes()
    command = ["evaluate", "desiderata", "--out", str(tmp_path / "out"), "--sentences", str(text)]
    command += ["--model", f"kenlm:{trained / '2gram.arpa'}", "--frequencies", str(tmp_path)]
    result = CliRunner().invoke(app, [*command, "--words", "5", "--sample", "20"])
    assert isinstance(result.exception, InputError)
    (tmp_path / "vocabulary.csv").write_bytes(counts)
    result = CliRunner().invoke(app, [*command, "--words", "5", "--sample", "20"])
    assert result.exit_code == 0
