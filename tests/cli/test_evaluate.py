"""`contstim evaluate` and `train acceptability` as a user runs them."""

import csv
import json
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contstim.cli.program import app
from contstim.english import generate
from contstim.errors import ContstimError, InputError, ScoreError
from contstim.evaluation.minimal_pairs import pair_files, read_minimal_pairs
from contstim.files.tables import read_table, write_table
from contstim.models.ngram.adapter import NgramModel
from contstim.testing.platform import read_csv_rows
from contstim.wording import duration
from contstim.words.sentence import Sentence
from tests.evaluation.small_data import ITEMS, ROWS, write, write_folder, write_rows
from tests.models.tiny import TEXTS, Folder, train_ngrams

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


@pytest.mark.slow
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
    invoke("score", "--model", model, "--sentences", sentences, "--out", tmp_path / "s.csv")
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
def test_models_without_a_reading_direction_are_named(
    data: Path, tmp_path: Path, tiny_checkpoint: Folder
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
    tiny_checkpoint: Folder,
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
    data: Path, tmp_path: Path, tiny_checkpoint: Folder
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
    assert "At least one model cannot score 1 sentence; see left_out.csv" in report
    rows = _rows(tmp_path / "out" / "paradigms.csv")
    island = next(row for row in rows if row["paradigm"] == "island_1")
    assert (island["pairs"], island["unread"]) == ("2", "1")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [((), "--scores"), (("--model", "m.arpa", "--scores", "{text}"), "--scores")],
)
def test_what_cannot_be_evaluated_is_named(
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
    assert "must not be named 'people'" in str(done.exception)


@pytest.mark.usefixtures("unsaved")
def test_words_come_from_the_folder_of_a_model(trained: Path, tmp_path: Path) -> None:
    """A folder without the counts of a model is refused by name."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence.text}\n" for sentence in generate(60, seed=9)))
    counts = (trained / "2gram.arpa.counts.csv").read_bytes()
    command = ["evaluate", "desiderata", "--words", 5, "--sample", 20, "--sentences", text]
    command += ["--model", f"kenlm:{trained / '2gram.arpa'}", "--frequencies", tmp_path]
    command += ["--out", tmp_path / "out"]
    with pytest.raises(InputError):
        invoke(*command)
    (tmp_path / "vocabulary.csv").write_bytes(counts)
    invoke(*command)


def invoke(*arguments: object) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})
    if done.exception is not None:
        raise done.exception
    return done.stdout, done.stderr


def cola(path: Path) -> Path:
    """Sentences forwards and backwards, in CoLA's format."""
    lines = [
        f"x\t{label}\t\t{' '.join(text[:-1].split()[::step])}{text[-1]}\n"
        for text in TEXTS
        for label, step in ((1, 1), (0, -1))
    ]
    return write(path, "".join(lines))


@pytest.fixture(scope="module")
def judged(tiny_checkpoint: Folder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cola")
    data = cola(folder / "cola.tsv")
    features = "label\tsentence\tShort\n1\tShe sleeps.\t1\n0\tHer do sleeping of.\t0\n"
    annotations = write(folder / "features.tsv", features)
    sizes = "--restarts 2 --epochs 1 --batch-size 8 --validation 0.25 --device cpu --seed 3".split()
    given = ["--data", data, "--base", tiny_checkpoint("bert"), "--annotations", annotations]
    shown, told = invoke("train", "acceptability", *given, "--out", folder / "out", *sizes)
    assert "kept apart" in shown
    assert f"Load a classifier as classifier:{folder / 'out' / 'restart-1'}" in told
    return folder / "out"


def test_restarts_are_judged_together_and_by_feature(judged: Path) -> None:
    (kept, annotated) = read_csv_rows(judged / "summary.csv")
    assert (kept["set"], kept["sentences"]) == ("kept apart", "12")
    assert (annotated["set"], annotated["sentences"]) == ("features.tsv", "2")
    assert [row["feature"] for row in read_csv_rows(judged / "features.csv")] == ["Short"]
    each = [float(row["matthews"]) for row in read_csv_rows(judged / "restarts.csv")[:2]]
    assert float(kept["mean"]) == pytest.approx(sum(each) / 2)
    assert float(kept["maximum"]) == max(each)
    assert len(read_csv_rows(judged / "predictions.csv")) == 14
    record = json.loads((judged / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["seeds"] == [3, 4]
    assert (judged / "restarts.png").is_file()
    assert "## By feature" in (judged / "report.md").read_text(encoding="utf-8")


def test_models_and_classifiers_are_evaluated_together(judged: Path, tmp_path: Path) -> None:
    """Witness: the deltas of pairs.csv against the model's own scores of the sentences."""
    data = write(tmp_path / "items.csv", ITEMS)
    arpa = train_ngrams(2, tmp_path / "bigram.arpa")
    models = [f"kenlm:{arpa}", f"classifier:{judged / 'restart-1'}"]
    given = [part for model in models for part in ("--model", model)]
    out = tmp_path / "out"
    shown, told = invoke(
        "evaluate", "acceptability", "--data", data, *given, "--out", out, "--human-z-scores"
    )
    assert all(model.rpartition("/")[2] in shown for model in models)
    assert "Not evaluated: 1 pair, a judgement is missing" in told
    pairs = read_csv_rows(out / "pairs.csv")
    assert [(p["acceptable_id"], p["unacceptable_id"]) for p in pairs] == [
        ("a1", "a2"),
        ("a1", "a4"),
        ("a3", "a2"),
        ("a3", "a4"),
        ("b1", "b2"),
    ]
    assert [p["people_dispute_experts"] for p in pairs] == ["0", "0", "0", "0", "1"]
    texts = [Sentence.parse(row["sentence"]) for row in csv.DictReader(ITEMS.splitlines())]
    scores = NgramModel(arpa).log_probs(texts)
    z = (scores - scores.mean()) / scores.std()
    assert float(pairs[0][f"delta {models[0]}"]) == pytest.approx(z[0] - z[1])
    record = json.loads((out / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["models"][models[1]]["unit"] == "signed confidence, -1 to 1"
    for name in ("correlations.png", "correlations.pdf", "scatter.png", "phenomena.csv"):
        assert (out / name).is_file()


@pytest.mark.usefixtures("unsaved")
def test_a_table_of_scores_does_as_well(tmp_path: Path) -> None:
    data = write(tmp_path / "items.csv", ITEMS)
    names = [line.partition(",")[0] for line in ITEMS.splitlines()[1:]]
    table = write(
        tmp_path / "scores.csv",
        "id,m,n\n" + "".join(f"{name},{i * i},{-i}\n" for i, name in enumerate(names)),
    )
    given = ["evaluate", "acceptability", "--data", data, "--scores", table]
    shown, _ = invoke(*given, "--column", "n", "--delta", "2", "--out", tmp_path / "n")
    assert "adc-2" in shown
    assert {row["model"] for row in read_csv_rows(tmp_path / "n" / "criteria.csv")} == {"n"}
    (phenomenon, *_) = read_csv_rows(tmp_path / "n" / "phenomena.csv")
    assert (phenomenon["phenomenon"], phenomenon["pairs"], phenomenon["met"]) == (
        "agreement",
        "4",
        "3",  # a3 scores below a2
    )
    lacking = write(tmp_path / "lacking.csv", table.read_text().replace("c2,49,-7", "c2,49,"))
    _, told = invoke(*given[:-1], lacking, "--allow-missing", "--out", tmp_path / "both")
    assert "Without a score: 1 sentence;" in told
    assert [row["model"] for row in read_csv_rows(tmp_path / "both" / "left_out.csv")] == ["n"]
    report = (tmp_path / "both" / "report.md").read_text(encoding="utf-8")
    for heading in ("## By phenomenon", "## Pairs on which models differ", "data sha256"):
        assert heading in report
    short = write(tmp_path / "short.csv", table.read_text().rpartition("c2")[0])
    with pytest.raises(ScoreError, match="lacks scores of 1 of 8"):
        invoke(*given[:-1], short, "--out", tmp_path / "short")
    assert not (tmp_path / "short").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "There is nothing to evaluate"),
        ("--model m.arpa --column m", "--column needs a single table"),
        ("--model m.arpa --scores-as-given", "--scores-as-given is for tables"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, arguments: str, message: str) -> None:
    data = write(tmp_path / "items.csv", ITEMS)
    given = ["--data", data, "--out", tmp_path / "out", *arguments.split()]
    with pytest.raises(ContstimError, match=message):
        invoke("evaluate", "acceptability", *given)
