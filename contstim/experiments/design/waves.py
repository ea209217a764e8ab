"""Waves of participants: each wave gets new items of the matches that are still open.

A match is the comparison of two models. It is open if more answers can change the verdict.

    wave 1   all matches                                       24 people, each with 36 new items
    wave 2   matches between models that are not yet beaten    24 people, each with 36 new items
    …

Waves end when no match is open, for example because one model beats every other model, or when the
maximum number of people is reached.

A list contains all items of one participant. With `people_per_list`, several participants get the
same list. Each item is in only one list. Therefore, the verdict of
`contstim.experiments.analysis.e_values` is valid after every wave, although earlier verdicts decide
which matches the next wave contains.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, combinations, cycle, islice
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.analysis.e_values import Match, verdict_of
from contstim.experiments.design.building import draw_fillers, triplet_trials, used_texts
from contstim.experiments.design.population import PUBLISHED_KINDS
from contstim.files.tables import read_rows
from contstim.items.stimuli import CELL_READERS, Condition, Trial, content_id
from contstim.options import Help
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.experiments.analysis.e_values import Verdict
    from contstim.files.arrays import FloatArray
    from contstim.items.stimuli import Triplet
    from contstim.words.sentence import Sentence

    ModelPair: TypeAlias = tuple[str, str]
    Play: TypeAlias = Callable[[ModelPair, int, int], FloatArray]


@dataclass(frozen=True, kw_only=True)
class WaveRules:
    """Sizes of waves, and the values that decide when waves end."""

    people_per_wave: Annotated[int, Help("Participants in a wave.", at_least=1)] = 24
    trials_per_person: Annotated[
        int, Help("Trials that compare two models, for each participant.", at_least=1)
    ] = 36
    people_per_list: Annotated[
        int, Help("Participants with the same items; together, they count as one.", at_least=1)
    ] = 1
    max_people: Annotated[int, Help("Maximum number of participants.", at_least=1)] = 300
    alpha: Annotated[
        float, Help("Maximum probability of ever dropping the best model.", above=0, below=1)
    ] = 0.05
    margin: Annotated[
        float,
        Help(
            "Stop comparing two models if their shares of answers differ by less than this.",
            at_least=0,
            at_most=1,
        ),
    ] = 0.0

    def lists(self, people: int) -> int:
        """Return the number of lists of the next wave; `people` took part in earlier waves."""
        remaining = min(self.people_per_wave, self.max_people - people)
        return max(0, remaining // self.people_per_list)

    def check(self) -> None:
        """Check that all lists of a wave can be complete.

        Raises:
            InputError: if `people_per_wave` is not a multiple of `people_per_list`, or is greater
                than `max_people`.
        """
        if self.people_per_wave % self.people_per_list or self.max_people < self.people_per_wave:
            raise InputError(
                "people_per_wave must be a multiple of people_per_list, and at most max_people, "
                f"got {self.people_per_wave}, {self.people_per_list} and {self.max_people}."
            )


class TooFewItemsError(InfeasibleError):
    """A match has too few unused items for the next wave.

    Args:
        message: the message.
        needed: number of triplets that each pair of models needs, including used triplets.
    """

    def __init__(self, message: str, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


@dataclass(frozen=True)
class Wave:
    """A designed wave, which is a row of the table of waves.

    Attributes:
        wave: number of the wave, from 1.
        first_list, last_list: numbers of the wave's first and last list; a list is a group of
            trials.
        people: number of participants in the wave.
        matches: number of matches (pairs of models) that the wave's trials compare.
        items: number of the wave's trials, without catch trials.
        sha256: checksum of the identifiers of the wave's trials.
    """

    wave: int
    first_list: int
    last_list: int
    people: int
    matches: int
    items: int
    sha256: str

    @property
    def lists(self) -> range:
        """Numbers of the wave's lists."""
        return range(self.first_list, self.last_list + 1)

    @property
    def people_per_list(self) -> int:
        """Number of participants who get the same list."""
        return self.people // len(self.lists)

    @classmethod
    def of(cls, number: int, trials: Sequence[Trial], people_per_list: int) -> Wave:
        """Describe the trials of a wave."""
        lists = {trial.group for trial in trials}
        compared = [trial for trial in trials if trial.model_1]
        size = (len(lists) * people_per_list, len({*map(match_of, compared)}), len(compared))
        return cls(number, min(lists), max(lists), *size, trials_checksum(trials))

    def trials_of(self, trials: Iterable[Trial]) -> list[Trial]:
        """Select the trials of this wave from the trials of all waves."""
        return [trial for trial in trials if trial.group in self.lists]


def trials_checksum(trials: Iterable[Trial]) -> str:
    """Return the checksum of the identifiers and groups of trials, in any order."""
    names = "\n".join(sorted(f"{trial.group} {trial.trial_id}" for trial in trials))
    return hashlib.sha256(names.encode()).hexdigest()


def read_waves(path: Path) -> tuple[Wave, ...]:
    """Read the table of waves."""
    return read_rows(path, Wave, CELL_READERS)


def match_of(item: Triplet | Trial) -> ModelPair:
    """Return the names of the two models that an item compares, in alphabetical order."""
    return min(item.model_1, item.model_2), max(item.model_1, item.model_2)


def design_wave(
    rules: WaveRules,
    matches: Sequence[ModelPair],
    triplets: Iterable[Triplet],
    earlier: Sequence[Trial],
    people: int,
    *,
    natural: Sequence[Sentence] = (),
    catch_per_group: int = 0,
    rejected: Collection[str] = (),
    seed: int = 0,
) -> list[Trial]:
    """Design the next wave: new items of the open matches, in equal numbers.

    The items are triplets, in the order of their table, which must not depend on answers. Each
    trial of a list gets the first unused item of its match that has no sentence in common with the
    list's other items. If there is no such item, the trial gets the first unused item whose
    synthetic sentences are new to the list. In this case, two items of the list may have the same
    natural sentence, because natural sentences are not displayed. All lists of a wave have the same
    catch trials.

    Args:
        rules: sizes of waves.
        matches: open matches, as pairs of names of models.
        triplets: triplets of all pairs of models.
        earlier: trials of earlier waves, whose items are not used again.
        people: number of participants in earlier waves.
        natural: sentences for catch trials.
        catch_per_group: number of catch trials of a participant.
        rejected: identifiers of rejected triplets.
        seed: seed of the catch trials.

    Raises:
        TooFewItemsError: if a match has too few unused items.
        InfeasibleError: if there are too few sentences for catch trials.
    """
    items = [trial for t in triplets for trial in triplet_trials(t, twins=False)]
    used = {*rejected, *(trial.source_id for trial in earlier)}
    unused = grouped((match_of(item), item) for item in items if item.source_id not in used)
    open_matches = [(min(match), max(match)) for match in matches]
    schedule = _schedule(rules, open_matches, Counter(map(match_of, earlier)), people)
    remaining_turns = Counter(chain.from_iterable(schedule))
    first = max((trial.group for trial in earlier), default=0) + 1
    trials: list[Trial] = []
    for group, turn in enumerate(schedule, first):
        of_list: list[Trial] = []
        for match in turn:
            shown, texts = {text for item in of_list for text in item.bare}, used_texts(of_list)
            # The first item that shares no sentence with the list's other items. If there is none,
            # the first item whose synthetic sentences the list does not display yet
            of_match = unused.get(match, [])
            fitting = chain(
                (item for item in of_match if texts.isdisjoint(used_texts([item]))),
                (item for item in of_match if shown.isdisjoint(item.bare)),
            )
            item = next(fitting, None)
            if item is None:
                needed = sum(match_of(item) == match for item in items) + remaining_turns[match]
                raise TooFewItemsError(
                    f"Too few items of {' × '.join(match)} are left for list {group}, which shows "
                    f"no sentence twice. Search {needed} triplets for each pair of models "
                    "(`per_pair` of [triplets]). Without this key, a study searches enough.",
                    needed,
                )
            of_match.remove(item)
            remaining_turns[match] -= 1
            of_list.append(replace(item, group=group))
        trials += of_list
    rng = np.random.default_rng([seed, first])
    n_catch = {(Condition.CATCH, first): catch_per_group}
    catch = [*draw_fillers(natural, [*earlier, *trials], n_catch, frozenset(), rng)]
    trials += [
        replace(t, group=group, trial_id=content_id("trial", group, t.sentence_1, t.sentence_2))
        for group, _ in enumerate(schedule, first)
        for t in catch
    ]
    return sorted(trials, key=lambda trial: (trial.group, trial.condition, trial.trial_id))


def _schedule(
    rules: WaveRules, matches: Iterable[ModelPair], used: Mapping[ModelPair, int], people: int
) -> list[list[ModelPair]]:
    """Return, for each list of the next wave, the match of each of its trials.

    The matches take turns. Matches with the fewest used items come first, because the last turn can
    end before it reaches all matches.
    """
    turns = cycle(sorted(matches, key=lambda match: used[match]))
    return [[*islice(turns, rules.trials_per_person)] for _ in range(rules.lists(people))]


def simulate_waves(
    rules: WaveRules, models: Sequence[str], play: Play
) -> Iterator[tuple[Verdict, int, Counter[ModelPair]]]:
    """Yield the verdict, the number of people, and the number of items of each match.

    There is one result after each wave, about this wave and all earlier ones.

    Args:
        rules: sizes of waves.
        models: names of the models.
        play: function that simulates answers. It takes a match, a number of lists, and the number
            of trials of this match in each of these lists. It returns the outcome of each list,
            (n_lists,), from -1 (all answers for the second model) to 1 (all for the first model).
    """
    outcomes: dict[ModelPair, FloatArray] = {pair: np.empty(0) for pair in combinations(models, 2)}
    items = Counter(dict.fromkeys(outcomes, 0))
    still_open: Sequence[ModelPair] = [*outcomes]
    people = 0
    while still_open and (schedule := _schedule(rules, still_open, items, people)):
        turns = [Counter(turn) for turn in schedule]
        for pair in dict.fromkeys(chain.from_iterable(schedule)):
            # Number of trials of this match in a list → number of lists with so many trials of it
            lists = Counter(turn[pair] for turn in turns if turn[pair])
            new = [play(pair, n_lists, n_trials) for n_trials, n_lists in sorted(lists.items())]
            outcomes[pair] = np.concatenate([outcomes[pair], *new])
        items.update(chain.from_iterable(schedule))
        people += len(schedule) * rules.people_per_list
        matches = [Match(*pair, x, np.ones(len(x))) for pair, x in outcomes.items()]
        verdict = verdict_of(matches, rules.alpha, rules.margin)
        still_open = verdict.open
        yield verdict, people, items


def simulate_sizes(
    rules: WaveRules, n_models: int, *, simulations: int = 100, seed: int = 0
) -> FloatArray:
    """Simulate studies with models and items like those of Golan et al. (2023).

    The models of a simulated study are drawn from the nine models of experiment 1. Their accuracies
    and the variance of items are those measured on pairs of synthetic sentences.

    Returns:
        For each study: number of people, number of items in the match with the most items, and
        whether there is a verdict, (3, simulations).
    """
    from scipy.special import ndtr

    rng = np.random.default_rng(seed)
    item_sd, *accuracies = PUBLISHED_KINDS[Condition.SYNTHETIC_SYNTHETIC][1:]
    strengths = _strengths(np.array(accuracies)) * np.sqrt(1 + item_sd**2)
    models = [str(number) for number in range(n_models)]

    def play(pair: ModelPair, n_lists: int, n_trials: int) -> FloatArray:
        signal = chosen[int(pair[0])] - chosen[int(pair[1])]
        p = ndtr(signal + item_sd * rng.standard_normal((n_lists, n_trials)))
        answers = rng.binomial(rules.people_per_list, p) / rules.people_per_list
        return np.asarray(2 * answers.mean(axis=1) - 1)

    studies = []
    for _ in range(simulations):
        chosen = rng.choice(strengths, n_models, replace=n_models > len(strengths))
        *_, (verdict, people, items) = simulate_waves(rules, models, play)
        studies.append((people, max(items.values()), not verdict.open))
    return np.array(studies, float).T


def _strengths(accuracies: FloatArray) -> FloatArray:
    """Return a strength of each model; differences of strengths predict the mean accuracies."""
    from scipy.optimize import least_squares
    from scipy.special import ndtr

    def errors(strengths: FloatArray) -> FloatArray:
        shares = ndtr(strengths[:, None] - strengths).sum(axis=1) - 0.5
        return np.asarray(shares / (len(accuracies) - 1) - accuracies)

    return np.asarray(least_squares(errors, np.zeros(len(accuracies))).x)
