"""Artificial participants: a model with noise and lapses, who rate what people would."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.design.golan2023 import PUBLISHED_CEILING, SECONDS_PER_TRIAL
from contstim.experiments.design.population import preferences_by_scope, votes_agreement
from contstim.experiments.design.presentation import presentation
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.experiments.responses.table import SIMULATED_NAME, Response
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.experiments.responses.questionnaire import Question
    from contstim.files.arrays import FloatArray
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Trial

_TIME_SPREAD = 0.4  # standard deviation of log reaction times
_RATINGS, _TIMES, _QUESTIONS = 0, 1, 2  # streams of chance
_FIRST = 0.9  # share of choices that are the first


@dataclass(frozen=True, eq=False)
class ArtificialParticipants:
    """People who follow one model.

    In every trial a participant takes the model's log p(sentence_2) - log p(sentence_1), adds
    normal noise anew, and prefers sentence_2 if the sum is positive. Degrees of
    confidence are quantiles of how large such sums are over all trials: thirds of the three
    degrees, fiftieths on a slider. In catch trials they surely prefer the unshuffled sentence.
    When they lapse, any answer is as likely as another. Where trials ask for choices, they tell no
    confidence.

    What participant k answers depends on the seed, k and the trials' identifiers alone, not on
    their group or the order of presentation.

    Attributes:
        trials: of all groups, in the order of their identifiers.
        differences: (n_trials,) nats; -inf for catch trials.
        noise: standard deviation, nats.
        lapses: share of trials.
        seed: decides everything that is left to chance.
        model: the name of the one that they follow, if it has one.
    """

    trials: tuple[Trial, ...]
    differences: FloatArray
    noise: float
    lapses: float
    seed: int
    model: str = ""

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of the groups, ascending."""
        return tuple(sorted({trial.group for trial in self.trials}))

    @property
    def scale(self) -> Scale:
        """On which they answer: that of the trials."""
        return self.trials[0].scale if self.trials else Scale.CONFIDENCE

    @cached_property
    def thresholds(self) -> FloatArray:
        """(n_degrees - 1,) nats: from where on a preference is surer by a degree."""
        from scipy.special import ndtri

        # In place of draws, 99 equally likely values of the noise: (n_trials, 99) sums, whose
        # quantiles do not depend on chance.
        rated = [trial.condition != Condition.CATCH for trial in self.trials]
        noise = self.noise * ndtri((np.arange(99) + 1) / 100)
        sizes = np.abs(self.differences[rated][:, None] + noise)
        finite = np.minimum(sizes, np.finfo(np.float64).max)  # quantiles of inf are nan
        n = len(self.scale.sure)
        shares = np.arange(1, n) / n
        return np.quantile(finite, shares) if finite.size else np.zeros(n - 1)

    def ratings(self, number: int) -> dict[str, int]:
        """Ratings of participant `number`, from 1, for every trial of every group."""
        # All chance is drawn for all trials, also for those that do not need it: an answer depends
        # on its own trial's place in the draws, not on the other answers.
        chance = np.random.default_rng([self.seed, number, _RATINGS])
        n = len(self.trials)
        felt = self.differences + self.noise * chance.standard_normal(n)
        second = np.where(felt == 0, chance.random(n) < 0.5, felt > 0)
        # Confidence 0 to 2 makes ratings 4 to 6 for sentence_2, and 3 down to 1 for sentence_1; a
        # choice has one degree of it.
        answers = self.scale.answers
        sure = np.array(self.scale.sure)[np.searchsorted(self.thresholds, np.abs(felt))]
        rated = np.where(second, sure, answers[0] + answers[-1] - sure)
        for row, trial in enumerate(self.trials):
            if trial.condition == Condition.CATCH:
                rated[row] = answers[0]
        lapsed = chance.random(n) < self.lapses
        rated = np.where(lapsed, chance.integers(answers[0], answers[-1] + 1, n), rated)
        names = [trial.trial_id for trial in self.trials]
        return dict(zip(names, rated.tolist(), strict=True))

    def times(self, number: int) -> dict[str, int]:
        """Reaction times, milliseconds: log-normal around what a trial took in 2023."""
        chance = np.random.default_rng([self.seed, number, _TIMES])
        logs = chance.normal(np.log(1000 * SECONDS_PER_TRIAL), _TIME_SPREAD, len(self.trials))
        names = [trial.trial_id for trial in self.trials]
        return dict(zip(names, np.exp(logs).round().astype(int).tolist(), strict=True))

    def answers(
        self, number: int, name: str, *, group: int, place: int, seed: int
    ) -> tuple[Response, ...]:
        """Answers of participant `number` as member of a group, in the order of presentation.

        Args:
            number: decides the ratings; see `ratings`.
            name: what the participant is called.
            group: whose trials are shown.
            place: number within the group, from 1; see `presentation`.
            seed: of order and sides; see `presentation`.
        """
        rated, took = self.ratings(number), self.times(number)
        answers = []
        for shown in presentation(self.trials, group=group, participant=place, seed=seed):
            trial = shown.trial.trial_id
            given = (rated[trial], shown.left, shown.position, float(took[trial]))
            answer = Response(name, group, trial, *given, simulated=True, scale=self.scale)
            answers.append(answer)
        return tuple(answers)


def artificial_participants(
    trials: Iterable[Trial],
    scores: ScoreTable,
    model: str,
    *,
    noise: float | None = None,
    ceiling: float = PUBLISHED_CEILING,
    lapses: float = 0.0,
    seed: int = 0,
) -> ArtificialParticipants:
    """People who follow a model, as noisy as people are.

    Args:
        trials: a design's.
        scores: log-probabilities of the trials' sentences, nats; catch trials need none.
        model: the one that people follow.
        noise: standard deviation, nats; None calibrates it on the random natural pairs.
        ceiling: the lower noise ceiling, with ten raters a trial, that calibrated noise gives.
        lapses: share of trials rated without looking.
        seed: decides everything that is left to chance.

    Raises:
        InputError: a sentence or the model has no scores, a number is impossible, or there are no
            random natural pairs to calibrate the noise on.
    """
    # By identifier, so that answers do not depend on the order of the table of trials.
    design = tuple(sorted(trials, key=lambda trial: trial.trial_id))
    if model not in scores.models or not design:
        raise InputError(
            f"{model!r} cannot answer {len(design)} trials; there are scores of "
            f"{', '.join(scores.models)}."
        )
    if not 0 <= lapses <= 1 or not (noise is None or 0 <= noise < np.inf):
        raise InputError(
            f"Lapses are a share from 0 to 1, and noise is 0 nats or more; not {lapses}, {noise}."
        )
    of_models = preferences_by_scope(design, scores)
    column, random = scores.models.index(model), of_models.evaluates.get(Scope.RANDOM)
    asked = np.array([trial.condition != Condition.CATCH for trial in design])
    differences = np.full(len(design), -np.inf)  # in catch trials sentence_1 is surely preferred
    differences[asked] = of_models.every.differences[:, column]
    if noise is None:
        if random is None:
            raise InputError(
                "Noise is calibrated on random natural pairs, and these trials have none: state "
                "the noise, in nats."
            )
        noise = calibrate_noise(differences[asked][random[:, column]], ceiling)
    return ArtificialParticipants(design, differences, noise, lapses, seed, model)


def simulate_responses(people: ArtificialParticipants, participants: int) -> tuple[Response, ...]:
    """The responses of so many participants, dealt to the groups in turn."""
    groups = people.groups
    return tuple(
        response
        for index in range(participants)
        for response in people.answers(
            index + 1,
            f"{SIMULATED_NAME}{index + 1}",
            group=groups[index % len(groups)],
            place=index // len(groups) + 1,
            seed=people.seed,
        )
    )


def artificial_answers(
    questions: Iterable[Question], name: str, *, number: int, seed: int
) -> list[QuestionAnswer]:
    """Answers to questions beside the trials: the first choice of most, any number, no text."""
    chance, answers = np.random.default_rng([seed, number, _QUESTIONS]), []
    for asked in (each for each in questions if each.when != "check"):
        answer = str(chance.integers(asked.lowest, asked.highest + 1))
        if asked.kind == "choice":
            first = chance.random() < _FIRST
            answer = asked.choices[0 if first else chance.integers(1, len(asked.choices))]
        answers.append(QuestionAnswer(name, asked.name, "" if asked.kind == "text" else answer))
    return answers


def lower_ceiling(differences: FloatArray, noise: float, raters: int) -> float:
    """Rate at which one of `raters` artificial participants agrees with most of the others.

    The expected value, over trials with these differences, of the lower noise ceiling of accuracy
    (Golan et al. 2023, Methods). By the law of comparative judgement (Thurstone 1927) a share of
    Phi(difference / noise) prefers sentence_2.
    """
    from scipy.special import ndtr

    return float(np.mean(votes_agreement(ndtr(differences / noise), raters)))


def calibrate_noise(differences: FloatArray, ceiling: float, *, raters: int = 10) -> float:
    """The noise (nats) under which simulated participants reach a stated lower noise ceiling.

    Args:
        differences: (n_trials,) of the planted model, on the trials where it was measured.
        ceiling: share of trials in which a person agrees with the majority of the others, such as
            `PUBLISHED_CEILING`.
        raters: participants who saw each trial where that was measured.

    Raises:
        InputError: no noise gives this ceiling.
    """
    from scipy.optimize import brentq

    finite = differences[np.isfinite(differences)]
    spread = float(np.abs(finite).max(initial=0.0))
    if raters < 2:
        raise InputError(f"A noise ceiling compares 2 or more participants, not {raters}.")
    most = lower_ceiling(differences, spread * 1e-6, raters) if spread else 0.5
    if not 0.5 < ceiling < most:
        raise InputError(
            f"No noise gives simulated participants a noise ceiling of {ceiling}: it lies between "
            f"0.5 and {most:.6f} on these {len(differences)} pairs."
        )

    # The ceiling falls as noise grows, and noise has no natural unit: the root is sought over its
    # logarithm, fourteen e-folds to either side of the largest difference.
    def excess(log_noise: float) -> float:
        return lower_ceiling(differences, float(np.exp(log_noise)), raters) - ceiling

    return float(np.exp(brentq(excess, np.log(spread) - 14, np.log(spread) + 14)))
