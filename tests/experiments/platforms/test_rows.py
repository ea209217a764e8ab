"""Files as platforms and spreadsheets write them; witness: the README of the example files."""

import json
import math
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.jspsych import import_jspsych
from contstim.experiments.platforms.pcibex import import_pcibex
from contstim.experiments.platforms.psychopy import import_psychopy
from contstim.experiments.platforms.qualtrics import import_qualtrics
from contstim.experiments.responses.checks import Problem
from contstim.items.stimuli import read_trials

CASES = Path(__file__).with_name("cases")
TRIALS = read_trials(CASES / "trials.csv")
IDS = [trial.trial_id for trial in TRIALS]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.txt"


@pytest.mark.parametrize(
    ("name", "n_participants", "n_rated"),
    [  # participants, and number of ratings of each (of nine trials)
        ("jatos-appended-components.txt", 1, 9),
        ("jatos-csv-two-headers.txt", 2, 9),
        ("jatos-empty-result-between.txt", 2, 9),
        ("jatos-json-concatenated-no-newline.txt", 2, 9),
        ("jatos-json-lines.txt", 2, 9),
        ("psychopy-blank-rows-of-outer-loops.csv", 1, 9),
        ("psychopy-quotes-not-doubled.csv", 1, 9),
        ("psychopy-standard.csv", 1, 9),
        ("qualtrics-numeric.csv", 2, 9),
        ("qualtrics-only-question-header.csv", 2, 9),
        ("qualtrics-unanswered-as--99.csv", 2, 8),
    ],
)
def test_file_of_a_platform_is_read(name: str, n_participants: int, n_rated: int) -> None:
    if name.startswith("qualtrics"):
        result = import_qualtrics([CASES / name], TRIALS, key=CASES / "qualtrics-key.csv")
    else:
        import_file = import_psychopy if name.startswith("psychopy") else import_jspsych
        result = import_file([CASES / name], TRIALS)
    ratings = {
        participant: [r for r in result.responses if r.participant == participant and r.rating > 0]
        for participant in result.report.participants
    }
    assert list(map(len, ratings.values())) == [n_rated] * n_participants
    assert result.unreadable == ()
    assert {f.problem for f in result.report.errors} <= {Problem.NO_RATING, Problem.UNFINISHED}
    assert len(result.report.of(Problem.NO_RATING)) == (0 if n_rated == 9 else n_participants)


def make_row(n: int, **cells: object) -> dict[str, object]:
    """Return a trial of a jsPsych page: the left sentence is the first, the button is 1 + n % 6."""
    defaults = {"trial_id": IDS[n], "left": 1, "response": n % 6, "rt": 900.5 + n}
    return {**defaults, "participant": "p1", **cells}


FOUR = [make_row(n) for n in range(4)]
LINES = "\n".join(map(json.dumps, FOUR))
BROKEN = LINES.splitlines()
CSV = "\n".join([",".join(FOUR[0]), *(",".join(map(str, cells.values())) for cells in FOUR)])
HEADER, *ROWS = CSV.splitlines()
JSON = json.dumps(FOUR)
EXCEL = CSV.replace(",", ";").replace(".5", ",5")
UNNAMED = [{k: v for k, v in cells.items() if k != "participant"} for cells in FOUR]


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        json.dumps(FOUR, indent=2),
        LINES,
        ",\n".join(BROKEN) + ",\n",
        json.dumps(FOUR[:2]) + json.dumps(FOUR[2:]),
        json.dumps(FOUR[:2]) + "\n[]\nnull\n\n" + json.dumps(FOUR[2:], indent=4),
        json.dumps([FOUR[:2], FOUR[2:]]),
        json.dumps({"trials": FOUR}),
        json.dumps({"participant": "p1", "data": {"trials": UNNAMED}}),
        json.dumps([{"trials": FOUR[:2]}, {"trials": FOUR[2:]}]),
        JSON.rstrip("]"),
        json.dumps(JSON),
        json.dumps([{"view_history": [{"page_index": 0}]}, *FOUR]),
        json.dumps([{k: str(v) for k, v in cells.items()} for cells in FOUR]),
        CSV,
        CSV.replace("\n", "\r"),
        CSV.replace("\n", "\r\n\r\n") + "\r\n,,,,\r\n",
        "\n".join([HEADER, *ROWS[:2], HEADER, *ROWS[2:]]),
        "\n".join([HEADER, *ROWS[:2], "left,trial_id,participant,rt,response"])
        + "".join(f"\n1,{IDS[n]},p1,{900.5 + n},{n % 6}" for n in (2, 3)),
        "\n".join(f"{line}," for line in CSV.splitlines()),
        "\n".join(f'"{line}"'.replace(",", '","') for line in CSV.splitlines()),
        EXCEL,
        "sep=;\n" + EXCEL,
        EXCEL.replace(";", "\t"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_page_data_are_read_in_every_format(path: Path, text: str, encoding: str) -> None:
    """Lines, lists, objects and tables are recognized by content, not by the file name."""
    path.write_bytes(text.encode(encoding))
    result = import_jspsych([path], TRIALS)
    assert [(r.trial_id, r.rating, r.rt_ms) for r in result.responses] == [
        (IDS[n], n + 1, 900.5 + n) for n in range(4)
    ]
    assert {r.participant for r in result.responses} == {"p1"}
    assert result.unreadable == ()


@pytest.mark.parametrize(
    ("text", "line", "skipped"),
    [
        (LINES[:-20], 4, 3),  # cut off, as after a crash
        (JSON[:-20], 1, 3),
        (json.dumps(FOUR, indent=2)[:-20], 23, 3),
        (LINES.replace(BROKEN[1], BROKEN[1][:30]), 2, 1),
        (JSON.replace('"response": 1', '"response: 1'), 1, 1),  # all rows are on line 1
        (JSON.replace("901.5", "9" * 5000), 1, 1),
        (JSON.replace('"response": 1', '"respond": 1'), 1, 1),
        (LINES.replace(BROKEN[1], BROKEN[1][:-1] + ', "trial_id": "again"}'), 2, 1),
        (LINES.replace(BROKEN[1], "undefined"), 2, 1),
        (LINES.replace(BROKEN[0], "Results of 2026-11-29"), 1, 0),
        (json.dumps(FOUR[:3])[:-20] + json.dumps(FOUR[3:]), 1, 2),
        (json.dumps([FOUR[0], make_row(1, response=9), *FOUR[2:]], indent=2), 9, 1),
        (json.dumps([FOUR[0], make_row(1, response=math.inf), *FOUR[2:]]), 1, 1),
        (json.dumps([FOUR[0], make_row(1, response=True), *FOUR[2:]]), 1, 1),
        (CSV.replace(ROWS[1], ROWS[1] + ",x"), 3, 1),
        (CSV[:-9], 5, 3),
        (CSV.replace(ROWS[1], '"' + ROWS[1]), 3, 1),
        (EXCEL.replace("901,5", "1.901,5"), 3, 1),
    ],
)
def test_only_unreadable_rows_are_skipped(path: Path, text: str, line: int, skipped: int) -> None:
    path.write_text(text, encoding="utf-8")
    result = import_jspsych([path], TRIALS)
    assert [r.trial_id for r in result.responses] == [IDS[n] for n in range(4) if n != skipped]
    (unreadable,) = result.unreadable
    assert str(unreadable).startswith(f"{path}, line {line}")


@pytest.mark.parametrize("missing", ["null", '"null"', "NaN", '""'])
def test_missing_response_is_unrated(path: Path, missing: str) -> None:
    path.write_text(JSON.replace('"response": 1', f'"response": {missing}'), encoding="utf-8")
    result = import_jspsych([path], TRIALS)
    assert [r.rating for r in result.responses] == [1, -1, 3, 4]


@pytest.mark.parametrize(
    "runs", [json.dumps(UNNAMED) * 2, json.dumps({"a": UNNAMED, "b": UNNAMED}), 2 * f"{CSV[:-3]}\n"]
)
def test_several_runs_without_names_raise_an_error(path: Path, runs: str) -> None:
    path.write_text(runs.replace("participant", "code"), encoding="utf-8")
    with pytest.raises(InputError, match="contains 2 runs but no name of a participant"):
        import_jspsych([path], TRIALS)


def test_truncated_and_invalid_pcibex_lines_are_reported(tmp_path: Path) -> None:
    names = "Order number of item,PennElementType,PennElementName,Parameter,Value,EventTime"
    comments = [f"# {n}. {name}." for n, name in enumerate([*names.split(","), "trial_id"], 1)]
    comments += ["# 8. left.", "# 9. participant."]
    lines = [f"{n},Selector,rating,Selection,{n + 1},100,{IDS[n]},1,a%2C b" for n in range(4)]
    lines[1] = lines[1].replace(",100,", ",soon,")
    path = tmp_path / "results.csv"
    path.write_text("\r\n".join([*comments, *lines])[:-9], encoding="utf-8-sig")
    result = import_pcibex([path], TRIALS)
    assert [(r.participant, r.rating) for r in result.responses] == [("a, b", 1), ("a, b", 3)]
    locations = sorted(str(make_row).partition(":")[0] for make_row in result.unreadable)
    assert locations == [f"{path}, line 11", f"{path}, line 13"]
