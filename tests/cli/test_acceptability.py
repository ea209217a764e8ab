"""`contstim train acceptability` and `contstim evaluate acceptability` as a user runs them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contstim.cli.program import app
from contstim.errors import ContstimError, ScoreError
from contstim.models.ngram.adapter import NgramModel
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from tests.evaluation.judged_tables import ITEMS, write
from tests.models.tiny import TEXTS, train_ngrams


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
def trained(
    tiny_checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
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


def test_restarts_are_judged_together_and_by_feature(trained: Path) -> None:
    (kept, annotated) = read_csv_rows(trained / "summary.csv")
    assert (kept["set"], kept["sentences"]) == ("kept apart", "12")
    assert (annotated["set"], annotated["sentences"]) == ("features.tsv", "2")
    assert [row["feature"] for row in read_csv_rows(trained / "features.csv")] == ["Short"]
    each = [float(row["matthews"]) for row in read_csv_rows(trained / "restarts.csv")[:2]]
    assert float(kept["mean"]) == pytest.approx(sum(each) / 2)
    assert float(kept["maximum"]) == max(each)
    assert len(read_csv_rows(trained / "predictions.csv")) == 14
    record = json.loads((trained / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["seeds"] == [3, 4]
    assert (trained / "restarts.png").is_file()
    assert "## By feature" in (trained / "report.md").read_text(encoding="utf-8")


def test_models_and_classifiers_are_evaluated_together(trained: Path, tmp_path: Path) -> None:
    """Witness: the deltas of pairs.csv against the model's own scores of the sentences."""
    data = write(tmp_path / "items.csv", ITEMS)
    arpa = train_ngrams(2, tmp_path / "bigram.arpa")
    models = [f"kenlm:{arpa}", f"classifier:{trained / 'restart-1'}"]
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
