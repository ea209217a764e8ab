"""Scales and questions on the page and in exports; imported columns about participants."""

from pathlib import Path
from types import ModuleType

import pytest

from contstim.errors import InputError
from contstim.experiments.collection.tables import collected_questions
from contstim.experiments.platforms.platform import PLATFORMS, platform_named
from contstim.experiments.responses.alignment import kept_columns
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from contstim.testing.platform import TRIALS as CONTRACT_TRIALS
from tests.experiments.collection.conftest import Serve, Served
from tests.experiments.platforms import (
    test_gorilla,
    test_jspsych_reading,
    test_pcibex,
    test_psychopy,
    test_qualtrics,
)
from tests.experiments.platforms.conftest import Export, Visit
from tests.experiments.platforms.walking import answer, wait_for

BUTTONS = ("pcibex", "psychopy", "gorilla", "qualtrics")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("name", [*BUTTONS, "csv"])
@pytest.mark.parametrize("scale", [Scale.CHOICE, Scale.SLIDER])
def test_exports_use_the_scale_or_raise_an_error(tmp_path: Path, name: str, scale: Scale) -> None:
    platform = platform_named(name)
    assert platform is not None
    assert platform.exporter is not None
    exporter, trials = platform.exporter, on_scale(CONTRACT_TRIALS, scale)
    if scale is Scale.SLIDER and name in BUTTONS:
        with pytest.raises(InputError, match=r"on the scale slider.*export jspsych or jatos"):
            exporter.export(trials, tmp_path / "out")
        return
    exporter.export(trials, tmp_path / "out")
    texts = {p.name: p.read_text() for p in (tmp_path / "out").iterdir() if p.suffix != ".csv"}
    text = "".join(texts.values())
    assert "confident" not in text
    assert ("0 (left) to 100" if scale is Scale.SLIDER else "left") in text
    assert set(BUTTONS) < PLATFORMS.keys()


ACKNOWLEDGED = "() => Object.values(localStorage).map(JSON.parse).every((r) => r.heard === r.told)"
QUESTIONS = """name,when,kind,question,options,options_en,optional
age,before,number,How old are you?,18|99,,
task,check,choice,What is to be chosen?,long|*likely,the longer|*the likelier,
first,after,choice,Your first language?,German|other,Deutsch|eine andere,
remarks,after,text,Anything else?,,,yes
"""


def read_answers(served: Served) -> dict[str, str]:
    return {answer.question: answer.answer for answer in collected_questions(served.database)}


@pytest.mark.slow
@pytest.mark.parametrize("wrong_answers", [1, 2])
def test_questions_and_comprehension_check(
    export: Export, serve: Serve, visit: Visit, tmp_path: Path, wrong_answers: int
) -> None:
    """A wrong answer repeats the instructions; after two wrong answers, participation ends."""
    (tmp_path / "asked.csv").write_text(QUESTIONS)
    folder = export(questions=tmp_path / "asked.csv", return_link="https://example.org/back")
    served = serve(folder)
    page = visit(served.address, **PHONE)
    wait_for(page, "consent")
    page.click("button.next >> nth=0")
    wait_for(page, "before")
    next_button = page.locator("button.next")
    assert next_button.is_disabled()
    page.fill("input[name=age]", "17")
    assert next_button.is_disabled()
    page.fill("input[name=age]", "31")
    next_button.click()
    for n in range(2):
        wait_for(page, "instructions")
        page.locator("button.next").last.click()
        wait_for(page, "check")
        page.click("text=the longer" if n < wrong_answers else "text=the likelier")
        page.click("button.next")
        if n == 0:  # a reload gives no additional attempt
            wait_for(page, "instructions")
            page.reload()
            wait_for(page, "resume")
            page.locator("button.next").first.click()  # and repeats no questions
    if wrong_answers == 2:
        for _ in range(2):
            wait_for(page, "refused")
            assert served.rows("responses") == []
            assert page.locator("button.leave").count() == 1
            page.wait_for_function(ACKNOWLEDGED)
            assert [row["state"] for row in served.rows("participants")] == ["failed"]
            assert read_answers(served) == {"age": "31"}
            page.reload()
        wait_for(page, "refused")
        return
    for _ in range(3):
        answer(page, 2)
    wait_for(page, "after")
    page.click("text=eine andere")
    page.fill("input[name=remarks]", "=1")
    page.click("button.next")
    wait_for(page, "saved")
    assert read_answers(served) == {"age": "31", "first": "other", "remarks": "=1"}


PARTICIPANT_COLUMNS = {
    test_pcibex: "participant",
    test_psychopy: "participant",
    test_gorilla: "Participant Private ID",
    test_qualtrics: "ResponseId",
    test_jspsych_reading: "participant",
}


@pytest.mark.parametrize("module", PARTICIPANT_COLUMNS, ids=lambda module: module.PLATFORM.name)
def test_columns_about_participants_are_kept_on_request(module: ModuleType, tmp_path: Path) -> None:
    contract, column = module.TestContract(), PARTICIPANT_COLUMNS[module]
    files, _ = contract.collect(tmp_path)
    result = contract.read_export(files, CONTRACT_TRIALS, tmp_path / "out")
    people = dict.fromkeys(response.participant for response in result.responses)
    assert len(people) > 1
    assert kept_columns(result, [column]) == [QuestionAnswer(name, column, name) for name in people]
    with pytest.raises(InputError, match=r"got shoe size\. The columns are"):
        kept_columns(result, [column, "shoe size"])
