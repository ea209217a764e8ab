"""Waves of participants: error rates in simulated worlds, and experiment 1 of 2023 replayed.

    python benchmarks/waves.py [--quick] [DATA]

In worlds without a difference, a given model may be dropped in at most 5 % of the simulations. An
answer agrees with the first model of a match with the probability of its item, which varies by the
given standard deviation. A leaning (logits) is a person's preference for one of the two models.
Lapses are random answers. In the world counted singly, five people share a list, but the statistic
takes them for five lists: it must fail.

The replay draws items of the two models, and people's answers to them, with replacement, 36 trials
of two synthetic sentences for each person. It needs the published data.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from inputs import DATA
from scipy.special import expit, logit

from contstim.experiments.analysis.e_values import Match, verdict_of
from contstim.experiments.design.waves import WaveRules, simulate_waves
from contstim.experiments.reproduce.published import MODELS, read_experiment
from contstim.items.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Play = Callable[[tuple[str, str], int, int], Numbers]

RULES = WaveRules(people_per_wave=12, trials_per_person=12, max_people=240)


def simulate_world(
    rng: np.random.Generator,
    differences: dict[tuple[str, str], float],
    *,
    item_sd: float = 0.2,
    leaning: float = 0.0,
    lapses: float = 0.0,
    mixture: float = 0.0,
    people: int = 1,
    singly: bool = False,
) -> Play:
    """Return the outcomes of lists in a world.

    Args:
        rng: source of all draws.
        differences: match → mean share of its first model minus that of the second.
        item_sd: standard deviation of items, as shares.
        leaning: standard deviation of people's leanings, logits.
        lapses: share of random answers.
        mixture: half of the people lean to one model by this many logits, half to the other.
        people: people who share a list.
        singly: whether each of them counts as a list.
    """

    def play(pair: tuple[str, str], n_lists: int, n_trials: int) -> Numbers:
        n_items = n_lists // people if singly else n_lists
        p = 0.5 + differences.get(pair, 0.0) / 2 + item_sd * rng.normal(size=(n_items, 1, n_trials))
        p = np.clip(p, 0.01, 0.99)
        leanings = leaning * rng.normal(size=(n_items, people, 1))
        leanings = leanings + mixture * rng.choice([-1, 1], size=(n_items, people, 1))
        p = (1 - lapses) * expit(logit(p) + leanings) + lapses / 2
        signs = np.where(rng.random(p.shape) < p, 1.0, -1.0)
        return np.asarray(signs.mean(axis=2).ravel() if singly else signs.mean(axis=(1, 2)))

    return play


def worlds() -> Iterator[tuple[str, int, dict[tuple[str, str], float], dict[str, float]]]:
    """Yield the name, the number of models, the differences and further arguments of each world."""
    for item_sd in (0.2, 0.4):
        for leaning in (0.0, 1.0, 2.0):
            settings = {"item_sd": item_sd, "leaning": leaning}
            yield f"all equal, items {item_sd}, leanings {leaning:g}", 3, {}, settings
    yield "all equal, a fifth of lapses", 3, {}, {"lapses": 0.2}
    yield "all equal, two kinds of people", 3, {}, {"mixture": 1.0}
    yield "two equal models", 2, {}, {}
    yield "all equal, five people share a list", 3, {}, {"item_sd": 0.4, "people": 5}
    near = {("a", "b"): 0.3, ("a", "c"): 0.3, ("b", "c"): 0.02}
    yield "a clear winner, and a near tie", 3, near, {}
    yield "a near tie of the best two", 3, {("a", "b"): 0.02, ("a", "c"): 0.3, ("b", "c"): 0.3}, {}


def measure_error_rates(simulations: int) -> None:
    print(f"{simulations:,} simulations each; a given model (a) is ever dropped by mistake:")
    limit = 0.05 + 2 * np.sqrt(0.05 * 0.95 / simulations)
    for name, n_models, differences, settings in worlds():
        rng = np.random.default_rng(0)
        rules = replace(RULES, people_per_list=int(settings.get("people", 1)))
        dropped = 0
        for _ in range(simulations):
            play = simulate_world(rng, differences, **settings)  # type: ignore[arg-type]
            looks = simulate_waves(rules, "abc"[:n_models], play)
            dropped += any("a" in verdict.beaten for verdict, _, _ in looks)
        rate = dropped / simulations
        print(f"  {name:45} {rate:.3f}  {'at most' if rate <= limit else 'ABOVE'} {limit:.3f}")
    rng = np.random.default_rng(0)
    dropped, rules = 0, replace(RULES, people_per_wave=15, max_people=240)
    for _ in range(simulations):
        play = simulate_world(rng, {}, item_sd=0.4, people=5, singly=True)
        looks = simulate_waves(rules, "abc", play)
        dropped += any("a" in verdict.beaten for verdict, _, _ in looks)
    print(
        f"  {'five people share a list, counted singly':45} {dropped / simulations:.3f}  must fail"
    )
    cycle = {("a", "b"): 0.3, ("b", "c"): 0.3, ("a", "c"): -0.3}
    rng, n_without_winner = np.random.default_rng(0), 0
    for _ in range(simulations):
        *_, (verdict, _, _) = simulate_waves(RULES, "abc", simulate_world(rng, cycle))
        n_without_winner += not verdict.winner
    print(f"  a cycle of three: no model beats all others in {n_without_winner / simulations:.3f}")


def answers_of_items(data: Path) -> dict[tuple[str, str], Numbers]:
    """Return pair → (10 items, 10 answers): 1 for its first model, -1 for the second, or 0."""
    trials, responses = read_experiment(data / "contstimlang", data / "contstimlang-fork" / "data")
    pairs = {
        trial.trial_id: (trial.model_1, trial.model_2)
        for trial in trials
        if trial.condition is Condition.SYNTHETIC_SYNTHETIC
    }
    signs: dict[str, list[float]] = defaultdict(list)
    for response in responses:
        if response.trial_id in pairs:
            # model_1 rejects sentence_1, so it prefers sentence_2
            signs[response.trial_id].append({0: 0.0, 1: -1.0, 2: 1.0}[response.choice])
    tables: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for trial, pair in pairs.items():
        ordered = pair if pair in [*combinations(MODELS, 2)] else pair[::-1]
        factor = 1 if ordered == pair else -1
        tables[ordered].append([factor * sign for sign in signs[trial]])
    return {pair: np.array(table) for pair, table in tables.items()}


def resample_answers(
    rng: np.random.Generator, tables: dict[tuple[str, str], Numbers], people: int
) -> Play:
    def play(pair: tuple[str, str], n_lists: int, n_trials: int) -> Numbers:
        table = tables[pair]
        items = rng.integers(len(table), size=(n_lists, 1, n_trials))
        raters = rng.integers(table.shape[1], size=(n_lists, people, n_trials))
        return np.asarray(table[items, raters].mean(axis=(1, 2)))

    return play


def waves_without_dropping(rules: WaveRules, play: Play) -> Iterator[tuple[int, int]]:
    """Yield people and remaining models if every match goes on in equal numbers."""
    outcomes: dict[tuple[str, str], Numbers] = {p: np.empty(0) for p in combinations(MODELS, 2)}
    for people in range(rules.people_per_wave, rules.max_people + 1, rules.people_per_wave):
        for pair in outcomes:
            outcomes[pair] = np.concatenate([outcomes[pair], play(pair, rules.people_per_wave, 1)])
        matches = [Match(*pair, x, np.ones(len(x))) for pair, x in outcomes.items()]
        n_remaining = len(verdict_of(matches, rules.alpha).surviving)
        yield people, n_remaining
        if n_remaining <= 1:
            return


def replay_experiment(data: Path, simulations: int) -> None:
    tables = answers_of_items(data)
    rng = np.random.default_rng(0)
    print(f"replay of experiment 1, {simulations:,} times: people until 3 / 2 / 1 models remain")
    waves_of_6 = WaveRules(people_per_wave=6, max_people=300)
    for name, rules, drop in (
        ("waves of 6, new items for every person", waves_of_6, True),
        ("the same, no model dropped", waves_of_6, False),
        ("five people share a list", WaveRules(people_per_wave=10, people_per_list=5), True),
    ):
        reached: dict[int, list[float]] = defaultdict(list)
        for _ in range(simulations):
            play = resample_answers(rng, tables, rules.people_per_list)
            looks = (
                [(people, len(v.surviving)) for v, people, _ in simulate_waves(rules, MODELS, play)]
                if drop
                else [*waves_without_dropping(rules, play)]
            )
            for limit in (3, 2, 1):
                reached[limit].append(
                    next((p for p, n_remaining in looks if n_remaining <= limit), np.inf)
                )
        cells = []
        for numbers in reached.values():
            median, later = np.percentile(numbers, (50, 80), method="higher")
            cells.append(f"{median:.0f} ({later:.0f}; {np.isfinite(numbers).mean():.0%})")
        print(f"  {name:42} {' / '.join(cells)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="20 simulations each")
    options = parser.parse_args()
    simulations = 20 if options.quick else 1000
    started = perf_counter()
    measure_error_rates(simulations)
    if (options.data / "contstimlang").is_dir():
        replay_experiment(options.data, simulations // 2)
    else:
        print(f"replay: skipped, there is no folder {options.data} (set CONTSTIM_DATA)")
    print(f"{perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
