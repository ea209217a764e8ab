"""The power of a whole design, as a page and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.golan2023 import PUBLISHED_CEILING
from contstim.experiments.markdown import markdown_table
from contstim.experiments.power import Power, simulate_power, thin
from contstim.experiments.simulated import calibrate_noise, compare
from contstim.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contstim.arrays import FloatArray
    from contstim.experiments.simulated import Comparisons
    from contstim.scores import ScoreTable
    from contstim.stimuli import Trial

_RATES = (0.8, 0.9, 0.95)
_SHARES = (8, 4, 2)
_COLUMNS = (
    *("condition", "planted", "model"),
    *("expected_accuracy", "significantly_better", "planted_first"),
)


@dataclass(frozen=True, eq=False)
class DesignPower:
    """The power of each condition of a design.

    Attributes:
        noise: (n_models,) of the participants where that model is planted, nats.
        ceiling: the noise ceiling that they were calibrated to.
        alpha: false discovery rate.
        conditions: what each condition shows by itself.
        smaller: condition → trials a group that it would have in a smaller experiment → how often
            the planted model is significantly better, averaged over all comparisons.
    """

    models: tuple[str, ...]
    noise: FloatArray
    ceiling: float
    groups: int
    participants: int
    alpha: float
    conditions: Mapping[Condition, Power]
    smaller: Mapping[Condition, Mapping[int, float]]


def design_power(
    trials: Iterable[Trial],
    table: ScoreTable,
    *,
    ceiling: float = PUBLISHED_CEILING,
    raters: int = 10,
    groups: int | None = None,
    participants: int = 10,
    simulations: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> DesignPower:
    """Simulate an experiment with each model in turn as the human, condition by condition.

    Args:
        trials: a design's, with random natural pairs: participants' noise is calibrated on them.
        table: scores of all the trials' sentences under the models to be compared.
        ceiling: lower noise ceiling on random natural pairs.
        raters: how many participants saw each pair where that ceiling was measured.
        groups: see `simulate_power`.
        participants: see `simulate_power`.
        simulations: see `simulate_power`.
        alpha: see `simulate_power`.
        seed: see `simulate_power`.
        progress: told how many of how many simulations are done.

    Raises:
        InputError: a sentence or model has no scores, there are no random natural pairs or fewer
            than two models, or no noise gives this ceiling.
    """
    found = compare(trials, table)
    if Condition.RANDOM_NATURAL not in found or len(table.models) < 2:
        raise InputError(
            "Power is simulated with noise that is calibrated on random natural pairs, for two or "
            "more models: give --random-per-group 1 or more, and scores under all models."
        )
    random = found[Condition.RANDOM_NATURAL].differences
    noise = np.array([calibrate_noise(column, ceiling, raters=raters) for column in random.T])

    sizes = {condition: [None, *_sizes(of)] for condition, of in found.items()}
    runs = [(c, of, size) for c, of in found.items() for size in sizes[c]]
    results: dict[tuple[Condition, int | None], Power] = {}
    for done, (condition, comparisons, size) in enumerate(runs):
        if progress is not None:
            progress(done, len(runs))
        results[condition, size] = simulate_power(
            comparisons if size is None else thin(comparisons, size, seed=seed),
            noise,
            groups=groups,
            participants=participants,
            simulations=simulations if size is None else max(1, simulations // 4),
            alpha=alpha,
            seed=seed,
        )
    designed = 1 + max(int(c.groups.max()) for c in found.values())
    return DesignPower(
        table.models,
        noise,
        ceiling,
        groups or designed,
        participants,
        alpha,
        {c: results[c, None] for c in found},
        {c: {s: results[c, s].mean_better for s in _sizes(of)} for c, of in found.items()},
    )


def _sizes(comparisons: Comparisons) -> list[int]:
    least = int(np.bincount(comparisons.groups).min())
    return sorted({least // share for share in _SHARES} - {0})


def power_table(power: DesignPower) -> dict[str, list[Any]]:
    """Columns condition, planted, model, expected_accuracy, significantly_better, planted_first.

    `significantly_better` is empty where the model is the planted one.
    """
    rows = [
        (
            condition.value,
            planted,
            model,
            float(found.accuracy[i, j]),
            "" if i == j else float(found.better[i, j]),
            float(found.first[i]),
        )
        for condition, found in power.conditions.items()
        for i, planted in enumerate(power.models)
        for j, model in enumerate(power.models)
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}


def power_markdown(power: DesignPower) -> str:
    """The power of a design as a Markdown page."""
    conditions = power.conditions.items()
    first = [
        [c, found.first_by_trials.shape[1], float(found.first.mean()), *_needed(found)]
        for c, found in conditions
    ]
    significant = [
        [c, size, rate]
        for c, found in conditions
        for size, rate in [*power.smaller[c].items(), ("all", found.mean_better)]
    ]
    accuracy = [
        [model, *(float(found.accuracy[i, i]) for _, found in conditions)]
        for i, model in enumerate(power.models)
    ]
    simulations = max(found.simulations for _, found in conditions)
    return "\n".join(
        [
            "# Power of the experiment\n",
            f"Each of {len(power.models)} models in turn is planted as the human: "
            f"{power.groups} groups of {power.participants} participants prefer what it prefers, "
            "with normal noise on the difference in log-probability that gives them a lower noise "
            f"ceiling of {power.ceiling:g} on the random natural pairs "
            f"({power.noise.min():.1f} to {power.noise.max():.1f} nats). {simulations:,} simulated "
            "experiments a model, each analysed as the real one will be.\n",
            "## Does the planted model come first?\n",
            "How often it has the highest accuracy with all trials, and how many trials suffice "
            "for that to happen at a given rate, averaged over planted models.\n",
            markdown_table(
                ["condition", "trials", "first", *(f"trials for {r:.0%}" for r in _RATES)], first
            ),
            "## Is it significantly better?\n",
            "Share of comparisons of the planted model with another one that become significant "
            "in its favour, by trials that a group sees.\n",
            markdown_table(["condition", "trials a group", "significant"], significant),
            *_caution(power),
            "## Expected accuracy of the planted model\n",
            markdown_table(["planted", *(c for c, _ in conditions)], accuracy),
        ]
    )


def _caution(power: DesignPower) -> list[str]:
    """What to say where even differences that all have one sign are not significant."""
    units = "groups" if power.groups > 1 else "participants"
    n = power.participants if power.groups == 1 else power.groups
    if 2 * 0.5**n < power.alpha:
        return []
    return [f"With {n} {units} no signed-rank test can be significant, whatever the data.\n"]


def _needed(found: Power) -> list[object]:
    return [found.trials_needed(rate) or "more" for rate in _RATES]
