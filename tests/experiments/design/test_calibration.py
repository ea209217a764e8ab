"""Calibrated people against those whom they were calibrated to."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.measures import ACCURACY, accuracy_lower, signed_ranks
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import Analysis, analyze
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
    ScopedPreferences,
    preferences_by_scope,
)
from contstim.experiments.design.power import design_power
from contstim.experiments.design.power_report import power_report, power_table
from contstim.files.tables import write_table
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.experiments.design.scored_design import DESIGN, MODELS, scores

KINDS = tuple(PUBLISHED_KINDS)  # as designs of 2023 have them
CEILINGS = dict(zip(KINDS, (0.7, 0.75, 0.8, 0.92, 0.9), strict=True))
ACCURACIES = dict(zip(KINDS, (0.66, 0.7, 0.75, 0.5, 0.85), strict=True))


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, Analysis, Path]:
    """An experiment, its analysis, and the folder of that."""
    made = simulate(groups=(6, 6), each=3, follow=0.75, seed=3)
    found = analyze(made.trials, made.responses, made.scores, sampling=Sampling())
    folder = tmp_path_factory.mktemp("pilot")
    for name in ("models", "groups"):
        write_table(folder / "tables" / f"{name}.csv", result_tables(found)[name])
    return made, found, folder


@pytest.fixture(scope="module")
def study() -> ScopedPreferences:
    return preferences_by_scope(DESIGN.trials, scores())


@pytest.fixture(scope="module")
def populations(study: ScopedPreferences) -> Populations:
    """Those of each model, as people were in the 2023 study."""
    return calibrate(study, MeasuredPeople())[0]


def shown(
    study: ScopedPreferences, scope: Scope, people: Population, raters: int, model: int
) -> tuple[float, float]:
    """Accuracy and ceiling of a model's trials, as `analyze` measures many simulated groups."""
    rng = np.random.default_rng(0)
    own = study.of_scope(scope).evaluates[:, model]
    rows = np.tile(np.flatnonzero(own), (12_000 // own.sum(), 1))
    chosen = np.where(people.answers(rows, raters, rng), 1.0, -1.0)
    sides = np.sign(study.of_scope(scope).differences[own, model])
    agrees = (1 + sides * chosen) / 2
    ceiling = accuracy_lower(chosen.swapaxes(0, 1).reshape(raters, -1))
    return float(agrees.mean()), float(ceiling.mean())


def test_planted_models_and_people_agree_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: accuracy and ceiling of drawn answers, counted as `analyze` does.

    Distant rivals alone: close ones take long, and have tests of their own.
    """
    monkeypatch.setattr(calibration, "_fit_close_rivals", calibration._fit_planted)
    study = preferences_by_scope(DESIGN.trials, scores(5))
    kinds = {
        scope: replace(
            known, ceiling=CEILINGS[scope], accuracy=ACCURACIES[scope], raters=6, items=None
        )
        for scope, known in MeasuredPeople().kinds.items()
        if scope in KINDS
    }
    populations, unreached = calibrate(study, MeasuredPeople(kinds))
    assert not unreached
    for scope, of_scope in populations.items():
        planted = [people for people in of_scope if people.rivals == DISTANT]
        assert [people.name for people in planted] == list(MODELS)
        for model, people in enumerate(planted):
            assert len(people.signal) == len(study.rows(scope))
            if scope is Scope.OVERALL:
                continue
            accuracy, ceiling = shown(study, scope, people, 6, model)
            assert ceiling == pytest.approx(CEILINGS[scope], abs=0.015)
            if scope is not Scope.ACCEPT:  # its weight is that of trials in which it rejects
                assert accuracy == pytest.approx(ACCURACIES[scope], abs=0.015)


def test_items_vary_as_published(study: ScopedPreferences, populations: Populations) -> None:
    """Witness: the residuals of a regression of what people share on the planted model's ranks."""
    for scope in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.REJECT):
        ranks = signed_ranks(study.of_scope(scope).differences.T)
        for people in populations[scope]:
            of_planted = ranks[MODELS.index(people.name)][:, None]
            residuals = np.linalg.lstsq(of_planted, people.signal, rcond=None)[1][0]
            beyond = people.item_sd**2 + residuals / len(people.signal)
            # These models are unrelated: close rivals may have to say a little more than that
            more = 0.15 if people.rivals == CLOSE else 0.001
            spread = PUBLISHED_KINDS[scope][1]
            assert spread - 0.001 < np.sqrt(beyond.mean()) < spread + more
    assert MeasuredPeople().with_random(0.7).kinds[Scope.RANDOM].items is None


def test_close_rivals_come_nearer(study: ScopedPreferences, populations: Populations) -> None:
    """Witness: accuracies of drawn answers."""
    behind: dict[str, list[float]] = {DISTANT: [], CLOSE: []}
    for people in populations[Scope.RANDOM]:
        accuracies = [shown(study, Scope.RANDOM, people, 6, m)[0] for m in range(len(MODELS))]
        own = accuracies.pop(MODELS.index(people.name))
        behind[people.rivals].append(own - max(accuracies))
    assert np.mean(behind[CLOSE]) < np.mean(behind[DISTANT]) - 0.03


def test_models_predict_people_as_in_the_pilot(pilot: tuple[Experiment, Analysis, Path]) -> None:
    """Witness: the analysis of the pilot, and answers that are drawn."""
    made, _, folder = pilot
    measured = read_measured(folder)
    study = preferences_by_scope(made.trials, made.scores)
    assert measured.knows(study)
    populations, _ = calibrate(study, measured)
    for scope in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC):
        (people,) = populations[scope]
        assert people.name == AS_MEASURED
        for model, name in enumerate(study.all_trials.models):
            accuracy, _ = shown(study, scope, people, 6, model)
            assert accuracy == pytest.approx(measured.kinds[scope].of_models[name], abs=0.03)
    power = design_power(made.trials, made.scores, measured=measured, simulations=1)
    assert set(power_table(power)["people"]) == {AS_MEASURED}
    assert "The simulated participants follow all models" in power_report(power).markdown()
    # A pilot that lacks one of the models tells of its best one alone.
    new = {model: model for model in ("", "a", "b")} | {"c": "new"}
    renamed = [replace(t, model_1=new[t.model_1], model_2=new[t.model_2]) for t in made.trials]
    table = replace(made.scores, models=("a", "b", "new"))
    assert not measured.knows(preferences_by_scope(renamed, table))


def test_pilot_measures_are_read(pilot: tuple[Experiment, Analysis, Path], tmp_path: Path) -> None:
    """Witness: the analysis itself."""
    _, found, folder = pilot
    measured = read_measured(folder)
    assert {measured.kinds[Scope(scope)].raters for scope in KINDS} == {6}
    assert not measured.simulated
    assert measured.best == "a"
    assert "model that participants followed most" in measured.source
    for scope in KINDS:
        known = measured.kinds[Scope(scope)]
        models = {x.model: x for x in found.result(Scope(scope), ACCURACY).models}
        assert known.ceiling == pytest.approx(models["a"].lower)
        assert known.accuracy == pytest.approx(models["a"].value)
        for name, value in known.of_models.items():
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
def test_bad_ceilings_are_refused(study: ScopedPreferences, ceiling: float, raters: int) -> None:
    measured = MeasuredPeople().with_random(ceiling)
    random = replace(measured.kinds[Scope.RANDOM], raters=raters)
    measured = replace(measured, kinds={**measured.kinds, Scope.RANDOM: random})
    with pytest.raises(InputError, match=r"above \.5 and below 1, and needs at least 2"):
        calibrate(study, measured)
