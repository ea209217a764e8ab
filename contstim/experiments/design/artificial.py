"""Artificial participants, who rate trials as a model would, with random noise and lapses.

A lapse is a trial with a random answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.design.assignment import presentation
from contstim.experiments.design.population import (
    PUBLISHED_CEILING,
    PUBLISHED_RATERS,
    SECONDS_PER_TRIAL,
    preferences_by_scope,
    votes_agreement,
)
from contstim.experiments.responses.questionnaire import Question, QuestionAnswer
from contstim.experiments.responses.table import SIMULATED_NAME, Response
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, Trial
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.files.arrays import FloatArray
    from contstim.items.scores import ScoreTable

_LOG_TIME_SD = 0.4  # standard deviation of log reaction times
_RATINGS, _TIMES, _QUESTIONS = 0, 1, 2  # each kind of data has its own random numbers
_FIRST_SHARE = 0.9  # probability of choosing the first of a question's choices


@dataclass(frozen=True, eq=False)
class ArtificialParticipants:
    """Artificial participants who follow one model.

    In every trial, a participant adds new normal noise to the model's log p(sentence_2) - log
    p(sentence_1), and prefers sentence_2 if the sum is positive. The degree of confidence increases
    with the absolute value of the sum. Limits between degrees are quantiles of this absolute value
    over all trials except catch trials (thirds for three degrees, fiftieths on a slider). If the
    scale is `choice`, answers have no degree of confidence. In catch trials, participants prefer
    sentence_1, the correct sentence, with full confidence. In a lapse, all answers of the scale are
    equally likely.

    The random numbers of participant k depend only on the seed, k and the trials' identifiers. So
    answers do not depend on the group or the order of presentation.

    Attributes:
        trials: trials of all groups, in the order of their identifiers.
        differences: the model's log p(sentence_2) - log p(sentence_1), (n_trials,) nats; -inf for
            catch trials.
        noise: standard deviation of the noise, nats.
        lapses: proportion of trials with a random answer.
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
        """Response scale of the trials."""
        return self.trials[0].scale if self.trials else Scale.CONFIDENCE

    @cached_property
    def thresholds(self) -> FloatArray:
        """Limits between the degrees of confidence, ascending, (n_degrees - 1,) nats."""
        from scipy.special import ndtri

        # 99 equally likely values replace random draws of the noise. So the quantiles of the sums,
        # (n_trials, 99), are the same in every run.
        rated = [trial.condition != Condition.CATCH for trial in self.trials]
        noise = self.noise * ndtri((np.arange(99) + 1) / 100)
        sizes = np.abs(self.differences[rated][:, None] + noise)
        finite = np.minimum(sizes, np.finfo(np.float64).max)  # quantiles of inf are nan
        n = len(self.scale.sentence_2_answers)
        return np.quantile(finite, np.arange(1, n) / n) if finite.size else np.zeros(n - 1)

    def ratings(self, number: int) -> dict[str, int]:
        """Return trial_id → a participant's rating, for the trials of all groups.

        `number` is the participant's number, from 1.
        """
        # Random numbers are drawn for all trials, even for trials that do not use them. So an
        # answer does not depend on other answers.
        rng = np.random.default_rng([self.seed, number, _RATINGS])
        n = len(self.trials)
        sums = self.differences + self.noise * rng.standard_normal(n)
        second = np.where(sums == 0, rng.random(n) < 0.5, sums > 0)
        # For example, on the scale from 1 to 6, degrees 0 to 2 are ratings 4 to 6 if sentence_2 is
        # preferred, and ratings 3 to 1 if sentence_1 is preferred
        answers = self.scale.answers
        sure = np.array(self.scale.sentence_2_answers)[
            np.searchsorted(self.thresholds, np.abs(sums))
        ]
        rated = np.where(second, sure, answers[0] + answers[-1] - sure)
        rated[[trial.condition == Condition.CATCH for trial in self.trials]] = answers[0]
        lapsed = rng.random(n) < self.lapses
        rated = np.where(lapsed, rng.integers(answers[0], answers[-1] + 1, n), rated)
        return dict(zip([trial.trial_id for trial in self.trials], rated.tolist(), strict=True))

    def answers(
        self, number: int, name: str, *, group: int, index: int, seed: int
    ) -> tuple[Response, ...]:
        """Return answers of participant `number` in a group, in the order of presentation.

        `number` determines ratings and reaction times. The times are log-normal; their median is
        the time per trial in 2023. `group`, `index` (the participant's number within the group,
        from 1) and `seed` determine order and sides (see `presentation`).
        """
        rng, rated = np.random.default_rng([self.seed, number, _TIMES]), self.ratings(number)
        logs = rng.normal(np.log(1000 * SECONDS_PER_TRIAL), _LOG_TIME_SD, len(self.trials))
        names = [trial.trial_id for trial in self.trials]
        times = dict(zip(names, np.exp(logs).round().tolist(), strict=True))  # ms
        shown = presentation(self.trials, group=group, participant=index, seed=seed)
        fields = (
            (trial.trial_id, rated[trial.trial_id], left, position, times[trial.trial_id])
            for position, (trial, left) in enumerate(shown, start=1)
        )
        return tuple(Response(name, group, *x, simulated=True, scale=self.scale) for x in fields)


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
    """Create participants who follow a model, by default with as much noise as people have.

    If `noise` (nats) is None, the noise is calibrated. With ten raters for each trial, the random
    natural pairs then have the lower noise ceiling `ceiling`, which is the rate at which one rater
    agrees with the others' majority. `lapses` is the proportion of trials with random ratings.
    Catch trials need no scores.

    Raises:
        InputError: if a sentence or the model has no scores; if there are no trials; if `noise` or
            `lapses` is out of range; or if no random natural pairs exist for the calibration.
    """
    # Answers must not depend on the order of the table of trials
    design = tuple(sorted(trials, key=lambda trial: trial.trial_id))
    if model not in scores.models or not design:
        raise InputError(
            f"model must be one of {', '.join(scores.models)}, and the number of trials at least "
            f"1, got {model!r} and {quantity(len(design), 'trial')}."
        )
    if not 0 <= lapses <= 1 or not (noise is None or 0 <= noise < np.inf):
        raise InputError(
            f"lapses must be from 0 to 1 and noise at least 0 nats, got {lapses} and {noise}."
        )
    preferences = preferences_by_scope(design, scores)
    column, random = scores.models.index(model), preferences.scopes.get(Scope.RANDOM)
    is_test = np.array([trial.condition != Condition.CATCH for trial in design])
    differences = np.full(len(design), -np.inf)  # full preference for sentence_1 in catch trials
    differences[is_test] = preferences.differences[:, column]
    if noise is None:
        if random is None:
            raise InputError(
                "Noise cannot be calibrated: the trials contain no random natural pairs. Set "
                "the noise, in nats."
            )
        noise = calibrate_noise(differences[is_test][random[:, column]], ceiling)
    return ArtificialParticipants(design, differences, noise, lapses, seed, model)


def simulate_responses(people: ArtificialParticipants, participants: int) -> tuple[Response, ...]:
    """Return the responses of `participants` people, who are assigned to the groups in turn."""
    groups, responses = people.groups, list[Response]()
    for n in range(participants):
        name, group = f"{SIMULATED_NAME}{n + 1}", groups[n % len(groups)]
        index = n // len(groups) + 1
        responses += people.answers(n + 1, name, group=group, index=index, seed=people.seed)
    return tuple(responses)


def artificial_answers(
    questions: Iterable[Question], name: str, *, number: int, seed: int
) -> list[QuestionAnswer]:
    """Answer all questions except checks, which are questions on the instructions.

    If a question has choices, the answer is mostly the first choice. If a question asks for a text,
    the answer is empty. If a question asks for a number, the answer is random.
    """
    rng, answers = np.random.default_rng([seed, number, _QUESTIONS]), []
    for question in (question for question in questions if question.when != "check"):
        answer = str(rng.integers(question.lowest, question.highest + 1))
        if question.kind == "choice":
            is_first = rng.random() < _FIRST_SHARE
            answer = question.choices[0 if is_first else rng.integers(1, len(question.choices))]
        answers.append(
            QuestionAnswer(name, question.name, "" if question.kind == "text" else answer)
        )
    return answers


def lower_ceiling(differences: FloatArray, noise: float, raters: int = PUBLISHED_RATERS) -> float:
    """Return the rate at which one of `raters` participants agrees with the others' majority.

    This is the expected lower noise ceiling of accuracy over trials with these differences (Golan
    et al. 2023, Methods). By the law of comparative judgement (Thurstone 1927), Phi(difference /
    noise) is the proportion of participants who prefer sentence_2.
    """
    from scipy.special import ndtr

    return float(np.mean(votes_agreement(ndtr(differences / noise), raters)))


def calibrate_noise(differences: FloatArray, ceiling: float) -> float:
    """Return the noise (nats) with which simulated participants have a given lower noise ceiling.

    `differences`, (n_trials,) nats, are log-probability ratios of the model that the participants
    follow. `ceiling` is the lower noise ceiling of these trials, if `PUBLISHED_RATERS` participants
    rate each trial.

    Raises:
        InputError: if no noise gives this ceiling.
    """
    from scipy.optimize import brentq

    finite = differences[np.isfinite(differences)]
    spread = float(np.abs(finite).max(initial=0.0))
    max_ceiling = lower_ceiling(differences, spread * 1e-6) if spread else 0.5
    if not 0.5 < ceiling < max_ceiling:
        raise InputError(
            f"No noise gives simulated participants a noise ceiling of {ceiling}: on these "
            f"{len(differences)} pairs, ceilings lie between 0.5 and {max_ceiling:.6f}."
        )

    # The ceiling decreases with the noise. The root is searched on a log scale, from exp(-14) to
    # exp(14) times the largest difference.
    def excess(log_noise: float) -> float:
        return lower_ceiling(differences, float(np.exp(log_noise))) - ceiling

    return float(np.exp(brentq(excess, np.log(spread) - 14, np.log(spread) + 14)))
