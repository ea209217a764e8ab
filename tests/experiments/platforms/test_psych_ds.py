"""Psych-DS: exports follow the rules, and the checker names each violation."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.psych_ds import PLATFORM, check_psych_ds, export_psych_ds
from contstim.experiments.responses.questionnaire import (
    QuestionAnswer,
    questions_beside,
    write_answers,
)
from contstim.experiments.responses.table import UNRATED, Response, write_responses
from contstim.items.scores import ScoreTable
from contstim.testing.platform import ExportContract, read_csv_rows
from contstim.words.sentence import Sentence
from tests.experiments.platforms.hostile import hostile_trials
from tests.experiments.responses.experiment import make_responses, scores_of

TRIALS = hostile_trials()
RESPONSES = make_responses(TRIALS, {"5f1e": 1, "=cmd()": 2, "<i>": 1})
SETTINGS: dict[str, Any] = {
    "name": "Controversial pairs, 1",
    "authors": ("Ada Lovelace",),
    "licence": "CC0",
}
DATA = "study-Controversialpairs1_description-{}_data.csv"


def scores() -> ScoreTable:
    return scores_of(TRIALS)


def write(
    out: Path,
    responses: Sequence[Response] = (),
    table: ScoreTable | None = None,
    **settings: Any,
) -> Path:
    """Export with tables that are written next to the folder."""
    paths = {"responses": out.with_name("r.csv"), "scores": out.with_name("s.npz")}
    if responses:
        write_responses(paths["responses"], responses)
        settings["responses"] = paths["responses"]
    if table:
        table.write(paths["scores"])
        settings["scores"] = paths["scores"]
    return export_psych_ds(TRIALS, out, **SETTINGS | settings).path


def export(out: Path) -> Path:
    return write(out, RESPONSES, scores())


def test_names_columns_and_metadata_follow_the_schema(tmp_path: Path) -> None:
    """The regular expression and the keys are copied from the published schema 1.5.1."""
    folder = export(tmp_path)
    pattern = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.(csv|tsv)")
    files = sorted((folder / "data").iterdir())
    assert [pattern.fullmatch(path.name) is not None for path in files] == [True] * 3
    description = json.loads((folder / "dataset_description.json").read_text(encoding="utf-8"))
    assert (description["@context"], description["@type"]) == ("https://schema.org/", "Dataset")
    columns = {column for path in files for column in read_csv_rows(path)[0]}
    assert {variable["name"] for variable in description["variableMeasured"]} == columns
    assert {variable["@type"] for variable in description["variableMeasured"]} == {"PropertyValue"}
    assert all(variable["description"] for variable in description["variableMeasured"])
    assert description["name"] == "Controversial pairs, 1"
    assert check_psych_ds(folder) == ([], [])


def test_tables_contain_the_data_without_names(tmp_path: Path) -> None:
    data = export(tmp_path) / "data"
    stimuli = read_csv_rows(data / DATA.format("stimuli"))
    for row, trial in zip(stimuli, TRIALS, strict=True):
        assert row["trial_id"] == trial.trial_id
        assert Sentence.parse(row["sentence_2"]) == trial.sentence_2
    responses = read_csv_rows(data / DATA.format("responses"))
    numbers = {"5f1e": "P1", "=cmd()": "P2", "<i>": "P3"}
    for row, response in zip(responses, RESPONSES, strict=True):
        assert row["participant"] == numbers[response.participant]
        assert (row["trial_id"], int(row["rating"])) == (response.trial_id, response.rating)
        assert float(row["rt_ms"]) == response.rt_ms
    assert len(read_csv_rows(data / DATA.format("scores"))) == len(scores().sentences or ())
    text = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "5f1e" not in text


class TestContract(ExportContract):
    """The table of stimuli shows each trial once, and its sentences with their end marks."""

    platform = PLATFORM

    def lists(self, folder: Path) -> dict[str, list[dict[str, str]]]:
        (path,) = (folder / "data").glob("*stimuli_data.csv")
        lists: dict[str, list[dict[str, str]]] = {}
        for row in read_csv_rows(path):
            lists.setdefault(row["group"], []).append({**row, "left": "1"})
        return lists

    def displayed_texts(self, row: Mapping[str, str]) -> tuple[str, str]:
        first, second = (Sentence.parse(row[f"sentence_{n}"]) for n in (1, 2))
        return first.displayed_text, second.displayed_text


def test_missing_values_are_empty_and_names_optional(tmp_path: Path) -> None:
    unrated = replace(RESPONSES[0], rating=UNRATED, left=0, position=0, rt_ms=float("nan"))
    folder = write(tmp_path / "out", [unrated], keep_names=True)
    (row,) = read_csv_rows(folder / "data" / DATA.format("responses"))
    assert [row[name] for name in ("rating", "left", "position", "rt_ms")] == [""] * 4
    assert row["participant"] == "5f1e"


def test_invalid_exports_raise_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must contain a letter or a digit"):
        write(tmp_path / "a", name="—")
    unknown_trial = replace(RESPONSES[0], trial_id="practice-1")
    with pytest.raises(InputError, match="not in the table of trials: practice-1"):
        write(tmp_path / "b", [unknown_trial])
    scores_without_sentences = ScoreTable(None, scores().models, scores().log_probs)
    with pytest.raises(InputError, match="The scores have no sentences"):
        write(tmp_path / "c", (), scores_without_sentences)
    scores_of_rating = ScoreTable(scores().sentences, ("rating", "b"), scores().log_probs[:, :2])
    with pytest.raises(InputError, match="rating must not be the name of a model"):
        write(tmp_path / "d", (), scores_of_rating)


def test_simulated_responses_need_a_setting_and_are_marked(tmp_path: Path) -> None:
    robots = [replace(r, simulated=r.participant != "5f1e") for r in RESPONSES]
    with pytest.raises(InputError, match=r"2 of 3 participants were simulated.* must state this"):
        write(tmp_path / "a", robots)
    with pytest.raises(
        InputError, match="of artificial participants, but there are no such answers"
    ):
        write(tmp_path / "a", RESPONSES, simulated=True)
    assert not (tmp_path / "a").exists()
    folder = write(tmp_path / "b", robots, simulated=True)
    description = json.loads((folder / "dataset_description.json").read_text(encoding="utf-8"))
    assert description["name"] == "Controversial pairs, 1 (people and artificial participants)"
    assert "2 of 3 participants were simulated" in description["description"]
    assert "2 of 3 participants were simulated" in (folder / "README.md").read_text()
    rows = read_csv_rows(folder / "data" / DATA.format("responses"))
    names = {(row["participant"], row["simulated"]) for row in rows}
    assert names == {("P1", "false"), ("simulated-2", "true"), ("simulated-3", "true")}
    robots = [replace(r, simulated=True) for r in RESPONSES]
    folder = write(tmp_path / "c", robots, simulated=True)
    assert "no human participants" in (folder / "README.md").read_text()


def damage(folder: Path, path: str, content: bytes | None) -> None:
    """Write a file, or remove a file or folder."""
    target = folder / path
    if content is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    elif target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()


DESCRIPTION, STUDY_DATA = "dataset_description.json", "data/study-x_data.csv"


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        (DESCRIPTION, None, "MISSING_DATASET_DESCRIPTION"),
        (DESCRIPTION, b"{", "INVALID_JSON_FORMATTING"),
        (DESCRIPTION, b"[]", "INVALID_JSON_FORMATTING"),
        (DESCRIPTION, b'{"name": "\xff"}', "JSON_ENCODING_ERROR"),
        ("data", None, "MISSING_DATA_DIRECTORY"),
        ("data/trials.csv", b"a\n1\n", "FILENAME_KEYWORD_FORMATTING_ERROR"),
        ("data/part2-x_data.csv", b"a\n1\n", "FILENAME_KEYWORD_FORMATTING_ERROR"),
        (STUDY_DATA, b"rating,mood\n1,2\n", "CSV_COLUMN_MISSING_FROM_METADATA"),
        (STUDY_DATA, b"rating,left\n1\n", "CSV_HEADER_LENGTH_MISMATCH"),
        (STUDY_DATA, b"rating,rating\n1,2\n", "CSV_HEADER_REPEATED"),
        (STUDY_DATA, b"", "CSV_HEADER_MISSING"),
        (STUDY_DATA, b'rating\n"1\n', "CSV_FORMATTING_ERROR"),
    ],
)
def test_broken_file_codes(tmp_path: Path, path: str, content: bytes | None, code: str) -> None:
    """Codes are those of the published schema."""
    folder = export(tmp_path)
    damage(folder, path, content)
    errors, _ = check_psych_ds(folder)
    assert code in {error.partition(":")[0] for error in errors}


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("variableMeasured", ["mood"], "VARIABLE_MISSING_FROM_CSV_COLUMNS"),
        ("name", None, "JSON_KEY_REQUIRED"),
        ("@context", None, "JSON_KEY_REQUIRED"),
        ("@type", None, "MISSING_DATASET_TYPE"),
        ("@type", "Person", "INCORRECT_DATASET_TYPE"),
    ],
)
def test_each_invalid_description_gives_its_code(
    tmp_path: Path, key: str, value: str | list[str] | None, code: str
) -> None:
    """The key is absent, has another value, or names an additional variable."""
    folder = export(tmp_path)
    description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    old_value = description.pop(key)
    if value is not None:
        description[key] = old_value + value if isinstance(value, list) else value
    damage(folder, DESCRIPTION, json.dumps(description).encode())
    assert {error.partition(":")[0] for error in check_psych_ds(folder)[0]} == {code}


def test_row_ids_are_unique_and_sidecars_override(tmp_path: Path) -> None:
    """A sidecar describes its own table; row_id must not repeat."""
    folder = export(tmp_path)
    damage(folder, "data/deep/study-x_data.csv", b"row_id\n1\n1\n")
    sidecar = {"variableMeasured": ["row_id"]}
    damage(folder, "data/deep/study-x_data.json", json.dumps(sidecar).encode())
    errors, _ = check_psych_ds(folder)
    assert errors == ["ROWID_VALUES_NOT_UNIQUE: data/deep/study-x_data.csv"]
    damage(folder, "data/deep/study-x_data.csv", b"row_id\n1\n2\n")
    assert check_psych_ds(folder) == ([], [])
    damage(folder, "data/deep/study-x_data.json", b"{}")
    damage(folder, "data/deep/file_metadata.json", json.dumps(sidecar).encode())
    assert check_psych_ds(folder) == ([], [])


def test_recommendations_are_warnings(tmp_path: Path) -> None:
    folder = export_psych_ds(TRIALS, tmp_path, name="pairs").path
    errors, warnings = check_psych_ds(folder)
    assert errors == []
    assert {warning.partition(":")[0] for warning in warnings} == {"JSON_KEY_RECOMMENDED"}
    damage(folder, "README.md", None)
    damage(folder, "data/mood-x_data.csv", b"trial_id\n1\n")
    codes = {warning.partition(":")[0] for warning in check_psych_ds(folder)[1]}
    assert {"MISSING_README_DOC", "FILENAME_UNOFFICIAL_KEYWORD_WARNING"} <= codes
    with pytest.raises(InputError, match="There is no folder"):
        check_psych_ds(folder / "absent")


def test_answers_to_questions_are_exported_without_names(tmp_path: Path) -> None:
    """Only participants in the responses are exported, and only answers to the questions."""
    write_responses(tmp_path / "r.csv", RESPONSES)
    names = [RESPONSES[0].participant, "somebody else"]
    path = questions_beside(tmp_path / "r.csv")
    id_row = QuestionAnswer(names[0], "PROLIFIC_PID", "5f1e")  # as kept by `import --keep`
    remark = QuestionAnswer(names[0], "remarks", "I am Ann")
    write_answers(path, [*(QuestionAnswer(name, "age", "31") for name in names), id_row, remark])
    questions = tmp_path / "questions.csv"
    questions.write_text(
        "name,when,kind,question,options\nage,before,number,How old?,18|99\n"
        "remarks,after,text,Anything?,\n"
    )
    folder = write(tmp_path / "out", RESPONSES, questions=questions)
    (row,) = read_csv_rows(folder / "data" / DATA.format("answers"))
    (first, *_) = read_csv_rows(folder / "data" / DATA.format("responses"))
    assert row == {"participant": first["participant"], "question": "age", "answer": "31"}
    variables = json.loads((folder / "dataset_description.json").read_text())["variableMeasured"]
    (question,) = [variable for variable in variables if variable["name"] == "question"]
    assert question["valueReference"] == ["age: How old?"]  # remarks may identify a participant
    with pytest.raises(InputError, match="`questions` needs `responses`"):
        write(tmp_path / "none", questions=questions)
