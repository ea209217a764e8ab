"""Catch trials that say themselves which sentence is to be chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError, VerificationError
from contstim.experiments.analysis.ratings import Scope, scope_mask
from contstim.experiments.design.building import build_design
from contstim.experiments.design.verification import verify_design
from contstim.experiments.responses.admission import Exclusions, admit
from contstim.experiments.responses.table import Response
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, Kind, read_trials, trial_columns
from contstim.steps.design import read_attention
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import natural


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "attention.csv"
    path.write_text("sentence_1,sentence_2\nPlease choose this one.,Please choose the other one.\n")
    return path


def test_every_group_has_them_and_who_disobeys_is_left_out(table: Path, tmp_path: Path) -> None:
    asked = {"groups": 2, "random_per_group": 2, "catch_per_group": 1, "seed": 3}
    plain = build_design(natural=natural(30), **asked)  # type: ignore[arg-type]
    design = build_design(natural=natural(30), **asked, attention=read_attention(table))  # type: ignore[arg-type]
    added = [t for t in design.trials if t.kind_1 is Kind.INSTRUCTION]
    assert {*design.trials} - {*added} == {*plain.trials}
    assert [(t.group, t.condition) for t in added] == [(1, Condition.CATCH), (2, Condition.CATCH)]
    write_table(tmp_path / "trials.csv", trial_columns(design.trials))
    assert read_trials(tmp_path / "trials.csv") == design.trials
    responses = [
        Response(name, 1, t.trial_id, 5 if name == "bob" and t in added else 1, 1, n + 1, 900.0)
        for name in ("ann", "bob")
        for n, t in enumerate(t for t in design.trials if t.group == 1)
    ]
    admission = admit(design.trials, responses, exclusions=Exclusions(min_catch=2))
    assert admission.participants == ("ann",)
    assert admission.excluded == {"bob": "1 of 2 catch trials right, 2 are required"}
    # Instructions are no sentences that models could tell apart, where catch trials count, too
    mask = scope_mask(design.trials, Scope.OVERALL, ["x"], catch=True)[0]
    assert [t for t, counts in zip(design.trials, mask, strict=True) if not counts] == added


def test_an_attention_trial_twice_or_in_no_group_fails_the_check(table: Path) -> None:
    asked = {"groups": 2, "random_per_group": 1, "catch_per_group": 1}
    sentences = natural(20)
    trials = build_design(natural=sentences, **asked, attention=read_attention(table)).trials  # type: ignore[arg-type]
    added = next(t for t in trials if t.kind_1 is Kind.INSTRUCTION)
    again, moved = [*trials, added], [t for t in trials if t is not added]
    for wrong, message in ((again, "names 2 trials"), (moved, "asked 0 times in group 1")):
        with pytest.raises(VerificationError, match=message):
            verify_design(wrong, (), (), sentences, twins=False, **asked)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence_1\nThis one.\n", "lacks the columns sentence_2"),
        ("sentence_1,sentence_2\nThis one.,This one\n", "row 0 compares"),
    ],
)
def test_a_table_of_another_kind_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_attention(tmp_path / "a.csv")


def test_a_sentence_against_itself_is_refused_in_python_as_in_a_file() -> None:
    one, other, again = map(Sentence.parse, ("This one", "That one", "This one!"))
    with pytest.raises(InputError, match="`attention`, row 1 compares 'This one!' with itself"):
        build_design(natural=natural(20), groups=1, attention=[(one, other), (again, one)])
