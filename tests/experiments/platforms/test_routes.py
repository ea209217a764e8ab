"""Every route, from trials to the analysis: the model that people follow comes out first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.platforms.gorilla import export_gorilla, import_gorilla
from contstim.experiments.platforms.pcibex import export_pcibex, import_pcibex
from contstim.experiments.platforms.psychopy import export_psychopy, import_psychopy
from contstim.experiments.platforms.qualtrics import (
    QualtricsReading,
    QualtricsSettings,
    export_qualtrics,
    import_qualtrics,
)
from contstim.experiments.responses.alignment import Imported, kept_columns
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.experiments.responses.table import Response
from contstim.testing.platform import TRIALS as CONTRACT_TRIALS
from contstim.testing.platform import PlantedAnswers
from tests.experiments.analysis.simulation import simulate
from tests.experiments.platforms import (
    test_gorilla,
    test_jspsych_reading,
    test_pcibex,
    test_psychopy,
    test_qualtrics,
)
from tests.experiments.platforms import test_gorilla as gorilla
from tests.experiments.platforms import test_pcibex as pcibex
from tests.experiments.platforms import test_psychopy as psychopy
from tests.experiments.platforms import test_qualtrics as qualtrics

MADE = simulate(groups=(4, 4), follow=0.9)
TRIALS = list(MADE.trials)
PEOPLE = {f"90{n}": f"L0{1 + n // 2}" for n in range(8)}


class Followers(PlantedAnswers):
    """People who give, one after the other, the ratings of those who follow model a."""

    def __init__(self) -> None:
        super().__init__(TRIALS)
        ratings = defaultdict(list)
        for response in MADE.responses:
            ratings[response.trial_id].append(response.rating)
        self._ratings: dict[str, Iterator[int]] = {t: iter(r) for t, r in ratings.items()}

    def rate(self, trial_id: str) -> int:
        return next(self._ratings[trial_id])


def through_pcibex(out: Path, people: PlantedAnswers) -> Imported:
    folder = export_pcibex(TRIALS, out / "out").path
    (out / "data").write_text(pcibex.results(folder, PEOPLE, people), encoding="utf-8")
    return import_pcibex([out / "data"], TRIALS)


def through_psychopy(out: Path, people: PlantedAnswers) -> Imported:
    folder = export_psychopy(TRIALS, out / "out").path
    return import_psychopy(psychopy.data(folder, out, people, "mouse", PEOPLE), TRIALS)


def through_gorilla(out: Path, people: PlantedAnswers) -> Imported:
    folder = export_gorilla(TRIALS, out / "out").path
    data = gorilla.data(folder, out / "d.csv", people, prefix="Spreadsheet: ", people=PEOPLE)
    return import_gorilla([data], TRIALS)


def through_qualtrics(out: Path, people: PlantedAnswers) -> Imported:
    folder = export_qualtrics(TRIALS, out / "out", QualtricsSettings(timing=True)).path
    qualtrics.data(folder, out / "data.csv", people, people=PEOPLE)
    return import_qualtrics([out / "data.csv"], TRIALS, QualtricsReading(folder / "key.csv"))


def accuracies(responses: tuple[Response, ...]) -> dict[str, dict[str, float]]:
    found: Analysis = analyze(MADE.trials, responses, MADE.scores, sampling=Sampling(None))
    return {
        result.scope.name: {one.model: one.value for one in result.models}
        for result in found.results
        if result.measure.name == "accuracy"
    }


@pytest.fixture(scope="module")
def simulated() -> dict[str, dict[str, float]]:
    """Accuracies of the simulation itself."""
    return accuracies(MADE.responses)


@pytest.mark.parametrize(
    "through", [through_pcibex, through_psychopy, through_gorilla, through_qualtrics]
)
def test_the_model_that_people_follow_comes_out_first(
    tmp_path: Path,
    through: Callable[[Path, PlantedAnswers], Imported],
    simulated: dict[str, dict[str, float]],
) -> None:
    """Simulation knows: people follow a; each route gives what the simulation itself gives."""
    people = Followers()
    found = through(tmp_path, people)
    assert list(found.responses) == people.responses
    assert found.report.findings == ()
    if through is not through_pcibex:
        return  # all give back the same answers, which are analysed once
    direct, returned = simulated, accuracies(found.responses)
    assert len(direct) >= 5
    assert returned == {scope: pytest.approx(values) for scope, values in direct.items()}
    assert all(max(values, key=values.__getitem__) == "a" for values in returned.values())


COLUMNS = {  # that name the participant
    test_pcibex: "participant",
    test_psychopy: "participant",
    test_gorilla: "Participant Private ID",
    test_qualtrics: "ResponseId",
    test_jspsych_reading: "participant",
}


@pytest.mark.parametrize("module", COLUMNS, ids=lambda module: module.PLATFORM.name)
def test_columns_about_people_are_kept_on_request(module: ModuleType, tmp_path: Path) -> None:
    contract, column = module.TestContract(), COLUMNS[module]
    files, _ = contract.collect(tmp_path)
    imported = contract.read_export(files, CONTRACT_TRIALS, tmp_path / "out")
    people = dict.fromkeys(response.participant for response in imported.responses)
    assert len(people) > 1
    assert kept_columns(imported, [column]) == [
        QuestionAnswer(name, column, name) for name in people
    ]
    with pytest.raises(InputError, match=r"got shoe size\. The columns are"):
        kept_columns(imported, [column, "shoe size"])
