"""Which sentence of a trial is called sentence_1 is a convention: no result depends on it."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.mixed.comparison import MixedAnalysis
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.analysis.tables import result_tables
from contstim.experiments.platforms.r import RSettings, export_r
from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, trial_columns
from contstim.steps.analysis import FitMixed
from contstim.testing.platform import read_csv_rows
from tests.experiments.analysis.simulation import Experiment, simulate

EXCHANGED = {f"{name}_{n}": f"{name}_{3 - n}" for name in ("sentence", "model") for n in (1, 2)}
FIXED = (Condition.CATCH, Condition.NATURAL_SYNTHETIC)  # their sentence_1 is the natural one
FREE = tuple(condition for condition in Condition if condition not in FIXED)


def turned(made: Experiment, conditions: Collection[Condition], share: float = 0.5) -> Experiment:
    """Some trials the other way round, with their models, ratings and sides."""
    chance = np.random.default_rng(3)
    names = {
        trial.trial_id
        for trial in made.trials
        if trial.condition in conditions and chance.random() < share
    }

    def other(left: int) -> int:
        return 3 - left if left else left

    return replace(
        made,
        trials=tuple(
            replace(trial, **{name: getattr(trial, other) for name, other in EXCHANGED.items()})
            if trial.trial_id in names
            else trial
            for trial in made.trials
        ),
        responses=tuple(
            replace(answer, rating=7 - answer.rating, left=other(answer.left))
            if answer.trial_id in names
            else answer
            for answer in made.responses
        ),
    )


def leaning(made: Experiment) -> Experiment:
    """People who press the button on the left whatever stands there, each in a share of trials."""
    chance = np.random.default_rng(1)
    shares = {name: chance.random() / 2 for name in {each.participant for each in made.responses}}
    catch = {trial.trial_id for trial in made.trials if trial.condition is Condition.CATCH}
    return replace(
        made,
        responses=tuple(
            replace(each, rating=2 if each.left == 1 else 5)
            if each.trial_id not in catch and chance.random() < shares[each.participant]
            else each
            for each in made.responses
        ),
    )


EXPERIMENTS: dict[str, Callable[[Experiment], Experiment]] = {
    "sides": leaning,
    # Somebody gave that rating once trials are turned
    "no sides, and a rating that nobody gave": lambda made: replace(
        made,
        responses=tuple(
            replace(each, left=0, rating=max(each.rating, 2)) for each in made.responses
        ),
    ),
}


@pytest.fixture(scope="module", params=EXPERIMENTS)
def experiments(request: pytest.FixtureRequest) -> tuple[Experiment, Experiment]:
    """The same answers, with trials named one way and the other."""
    made = EXPERIMENTS[request.param](simulate(("a", "b"), (4, 5), follow=0.75))
    return made, turned(made, FREE)


def alike(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Tables, or rows, with the same cells."""
    assert first.keys() == second.keys()

    def close(cell: Any) -> Any:
        is_number = isinstance(cell, float)
        return pytest.approx(cell, rel=1e-4, abs=1e-6, nan_ok=True) if is_number else cell

    for name, cells in first.items():
        expected = [*map(close, cells)] if isinstance(cells, list | tuple) else close(cells)
        assert second[name] == expected, name


@pytest.mark.slow
def test_analyze(experiments: tuple[Experiment, Experiment]) -> None:
    def results(made: Experiment) -> Analysis:
        return analyze(made.trials, made.responses, made.scores, sampling=Sampling())

    before, after = map(results, experiments)
    assert after.orientations == before.orientations
    assert after.cautions == before.cautions
    tables = [result_tables(each) for each in (before, after)]
    for name, table in tables[0].items():
        if name != "trials":  # says of each sentence of a trial how many prefer it
            alike(table, tables[1][name])


def written(made: Experiment, folder: Path) -> tuple[Path, Path, Path]:
    folder.mkdir()
    paths = folder / "trials.csv", folder / "responses.csv", folder / "scores.csv"
    write_table(paths[0], trial_columns(made.trials))
    write_responses(paths[1], made.responses)
    made.scores.write(paths[2])
    return paths


def fit(paths: tuple[Path, Path, Path], out: Path, **options: Any) -> MixedAnalysis:
    trials, responses, scores = paths
    return FitMixed(trials=trials, responses=responses, scores=scores, out=out, **options).run()


def test_mixed(experiments: tuple[Experiment, Experiment], tmp_path: Path) -> None:
    before, after = (
        fit(written(made, tmp_path / str(n)), tmp_path / f"out{n}")
        for n, made in enumerate(experiments)
    )
    for name, table in before.tables().items():
        alike(table, after.tables()[name])


def test_export_to_r(experiments: tuple[Experiment, Experiment], tmp_path: Path) -> None:
    before, after = (
        export_r(
            made.trials, tmp_path / f"out{n}", RSettings(*written(made, tmp_path / str(n))[1:])
        ).path
        for n, made in enumerate(experiments)
    )
    for name in ("accuracies.csv", "mixed.csv"):
        for one, two in zip(*(read_csv_rows(each / name) for each in (before, after)), strict=True):
            alike(numbers(one), numbers(two))


def numbers(row: dict[str, str]) -> dict[str, Any]:
    def value(cell: str) -> float | str:
        try:
            return float(cell)
        except ValueError:
            return cell

    return {name: value(cell) for name, cell in row.items()}


@pytest.mark.parametrize("condition", FIXED)
def test_other_trials_are_refused_before_exclusions(condition: Condition, tmp_path: Path) -> None:
    """By the contract the natural sentence comes first; all would fail catch trials otherwise."""
    made = turned(simulate(("a", "b"), (5,)), [condition], share=1)
    trials = tuple(
        replace(trial, kind_1=trial.kind_2, kind_2=trial.kind_1)
        if trial.condition is condition
        else trial
        for trial in made.trials
    )
    made = replace(made, trials=trials)
    name = next(trial.trial_id for trial in trials if trial.condition is condition)
    message = f"{name}' is {condition}, so it compares natural .* swap the sentences"
    paths = written(made, tmp_path / "files")
    for refused in (
        lambda: analyze(made.trials, made.responses, made.scores),
        lambda: fit(paths, tmp_path / "out"),
        lambda: export_r(made.trials, tmp_path / "r", RSettings(*paths[1:])),
    ):
        with pytest.raises(InputError, match=message):
            refused()
