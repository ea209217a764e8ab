"""Calibrated populations, against the measurements used for calibration."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.measures import ACCURACY, accuracy_lower, signed_ranks
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import Analysis
from contstim.experiments.analysis.tables import result_tables
from contstim.experiments.design import calibration
from contstim.experiments.design.calibration import (
    MeasuredPeople,
    Populations,
    calibrate,
    read_measured,
)
from contstim.experiments.design.population import (
    AS_MEASURED,
    CLOSE,
    DISTANT,
    PUBLISHED_KINDS,
    Population,
    TrialPreferences,
    preferences_by_scope,
)
from contstim.experiments.design.power import design_power
from contstim.experiments.design.power_report import power_report, power_table
from contstim.files.tables import write_table
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.experiments.design.scored_design import DESIGN, MODELS, scores

KINDS = tuple(PUBLISHED_KINDS)  # as in designs of 2023
CEILINGS = dict(zip(KINDS, (0.7, 0.75, 0.8, 0.92, 0.9), strict=True))
ACCURACIES = dict(zip(KINDS, (0.66, 0.7, 0.75, 0.5, 0.85), strict=True))


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, Analysis, Path]:
    """An experiment, its analysis, and the folder of the analysis."""
    experiment = simulate(groups=(6, 6), each=3, follow=0.75, seed=3)
    analysis = experiment.analyze(sampling=Sampling())
    folder = tmp_path_factory.mktemp("pilot")
    for name in ("models", "groups"):
        write_table(folder / "tables" / f"{name}.csv", result_tables(analysis)[name])
    return experiment, analysis, folder


@pytest.fixture(scope="module")
def study() -> TrialPreferences:
    return preferences_by_scope(DESIGN.trials, scores())


@pytest.fixture(scope="module")
def populations(study: TrialPreferences) -> Populations:
    """The populations for each model, calibrated to the 2023 study."""
    return calibrate(study, MeasuredPeople())[0]


def simulate_accuracy_and_ceiling(
    study: TrialPreferences, scope: Scope, people: Population, raters: int, model: int
) -> tuple[float, float]:
    """Return accuracy and ceiling on a model's trials in simulated groups, as in `analyze`."""
    rng = np.random.default_rng(0)
    is_evaluated = study.of_scope(scope).evaluates[:, model]
    rows = np.tile(np.flatnonzero(is_evaluated), (12_000 // is_evaluated.sum(), 1))
    choices = np.where(people.answers(rows, raters, rng), 1.0, -1.0)
    sides = np.sign(study.of_scope(scope).differences[is_evaluated, model])
    agrees = (1 + sides * choices) / 2
    ceiling = accuracy_lower(choices.swapaxes(0, 1).reshape(raters, -1))
    return float(agrees.mean()), float(ceiling.mean())


def test_planted_models_have_the_published_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: accuracy and ceiling of drawn answers, counted like `analyze`.

    Only distant rivals; close rivals take long, and other tests cover them.
    """
    monkeypatch.setattr(calibration, "_fit_close_rivals", calibration._fit_planted)
    study = preferences_by_scope(DESIGN.trials, scores(5))
    kinds = {
        scope: replace(
            measures, ceiling=CEILINGS[scope], accuracy=ACCURACIES[scope], raters=6, items=None
        )
        for scope, measures in MeasuredPeople().kinds.items()
        if scope in KINDS
    }
    populations, unreached = calibrate(study, MeasuredPeople(kinds))
    assert not unreached
    for scope, populations_of_scope in populations.items():
        planted = [people for people in populations_of_scope if people.rivals == DISTANT]
        assert [people.name for people in planted] == list(MODELS)
        for model, people in enumerate(planted):
            assert len(people.signal) == len(study.rows(scope))
            if scope is Scope.OVERALL:
                continue
            accuracy, ceiling = simulate_accuracy_and_ceiling(study, scope, people, 6, model)
            assert ceiling == pytest.approx(CEILINGS[scope], abs=0.015)
            if scope is not Scope.ACCEPT:  # its weight comes from trials that the model rejects
                assert accuracy == pytest.approx(ACCURACIES[scope], abs=0.015)


def test_items_have_published_variance(study: TrialPreferences, populations: Populations) -> None:
    """Witness: residuals of a regression of the shared signal on the planted model's ranks."""
    for scope in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.REJECT):
        ranks = signed_ranks(study.of_scope(scope).differences.T)
        for people in populations[scope]:
            planted_ranks = ranks[MODELS.index(people.name)][:, None]
            residuals = np.linalg.lstsq(planted_ranks, people.signal, rcond=None)[1][0]
            item_variance = people.item_sd**2 + residuals / len(people.signal)
            # These models are unrelated, so close rivals may need a little more variance
            tolerance = 0.15 if people.rivals == CLOSE else 0.001
            published_sd = PUBLISHED_KINDS[scope][1]
            assert published_sd - 0.001 < np.sqrt(item_variance.mean()) < published_sd + tolerance
    assert MeasuredPeople().with_random(0.7).kinds[Scope.RANDOM].items is None


def test_close_rivals_are_closest(study: TrialPreferences, populations: Populations) -> None:
    """Witness: accuracies of drawn answers."""
    margins: dict[str, list[float]] = {DISTANT: [], CLOSE: []}
    for people in populations[Scope.RANDOM]:
        accuracies = [
            simulate_accuracy_and_ceiling(study, Scope.RANDOM, people, 6, m)[0]
            for m in range(len(MODELS))
        ]
        planted_accuracy = accuracies.pop(MODELS.index(people.name))
        margins[people.rivals].append(planted_accuracy - max(accuracies))
    assert np.mean(margins[CLOSE]) < np.mean(margins[DISTANT]) - 0.03


def test_models_have_the_accuracy_of_the_pilot(pilot: tuple[Experiment, Analysis, Path]) -> None:
    """Witness: the analysis of the pilot, and drawn answers."""
    simulated, _, folder = pilot
    measured = read_measured(folder)
    study = preferences_by_scope(simulated.trials, simulated.scores)
    assert measured.knows(study)
    populations, _ = calibrate(study, measured)
    for scope in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC):
        (people,) = populations[scope]
        assert people.name == AS_MEASURED
        for model, name in enumerate(study.models):
            accuracy, _ = simulate_accuracy_and_ceiling(study, scope, people, 6, model)
            assert accuracy == pytest.approx(measured.kinds[scope].of_models[name], abs=0.03)
    power = design_power(simulated.trials, simulated.scores, measured=measured, simulations=1)
    assert set(power_table(power)["people"]) == {AS_MEASURED}
    assert "The simulated participants follow all models" in power_report(power).markdown()
    # If a pilot lacks one of the models, only its best model is known
    new = {model: model for model in ("", "a", "b")} | {"c": "new"}
    renamed = [replace(t, model_1=new[t.model_1], model_2=new[t.model_2]) for t in simulated.trials]
    table = replace(simulated.scores, models=("a", "b", "new"))
    assert not measured.knows(preferences_by_scope(renamed, table))


def test_pilot_measures_are_read(pilot: tuple[Experiment, Analysis, Path], tmp_path: Path) -> None:
    """Witness: the analysis."""
    _, analysis, folder = pilot
    measured = read_measured(folder)
    assert {measured.kinds[Scope(scope)].raters for scope in KINDS} == {6}
    assert not measured.simulated
    assert measured.best == "a"
    assert "model that participants followed most" in measured.source
    for scope in KINDS:
        measures = measured.kinds[Scope(scope)]
        models = {row.model: row for row in analysis.result(Scope(scope), ACCURACY).models}
        assert measures.ceiling == pytest.approx(models["a"].lower)
        assert measures.accuracy == pytest.approx(models["a"].value)
        for name, value in measures.of_models.items():
            assert value == pytest.approx(models[name].value)
    tables = tmp_path / "tables"
    shutil.copytree(folder / "tables", tables)
    (tmp_path / "report.html.meta.json").write_text("[")
    with pytest.raises(InputError, match=r"report\.html\.meta\.json"):
        read_measured(tmp_path)
    for text, message in (
        ("scope,measure\noverall,accuracy\n", r"models\.csv lacks the columns model, value, lower"),
        (
            "scope,measure,model,value,lower\nrandom-natural,accuracy,a,0.7,0.8\n",
            "is not the output folder of `contstim analyze`",
        ),
    ):
        (tables / "models.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            read_measured(tmp_path)


@pytest.mark.parametrize(("ceiling", "raters"), [(0.5, 10), (1.0, 10), (0.7, 1)])
def test_invalid_ceilings_raise(study: TrialPreferences, ceiling: float, raters: int) -> None:
    measured = MeasuredPeople().with_random(ceiling)
    random = replace(measured.kinds[Scope.RANDOM], raters=raters)
    measured = replace(measured, kinds={**measured.kinds, Scope.RANDOM: random})
    with pytest.raises(InputError, match=r"above \.5 and below 1, and needs at least 2"):
        calibrate(study, measured)
