"""`contstim import …` as a user runs it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from contstim.experiments.responses.questionnaire import QuestionAnswer, read_answers
from contstim.experiments.responses.table import read_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import trial_columns
from tests.cli.running import run, succeed
from tests.experiments.platforms.test_jspsych_reading import page, write
from tests.experiments.responses.experiment import make_responses, make_trials

TRIALS = make_trials()
RESPONSES = make_responses(TRIALS, {"9001": 1, "9002": 2})


def test_import_gorilla(tmp_path: Path) -> None:
    half = [r for r in RESPONSES if r.participant == "9001" or r.position <= 10]
    rows = [
        {
            "Participant Private ID": r.participant,
            "trial_id": r.trial_id,
            "shown_left": r.left,
            "Zone Name": f"resp{r.rating if r.left == 1 else 7 - r.rating}",
            "Reaction Time": r.rt_ms,
        }
        for r in half
    ]
    write(tmp_path / "export.csv", rows)
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    said = succeed(
        tmp_path, *"import gorilla export.csv --trials trials.csv --out responses.csv".split()
    )
    assert "9002 did not rate every trial of the group (10:" in said
    assert list(read_responses(tmp_path / "responses.csv")) == half
    record = json.loads((tmp_path / "responses.csv.meta.json").read_text())
    assert record["problems"][0]["participant"] == "9002"
    failed = run(tmp_path, *"import gorilla export.csv --out r.csv".split())
    assert failed.returncode == 2
    assert "--trials" in failed.stderr


def test_columns_about_people_are_kept(tmp_path: Path) -> None:
    """Beside the answers to questions, so that rules of exclusion can ask for them."""
    rows = page(RESPONSES)
    for row in rows:
        row["age"] = {"9001": 31, "9002": "=1+1"}.get(row.get("participant", ""))
    write(tmp_path / "data.json", rows)
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    command = "import jspsych data.json --trials trials.csv --out responses.csv".split()
    succeed(tmp_path, *command, "--keep", "age")
    told = read_answers(tmp_path / "responses.csv.questions.csv")
    assert told == [QuestionAnswer("9001", "age", "31"), QuestionAnswer("9002", "age", "=1+1")]
    failed = run(tmp_path, *command, "--keep", "trial_id")
    assert failed.returncode == 2
    assert "names trial_id, which has several values for 9001" in failed.stderr


def test_of_several_ratings_one_may_be_kept(tmp_path: Path) -> None:
    again = replace(RESPONSES[0], rating=7 - RESPONSES[0].rating)
    write(tmp_path / "data.json", page([*RESPONSES, again]))
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    command = "import jspsych data.json --trials trials.csv --out responses.csv".split()
    assert "9001 rated the same trial more than once" in succeed(tmp_path, *command)
    for which, kept in (("first", RESPONSES[0]), ("last", again)):
        said = run(tmp_path, *command, "--duplicates", which)
        assert "every participant rated every trial" in said.stdout
        assert (
            f"(the {which} rating of a trial is kept): 1 further rating by 9001, {again.trial_id}."
            in said.stderr
        )
        first, *others = read_responses(tmp_path / "responses.csv")
        assert first.rating == kept.rating
        assert others == RESPONSES[1:]
