"""E-values and a verdict from pairwise judgements, valid however often we look at the data.

Each pair of models is a match. In every match we bet one euro that the first model is better, and
one euro that the second model is better. All participants who saw the same items form a list, and
each list is one round of the bets. The outcome x of a round, from -1 to 1, is the share of answers
for the first model minus the share for the second model. A bet that stakes the share l of the money
multiplies the money by 1 + l·x:

    bet of .3 on a       the list prefers a by .5    1.00 · (1 + .3 · .5) = 1.15 euros
                         the next prefers b by .2    1.15 · (1 - .3 · .2) = 1.08 euros

The e-value E[a,b] is the mean money of eight such bets on a, which stake different shares. If a is
no better than b, no round is better than fair: the expected money does not grow. In this case, the
probability that the money ever reaches 1/α is at most α, however often we look (Ville 1939;
Waudby-Smith & Ramdas 2024, *Estimating means of bounded random variables by betting*).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, exp, inf, log
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from contstim.errors import InputError
from contstim.experiments.responses.table import UNRATED
from contstim.files.tables import read_rows, text, whole_number
from contstim.items.stimuli import optional_text
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.experiments.responses.table import Response
    from contstim.files.arrays import FloatArray
    from contstim.files.tables import Reader
    from contstim.items.stimuli import Trial

BETS = np.array([0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 0.95])
"""Parts of the money that the eight bets stake in each round."""

TIE = "tie"
"""Answer that counts for neither model."""


@dataclass(frozen=True)
class Answer:
    """A participant's judgement of outputs or sentences of two models.

    Attributes:
        participant: name of the participant.
        model_a: one model of the match.
        model_b: the other model.
        preferred: name of the preferred model, or `tie`.
        list: name of the participant's list, the set of items that the participant saw. If the name
            is empty, the participant counts as a separate list.
        wave: number of the wave (batch of participants) at whose end the answer first counted; 0 if
            there are no waves.
    """

    TABLE: ClassVar[str] = "judgements"

    participant: str
    model_a: str
    model_b: str
    preferred: str
    list: str = ""
    wave: int = 0


def read_answers(path: Path | str, *, may_be_empty: bool = False) -> tuple[Answer, ...]:
    """Read a table with the columns of `Answer`; further columns are ignored.

    Raises:
        InputError: if the file cannot be read or lacks a column; if a row has the same model twice,
            or prefers a model that it does not compare; or if a participant saw several lists.
    """
    readers: dict[str, Reader] = {"str": (text, "text"), "list": (optional_text, "text")}
    readers["wave"] = (lambda cell: 0 if cell is None else whole_number(cell), "whole number")
    answers = read_rows(path, Answer, readers, may_be_empty=may_be_empty)
    lists: dict[str, str] = {}
    for row, answer in enumerate(answers):
        models = (answer.model_a, answer.model_b)
        if models[0] == models[1]:
            raise InputError(
                f"{path}, row {row}: model_a and model_b must differ, got {models[0]}."
            )
        if answer.preferred not in (*models, TIE):
            raise InputError(
                f"{path}, row {row}: preferred must be {models[0]}, {models[1]} or {TIE}, got "
                f"{answer.preferred}."
            )
        if lists.setdefault(answer.participant, answer.list) != answer.list:
            raise InputError(f"{path}, row {row}: {answer.participant} must have one list.")
    return answers


def answers_of(trials: Iterable[Trial], responses: Iterable[Response]) -> Iterator[Answer]:
    """Yield the judgement of each rated trial that compares two models.

    Each group of participants counts as one list. `trials` must not contain trials of a natural and
    a synthetic sentence.
    """
    trial_of = {trial.trial_id: trial for trial in trials}
    for response in responses:
        trial = trial_of[response.trial_id]
        if response.rating == UNRATED or not trial.model_1:
            continue
        models = (trial.model_1, trial.model_2)
        preferred = (TIE, *models[::-1])[response.choice]  # model_1 rejects sentence_1
        yield Answer(response.participant, *models, preferred, str(response.group))


def log_e_values(x: FloatArray) -> FloatArray:
    """Return log E after no list, one list, and so on, (n_lists + 1,).

    Args:
        x: outcomes of the lists, (n_lists,), from -1 to 1.
    """
    from scipy.special import logsumexp

    money = np.zeros((len(BETS), len(x) + 1))
    np.cumsum(np.log1p(np.multiply.outer(BETS, x)), axis=1, out=money[:, 1:])
    return np.asarray(logsumexp(money, axis=0) - log(len(BETS)))


@dataclass(frozen=True, eq=False)
class Match:
    """A pair of models, with the judgements of this pair.

    Attributes:
        model_a, model_b: names of the models.
        x: outcome of each list, (n_lists,): mean over its participants of the share of answers for
            model_a minus the share for model_b.
        people: number of participants of each list, (n_lists,).
    """

    model_a: str
    model_b: str
    x: FloatArray
    people: FloatArray

    @property
    def models(self) -> tuple[str, str]:
        """Names of the models."""
        return self.model_a, self.model_b

    @property
    def reversed(self) -> Match:
        """The same judgements, with the models in the other order."""
        return Match(self.model_b, self.model_a, -self.x, self.people)

    @property
    def share(self) -> float:
        """Mean share of answers for model_a over the lists; a tie counts one half."""
        return (1 + float(self.x.mean())) / 2 if len(self.x) else 0.5

    @property
    def log_e(self) -> FloatArray:
        """Log E of model_a against model_b after no list, one list, and so on, (n_lists + 1,)."""
        return log_e_values(self.x)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return an interval of the mean outcome, valid with probability 1 - alpha at all looks.

        For each value m, one e-value is evidence that the mean is above m, and another e-value is
        evidence that the mean is below m. At the lower end of the interval, the first e-value is
        2/alpha. At the upper end, the second e-value is 2/alpha. If the first e-value is below
        2/alpha for every m, the lower end is -1. If the second one is, the upper end is 1.
        """
        return self._lower_end(alpha), -self.reversed._lower_end(alpha)

    def _lower_end(self, alpha: float) -> float:
        from scipy.optimize import brentq

        # If the mean outcome is m, a round with the factor 1 + l·(x - m)/(1 + m) is fair. The
        # evidence for a higher mean decreases with m. If m is 1, there is no such evidence.
        def surplus(m: float) -> float:
            return float(log_e_values((self.x - m) / (1 + m))[-1]) - log(2 / alpha)

        lowest = -1 + 1e-9
        return float(brentq(surplus, lowest, 1.0)) if surplus(lowest) > 0 else -1.0


def matches_of(answers: Sequence[Answer], names: Iterable[str] = ()) -> list[Match]:
    """Return a match for every two models.

    Args:
        answers: judgements; lists are in the order of their first answers.
        names: names of models, which come first. Other models follow in the order of their first
            answers.
    """
    in_answers = (model for answer in answers for model in (answer.model_a, answer.model_b))
    lists = grouped((j.list or f"{j.participant} alone", j) for j in answers)
    judgements_by_list = [
        grouped((frozenset((j.model_a, j.model_b)), j) for j in of_list)
        for of_list in lists.values()
    ]
    matches = []
    for a, b in combinations(dict.fromkeys((*names, *in_answers)), 2):
        # For each list: participant → one number for each answer: 1 for a, -1 for b, 0 for a tie
        signs_by_list = [
            grouped((j.participant, (j.preferred == a) - (j.preferred == b)) for j in of_match)
            for by_match in judgements_by_list
            if (of_match := by_match.get(frozenset((a, b))))
        ]
        x = [np.mean([np.mean(signs) for signs in people.values()]) for people in signs_by_list]
        matches.append(Match(a, b, np.array(x), np.array([*map(len, signs_by_list)], float)))
    return matches


@dataclass(frozen=True)
class Verdict:
    """Result of all matches.

    Attributes:
        winner: model that beats every other model; empty if there is none.
        alike: pairs of models that need no more answers: they differ by less than the margin.
        open: matches that still need answers, because a verdict depends on them.
        surviving: models that no other model beats.
        beaten: beaten model → the model that beats it with the largest e-value.
    """

    winner: str
    alike: Sequence[tuple[str, str]]
    open: Sequence[tuple[str, str]]
    surviving: Sequence[str]
    beaten: Mapping[str, str]

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        if self.winner:
            return f"{self.winner} beats every other model."
        if not self.surviving:
            return "No model beats all others: each model is beaten by another one."
        if self.open:
            return f"Undecided between {', '.join(self.surviving)}."
        pairs = (f"{a} and {b} differ by less than the margin" for a, b in self.alike)
        return f"No model is shown to beat all others: {'; '.join(pairs)}."


def verdict_of(matches: Sequence[Match], alpha: float, margin: float = 0.0) -> Verdict:
    """Decide which models are beaten, and whether a model beats every other model.

    With M models, a model is beaten if an e-value against it reaches (M - 1)/alpha. If a model is
    better than every other model, the probability that it is ever beaten is at most alpha. The
    winner needs an e-value of M/alpha against every other model, including beaten models.

    Args:
        matches: all matches.
        alpha: error rate.
        margin: two models are alike if the difference of their shares is certainly smaller than
            this margin: the whole interval of the difference lies between -margin and margin. With
            0, no two models are alike.
    """
    log_e = {m.models: m.log_e[-1] for match in matches for m in (match, match.reversed)}
    models = [*dict.fromkeys(model for model, _ in log_e)]
    beaten = {}
    for model in models:
        rival = max((other for other in models if other != model), key=lambda o: log_e[o, model])
        if log_e[rival, model] >= log((len(models) - 1) / alpha):
            beaten[model] = rival
    wins = {pair for pair, value in log_e.items() if value >= log(len(models) / alpha)}
    winners = (a for a in models if all((a, b) in wins for b in models if a != b))
    winner = next(winners, "")
    surviving = [model for model in models if model not in beaten]
    # A single surviving model must still beat the beaten models
    survivor = surviving[0] if len(surviving) == 1 else ""
    undecided = [
        match
        for match in matches
        if {*match.models} <= {*surviving} or survivor in match.models
        if wins.isdisjoint((match.models, match.reversed.models))
    ]
    alike = [
        match.models
        for match in undecided
        if margin and max(map(abs, match.interval(alpha))) < margin
    ]
    still_open = [match.models for match in undecided if not winner and match.models not in alike]
    return Verdict(winner, alike, still_open, surviving, beaten)


def matches_of_best(matches: Sequence[Match], verdict: Verdict) -> list[Match]:
    """Return the matches of the best model, which is `model_a` of each.

    The best model is the winner. Without a winner, the smallest e-value of each model counts, that
    is, its evidence against its strongest rival. The best model is the one with the largest such
    value.
    """
    by_model = grouped((m.model_a, m) for match in matches for m in (match, match.reversed))
    smallest = {model: min(m.log_e[-1] for m in of_model) for model, of_model in by_model.items()}
    return by_model[verdict.winner or max(smallest, key=smallest.__getitem__)]


def further_people(matches: Sequence[Match], verdict: Verdict, alpha: float) -> int | None:
    """Return the number of further people that a verdict for the best model needs.

    The evidence is assumed to grow at the same rate as before. The result is None if a match gives
    no evidence for the best model, or if the verdict is complete.
    """
    of_best = matches_of_best(matches, verdict)
    log_e = np.array([match.log_e[-1] for match in of_best])
    if not verdict.open or log_e.min() <= 0:
        return None
    missing = log((len(of_best) + 1) / alpha) - log_e
    people = missing / log_e * [match.people.sum() for match in of_best]
    return max(0, ceil(people.max())) or None


def e_value(log_e: float) -> float:
    """Return E, or infinity if E is too large for a floating-point number."""
    return exp(log_e) if log_e < 700 else inf
