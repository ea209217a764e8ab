"""`contstim evaluate` and `train acceptability` as a user runs them."""

import csv
import json
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from typer.testing import Result

from contstim.english import generate
from contstim.errors import ContstimError, InputError, ScoreError
from contstim.evaluation.minimal_pairs import pair_files, read_minimal_pairs
from contstim.files.tables import read_table, write_table
from contstim.models.ngram.adapter import NgramModel
from contstim.testing.platform import read_csv_rows
from contstim.wording import duration
from contstim.words.sentence import Sentence
from tests.cli.running import invoke, model_options
from tests.evaluation.small_data import ITEMS, ROWS, write, write_folder, write_rows
from tests.models.tiny import TEXTS, Folder, train_ngrams

SIDES = ("sentence_good", "sentence_bad")


def evaluate(*arguments: object) -> Result:
    result = invoke("evaluate blimp", *arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with pairs in `data` and the published results."""
    folder = tmp_path / "blimp"
    write_folder(folder / "data")
    summary = folder / "raw_results" / "summary"
    summary.mkdir(parents=True)
    names = dict.fromkeys(row["UID"] for row in ROWS)
    rows = [{"UID": name, "linguistics_term": "x", "gpt2": 0.75} for name in names]
    write_rows(summary / "models_summary.jsonl", rows)
    return folder


@pytest.mark.slow
def test_blimp_writes_report_figures_and_tables(data: Path, trained: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "out", trained / "3gram.arpa"
    result = evaluate("--model", model, "--data", data, "--out", out)
    assert "0.750" in result.stdout
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
    ties = {row["paradigm"]: row[str(model)] for row in read_csv_rows(out / "ties.csv")}
    assert int(ties["agreement_1"]) >= 1


@pytest.mark.usefixtures("unsaved_figures")
def test_table_of_scores_gives_the_same_results(data: Path, trained: Path, tmp_path: Path) -> None:
    """Witness: `contstim score` of the same sentences."""
    model = trained / "3gram.arpa"
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("".join(f"{row[side]}\n" for row in ROWS for side in SIDES))
    invoke("score", "--model", model, "--sentences", sentences, "--out", tmp_path / "s.csv")
    accuracies = []
    for source in (("--scores", tmp_path / "s.csv"), ("--model", model)):
        evaluate(*source, "--data", data, "--out", tmp_path / "out", "--quiet")
        accuracies.append(read_table(tmp_path / "out" / "paradigms.csv")[str(model)][:3])
    assert accuracies[0] == accuracies[1]


@pytest.mark.usefixtures("unsaved_figures")
def test_models_without_a_reading_direction_are_reported(
    data: Path, tmp_path: Path, tiny_checkpoint: Folder
) -> None:
    model = f"hf:{tiny_checkpoint('bert')}@pll-whole-word"
    result = evaluate("--model", model, "--data", data, "--out", tmp_path / "out", "--quiet")
    assert f"one-prefix: {model} with rule pll-whole-word scores whole sentences" in result.stderr
    refusals = read_csv_rows(tmp_path / "out" / "refusals.csv")
    assert [row["method"] for row in refusals] == ["one-prefix", "two-prefix"]


@pytest.mark.usefixtures("unsaved_figures")
@pytest.mark.parametrize(
    ("rule", "tick", "warns"),
    [("chain", 1800, True), ("chain", 1, False), ("pll-whole-word", 1800, False)],
)
def test_slow_chain_rule_warns_and_suggests_a_faster_rule(
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
    n_sentences = len({row[side] for row in ROWS for side in SIDES})
    messages = evaluate(*arguments).stderr
    text = f"bert takes about {duration(tick * n_sentences / 3)} for {n_sentences} sentences"
    assert (text in messages, "@pll-word-l2r" in messages) == (warns, warns)
    # Stored scores take no time
    assert "takes about" not in evaluate(*arguments).stderr


@pytest.mark.usefixtures("unsaved_figures")
def test_sentences_beyond_the_window_are_reported(
    data: Path, tmp_path: Path, tiny_checkpoint: Folder
) -> None:
    long_sentence = "dog " * 200
    row = {**ROWS[5], "pairID": "long", "sentence_bad": long_sentence}
    write_rows(data / "data" / "more.jsonl", [row])
    model = f"hf:{tiny_checkpoint('gpt2')}"
    result = evaluate("--model", model, "--data", data, "--out", tmp_path / "out")
    assert "Without a score: 1 sentence; see left_out.csv" in result.stderr
    (left_out,) = read_csv_rows(tmp_path / "out" / "left_out.csv")
    assert left_out["sentence"] == Sentence.parse(long_sentence).text
    assert "reads at most" in left_out["reason"]
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "At least one model cannot score 1 sentence; see left_out.csv" in report
    rows = read_csv_rows(tmp_path / "out" / "paradigms.csv")
    island = next(row for row in rows if row["paradigm"] == "island_1")
    assert (island["pairs"], island["unread"]) == ("2", "1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((), "--scores"), (("--model", "m.arpa", "--scores", "{text}"), "--scores")],
)
def test_blimp_needs_models_or_scores(
    data: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The dog sleeps.\n", encoding="utf-8")
    options = [argument.format(text=text) for argument in arguments]
    with pytest.raises(ContstimError, match=message):
        evaluate(*options, "--data", data, "--out", tmp_path / "out")


def test_model_named_like_a_column_is_refused(data: Path, tmp_path: Path) -> None:
    sentences = {s for p in read_minimal_pairs(pair_files(data)) for s in (p.good.text, p.bad.text)}
    write_table(
        tmp_path / "s.csv", {"sentence": sorted(sentences), "people": [-1.0] * len(sentences)}
    )
    with pytest.raises(ContstimError, match="must not be named 'people'"):
        evaluate("--scores", tmp_path / "s.csv", "--data", data, "--out", tmp_path / "out")


@pytest.mark.usefixtures("unsaved_figures")
def test_desiderata_need_the_word_counts_of_a_model(trained: Path, tmp_path: Path) -> None:
    """A folder without the counts of a model is an error."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence.text}\n" for sentence in generate(60, seed=9)))
    counts = (trained / "2gram.arpa.counts.csv").read_bytes()
    command = "evaluate desiderata --words 5 --sample 20"
    options = ["--sentences", text, "--model", f"kenlm:{trained / '2gram.arpa'}"]
    options += ["--frequencies", tmp_path, "--out", tmp_path / "out"]
    with pytest.raises(InputError):
        invoke(command, *options)
    (tmp_path / "vocabulary.csv").write_bytes(counts)
    assert invoke(command, *options).exit_code == 0


def write_cola(path: Path) -> Path:
    """Write sentences forwards and backwards in CoLA's format."""
    lines = [
        f"x\t{label}\t\t{' '.join(text[:-1].split()[::step])}{text[-1]}\n"
        for text in TEXTS
        for label, step in ((1, 1), (0, -1))
    ]
    return write(path, "".join(lines))


@pytest.fixture(scope="module")
def classifiers(tiny_checkpoint: Folder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cola")
    data = write_cola(folder / "cola.tsv")
    features = "label\tsentence\tShort\n1\tShe sleeps.\t1\n0\tHer do sleeping of.\t0\n"
    annotations = write(folder / "features.tsv", features)
    sizes = "--restarts 2 --epochs 1 --batch-size 8 --validation 0.25 --device cpu --seed 3".split()
    options = ["--data", data, "--base", tiny_checkpoint("bert"), "--annotations", annotations]
    result = invoke("train acceptability", *options, "--out", folder / "out", *sizes)
    assert "kept apart" in result.stdout
    assert f"Load a classifier as classifier:{folder / 'out' / 'restart-1'}" in result.stderr
    return folder / "out"


def test_restarts_are_summarised_together_and_by_feature(classifiers: Path) -> None:
    (validation, annotations) = read_csv_rows(classifiers / "summary.csv")
    assert (validation["set"], validation["sentences"]) == ("kept apart", "12")
    assert (annotations["set"], annotations["sentences"]) == ("features.tsv", "2")
    assert [row["feature"] for row in read_csv_rows(classifiers / "features.csv")] == ["Short"]
    restarts = read_csv_rows(classifiers / "restarts.csv")[:2]
    correlations = [float(row["matthews"]) for row in restarts]
    assert float(validation["mean"]) == pytest.approx(sum(correlations) / 2)
    assert float(validation["maximum"]) == max(correlations)
    assert len(read_csv_rows(classifiers / "predictions.csv")) == 14
    record = json.loads((classifiers / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["seeds"] == [3, 4]
    assert (classifiers / "restarts.png").is_file()
    assert "## By feature" in (classifiers / "report.md").read_text(encoding="utf-8")


def test_models_and_classifiers_are_evaluated_together(classifiers: Path, tmp_path: Path) -> None:
    """Witness: the deltas of pairs.csv against the model's own scores of the sentences."""
    data = write(tmp_path / "items.csv", ITEMS)
    arpa = train_ngrams(2, tmp_path / "bigram.arpa")
    models = [f"kenlm:{arpa}", f"classifier:{classifiers / 'restart-1'}"]
    out = tmp_path / "out"
    options = ("--data", data, *model_options(models), "--out", out)
    result = invoke("evaluate acceptability --human-z-scores", *options)
    assert all(model.rpartition("/")[2] in result.stdout for model in models)
    assert "Not evaluated: 1 pair, a judgement is missing" in result.stderr
    pairs = read_csv_rows(out / "pairs.csv")
    columns = ("acceptable_id", "unacceptable_id", "people_dispute_experts")
    rows = "a1 a2 0, a1 a4 0, a3 a2 0, a3 a4 0, b1 b2 1"
    assert ", ".join(" ".join(pair[name] for name in columns) for pair in pairs) == rows
    texts = [Sentence.parse(row["sentence"]) for row in csv.DictReader(ITEMS.splitlines())]
    scores = NgramModel(arpa).log_probs(texts)
    z = (scores - scores.mean()) / scores.std()
    assert float(pairs[0][f"delta {models[0]}"]) == pytest.approx(z[0] - z[1])
    record = json.loads((out / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["models"][models[1]]["unit"] == "signed confidence, -1 to 1"
    for name in ("correlations.png", "correlations.pdf", "scatter.png", "phenomena.csv"):
        assert (out / name).is_file()


@pytest.mark.usefixtures("unsaved_figures")
def test_acceptability_accepts_a_table_of_scores(tmp_path: Path) -> None:
    data = write(tmp_path / "items.csv", ITEMS)
    names = [line.partition(",")[0] for line in ITEMS.splitlines()[1:]]
    rows = "".join(f"{name},{i * i},{-i}\n" for i, name in enumerate(names))
    table = write(tmp_path / "scores.csv", f"id,m,n\n{rows}")
    evaluate_scores = partial(invoke, "evaluate acceptability --data", data, "--scores")
    result = evaluate_scores(table, "--column", "n", "--delta", "2", "--out", tmp_path / "n")
    assert "adc-2" in result.stdout
    assert {row["model"] for row in read_csv_rows(tmp_path / "n" / "criteria.csv")} == {"n"}
    (phenomenon, *_) = read_csv_rows(tmp_path / "n" / "phenomena.csv")
    # a3 scores below a2
    cells = [phenomenon[name] for name in ("phenomenon", "pairs", "met")]
    assert cells == ["agreement", "4", "3"]
    lacking = write(tmp_path / "lacking.csv", table.read_text().replace("c2,49,-7", "c2,49,"))
    result = evaluate_scores(lacking, "--allow-missing", "--out", tmp_path / "both")
    assert "Without a score: 1 sentence;" in result.stderr
    assert [row["model"] for row in read_csv_rows(tmp_path / "both" / "left_out.csv")] == ["n"]
    report = (tmp_path / "both" / "report.md").read_text(encoding="utf-8")
    for heading in ("## By phenomenon", "## Pairs on which models differ", "data sha256"):
        assert heading in report
    short_table = write(tmp_path / "short.csv", table.read_text().rpartition("c2")[0])
    with pytest.raises(ScoreError, match="lacks scores of 1 of 8"):
        evaluate_scores(short_table, "--out", tmp_path / "short")
    assert not (tmp_path / "short").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "There is nothing to evaluate"),
        ("--model m.arpa --column m", "--column needs a single table"),
        ("--model m.arpa --scores-as-given", "--scores-as-given is for tables"),
    ],
)
def test_conflicting_options_are_refused(tmp_path: Path, arguments: str, message: str) -> None:
    data = write(tmp_path / "items.csv", ITEMS)
    options = ["--data", data, "--out", tmp_path / "out", *arguments.split()]
    with pytest.raises(ContstimError, match=message):
        invoke("evaluate acceptability", *options)
