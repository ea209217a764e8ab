"""Gorilla: the user's own spreadsheet filled in, and answers in the format of both builders."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.gorilla import (
    PLATFORM,
    GorillaOptions,
    GorillaSettings,
    export_gorilla,
    import_gorilla,
)
from contstim.experiments.responses.checks import Problem
from contstim.stimuli import Trial
from contstim.testing.platform import PlantedAnswers, PlatformContract, read_csv_rows
from tests.experiments.platforms.hostile import hostile_trials
from tests.experiments.responses.experiment import make_responses, make_trials
from tests.experiments.responses.exports import gorilla_rows, is_rating, write_gorilla

TRIALS = hostile_trials()
PEOPLE = {"9001": "L01", "9002": "L04", "9003": "L02"}
TEMPLATE = """\
Display,randomise_blocks,randomise_trials,text A,text B,feedback,time limit
hello,,,,,,
trial,,1,The cat,The dog,none,8000
trial,,1,One more,Another,none,8000
goodbye,,,,,,
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gorilla")
    path = tmp_path_factory.mktemp("template") / "task.csv"
    path.write_text(TEMPLATE, encoding="utf-8-sig")
    settings = GorillaSettings(path, left="Text a", right="text B", seed=4)
    return export_gorilla(TRIALS, out, settings).path


def test_the_template_is_filled_and_otherwise_kept(folder: Path) -> None:
    rows = read_csv_rows(folder / "L02.csv")
    header = TEMPLATE.splitlines()[0].split(",")
    assert list(rows[0]) == [*header, "trial_id", "list_name", "shown_left"]
    assert [row["Display"] for row in rows] == ["hello", *["trial"] * 20, "goodbye"]
    trials = rows[1:-1]
    assert {row["trial_id"] for row in trials} == {t.trial_id for t in TRIALS if t.group == 1}
    kept = {(row["randomise_trials"], row["feedback"], row["time limit"]) for row in trials}
    assert kept == {("1", "none", "8000")}
    assert not any(rows[0][name] for name in header[1:])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("display,a\ntrial,x\n", {}, "no column 'sentence_left'"),
        ("randomise,sentence_left,sentence_right\n1,2,3\n", {}, "no column 'display'"),
        ("display,a,b\ntask,x,y\n", {"left": "a", "right": "b"}, "display is 'trial'; they are"),
        ("display,a\ntrial,x\n", {"left": "a", "right": "a"}, "need two columns, not 'a' alone"),
        (
            "display,a,b\ntrial,,\npause,,\ntrial,,\n",
            {"left": "a", "right": "b"},
            "other rows between",
        ),
    ],
)
def test_templates_that_do_not_fit_are_refused(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    path = tmp_path / "task.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        export_gorilla(TRIALS, tmp_path / "out", replace(GorillaSettings(path), **options))


def data(
    folder: Path,
    path: Path,
    planted: PlantedAnswers,
    *,
    prefix: str = "",
    people: Mapping[str, str] = PEOPLE,
) -> Path:
    """An event for each answer, fixations and instructions between them; spreadsheet cells as sent.

    Task Builder 2 puts `Spreadsheet: ` before the names of spreadsheet columns and calls buttons by
    Object Name; Task Builder 1 writes the names alone, and Zone Name.
    """
    zone = "Object Name" if prefix else "Zone Name"
    events: list[dict[str, object]] = []
    for participant, name in people.items():
        person = {"Participant Private ID": participant, "Participant Status": "complete"}
        events.append({**person, "Trial Number": "BEGIN TASK"})
        for n, row in enumerate(
            planted.shuffled(read_csv_rows(folder / f"{name}.csv")[1:-1]), start=1
        ):
            button, rt_ms = planted.press(participant, row["trial_id"], row["shown_left"], n)
            shown = {f"{prefix}{column}": cell for column, cell in row.items()}
            event = {**person, **shown, "Trial Number": n}
            events.append({**event, zone: "fixation", "Reaction Time": 500})
            press = {zone: f"resp{button}", "Response": "sure", "Reaction Time": rt_ms}
            events.append({**event, **press})
        events.append({**person, "Trial Number": "END TASK"})
    columns = list(dict.fromkeys(key for event in events for key in event))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(events)
        file.write("END OF FILE\r\n")
    return path


class TestContract(PlatformContract):
    platform = PLATFORM
    left_column = "shown_left"
    sentence_columns = ("sentence_left", "sentence_right")
    is_html = True

    def data(
        self, folder: Path, out: Path, answers: PlantedAnswers, people: Mapping[str, str]
    ) -> list[Path]:
        return [data(folder, out / "data.csv", answers, people=people)]


def test_what_was_answered_in_task_builder_2_comes_back(folder: Path, tmp_path: Path) -> None:
    """By trial_id and side, whatever the columns of the sentences are called."""
    planted = PlantedAnswers(TRIALS)
    path = data(folder, tmp_path / "data.csv", planted, prefix="Spreadsheet: ")
    found = import_gorilla([path], trials=TRIALS)
    assert list(found.responses) == planted.responses
    assert found.report.findings == ()


def test_an_unknown_trial_is_named(folder: Path, tmp_path: Path) -> None:
    planted = PlantedAnswers(TRIALS)
    path = data(folder, tmp_path / "data.csv", planted)
    lost = planted.responses[0].trial_id
    text = path.read_text(encoding="utf-8-sig").replace(f",{lost},", ",practice-1,")
    path.write_text(text, encoding="utf-8")
    report = import_gorilla([path], trials=TRIALS).report
    assert {f.about for f in report.of(Problem.UNKNOWN_TRIAL)} == {("practice-1",)}
    assert (lost,) in {f.about for f in report.of(Problem.UNFINISHED)}


def test_a_side_that_is_none_is_refused(folder: Path, tmp_path: Path) -> None:
    path = data(folder, tmp_path / "data.csv", PlantedAnswers(TRIALS))
    rows = read_csv_rows(path)
    next(row for row in rows if row["Zone Name"].startswith("resp"))["shown_left"] = "3"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(InputError, match="'3' under left is not the sentence shown left, 1 or 2"):
        import_gorilla([path], trials=TRIALS)


RATED = make_trials()
RESPONSES = make_responses(RATED, {"9001": 1, "9002": 2, "9003": 1})


@pytest.mark.parametrize("suffixed", [False, True])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_was_answered_comes_back(tmp_path: Path, suffixed: bool, delimiter: str) -> None:
    """Byte order mark, interleaved events, either side shown left, columns of two spreadsheets."""
    rows = gorilla_rows(RATED, RESPONSES, suffixed=suffixed)
    path = write_gorilla(tmp_path / "export.csv", rows, delimiter=delimiter)
    found = import_gorilla([path], trials=RATED)
    assert list(found.responses) == RESPONSES
    assert {response.left for response in RESPONSES} == {1, 2}
    assert found.report.findings == ()
    assert "Found by the pair of sentences shown: the trial of 60 answers." in found.notes
    assert "60 rows are other events of a trial." in found.notes
    assert "9 rows show no pair of sentences." in found.notes


def test_several_files_are_one_experiment(tmp_path: Path) -> None:
    files = []
    for participant in ("9001", "9002", "9003"):
        rows = gorilla_rows(RATED, [r for r in RESPONSES if r.participant == participant])
        files.append(write_gorilla(tmp_path / f"{participant}.csv", rows))
    assert list(import_gorilla(files, trials=RATED).responses) == RESPONSES


def test_identifiers_are_better_than_sentences(tmp_path: Path) -> None:
    """Two trials with the same sentences can only be told apart by their trial_id."""
    twins = [*RATED, replace(RATED[0], trial_id="twin")]
    responses = [*RESPONSES, replace(RESPONSES[0], trial_id="twin", position=21)]
    rows = gorilla_rows(twins, responses)
    with pytest.raises(InputError, match=r"sentences of 2 trials.*Name the column"):
        import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=twins)
    shown = [r for r in rows if r.get("sentence1")]
    by_participant = sorted(responses, key=lambda r: r.participant)
    for row, response in zip(shown, [r for r in by_participant for _ in "ab"], strict=True):
        row["Trial ID"] = response.trial_id
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=twins)
    assert sorted(r.trial_id for r in found.responses) == sorted(r.trial_id for r in responses)
    assert any("by trial_id" in note for note in found.notes)


@pytest.mark.parametrize("names", [("0", "1"), ("A", "B"), ("2", "1"), ("1", "2"), ("7", "x")])
def test_stated_groups_are_those_whose_trials_they_share(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    for row in rows:
        row["set"] = names[row["counterbalance-k3d9"] == "Set 2"]
    path = write_gorilla(tmp_path / "export.csv", rows)
    options = GorillaOptions(columns={"group": ("set",)})
    found = import_gorilla([path], trials=RATED, options=options)
    assert list(found.responses) == RESPONSES
    assert found.report.findings == ()
    told = [note for note in found.notes if "by the trials that they share" in note]
    assert len(told) == (0 if names == ("1", "2") else 2)


def test_a_column_that_is_no_group_is_refused(tmp_path: Path) -> None:
    """Both groups say A."""
    rows = gorilla_rows(RATED, make_responses(RATED, {"9001": 1, "9002": 2}))
    for row in rows:
        row["set"] = "A"
    path = write_gorilla(tmp_path / "export.csv", rows)
    options = GorillaOptions(columns={"group": ("set",)})
    with pytest.raises(InputError, match=r"'A' is not a group .* 20 of group 1, 20 of group 2"):
        import_gorilla([path], trials=RATED, options=options)


def with_ends(trials: list[Trial], ends: tuple[str, str]) -> list[Trial]:
    return [
        replace(
            t,
            sentence_1=replace(t.sentence_1, end=ends[0]),
            sentence_2=replace(t.sentence_2, end=ends[1]),
        )
        for t in trials
    ]


@pytest.mark.parametrize("ends", [("?", "!"), ("?", "?"), (".", "."), ("!", ".")])
def test_people_see_no_end_marks(tmp_path: Path, ends: tuple[str, str]) -> None:
    """The page shows bare sentences, whatever the table of trials closes them with."""
    trials = with_ends(RATED, ends)
    path = write_gorilla(tmp_path / "export.csv", gorilla_rows(trials, RESPONSES))
    found = import_gorilla([path], trials=trials)
    assert list(found.responses) == RESPONSES
    assert found.report.findings == ()


def test_end_marks_count_where_they_alone_tell_pairs_apart(tmp_path: Path) -> None:
    """Every pair twice, as statements and as questions."""
    asked = [replace(t, trial_id=f"{t.trial_id}-asked") for t in with_ends(RATED[:20], ("?", "?"))]
    trials = [*RATED[:20], *asked]
    responses = make_responses(trials, {"9001": 1})
    rows = gorilla_rows(trials, responses)
    with pytest.raises(InputError, match="sentences of 2 trials"):
        import_gorilla([write_gorilla(tmp_path / "bare.csv", rows)], trials=trials)
    shown = [row for row in rows if row.get("sentence1")]
    for row, response in zip(shown, [r for r in responses for _ in "ab"], strict=True):
        for name in ("sentence1", "sentence2"):
            row[name] = f"{row[name]}{'?' if response.trial_id.endswith('asked') else '.'}"
    found = import_gorilla([write_gorilla(tmp_path / "marked.csv", rows)], trials=trials)
    assert list(found.responses) == responses


def test_a_group_tells_equal_pairs_apart(tmp_path: Path) -> None:
    """The same sentences in both groups: which trial it is follows from a column of groups."""
    shared = [
        replace(trial, sentence_1=other.sentence_1, sentence_2=other.sentence_2)
        for trial, other in zip(RATED[20:], RATED[:20], strict=True)
    ]
    trials = [*RATED[:20], *shared]
    rows = gorilla_rows(trials, RESPONSES)
    for row in rows:
        row["set"] = str(row["counterbalance-k3d9"]).removeprefix("Set ")
    path = write_gorilla(tmp_path / "export.csv", rows)
    with pytest.raises(InputError, match="the sentences of 2 trials"):
        import_gorilla([path], trials=trials)
    options = GorillaOptions(columns={"group": ("set",)})
    assert list(import_gorilla([path], trials=trials, options=options).responses) == RESPONSES


def test_two_ratings_for_one_trial_are_both_kept_and_named(tmp_path: Path) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    first = next(row for row in rows if is_rating(row))
    rows.insert(rows.index(first), {**first, "Zone Name": "resp1"})
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=RATED)
    assert len(found.responses) == len(RESPONSES) + 1
    (finding,) = found.report.findings
    assert (finding.problem, finding.participant) == (Problem.DUPLICATE, "9001")


def test_who_stops_halfway_or_rates_nothing_is_named(tmp_path: Path) -> None:
    half = [r for r in RESPONSES if r.participant != "9003" or r.position <= 10]
    rows = gorilla_rows(RATED, half)
    rows.append({"Participant Private ID": "9004", "Trial Number": "BEGIN TASK"})
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=RATED)
    (finding,) = found.report.findings
    assert (finding.problem, finding.participant) == (Problem.UNFINISHED, "9003")
    assert len(finding.about) == 10
    assert "These participants rated nothing: 9004." in found.notes


def test_a_trial_that_was_shown_and_not_rated_is_named(tmp_path: Path) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    rating = next(row for row in rows if is_rating(row))
    rows.remove(rating)
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=RATED)
    (finding,) = found.report.of(Problem.NO_RATING)
    assert finding.about == (RESPONSES[0].trial_id,)


def test_practice_trials_are_listed_by_name_and_not_dropped_in_silence(tmp_path: Path) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    practice = {**next(r for r in rows if is_rating(r)), "display": "practice"}
    practice |= {"sentence1": "Try this one", "sentence2": "Or try that one"}
    path = write_gorilla(tmp_path / "export.csv", [practice, *rows])
    found = import_gorilla([path], trials=RATED)
    (finding,) = found.report.of(Problem.UNKNOWN_TRIAL)
    assert finding.about == ("Try this one. / Or try that one.",)
    assert len(found.responses) == len(RESPONSES)
    only = GorillaOptions(only={"display": ("trial",)})
    assert import_gorilla([path], trials=RATED, options=only).report.findings == ()


def test_a_rating_of_nothing_is_named(tmp_path: Path) -> None:
    """A spreadsheet whose columns have names that are not recognised."""
    rows = gorilla_rows(RATED, RESPONSES)
    for row in rows:
        if row["Participant Private ID"] == "9002":
            row["first"], row["second"] = row.pop("sentence1", ""), row.pop("sentence2", "")
    path = write_gorilla(tmp_path / "export.csv", rows)
    found = import_gorilla([path], trials=RATED)
    (finding,) = found.report.of(Problem.NO_PAIR)
    assert (finding.participant, len(finding.about)) == ("9002", 20)
    options = GorillaOptions(
        columns={"left": ("sentence1", "first"), "right": ("sentence2", "second")}
    )
    assert list(import_gorilla([path], trials=RATED, options=options).responses) == RESPONSES


def test_a_rating_off_the_scale_is_named_whatever_side_was_left(tmp_path: Path) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    for row in rows:
        if is_rating(row) and row["Participant Private ID"] == "9001":
            row["Zone Name"] = "resp7"
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=RATED)
    (finding,) = found.report.of(Problem.OUTSIDE_SCALE)
    assert len(finding.about) == 20


def renamed(path: Path) -> Path:
    """An export with names of its own: sentences as in the trials, and a column that says where."""
    left: dict[object, int] = {(r.participant, r.position): r.left for r in RESPONSES}
    rows = gorilla_rows(RATED, [replace(r, left=1) for r in RESPONSES])
    for row in rows:
        row["text 1"], row["text 2"] = row.pop("sentence1", ""), row.pop("sentence2", "")
        swapped = left.get((str(row["Participant Private ID"]), row.get("Trial Number"))) == 2
        row["swap"] = "yes" if swapped else "no"
        if is_rating(row):
            button = int(str(row["Zone Name"])[-1])
            row["Zone Name"] = "scale"
            row["Response"] = f"answer {7 - button if swapped else button}"
    return write_gorilla(path, rows)


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_options_map_any_names(tmp_path: Path, kind: str) -> None:
    path = renamed(tmp_path / "export.csv")
    with pytest.raises(InputError, match="which column holds left, right"):
        import_gorilla([path], trials=RATED)
    tables: dict[str, dict[str, object]] = {
        "columns": {"left": "text 1", "right": ["text 2"]},
        "ratings": {f"answer {n}": n for n in range(1, 7)},
        "flipped": {"swap": "yes"},
    }
    options = tmp_path / f"options.{kind}"
    toml = "".join(
        f"[{name}]\n" + "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in table.items())
        for name, table in tables.items()
    )
    options.write_text(toml if kind == "toml" else json.dumps(tables))
    found = import_gorilla([path], trials=RATED, options=GorillaOptions.read(options))
    assert list(found.responses) == RESPONSES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[column]\nleft = 'a'", "column = .* has no meaning. There are the tables columns"),
        ("[columns]\nlinks = 'a'", "columns.links = .* has no meaning.*of participant, left"),
        ("[columns]\nleft = 3", "columns.left = 3 has no meaning"),
        ("[ratings]\nA = 'one'", "ratings.A = 'one' has no meaning.*numbers from 1 to 6"),
        ("columns = 'left'", "columns = 'left' has no meaning"),
        ("columns", "not readable TOML"),
    ],
)
def test_options_without_meaning_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "options.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        GorillaOptions.read(path)


def test_columns_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    rated = next(row for row in rows if is_rating(row))
    rated["sentence1-ab12"] = "Something else"
    path = write_gorilla(tmp_path / "export.csv", rows)
    with pytest.raises(InputError, match="sentence1, sentence1-ab12 should hold one value"):
        import_gorilla([path], trials=RATED)


def test_what_is_no_experiment_is_refused_with_what_was_there(tmp_path: Path) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    for row in rows:
        if is_rating(row):
            row["Zone Name"] = "scale"
    path = write_gorilla(tmp_path / "export.csv", rows)
    with pytest.raises(InputError, match=r"No rating was found.*'scale'.*'Very confident'"):
        import_gorilla([path], trials=RATED)
    options = GorillaOptions(columns={"left": ("left one",)})
    with pytest.raises(InputError, match="There is no column 'left one' for left; the columns are"):
        import_gorilla([path], trials=RATED, options=options)
    other = write_gorilla(tmp_path / "other.csv", gorilla_rows(RATED, RESPONSES))
    with pytest.raises(InputError, match="No answer belongs to any of the 20 trials"):
        import_gorilla([other], trials=make_trials(groups=3)[40:])
    with pytest.raises(InputError, match="is a spreadsheet: download or save it as CSV"):
        import_gorilla([tmp_path / "export.xlsx"], trials=RATED)


def test_positions_are_counted_where_trial_numbers_start_again(tmp_path: Path) -> None:
    """Two nodes of an experiment number their trials from 1 each: the order of events holds."""
    rows = gorilla_rows(RATED, RESPONSES)
    for row in rows:
        number = row.get("Trial Number")
        if isinstance(number, int) and number > 10:
            row["Trial Number"] = number - 10
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=RATED)
    assert [r.position for r in found.responses] == [r.position for r in RESPONSES]


def test_ratings_may_be_numbers_in_the_column_of_responses(tmp_path: Path) -> None:
    rows = gorilla_rows(RATED, RESPONSES)
    for row in rows:
        if is_rating(row):
            row["Response"] = str(row["Zone Name"])[-1]
            row["Zone Name"] = "likert scale"
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)], trials=RATED)
    assert list(found.responses) == RESPONSES


def test_a_group_named_by_thousands_of_digits_is_a_name(tmp_path: Path) -> None:
    """Python refuses to read such a number, and so did the import, with a traceback."""
    rows = gorilla_rows(RATED, RESPONSES)
    for row in rows:
        row["set"] = ("7" * 5_000, "8" * 5_000)[row["counterbalance-k3d9"] == "Set 2"]
    path = write_gorilla(tmp_path / "export.csv", rows)
    options = GorillaOptions(columns={"group": ("set",)})
    found = import_gorilla([path], trials=RATED, options=options)
    assert list(found.responses) == RESPONSES
