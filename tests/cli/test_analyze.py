"""`contstim analyze`, `reproduce`, `mixed` and `controls` as a user runs them."""

import json
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from contstim.files.tables import write_table
from contstim.items.stimuli import Condition
from contstim.models.training_text import sentence_hash
from contstim.steps.analysis import STOPPED
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from tests.cli.running import run, succeed, write_experiment
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.experiments.responses.experiment import make_responses, make_trials, scores_of
from tests.steps.records import record_of
from tests.study.small import blank_figures

CONDITIONS = (Condition.NATURAL_CONTROVERSIAL, Condition.CATCH)
FILES = "--trials trials.csv --responses responses.csv --scores scores.csv".split()
OPTIONS = "--out results --contrasts contrasts.csv --pair a c".split()


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return simulate(groups=(30,), conditions=CONDITIONS, each=4)


Analysis = tuple[Path, CompletedProcess[str]]


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory, experiment: Experiment) -> Analysis:
    """The results folder of an analysis of 30 participants, and the finished command."""
    folder = tmp_path_factory.mktemp("people")
    write_experiment(folder, experiment)
    (folder / "contrasts.csv").write_text("first,second\na,b\na,ceiling\nb,ceiling\n")
    return folder / "results", run(folder, "analyze", *FILES, *OPTIONS)


def test_analysis_of_thirty_participants_in_one_group(analysis: Analysis) -> None:
    results, command = analysis
    assert command.returncode == 0, command.stderr
    assert "30 participants kept, 0 left out" in command.stderr
    assert "Agreement with people" in command.stdout
    assert "a has the highest" in command.stdout.splitlines()[-1]
    assert (results / "report.html").is_file()
    assert (results / "figures" / "ranks.pdf").is_file()
    all_rows = read_csv_rows(results / "tables" / "comparisons.csv")
    rows = [row for row in all_rows if row["scope"] == "natural-controversial"]
    contrasts = [("a", "b"), ("a", "ceiling"), ("b", "ceiling")]
    assert [(r["first"], r["second"]) for r in rows[:3]] == contrasts
    assert {r["n_units"] for r in rows} == {"30"}
    record = record_of(results / "report.html")
    assert (record["units"], record["correction"]) == ("crossed", "bh")
    assert "crossed random factors" in (results / "methods.md").read_text()
    assert {"scipy", "matplotlib", "statsmodels"} <= record["versions"].keys()
    input_names = {"trials.csv", "responses.csv", "scores.csv", "contrasts.csv"}
    assert set(record["inputs"]) == {f"../{name}" for name in input_names}
    written_names = {path.relative_to(results).as_posix() for path in results.rglob("*.*")}
    recorded_names = {name.removeprefix("../results/") for name in record["files"]}
    assert recorded_names == written_names - {"report.html.meta.json"}


def test_unusable_sentences_and_participants_are_reported(
    tmp_path: Path, experiment: Experiment
) -> None:
    """Report training sentences and an incomplete participant; accept constant ratings.

    Witness: two natural sentences of the trials, put into the record of the scores by hand. One
    participant stops half-way; another always rates 3, which passes the catch trials.
    """
    responses = [
        replace(r, rating=3) if r.participant == "g1p1" else r
        for r in experiment.responses
        if r.participant != "g1p0" or r.position <= 12
    ]
    write_experiment(tmp_path, replace(experiment, responses=tuple(responses)))
    catch_trials = [t for t in experiment.trials if t.condition is Condition.CATCH]
    other_trials = [t for t in experiment.trials if t.condition is not Condition.CATCH]
    texts = list(dict.fromkeys(s for t in other_trials for s in (t.sentence_1, t.sentence_2)))
    catch_sentences = [trial.sentence_1 for trial in catch_trials]
    training_sentences = (*texts[:2], *catch_sentences, Sentence.parse("Not here"))
    hashes = [f"{sentence_hash(sentence):016x}" for sentence in training_sentences]
    training_texts: dict[str, object] = {"a": {"hashes": hashes}, "b": None, "c": {"hashes": []}}
    (tmp_path / "scores.csv.meta.json").write_text(json.dumps({"training_text": training_texts}))
    (tmp_path / "trials.csv.waves.csv").touch()  # as if the trials belonged to waves
    with blank_figures():
        command = run(tmp_path, "analyze", *FILES, "--out", "results", status=0)
    share = f"2 of {len(texts)} natural sentences ({200 / len(texts):.1f} %)"
    warning = f"{share} occur in the training text of a: their scores may reflect memorisation."
    assert f"warning: {warning}" in command.stderr
    assert warning in (tmp_path / "results" / "report.html").read_text()
    rows = read_csv_rows(tmp_path / "results" / "tables" / "training_texts.csv")
    assert [(row["model"], row["in_training_text"]) for row in rows] == [("a", "2"), ("c", "0")]
    record = record_of(tmp_path / "results" / "report.html")
    assert record["training_text"]["a"]["found"] == 2
    assert record["training_text"]["b"] is None
    assert "g1p0: rated 12 of 24 trials" in command.stderr
    assert "29 participants kept, 1 left out" in command.stderr
    assert STOPPED in command.stderr
    assert STOPPED in (tmp_path / "results" / "report.html").read_text()
    rows = read_csv_rows(tmp_path / "results" / "tables" / "participants.csv")
    values = [float(row["value"]) for row in rows if row["participant"] == "g1p1"]
    assert values
    assert np.isfinite(values).all()


@pytest.mark.slow
def test_artificial_participants_are_reported_with_all_results(
    tmp_path: Path, experiment: Experiment, analysis: Analysis
) -> None:
    """Page, figures, tables, record and terminal report them; results without them do not."""
    unmarked_files = {path.name: path.read_bytes() for path in analysis[0].rglob("*.*")}
    assert "rtificial" not in analysis[1].stdout
    names = list(dict.fromkeys(r.participant for r in experiment.responses))[:3]
    responses = [replace(r, simulated=r.participant in names) for r in experiment.responses]
    write_experiment(tmp_path, replace(experiment, responses=tuple(responses)))
    (tmp_path / "contrasts.csv").write_text("first,second\na,b\na,ceiling\nb,ceiling\n")
    command = run(tmp_path, "analyze", *FILES, *OPTIONS, "--quiet", status=0)
    warning = "Artificial participants: 3 of 30 participants were simulated."
    assert warning in command.stdout
    assert warning in command.stderr
    results = tmp_path / "results"
    body = (results / "report.html").read_text().split("<body>")[1]
    assert body.index(warning) < body.index("<table>")
    assert record_of(results / "report.html")["simulated_participants"] == 3
    for path in (results / "tables").iterdir():
        shares = {row["simulated_participants"] for row in read_csv_rows(path)}
        assert shares == {"3 of 30"}, path
        assert b"simulated" not in unmarked_files[path.name]
    for path in (results / "figures").glob("*.png"):
        assert path.read_bytes() != unmarked_files[path.name]


def test_missing_published_data_are_reported(tmp_path: Path) -> None:
    command = run(tmp_path, "reproduce", "golan2023", "--data", "nowhere", "--out", "out", status=2)
    assert "nowhere contains no published data" in command.stderr
    (tmp_path / "here" / "contstimlang" / "resources").mkdir(parents=True)
    command = run(tmp_path, "reproduce", "golan2023", "--data", "here", "--out", "out", status=2)
    assert "LpZamora/contstimlang (--ratings)" in command.stderr


MIXED = "mixed --trials trials.csv --responses responses.csv --scores scores.csv --out out".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    write_experiment(folder, simulate(groups=(5, 5), follow=0.8))
    return folder


def test_mixed_writes_all_tables_and_ranks_the_true_model_first(folder: Path) -> None:
    output = succeed(folder, *MIXED, "--together", "--people", "intercept")
    assert "72 trials" in output
    assert "log-likelihood" in output
    fits = {row["models"]: row for row in read_csv_rows(folder / "out" / "fits.csv")}
    assert set(fits) == {"(no model)", "a", "b", "c", "a + b", "a + c", "b + c", "a + b + c"}
    assert {row["ratings"] for row in fits.values()} == {"360"}
    assert float(fits["a"]["log_likelihood"]) > float(fits["b"]["log_likelihood"])
    comparisons = read_csv_rows(folder / "out" / "comparisons.csv")
    assert [row["first"] + row["second"] for row in comparisons] == ["ab", "ac", "bc"]
    assert {row["family"] for row in comparisons} == {"3 pairs of models"}
    assert len(read_csv_rows(folder / "out" / "additions.csv")) == 6
    record = (folder / "out" / "fits.csv.meta.json").read_text(encoding="utf-8")
    assert '"thresholds": "symmetric"' in record
    assert '"catch"' not in record


def test_too_few_participants_to_fit_is_an_error(tmp_path: Path) -> None:
    write_experiment(tmp_path, simulate(groups=(1,)))
    command = run(tmp_path, *MIXED, status=2)
    assert "estimate their variance: 1 participant" in command.stderr
    assert not (tmp_path / "out").exists()


def test_each_control_writes_a_table(tmp_path: Path, trained: Path) -> None:
    trials = make_trials()
    responses = make_responses(trials, {"ann": 1, "bob": 1, "cleo": 2, "dora": 2})
    scores = scores_of(trials)
    write_experiment(tmp_path, Experiment(tuple(trials), tuple(responses), scores))
    sentences = list(map(str, scores.sentences or ()))
    lengths = [float(len(sentence.split())) for sentence in sentences]
    constant = [9.0] * len(sentences)
    write_table(tmp_path / "tokens.csv", {"sentence": sentences, "gpt2": lengths, "rnn": constant})
    write_table(tmp_path / "features.csv", {"sentence": sentences, "words": lengths})
    (tmp_path / "corpus.txt").write_text("Alpha beta gamma.\nOther alpha.\n")
    command = "controls --trials trials.csv --responses responses.csv --scores scores.csv --out out"
    controls = "--tokens tokens.csv --features features.csv --text corpus.txt".split()
    output = succeed(tmp_path, command, *controls)
    assert "fewer tokens" in output
    assert "prefers more" in output
    token_counts, preferences = (
        read_csv_rows(tmp_path / "out" / f"{name}.csv")
        for name in ("token_counts", "feature_preferences")
    )
    assert [row["model"] for row in token_counts] == ["gpt2", "rnn"] * 2
    assert {row["feature"] for row in preferences} == {"words", "zipf"}
    model = trained / "2gram.arpa"
    succeed(tmp_path, command, "--model", f"rnn=kenlm:{model}", "--quiet")
    record = json.loads((tmp_path / "out" / "controls.meta.json").read_text(encoding="utf-8"))
    assert model.name in {name.rpartition("/")[2] for name in record["inputs"]}
    assert record["models"]["rnn"]["specification"] == f"kenlm:{model}"
    assert "no control variables" in run(tmp_path, command, status=2).stderr
