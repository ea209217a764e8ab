"""Questions before and after the trials: the table of questions and summaries of answers."""

import csv
import re
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.responses.questionnaire import (
    Question,
    QuestionAnswer,
    answer_summaries,
    questions_of,
    read_answers,
    read_questions,
    write_answers,
)

HEAD = "name,when,kind,question,options,optional\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "questions.csv"


def test_answers_are_read_as_written(tmp_path: Path) -> None:
    texts = ("=1+1", "'=1", 'Zoë, "x"', "", "-")
    answers = [QuestionAnswer("=p1", "remarks", text) for text in texts]
    write_answers(tmp_path / "a.csv", answers)
    assert read_answers(tmp_path / "a.csv") == answers
    assert not [x for x in (tmp_path / "a.csv").read_text().split('"') if x.startswith("=")]


def test_summaries_include_numbers_and_choices_but_no_texts() -> None:
    ages, languages = ("18", "31", "42"), ("English", "German", "English", "")
    answers = [QuestionAnswer(str(n), "age", age) for n, age in enumerate(ages)]
    answers += [QuestionAnswer(str(n), "language", text) for n, text in enumerate(languages)]
    answers += [QuestionAnswer("0", "remarks", "I am Ann"), QuestionAnswer("0", "code", "7")]
    questions = [
        Question("age", "before", "number", "Age?", False, lowest=18, highest=99),
        Question("language", "after", "choice", "Which?", False, ("German", "English", "Other")),
        Question("remarks", "after", "text", "Anything?", True),
        Question("code", "after", "text", "Code?", True),
    ]
    summaries = ["age: mean 30.3, 18 to 42", "language: German 1, English 2, Other 0"]
    assert answer_summaries(questions, answers) == summaries


IN_GERMAN = """name,when,kind,question,question_de,options,options_de
age,before,number,How old?,Wie alt?,18|99,
x,check,choice,X?,,yes|*no,ja|*nein
y,after,choice,Y?,Ypsilon?,a|b,
"""


@pytest.mark.parametrize("language", ["de", "de-AT"])
def test_texts_are_translated_but_answers_are_not(path: Path, language: str) -> None:
    """Cells without a translation use the main language."""
    path.write_text(IN_GERMAN)
    age, x, y = read_questions(path, language)
    assert (age.question, x.question, y.question) == ("Wie alt?", "X?", "Ypsilon?")
    assert (x.choices, x.right, x.shown) == (("yes", "no"), "no", ("ja", "nein"))
    assert (y.choices, y.shown) == (("a", "b"), ())
    assert [question.shown for question in read_questions(path, "fr")] == [(), (), ()]
    rows = [dict(row) for row in csv.DictReader(IN_GERMAN.splitlines())]
    assert questions_of(rows, language) == ((age, x, y), [])


@pytest.mark.parametrize("options", ["ja", "ja|nein", "*ja|nein", "ja|*nein|weder noch"])
def test_translated_choices_must_match_the_options(path: Path, options: str) -> None:
    path.write_text(IN_GERMAN.replace("ja|*nein", options))
    with pytest.raises(InputError, match=r"questions.csv, row 1, options_de: "):
        read_questions(path)


CHOICE, CHECK = "at least two different texts", "`*` before the correct option only"
NUMBER = "minimum and the maximum, such as 18|99"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("age,during,number,Age?,18|99,", "when: 'during' is not a time to ask"),
        ("age,before,slider,Age?,18|99,", "kind: 'slider' is not a kind"),
        ("age,before,number,Age?,18,", NUMBER),
        ("age,before,number,Age?,99|18,", NUMBER),
        ("age,before,number,Age?,young|old,", NUMBER),
        ("x,before,choice,X?,only one,", CHOICE),
        ("x,before,choice,X?, | ,", CHOICE),
        ("x,before,choice,X?,a| a,", CHOICE),
        ("x,check,choice,X?,a|*,", CHOICE),
        ("x,check,choice,X?,a|b,", CHECK),
        ("x,check,choice,X?,yes|no*,", CHECK),
        ("x,check,choice,X?,*a|*b,", CHECK),
        ("x,before,choice,X?,a|*b,", CHECK),
        ("x,check,text,X?,,", "a check must be a choice, got a text"),
        ("x,after,text,X?,a|b,", "leave options empty"),
        ("my age,before,text,Age?,,", "name: 'my age' is not a name in letters"),
        ("x,before,text, ,,", "question: ' ' is not a question"),
        ("x,before,text,X?,,maybe", "optional: 'maybe' is not a yes or a no"),
    ],
)
def test_errors_name_the_row_and_column_of_a_question(path: Path, row: str, message: str) -> None:
    path.write_text(f"{HEAD}ok,check,choice,Well?,a|*b,\n{row}\n")
    with pytest.raises(InputError, match=rf"questions.csv, row 1\b.*{re.escape(message)}"):
        read_questions(path)
    path.write_text(f"{HEAD}x,after,text,Well?,,\nx,after,text,Well?,,\n")
    with pytest.raises(InputError, match="two questions have the name x"):
        read_questions(path)
