"""Pairs, triplets and trials in files."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.files.tables import columns_of, write_table
from contstim.items import stimuli
from contstim.words.sentence import Sentence
from tests.optimization.selection.tables import choose, random_table


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_written_pairs_are_read_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    pairs = choose(random_table(), per_pair=4).pairs
    write_table(tmp_path / f"pairs{suffix}", columns_of(stimuli.Pair, pairs))
    assert stimuli.read_pairs(tmp_path / f"pairs{suffix}") == pairs


def test_columns_of_pairs_and_trials(tmp_path: Path) -> None:
    columns = "trial_id model_1 model_2 sentence_1 sentence_2 row_1 row_2 "
    columns += "rank_1_model_1 rank_1_model_2 rank_2_model_1 rank_2_model_2"
    assert [*columns_of(stimuli.Pair, [])] == columns.split()
    write_table(tmp_path / "pairs.csv", columns_of(stimuli.Pair, []))
    assert stimuli.read_pairs(tmp_path / "pairs.csv") == ()
    columns = "trial_id group condition model_1 model_2 sentence_1 sentence_2 kind_1 kind_2"
    assert [*stimuli.trial_columns([])] == [*columns.split(), "source_id"]


def test_malformed_pairs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    write_table(path, columns_of(stimuli.Pair, choose(random_table(), per_pair=1).pairs))
    header, first_row, *other_rows = path.read_text().splitlines()
    path.write_text("\n".join([header.replace("row_2", "line_2"), first_row, *other_rows]))
    with pytest.raises(InputError, match="not a table of pairs: it lacks row_2"):
        stimuli.read_pairs(path)
    cells = first_row.split(",")
    path.write_text("\n".join([header, ",".join([*cells[:5], "second", *cells[6:]])]))
    with pytest.raises(InputError, match="row 0: 'second' under row_1 is not a whole number"):
        stimuli.read_pairs(path)


def test_pairs_without_texts_are_read_but_half_a_pair_is_refused(tmp_path: Path) -> None:
    table = replace(random_table(), sentences=None)
    pairs = choose(table, per_pair=1).pairs
    path = tmp_path / "pairs.csv"
    write_table(path, columns_of(stimuli.Pair, pairs))
    assert pairs[0].sentence_1 is None
    assert stimuli.read_pairs(path) == pairs
    path.write_text(path.read_text().replace('"","",', '"A b","",', 1))
    with pytest.raises(InputError, match="row 0 has one sentence; expected two, or none"):
        stimuli.read_pairs(path)


def test_selection_is_converted_to_pandas() -> None:
    selection = choose(random_table(), per_pair=2)
    frame = selection.to_frame()
    assert frame.columns.tolist() == [field.name for field in fields(selection.pairs[0])]
    assert frame["sentence_2"].tolist() == [str(pair.sentence_2) for pair in selection.pairs]
    without_text = replace(selection, pairs=(replace(selection.pairs[0], sentence_1=None),))
    assert without_text.to_frame()["sentence_1"].tolist() == [""]  # as in the file
    assert frame["rank_1_model_1"].tolist() == [pair.rank_1_model_1 for pair in selection.pairs]


TRIAL = stimuli.Trial(
    "trial-1",
    3,
    stimuli.Condition.NATURAL_SYNTHETIC,
    "bigram",
    "gpt2",
    Sentence.parse("She said “no”."),
    Sentence.parse("She said 'never'."),
    stimuli.Kind.NATURAL,
    stimuli.Kind.SYNTHETIC_1,
    "triplet-1",
)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_written_trials_are_read_also_from_other_programs(tmp_path: Path, suffix: str) -> None:
    """Other programs write whole numbers as 3.0, and null (in CSV an empty cell) for no text."""
    write_table(tmp_path / f"trials{suffix}", stimuli.trial_columns([TRIAL]))
    (trial,) = stimuli.read_trials(tmp_path / f"trials{suffix}")
    assert trial == TRIAL
    assert isinstance(trial.condition, stimuli.Condition)
    assert isinstance(trial.kind_2, stimuli.Kind)
    cells = columns_of(stimuli.Trial, [TRIAL])
    cells |= {"group": [3.0], "source_id": [None]}
    write_table(tmp_path / f"trials{suffix}", cells)
    assert stimuli.read_trials(tmp_path / f"trials{suffix}") == (replace(TRIAL, source_id=""),)
    write_table(tmp_path / f"trials{suffix}", cells | {"group": [3.5]})
    with pytest.raises(InputError, match="under group is not a whole number"):
        stimuli.read_trials(tmp_path / f"trials{suffix}")


EMPTY = "is not a sentence. A sentence needs at least one word"
CATCH = replace(
    TRIAL,
    trial_id="trial-2",
    condition=stimuli.Condition.CATCH,
    model_1="",
    model_2="",
    kind_2=stimuli.Kind.SHUFFLED,
    sentence_1=Sentence.parse("A b c."),
    sentence_2=Sentence.parse("C b a."),
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trial_id": "trial-1"}, "the trial_id 'trial-1' in rows 0 and 1"),
        ({"trial_id": ""}, "row 1: the trial_id is empty"),
        ({"group": 0}, "row 1: group must be at least 1, got 0"),
        ({"group": -1}, "row 1: group must be at least 1, got -1"),
        ({"group": "1_0"}, "row 1: '1_0' under group is not a whole number"),
        ({"group": True}, "under group is not a whole number"),
        ({"sentence_2": "A  b c"}, "row 1 compares 'A b c.' with itself"),
        ({"sentence_1": ""}, f"row 1: .* under sentence_1 {EMPTY}"),
        ({"sentence_1": None}, f"row 1: .* under sentence_1 {EMPTY}"),
        ({"sentence_1": ["A", "b"]}, "row 1: .* under sentence_1 is not a sentence"),
        ({"model_1": "gpt2", "model_2": "rnn"}, "row 1 is catch: leave model_1 and model_2 empty"),
        (
            {"condition": "natural-controversial"},
            "row 1 is natural-controversial: model_1 and model_2 must name two",
        ),
        (
            {"condition": "synthetic-synthetic", "model_1": "rnn", "model_2": "rnn"},
            "must name two models, not 'rnn' and 'rnn'",
        ),
        ({"condition": "natural"}, r"'natural' under condition is not a condition \(natural-c"),
        ({"kind_1": "wild"}, "row 1: 'wild' under kind_1 is not a kind of sentence"),
    ],
)
def test_invalid_trials_are_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "trials.jsonl"
    columns = columns_of(stimuli.Trial, [TRIAL, CATCH])
    for name, cell in change.items():
        columns[name][1] = cell
    write_table(path, columns)
    with pytest.raises(InputError, match=message):
        stimuli.read_trials(path)


TRIPLET = stimuli.Triplet(
    "t-1",
    "a",
    "b",
    Sentence.parse("One two."),
    Sentence.parse("Two two."),
    Sentence.parse("One one."),
    *(-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, 6.0),
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"controversiality": float("nan")}, "nan under controversiality is not a number"),
        ({"controversiality": float("inf")}, "inf under controversiality is not a number"),
        ({"log_prob_natural_model_1": "-1_0"}, "'-1_0' under log_prob_natural_model_1 is not a nu"),
        ({"log_prob_natural_model_2": True}, "True under log_prob_natural_model_2 is not a number"),
        ({"triplet_id": ""}, "row 0: the triplet_id is empty"),
        ({"model_2": "a"}, "must name two models, not 'a' and 'a'"),
        ({"natural": None}, f"row 0: None under natural {EMPTY}"),
    ],
)
def test_invalid_triplets_are_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "triplets.jsonl"
    cells = {name: [cell] for name, cell in change.items()}
    write_table(path, columns_of(stimuli.Triplet, [TRIPLET]) | cells)
    with pytest.raises(InputError, match=message):
        stimuli.read_triplets(path)


def test_repeated_stimuli_and_empty_tables_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", columns_of(stimuli.Triplet, [TRIPLET, TRIPLET]))
    with pytest.raises(InputError, match="the triplet_id 't-1' in rows 0 and 1"):
        stimuli.read_triplets(tmp_path / "t.csv")
    pair = choose(random_table(), per_pair=1).pairs[0]
    write_table(tmp_path / "p.csv", columns_of(stimuli.Pair, [pair, pair]))
    with pytest.raises(InputError, match=r"the trial_id '.*' in rows 0 and 1"):
        stimuli.read_pairs(tmp_path / "p.csv")
    write_table(tmp_path / "none.csv", stimuli.trial_columns([]))
    with pytest.raises(InputError, match="a header but no rows"):
        stimuli.read_trials(tmp_path / "none.csv")
