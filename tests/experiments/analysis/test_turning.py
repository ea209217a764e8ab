"""No result depends on which sentence of a trial is sentence_1, which is a convention."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.mixed.comparison import MixedAnalysis
from contstim.experiments.analysis.run import Analysis
from contstim.experiments.analysis.tables import result_tables
from contstim.experiments.platforms.r import RSettings, export_r
from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, trial_columns
from contstim.steps.analysis import FitMixed
from contstim.testing.platform import read_csv_rows
from tests.experiments.analysis.simulation import Experiment, simulate

SWAPPED = {f"{name}_{n}": f"{name}_{3 - n}" for name in ("sentence", "model") for n in (1, 2)}
FIXED = (Condition.CATCH, Condition.NATURAL_SYNTHETIC)  # sentence_1 is the natural sentence
FREE = tuple(condition for condition in Condition if condition not in FIXED)


def swap_sentences(
    experiment: Experiment, conditions: Collection[Condition], share: float = 0.5
) -> Experiment:
    """Swap the sentences of a share of trials, with their models, ratings and sides."""
    rng = np.random.default_rng(3)
    names = {
        trial.trial_id
        for trial in experiment.trials
        if trial.condition in conditions and rng.random() < share
    }

    def swap_side(left: int) -> int:
        return 3 - left if left else left

    return replace(
        experiment,
        trials=tuple(
            replace(trial, **{name: getattr(trial, other) for name, other in SWAPPED.items()})
            if trial.trial_id in names
            else trial
            for trial in experiment.trials
        ),
        responses=tuple(
            replace(response, rating=7 - response.rating, left=swap_side(response.left))
            if response.trial_id in names
            else response
            for response in experiment.responses
        ),
    )


def press_left_at_random(experiment: Experiment) -> Experiment:
    """Let each participant press the left button in a random share of trials."""
    rng = np.random.default_rng(1)
    shares = {name: rng.random() / 2 for name in {r.participant for r in experiment.responses}}
    catch = {trial.trial_id for trial in experiment.trials if trial.condition is Condition.CATCH}
    return replace(
        experiment,
        responses=tuple(
            replace(response, rating=2 if response.left == 1 else 5)
            if response.trial_id not in catch and rng.random() < shares[response.participant]
            else response
            for response in experiment.responses
        ),
    )


EXPERIMENTS: dict[str, Callable[[Experiment], Experiment]] = {
    "sides": press_left_at_random,
    # Swapped trials contain the rating that no participant gave
    "no sides, unused rating": lambda experiment: replace(
        experiment,
        responses=tuple(
            replace(response, left=0, rating=max(response.rating, 2))
            for response in experiment.responses
        ),
    ),
}


@pytest.fixture(scope="module", params=EXPERIMENTS)
def experiments(request: pytest.FixtureRequest) -> tuple[Experiment, Experiment]:
    """The same responses, with original and with swapped trials."""
    experiment = EXPERIMENTS[request.param](simulate(("a", "b"), (4, 5), follow=0.75))
    return experiment, swap_sentences(experiment, FREE)


def assert_same_cells(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Compare the cells of two tables or rows."""
    assert first.keys() == second.keys()

    def approximate(cell: Any) -> Any:
        is_number = isinstance(cell, float)
        return pytest.approx(cell, rel=1e-4, abs=1e-6, nan_ok=True) if is_number else cell

    for name, cells in first.items():
        expected = (
            [*map(approximate, cells)] if isinstance(cells, list | tuple) else approximate(cells)
        )
        assert second[name] == expected, name


@pytest.mark.slow
def test_analysis_does_not_depend_on_order(
    experiments: tuple[Experiment, Experiment],
) -> None:
    def run_analysis(experiment: Experiment) -> Analysis:
        return experiment.analyze(sampling=Sampling())

    original, swapped = map(run_analysis, experiments)
    assert swapped.orientations == original.orientations
    assert swapped.cautions == original.cautions
    tables = [result_tables(analysis) for analysis in (original, swapped)]
    for name, table in tables[0].items():
        if name != "trials":  # states how many prefer each sentence of a trial
            assert_same_cells(table, tables[1][name])


def write_files(experiment: Experiment, folder: Path) -> tuple[Path, Path, Path]:
    folder.mkdir()
    paths = folder / "trials.csv", folder / "responses.csv", folder / "scores.csv"
    write_table(paths[0], trial_columns(experiment.trials))
    write_responses(paths[1], experiment.responses)
    experiment.scores.write(paths[2])
    return paths


def fit(paths: tuple[Path, Path, Path], out: Path, **options: Any) -> MixedAnalysis:
    trials, responses, scores = paths
    return FitMixed(trials=trials, responses=responses, scores=scores, out=out, **options).run()


def test_mixed_models_do_not_depend_on_order(
    experiments: tuple[Experiment, Experiment], tmp_path: Path
) -> None:
    original, swapped = (
        fit(write_files(experiment, tmp_path / str(n)), tmp_path / f"out{n}")
        for n, experiment in enumerate(experiments)
    )
    for name, table in original.tables().items():
        assert_same_cells(table, swapped.tables()[name])


def test_export_to_r_does_not_depend_on_order(
    experiments: tuple[Experiment, Experiment], tmp_path: Path
) -> None:
    original, swapped = (
        export_r(
            experiment.trials,
            tmp_path / f"out{n}",
            RSettings(*write_files(experiment, tmp_path / str(n))[1:]),
        ).path
        for n, experiment in enumerate(experiments)
    )
    for name in ("accuracies.csv", "mixed.csv"):
        for row, swapped_row in zip(
            *(read_csv_rows(path / name) for path in (original, swapped)), strict=True
        ):
            assert_same_cells(parse_numbers(row), parse_numbers(swapped_row))


def parse_numbers(row: dict[str, str]) -> dict[str, Any]:
    def parse_cell(cell: str) -> float | str:
        try:
            return float(cell)
        except ValueError:
            return cell

    return {name: parse_cell(cell) for name, cell in row.items()}


@pytest.mark.parametrize("condition", FIXED)
def test_swapped_fixed_trials_are_rejected(condition: Condition, tmp_path: Path) -> None:
    """The natural sentence must come first; otherwise all participants would fail catch trials."""
    experiment = swap_sentences(simulate(("a", "b"), (5,)), [condition], share=1)
    trials = tuple(
        replace(trial, kind_1=trial.kind_2, kind_2=trial.kind_1)
        if trial.condition is condition
        else trial
        for trial in experiment.trials
    )
    experiment = replace(experiment, trials=trials)
    name = next(trial.trial_id for trial in trials if trial.condition is condition)
    message = f"{name}' is {condition}, so it compares natural .* swap the sentences"
    paths = write_files(experiment, tmp_path / "files")
    for run in (
        experiment.analyze,
        lambda: fit(paths, tmp_path / "out"),
        lambda: export_r(experiment.trials, tmp_path / "r", RSettings(*paths[1:])),
    ):
        with pytest.raises(InputError, match=message):
            run()
