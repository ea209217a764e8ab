"""Evidence from pairwise judgements that is valid at every look: e-values and a verdict.

Each pair of models is a match. In every match we bet one euro that the first model is better, and
the same that the second one is. A list, that is all participants who saw the same items, is one
round. Its outcome x, from -1 to 1, is the share of answers for the first model minus the share for
the second one. A bet of the part l of the money multiplies it by 1 + l·x:

    bet of .3 on a       the list prefers a by .5    1.00 · (1 + .3 · .5) = 1.15 euros
                         the next prefers b by .2    1.15 · (1 - .3 · .2) = 1.08 euros

E[a,b] is the mean of eight such bets. If a is no better than b, each round is at best fair, so the
money reaches 1/α with a probability of at most α, whenever we look (Ville 1939; Waudby-Smith &
Ramdas 2024, *Estimating means of bounded random variables by betting*).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from math import ceil, exp, inf, log
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.ratings import roles
from contstim.experiments.responses.table import UNRATED
from contstim.files.tables import read_rows, text, whole_number
from contstim.items.stimuli import Condition, optional_text

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
        list: list of items that the participant saw; empty for a list of one participant.
        wave: wave at the end of which the answer first counted; 0 if there are no waves.
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
        InputError: if the file cannot be read or lacks a column, a row does not name two different
            models or prefers a third one, or a participant saw several lists.
    """
    readers: dict[str, Reader] = {"str": (text, "text"), "list": (optional_text, "text")}
    readers["wave"] = (lambda cell: 0 if cell is None else whole_number(cell), "a whole number")
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
    """Yield the judgement of each rated trial that compares two models; a group is a list."""
    trial_of = {trial.trial_id: trial for trial in trials}
    for response in responses:
        trial = trial_of[response.trial_id]
        if response.rating == UNRATED or not trial.model_1:
            continue
        is_twin = trial.condition is Condition.NATURAL_SYNTHETIC
        accepts_2, accepts_1 = roles(trial) if is_twin else (trial.model_1, trial.model_2)
        preferred = (TIE, accepts_1, accepts_2)[response.choice]
        models = (trial.model_1, trial.model_2)
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
    """Judgements of two models.

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
    def share(self) -> float:
        """Mean share of answers for model_a over the lists; a tie counts one half."""
        return (1 + float(self.x.mean())) / 2 if len(self.x) else 0.5

    def log_e(self, model: str) -> FloatArray:
        """Return log E of `model` against the other model after each list, (n_lists + 1,)."""
        return log_e_values(self.x if model == self.model_a else -self.x)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval of the mean outcome that holds at every look with 1 - alpha.

        An end is the mean that the evidence against it, in one direction, just fails to exclude.
        """
        return self._lower_end(self.x, alpha), -self._lower_end(-self.x, alpha)

    @staticmethod
    def _lower_end(x: FloatArray, alpha: float) -> float:
        from scipy.optimize import brentq

        # If the mean outcome is m, a round with the factor 1 + l·(x - m)/(1 + m) is fair; the
        # evidence decreases with m
        def surplus(m: float) -> float:
            return float(log_e_values((x - m) / (1 + m))[-1]) - log(2 / alpha)

        lowest, highest = -1 + 1e-9, 1.0
        if surplus(lowest) <= 0:
            return -1.0
        return highest if surplus(highest) >= 0 else float(brentq(surplus, lowest, highest))


def matches_of(answers: Iterable[Answer], names: Iterable[str] = ()) -> list[Match]:
    """Return every match.

    Args:
        answers: judgements; lists are in the order of their first answers.
        names: names of the models, in order; others follow in the order of their first answers.
    """
    signs: dict[str, dict[str, dict[tuple[str, str], list[float]]]] = defaultdict(dict)
    models = dict.fromkeys(names)
    for answer in answers:
        models |= dict.fromkeys((answer.model_a, answer.model_b))
        people = signs[answer.list or f"{answer.participant} alone"]
        pair = (answer.model_a, answer.model_b)
        sign = {pair[0]: 1.0, pair[1]: -1.0}.get(answer.preferred, 0.0)
        of_person = people.setdefault(answer.participant, {})
        of_person.setdefault(pair, []).append(sign)
        of_person.setdefault(pair[::-1], []).append(-sign)
    matches = []
    for pair in combinations(models, 2):
        lists = [
            [person[pair] for person in people.values() if pair in person]
            for people in signs.values()
        ]
        lists = [people for people in lists if people]
        x = np.array([np.mean([np.mean(person) for person in people]) for people in lists])
        sizes = np.array([float(len(people)) for people in lists])
        matches.append(Match(*pair, x, sizes))
    return matches


@dataclass(frozen=True)
class Verdict:
    """Result of all matches.

    Attributes:
        beaten: dropped model → the model that beats it with the largest e-value.
        surviving: models that no other model beats.
        winner: model that beats every other one; empty for none.
        alike: pairs of models that no longer need answers, as they differ by less than the margin.
        open: matches whose further answers can complete the verdict.
    """

    beaten: Mapping[str, str]
    surviving: Sequence[str]
    winner: str
    alike: Sequence[tuple[str, str]] = ()
    open: Sequence[tuple[str, str]] = ()

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
    """Decide which models are beaten, and whether a model beats every other one.

    With M models, a model is beaten if an e-value against it reaches (M - 1)/alpha. A model that is
    better than every other one is beaten with a probability of at most alpha, at whichever look.
    The winner needs M/alpha against every other model, also against beaten ones.

    Args:
        matches: all matches.
        alpha: error rate.
        margin: two models are alike if the whole interval of the difference of their shares is
            closer to zero than this; 0 for never.
    """
    models = [*dict.fromkeys(m for match in matches for m in (match.model_a, match.model_b))]
    log_e = {
        (one, other): match.log_e(one)[-1]
        for match in matches
        for one, other in ((match.model_a, match.model_b), (match.model_b, match.model_a))
    }
    beaten = {}
    for model in models:
        rival = max((other for other in models if other != model), key=lambda o: log_e[o, model])
        if log_e[rival, model] >= log((len(models) - 1) / alpha):
            beaten[model] = rival
    wins = {pair for pair, value in log_e.items() if value >= log(len(models) / alpha)}
    winners = (a for a in models if all((a, b) in wins for b in models if a != b))
    surviving = [model for model in models if model not in beaten]
    pairs = [(match.model_a, match.model_b) for match in matches]
    # One survivor still has to beat the dropped models
    last = surviving[0] if len(surviving) == 1 else ""
    undecided = [
        (a, b)
        for a, b in pairs
        if ({a, b} <= {*surviving} or last in (a, b)) and not {(a, b), (b, a)} & wins
    ]
    winner = next(winners, "")
    alike = [
        (match.model_a, match.model_b)
        for match in matches
        if margin and (match.model_a, match.model_b) in undecided
        if max(map(abs, match.interval(alpha))) < margin
    ]
    still_open = [] if winner else [pair for pair in undecided if pair not in alike]
    return Verdict(beaten, surviving, winner, alike, still_open)


def best_of(matches: Sequence[Match], verdict: Verdict) -> str:
    """Return the winner, or else the model whose smallest e-value is the largest."""
    models = [*dict.fromkeys(m for match in matches for m in (match.model_a, match.model_b))]
    of_model = {m: [x for x in matches if m in (x.model_a, x.model_b)] for m in models}
    return verdict.winner or max(
        models, key=lambda model: min(match.log_e(model)[-1] for match in of_model[model])
    )


def further_people(matches: Sequence[Match], verdict: Verdict, alpha: float) -> int | None:
    """Return how many more people a verdict for the best model needs if evidence grows as so far.

    None if a match gives no evidence for the best model, or the verdict is complete.
    """
    best, further = best_of(matches, verdict), 0
    n_models = len({model for match in matches for model in (match.model_a, match.model_b)})
    for match in matches:
        if best not in (match.model_a, match.model_b) or not verdict.open:
            continue
        log_e, people = match.log_e(best)[-1], match.people.sum()
        missing = log(n_models / alpha) - log_e
        if missing > 0:
            if log_e <= 0:
                return None
            further = max(further, ceil(missing / log_e * people))
    return further or None


def e_value(log_e: float) -> float:
    """Return E; infinite if it is too large for a number."""
    return exp(log_e) if log_e < 700 else inf
