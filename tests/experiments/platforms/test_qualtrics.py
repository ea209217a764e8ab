"""Qualtrics: the exported survey in advanced TXT format, and importing its data."""

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.qualtrics import PLATFORM, export_qualtrics, import_qualtrics
from contstim.experiments.platforms.texts import button_labels, labels
from contstim.experiments.responses.checks import Problem
from contstim.items.scale import Scale
from contstim.testing.platform import PlantedAnswers, PlatformContract, read_csv_rows, read_html
from tests.experiments.platforms.hostile import People, hostile_trials, write_rows

TRIALS = hostile_trials()
PEOPLE = {"R_1": "L01", "R_2": "L04", "R_3": "L02", "R_4": "L03"}
TAG = re.compile(r"\[\[(\w+)(?::(.*?))?\]\]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("qualtrics")
    return export_qualtrics(TRIALS, out, timing=True, seed=4).path


Question = dict[str, list[str]]


def parse_survey(text: str) -> dict[str, list[Question]]:
    """Return the questions of each block; a line in double brackets is a tag."""
    lines = text.splitlines()
    assert lines[0] == "[[AdvancedFormat]]"
    blocks: dict[str, list[Question]] = {}
    text_lines: list[str] = []
    for line in lines[1:]:
        tag = TAG.fullmatch(line)
        if tag is None:
            if line:
                text_lines.append(line)
        elif tag[1] == "Block":
            questions = blocks.setdefault(tag[2], [])
        elif tag[1] == "Question":
            questions.append({"type": [tag[2]], "text": (text_lines := [])})
        elif tag[1] == "ID":
            questions[-1]["id"] = [tag[2]]
        elif tag[1] == "Choice":
            questions[-1].setdefault("values", []).append(tag[2])
            text_lines = questions[-1].setdefault("choices", [])
        else:
            assert tag[1] in ("AdvancedChoices", "PageBreak")
    return blocks


def test_survey_has_a_block_per_list_and_a_page_per_trial(folder: Path) -> None:
    text = (folder / "survey.txt").read_text(encoding="utf-8")
    blocks = parse_survey(text)
    assert list(blocks) == ["L01", "L02", "L03", "L04"]
    assert text.count("[[PageBreak]]") == 80
    key = {row["tag"]: row for row in read_csv_rows(folder / "key.csv")}
    by_id = {trial.trial_id: trial for trial in TRIALS}
    pairs = [q for questions in blocks.values() for q in questions if q["type"] != ["Timing"]]
    timers = [q for questions in blocks.values() for q in questions if q["type"] == ["Timing"]]
    assert [q["id"][0] for q in pairs] == list(key)
    assert [q["id"][0] for q in timers] == [tag.replace("Q", "T") for tag in key]
    for question in pairs:
        row = key[question["id"][0]]
        trial = by_id[row["trial_id"]]
        texts = trial.displayed_texts
        left, right = texts if row["left"] == "1" else texts[::-1]
        (markup,) = question["text"]
        displayed_text, tags = read_html(markup)
        assert displayed_text == left + right + labels("en")["question"]
        assert tags == ["table", "tr", "td", "td", "p"]
        assert question["type"] == ["MC:SingleAnswer:Horizontal"]
        assert question["values"] == list("123456")
        choices = [read_html(choice)[0] for choice in question["choices"]]
        assert choices == list(button_labels(Scale.CONFIDENCE, "en"))


def test_sentences_contain_no_piped_text_or_tags(folder: Path) -> None:
    """Piped text begins with `${`; tags are in double brackets."""
    text = (folder / "survey.txt").read_text(encoding="utf-8")
    assert "${" not in text
    assert set(re.findall(r"\[\[(\w+)", text)) == {
        *("AdvancedFormat", "Block", "Question", "ID", "AdvancedChoices", "Choice", "PageBreak")
    }
    assert all(line.count("[[") <= 1 for line in text.splitlines())


def data(
    folder: Path,
    path: Path,
    planted: PlantedAnswers,
    *,
    timing: bool = True,
    people: People = PEOPLE,
) -> list[dict[str, object]]:
    """Write a CSV export: three header rows, then a row for each participant with one block."""
    key = read_csv_rows(folder / "key.csv")
    columns = ["StartDate", "Status", "Finished", "ResponseId", "DistributionChannel"]
    for row in key:
        columns.append(row["tag"])
        if timing:
            times = ("First Click", "Last Click", "Page Submit", "Click Count")
            columns += [f"{row['tag'].replace('Q', 'T')}_{measure}" for measure in times]
    texts = {name: f"{name}\n- the question" for name in columns}
    imports = {name: json.dumps({"ImportId": f"QID_{name}"}) for name in columns}
    rows: list[dict[str, object]] = [dict(texts), dict(imports)]
    for person, name in people.items():
        metadata = ("2026-11-21 13:00:00", "0", "1", person, "anonymous")
        answer: dict[str, object] = dict(zip(columns, metadata, strict=False))
        for row in (key_row for key_row in key if key_row["list_name"] == name):
            position = int(row["position"])
            button, rt_ms = planted.press(person, row["trial_id"], row["left"], position)
            answer[row["tag"]] = button
            if timing:
                answer[f"{row['tag'].replace('Q', 'T')}_Page Submit"] = rt_ms / 1_000
        rows.append(answer)
    write_rows(path, rows, columns)
    return rows


class TestContract(PlatformContract):
    """Sentences are read from the survey, because the key does not contain them."""

    platform = PLATFORM
    settings = {"timing": True}  # noqa: RUF012

    def lists(self, folder: Path) -> dict[str, list[dict[str, str]]]:
        blocks = parse_survey((folder / "survey.txt").read_text(encoding="utf-8"))
        markup = {q["id"][0]: q["text"] for questions in blocks.values() for q in questions}
        lists = super().lists(folder)
        for rows in lists.values():
            for row in rows:
                cells = re.findall(r"<td[^>]*>(.*?)</td>", markup[row["tag"]][0])
                row["left_sentence"], row["right_sentence"] = (html.unescape(c) for c in cells)
        return lists

    def data(self, folder: Path, out: Path, answers: PlantedAnswers, people: People) -> list[Path]:
        data(folder, out / "data.csv", answers, people=people)
        return [out / "data.csv"]

    def reading(self, folder: Path) -> Mapping[str, Any]:
        return {"key": folder / "key.csv"}


def test_previews_and_unfinished_responses_are_reported(folder: Path, tmp_path: Path) -> None:
    planted = PlantedAnswers(TRIALS)
    rows = data(folder, tmp_path / "data.csv", planted)
    columns = list(rows[0])
    rows[2]["DistributionChannel"] = "preview"
    rows[3]["Status"] = "1"
    first = planted.responses[40]
    key = read_csv_rows(folder / "key.csv")
    tags = {(key_row["list_name"], key_row["trial_id"]): key_row["tag"] for key_row in key}
    del rows[4][tags["L02", first.trial_id]]
    rows.append({"ResponseId": "R_9", "Status": "0"})
    write_rows(tmp_path / "data.csv", rows, columns)
    result = import_qualtrics([tmp_path / "data.csv"], TRIALS, key=folder / "key.csv")
    assert list(result.responses) == planted.responses[41:]
    (finding,) = result.report.findings
    assert (finding.problem, finding.about) == (Problem.UNFINISHED, (first.trial_id,))
    assert any("2 previews" in note and "R_1, R_2" in note for note in result.notes)
    assert "These participants gave no ratings: R_9." in result.notes


def test_unknown_trials_and_duplicates_are_reported(folder: Path, tmp_path: Path) -> None:
    """A participant occurs twice, and the table of trials lacks a trial."""
    planted = PlantedAnswers(TRIALS)
    rows = data(folder, tmp_path / "data.csv", planted)
    columns = [*rows[0], "PROLIFIC_PID"]
    for row in rows:
        row["PROLIFIC_PID"] = row["ResponseId"]
    rows[4]["PROLIFIC_PID"] = "R_1"
    write_rows(tmp_path / "data.csv", rows, columns)
    missing_trial = planted.responses[0].trial_id
    trials = [trial for trial in TRIALS if trial.trial_id != missing_trial]
    result = import_qualtrics(
        [tmp_path / "data.csv"], trials, key=folder / "key.csv", participant="PROLIFIC_PID"
    )
    unknown = result.report.of(Problem.UNKNOWN_TRIAL)
    assert [(f.participant, f.about) for f in unknown] == [("R_1", (missing_trial,))]
    (duplicate,) = result.report.of(Problem.DUPLICATE)
    assert (duplicate.participant, len(duplicate.about)) == ("R_1", 19)


def test_mismatched_files_raise_errors(folder: Path, tmp_path: Path) -> None:
    rows = data(folder, tmp_path / "data.csv", PlantedAnswers(TRIALS), timing=False)
    columns = list(rows[0])
    key = folder / "key.csv"
    with pytest.raises(InputError, match="lacks the columns PROLIFIC_PID"):
        import_qualtrics([tmp_path / "data.csv"], TRIALS, key=key, participant="PROLIFIC_PID")
    with pytest.raises(InputError, match="lacks the columns tag"):
        import_qualtrics([tmp_path / "data.csv"], TRIALS, key=folder / "lists.csv")
    rows[2]["L01Q001"] = button_labels(Scale.CONFIDENCE, "en")[0]
    write_rows(tmp_path / "text.csv", rows, columns)
    result = import_qualtrics([tmp_path / "text.csv"], TRIALS, key=key)
    (cell,) = result.unreadable
    assert re.search(r", L01Q001 of R_1: .*numeric values", str(cell))
    (tmp_path / "other.csv").write_text("ResponseId,Q1\nR_1,2\n")
    with pytest.raises(InputError, match="no column of the questions"):
        import_qualtrics([tmp_path / "other.csv"], TRIALS, key=key)
