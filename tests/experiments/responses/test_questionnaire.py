"""Questions beside the trials: the table that asks, and what is told of the answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.responses.questionnaire import (
    QuestionAnswer,
    described,
    read_answers,
    read_questions,
    write_answers,
)

HEAD = "name,when,kind,question,options,optional\n"


def test_answers_come_back_whatever_people_write(tmp_path: Path) -> None:
    texts = ("=1+1", "'=1", 'Zoë, "x"', "", "-")
    answers = [QuestionAnswer("=p1", "remarks", text) for text in texts]
    write_answers(tmp_path / "a.csv", answers)
    assert read_answers(tmp_path / "a.csv") == answers
    assert not [x for x in (tmp_path / "a.csv").read_text().split('"') if x.startswith("=")]


def test_numbers_have_a_mean_and_a_range_and_choices_counts() -> None:
    ages, languages = ("18", "31", "42"), ("English", "German", "English", "")
    answers = [QuestionAnswer(str(n), "age", age) for n, age in enumerate(ages)]
    answers += [QuestionAnswer(str(n), "language", each) for n, each in enumerate(languages)]
    assert described(answers) == ["age: mean 30.3, 18 to 42", "language: English 2, German 1"]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("age,during,number,Age?,18|99,", "when"),
        ("age,before,slider,Age?,18|99,", "kind"),
        ("age,before,number,Age?,18,", "options"),
        ("x,before,choice,X?,only one,", "options"),
        ("x,check,choice,X?,a|b,", "options"),
        ("x,check,text,X?,,", "kind"),
        ("x,after,text,X?,a|b,", "options"),
        ("my age,before,text,Age?,,", "name"),
        ("x,before,text, ,,", "question"),
    ],
)
def test_what_is_no_question_is_refused_by_row_and_column(
    tmp_path: Path, row: str, column: str
) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(f"{HEAD}ok,check,choice,Well?,a|*b,\n{row}\n")
    with pytest.raises(InputError, match=rf"questions.csv, row 1: .* is no {column} here"):
        read_questions(path)
    path.write_text(f"{HEAD}x,after,text,Well?,,\nx,after,text,Well?,,\n")
    with pytest.raises(InputError, match="the name x twice"):
        read_questions(path)
