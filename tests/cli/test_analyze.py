"""`contstim analyze` and `contstim reproduce` as a user runs them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, trial_columns
from contstim.models.training_text import sentence_hash
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from tests.cli.running import run
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.steps.records import record_of
from tests.study.small import blank_figures

CONDITIONS = (Condition.NATURAL_CONTROVERSIAL, Condition.CATCH)
FILES = "--trials trials.csv --responses responses.csv --scores scores.csv".split()
OPTIONS = "--out results --contrasts contrasts.csv --pair a c".split()


@pytest.fixture(scope="module")
def made() -> Experiment:
    return simulate(groups=(30,), conditions=CONDITIONS, each=4)


def write(folder: Path, made: Experiment) -> None:
    write_table(folder / "trials.csv", trial_columns(made.trials))
    write_responses(folder / "responses.csv", made.responses)
    made.scores.write(folder / "scores.csv")


@pytest.fixture(scope="module")
def of_people(
    tmp_path_factory: pytest.TempPathFactory, made: Experiment
) -> tuple[Path, CompletedProcess[str]]:
    """The folder of an analysis of thirty people, and what it said."""
    folder = tmp_path_factory.mktemp("people")
    write(folder, made)
    (folder / "contrasts.csv").write_text("first,second\na,b\na,ceiling\nb,ceiling\n")
    return folder / "results", run(folder, "analyze", *FILES, *OPTIONS)


def test_thirty_people_in_one_group(of_people: tuple[Path, CompletedProcess[str]]) -> None:
    results, done = of_people
    assert done.returncode == 0, done.stderr
    assert "30 participants kept, 0 left out" in done.stderr
    assert "Agreement with people" in done.stdout
    assert "a has the highest" in done.stdout.splitlines()[-1]
    assert (results / "report.html").is_file()
    assert (results / "figures" / "ranks.pdf").is_file()
    rows = [
        r
        for r in read_csv_rows(results / "tables" / "comparisons.csv")
        if r["scope"] == "natural-controversial"
    ]
    contrasts = [("a", "b"), ("a", "ceiling"), ("b", "ceiling")]
    assert [(r["first"], r["second"]) for r in rows[:3]] == contrasts
    assert {r["n_units"] for r in rows} == {"30"}
    record = record_of(results / "report.html")
    assert (record["units"], record["correction"]) == ("crossed", "bh")
    assert "crossed random factors" in (results / "methods.md").read_text()
    assert {"scipy", "matplotlib", "statsmodels"} <= record["versions"].keys()
    read = {"trials.csv", "responses.csv", "scores.csv", "contrasts.csv"}
    assert set(record["inputs"]) == {f"../{name}" for name in read}
    written = {path.relative_to(results).as_posix() for path in results.rglob("*.*")}
    listed = {name.removeprefix("../results/") for name in record["files"]}
    assert listed == written - {"report.html.meta.json"}


def test_who_and_what_cannot_be_judged_by_is_named(tmp_path: Path, made: Experiment) -> None:
    """Natural sentences that a model was trained on, half a participant, and equal ratings.

    Witness: two natural sentences of the trials, put into the record of the scores by hand. One
    participant stops half-way; another gives 3 throughout, which passes the catch trials.
    """
    kept = [
        replace(r, rating=3) if r.participant == "g1p1" else r
        for r in made.responses
        if r.participant != "g1p0" or r.position <= 12
    ]
    write(tmp_path, replace(made, responses=tuple(kept)))
    rated = [trial for trial in made.trials if trial.condition is not Condition.CATCH]
    texts = list(dict.fromkeys(t for one in rated for t in (one.sentence_1, one.sentence_2)))
    catch = [trial.sentence_1 for trial in made.trials if trial.condition is Condition.CATCH]
    told_of = (*texts[:2], *catch, Sentence.parse("Not here"))
    hashes = [f"{sentence_hash(sentence):016x}" for sentence in told_of]
    told: dict[str, object] = {"a": {"hashes": hashes}, "b": None, "c": {"hashes": []}}
    (tmp_path / "scores.csv.meta.json").write_text(json.dumps({"training_text": told}))
    with blank_figures():
        done = run(tmp_path, "analyze", *FILES, "--out", "results")
    assert done.returncode == 0, done.stderr
    share = f"2 of {len(texts)} natural sentences ({200 / len(texts):.1f} %)"
    said = f"{share} occur in the training text of a: their scores may reflect memorisation."
    assert f"warning: {said}" in done.stderr
    assert said in (tmp_path / "results" / "report.html").read_text()
    found = {
        row["model"]: int(row["in_training_text"])
        for row in read_csv_rows(tmp_path / "results" / "tables" / "training_texts.csv")
    }
    assert found == {"a": 2, "c": 0}
    record = json.loads((tmp_path / "results" / "report.html.meta.json").read_text())
    assert record["training_text"]["a"]["found"] == 2
    assert record["training_text"]["b"] is None
    assert "g1p0: rated 12 of 24 trials" in done.stderr
    assert "29 participants kept, 1 left out" in done.stderr
    rows = [
        r
        for r in read_csv_rows(tmp_path / "results" / "tables" / "participants.csv")
        if r["participant"] == "g1p1"
    ]
    assert rows
    assert np.isfinite([float(r["value"]) for r in rows]).all()


def test_artificial_participants_are_named_wherever_results_stand(
    tmp_path: Path, made: Experiment, of_people: tuple[Path, CompletedProcess[str]]
) -> None:
    """Page, figures, tables, record and terminal; and results of people say nothing of it."""
    of_people_alone = {path.name: path.read_bytes() for path in of_people[0].rglob("*.*")}
    assert "rtificial" not in of_people[1].stdout
    names = list(dict.fromkeys(r.participant for r in made.responses))[:3]
    marked = [replace(r, simulated=r.participant in names) for r in made.responses]
    write(tmp_path, replace(made, responses=tuple(marked)))
    (tmp_path / "contrasts.csv").write_text("first,second\na,b\na,ceiling\nb,ceiling\n")
    done = run(tmp_path, "analyze", *FILES, *OPTIONS, "--quiet")
    warning = "Artificial participants: 3 of 30 participants were simulated."
    assert done.returncode == 0, done.stderr
    assert warning in done.stdout
    assert warning in done.stderr
    results = tmp_path / "results"
    body = (results / "report.html").read_text().split("<body>")[1]
    assert body.index(warning) < body.index("<table>")
    assert record_of(results / "report.html")["simulated_participants"] == 3
    for path in (results / "tables").iterdir():
        shares = {row["simulated_participants"] for row in read_csv_rows(path)}
        assert shares == {"3 of 30"}, path
        assert b"simulated" not in of_people_alone[path.name]
    for path in (results / "figures").glob("*.png"):
        assert path.read_bytes() != of_people_alone[path.name]


def test_published_data_that_are_not_there(tmp_path: Path) -> None:
    done = run(tmp_path, "reproduce", "golan2023", "--data", "nowhere", "--out", "out")
    assert done.returncode == 2
    assert "nowhere contains no published data" in done.stderr
    (tmp_path / "here" / "contstimlang" / "resources").mkdir(parents=True)
    done = run(tmp_path, "reproduce", "golan2023", "--data", "here", "--out", "out")
    assert done.returncode == 2
    assert "Name this file (--ratings)" in done.stderr
