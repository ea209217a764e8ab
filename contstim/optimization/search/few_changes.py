"""Search for a sentence with few new words on which the models disagree enough.

    natural    Voter registration approaches also vary widely
    propose    … registration laws also …, … laws also vary significantly, …   by cheap scores
    score      the most promising proposals, under the models without cheap scores, in batches
    keep       feasible proposals: at least as likely as the natural sentence under the accept
               model, and less likely by at least `FewChanges.enough` nats under the reject model
    choose     Voter registration laws also vary significantly                 a judge's favourite

A judge is a further model that chooses among the feasible sentences. It refuses sentences that it
finds much less likely than the natural sentence. Of the remaining sentences, it chooses the one
that it finds likeliest.

Proposals have one or two new words. If no such proposal is feasible and allowed by the judges, the
search proposes sentences with three new words. Models with cheap scores, for example n-gram models,
score all proposals exactly. For each of the remaining models, the search estimates how much each
new word changes the score of the natural sentence. The estimate for a proposal is the score of the
natural sentence plus the changes by all new words. A regression predicts exact scores from these
estimates (Golan et al. 2023, Eq. 3). The predictions determine the order in which proposals are
scored. The regression is fitted again after each batch of exact scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Annotated

import numpy as np

from contstim.items.reviews import changed_positions
from contstim.optimization.search.climb import Climb
from contstim.options import Help, check_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.optimization.search.constraints import Candidates
    from contstim.optimization.search.objectives import Objective, ScoredSentence
    from contstim.words.sentence import Sentence

    ExpectedGains = dict[tuple[str, int], FloatArray]


JUDGE_DROP = 5.0
"""Default of `FewChanges.judge_drop`: maximum drop under the judges, nats."""

JUDGE_ERROR = 1.0
"""Difference of log-probabilities under the judges that is too small to matter, nats.

Sentences within this difference of the judges' favourite count as ties. Of these sentences, the
search chooses the one with the strongest disagreement. The disagreement is a sum: the gain under
the accepting model plus the drop under the rejecting model, both from the natural sentence.

Readers accepted 78 % of the favourites. They also judged sentences that were chosen among the ties
by the drop alone. With ties within 1 nat, they accepted 79 % of these sentences. With ties within 2
nats, they accepted 73 %, and with ties within 4 nats 60 %. Two other readers accepted 75 % of the
sentences chosen by the sum, and 77 % of those chosen by the drop. Simulated studies needed 8 %
fewer answers with the sum than with the drop.
"""

MAX_SCORED = 600
"""Default of `FewChanges.max_scored`.

A triplet is a natural sentence with one new sentence for each of two models to reject. So it needs
two searches, and the limit holds for each search.
"""


@dataclass(frozen=True)
class FewChanges:
    """Goal of a search for few new words.

    Attributes:
        enough: required decrease of the loss (see `Objective`), nats.
        max_changes: maximum number of new words. None means three, but at most half of the
            sentence's words.
        judge_drop: maximum drop from the natural sentence to the result, nats. The drop is the mean
            of log p(natural) - log p(result) over the judges.
        max_scored: n in the formula max(40, n * f / k), the maximum number of sentences that a
            network of the pair scores. k is the number of passes that the network needs for a
            score. w = k * number of parameters is the network's work for a score. w_max is the
            largest work of any network or judge. f is w_max / w, but at most 10. So n is the
            maximum for the network with the most work if this network needs one pass.
        chooser: name of the network of the pair that chooses the result if there is no judge. None
            means the network under which the natural sentence is likelier.

    Raises:
        InputError: if a number is out of range.
    """

    enough: Annotated[float, Help("Nats.", above=0)]
    max_changes: Annotated[int | None, Help("Words.", at_least=1)] = None
    judge_drop: float = JUDGE_DROP
    max_scored: Annotated[int, Help("Sentences.", at_least=1)] = MAX_SCORED
    chooser: str | None = None

    def __post_init__(self) -> None:
        check_ranges(self)


ENOUGH = "the best of the sentences with enough nats was chosen"
TOO_FEW = "no sentence with few new words that has enough nats was found"
"""Reasons why a search for few new words ended, as messages for the user."""

_MAX_CHANGES = 3  # default maximum number of new words
_FIRSTS = 25  # for each position, number of sentences with one new word that get a second word
_EXTENDED = 150  # number of sentences with two new words that get a third word
# Maximum number of proposals for one more position of a sentence that already has new words
_KEPT = 60
_MIN_SCORED = 40  # every network may score at least this number of sentences
_BATCHES = 10  # a network scores its sentences in this number of batches
_MAX_BATCH = 36  # maximum number of sentences that judges score in a batch
# Number of batches in a row without gain after which scoring ends, if a feasible sentence is known.
# Searches in which only the judges cost time are more patient. With 4 batches, 94 % of 33 such
# searches find the same sentence as an exhaustive search. With 2 batches, 88 % of them do
_PATIENCE, _PATIENCE_OF_JUDGES = 2, 4
_FIRST_SHARE = 0.7  # share of a network's maximum that may be scored before a third word is tried
_ERROR = 3.0  # standard deviation of errors of estimates before any calibration, nats
# Prior standard deviations of a regression's coefficients: intercept, slope of the estimates,
# effect of a new word, and slope for each model with cheap scores
_PRIOR_SD = (5.0, 0.3, 2.0, 0.2)
_LOWEST = -50.0  # nats; in a regression, estimated changes below this value count as this value
# Sentences with the largest `_quality` + _ODDS * log p(feasible), nats, are scored first
_ODDS = 2.0
_MIN_ODDS = -14.0  # sentences with a lower _ODDS * log p(feasible) are not scored


@dataclass(frozen=True)
class Choice:
    """How the result of a search for few new words was chosen.

    Attributes:
        feasible: number of feasible sentences that the judges allow.
        scored: number of sentences scored by the network or judge that scored the most.
        minimal: True if it is known that no sentence with fewer new words is feasible.
        judged: number of sentences that the judges scored; 0 without judges. Judges score only
            sentences that are feasible under the pair of models.
        refused: judge → number of judged sentences that only this judge refuses. A judge refuses a
            sentence that it finds more than `judge_drop` nats less likely than the natural one.
    """

    feasible: int
    scored: int
    minimal: bool
    judged: int = 0
    refused: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Proposals:
    """Proposed sentences.

    Attributes:
        bases: for each proposal, the sentence before the last new word was inserted.
        index: 0-based position of the last new word, (n,).
        word: index of the last new word among the words of `Candidates.possible` for its position,
            (n,).
        n_new: number of new words, (n,).
        estimates: estimated log-probabilities, (n_models, n), nats. They are exact under models
            with cheap scores.
    """

    bases: tuple[Sentence, ...]
    index: IntArray
    word: IntArray
    n_new: IntArray
    estimates: FloatArray

    @classmethod
    def join(cls, parts: Sequence[_Proposals]) -> _Proposals:
        arrays = zip(*((p.index, p.word, p.n_new, p.estimates) for p in parts), strict=True)
        bases = tuple(base for part in parts for base in part.bases)
        return cls(bases, *(np.concatenate(columns, axis=-1) for columns in arrays))


class FewChangesSearch:
    """A search for few new words, with fixed accept and reject models.

    Args:
        n_judges: number of judges, which are the last models of the evaluator.
        gains: (name of a model, 0-based position) → expected gains in log-probability, (n_words,),
            nats. They result from replacing the natural word by each word of `Candidates.possible`
            at this position. The search adds missing gains, so that the second search for a triplet
            can use the gains of the first one.
    """

    def __init__(
        self,
        candidates: Candidates,
        objective: Objective,
        goal: FewChanges,
        n_judges: int = 0,
        gains: ExpectedGains | None = None,
    ) -> None:
        self._candidates, self._objective, self._goal = candidates, objective, goal
        self._evaluator, self._natural = objective.evaluator, candidates.natural
        models = self._evaluator.models
        n_pair = len(models) - n_judges
        self._pair, self._judges = slice(n_pair), range(n_pair, len(models))
        self._start = objective.assess(self._natural, self._evaluator.log_probs(self._natural))
        # Accepting models must reach their limits; rejecting models must not exceed their limits
        self._signs = np.where(objective.accepting, 1.0, -1.0)[:, None]
        target = self._start.loss - goal.enough
        self._limits = np.where(objective.accepting, 0.0, target)[:, None]
        self._limits += np.array(objective.limits)[:, None]
        self._is_cheap = np.array([model.cheap_replacements for model in models])
        passes = np.maximum(self._evaluator.exact_passes, 1.0)
        work = passes * [model.n_parameters() or 1 for model in models]
        # The network with the least work first
        networks = np.flatnonzero(~self._is_cheap[self._pair])
        self._networks: list[int] = networks[np.argsort(work[networks])].tolist()
        # A small network may score more sentences than a large one
        factors = np.clip(work[~self._is_cheap].max(initial=1.0) / work, 1.0, _BATCHES)
        most_scored = np.maximum(goal.max_scored * factors / passes, _MIN_SCORED)
        self._most_scored: list[int] = most_scored.astype(int).tolist()
        self._gains: ExpectedGains = {} if gains is None else gains
        for number in np.flatnonzero(~self._is_cheap).tolist():
            self._expect_gains(number)
        self._choosers = [*self._judges] or self._find_choosers()
        self._found: dict[Sentence, FloatArray] = {}
        self._tried: set[Sentence] = set()
        self._n_scored = [0] * len(models)
        self._n_visits = 0

    def _find_choosers(self) -> list[int]:
        """Return a list with the index of the network that chooses; it is empty without networks.

        N-gram models do not choose, because they do not see whether a sentence makes sense.
        """
        names = [self._evaluator.models[number].name for number in self._networks]
        if self._goal.chooser in names:
            return [self._networks[names.index(self._goal.chooser)]]
        return sorted(self._networks, key=lambda number: -self._start.log_probs[number])[:1]

    def run(self) -> tuple[Climb, tuple[ScoredSentence, ...], Choice]:
        """Search for sentences with one or two new words; if unsuccessful, with more new words.

        Without networks and judges, sentences with two new words are tried only if no sentence
        with one new word is feasible.

        Returns:
            Three values. The first is a `Climb` from the natural sentence to the result, with an
            empty list of steps. The second contains the feasible sentences that the judges allow,
            best first. The third says how the result was chosen.
        """
        natural, log_probs = self._natural, self._start.log_probs
        max_new = min(
            self._goal.max_changes or min(_MAX_CHANGES, len(natural) // 2),
            len(self._candidates.positions),
        )
        fewest_first = not self._choosers
        proposals, bases = self._propose([(natural, log_probs)], 1)
        n_new = 1
        if max_new > 1 and not fewest_first:
            n_new = 2
            more, bases = self._propose(bases, n_new)
            proposals = _Proposals.join([proposals, more])
        self._score(proposals, _FIRST_SHARE if n_new < max_new else 1.0)
        # Without networks and judges, all sentences with one new word have exact scores. So the
        # search cannot miss a feasible sentence with one new word
        none_with_one = fewest_first and not self._found
        while not (ranked := self._rank()) and n_new < max_new and bases:
            n_new += 1
            proposals, bases = self._propose(bases, n_new)
            self._score(proposals, 1.0)
        best, end = (ranked[0], ENOUGH) if ranked else (self._start, TOO_FEW)
        n_changed = len(changed_positions(natural, best.sentence))
        minimal = n_changed == 1 or (n_changed == 2 and none_with_one)
        return (
            Climb(self._start, (), best.sentence, best.log_probs, self._n_visits, end),
            ranked,
            Choice(len(ranked), max(self._n_scored), minimal, *self._refusals()),
        )

    def _refusals(self) -> tuple[int, dict[str, int]]:
        """Return `judged` and `refused` of `Choice`."""
        if not self._judges or not self._found:
            return 0, {}
        names = [self._evaluator.models[number].name for number in self._judges]
        scores = np.array([*self._found.values()])[:, self._judges]
        refused = self._start.log_probs[self._judges] - scores > self._goal.judge_drop
        alone = refused & (refused.sum(axis=1, keepdims=True) == 1)
        return len(scores), dict(zip(names, alone.sum(axis=0).tolist(), strict=True))

    def _expect_gains(self, number: int) -> None:
        """Estimate the gain of each word over the natural word, under one model."""
        for index in self._candidates.positions:
            key = (self._evaluator.models[number].name, index)
            if key not in self._gains:
                words = (*self._candidates.possible[index], self._natural.words[index])
                with self._evaluator.count_cost(number) as model:
                    source = model.draft(0) or model
                    estimates = source.replacements(self._natural, index, words).estimate
                self._gains[key] = estimates[:-1] - estimates[-1]

    def _propose(
        self, bases: Sequence[tuple[Sentence, FloatArray]], n_new: int
    ) -> tuple[_Proposals, list[tuple[Sentence, FloatArray]]]:
        """Change one more word of each base.

        Each base is a sentence with its log-probabilities or their estimates, (n_models,), nats.
        The proposals have `n_new` new words.

        Returns:
            Proposals that are feasible under all models with cheap scores, and the bases for the
            next call. Proposals of the next call have `n_new` + 1 new words.
        """
        no_rows = np.empty(0, np.int64)
        parts = [_Proposals((), no_rows, no_rows, no_rows, np.empty((len(self._is_cheap), 0)))]
        gains, partial = [], []
        for sentence, log_probs in bases:
            for index in self._candidates.positions:
                if sentence.words[index] != self._natural.words[index]:
                    continue
                allowed = np.flatnonzero(self._candidates.allowed_now(sentence, index))
                estimates = self._estimate(sentence, log_probs, index, allowed)
                shortfalls, quality = self._shortfalls(estimates), self._quality(estimates)
                possible = np.flatnonzero((shortfalls[self._is_cheap[self._pair]] == 0).all(axis=0))
                if n_new > 1:
                    merits = quality[possible] + self._odds(estimates[:, possible])
                    possible = possible[np.argsort(-merits, kind="stable")[:_KEPT]]
                n_proposals = len(possible)
                position, number = np.full((2, n_proposals), [[index], [n_new]])
                words, scores = allowed[possible], estimates[:, possible]
                proposal_bases = (sentence,) * n_proposals
                parts.append(_Proposals(proposal_bases, position, words, number, scores))
                values = quality - shortfalls.sum(axis=0)
                order = np.argsort(-values, kind="stable")[: _FIRSTS if n_new == 1 else 3]
                for column in order[np.isfinite(values[order])].tolist():
                    word = self._candidates.possible[index][allowed[column]]
                    partial.append((sentence.replace(index, word), estimates[:, column]))
                    gains.append(values[column])
        if n_new > 1:
            best_first = np.argsort(-np.array(gains), kind="stable")[:_EXTENDED]
            partial = [partial[i] for i in best_first.tolist()]
        return _Proposals.join(parts), partial

    def _estimate(
        self, sentence: Sentence, log_probs: FloatArray, index: int, allowed: IntArray
    ) -> FloatArray:
        """Return log-probabilities with each allowed word at `index`, (n_models, n_words), nats.

        They are exact under models with cheap scores, and estimates under other models.
        `log_probs` are log-probabilities of `sentence`, exact or estimated, (n_models,), nats.
        `allowed` are indices in `Candidates.possible[index]`, (n_words,).
        """
        self._n_visits += 1
        estimates = np.empty((len(log_probs), len(allowed)))
        words = self._candidates.possible[index]
        for number, model in enumerate(self._evaluator.models):
            if not self._is_cheap[number]:
                estimates[number] = log_probs[number] + self._gains[model.name, index][allowed]
            elif len(allowed):
                with self._evaluator.count_cost(number):
                    exact = model.replacement_scores(sentence, index, words)
                estimates[number] = exact[allowed]
        return estimates

    def _shortfalls(self, log_probs: FloatArray) -> FloatArray:
        """Return the nats by which each model of the pair misses its limit, (n_pair, n)."""
        below = self._signs[self._pair] * (self._limits - log_probs)[self._pair]
        return np.maximum(below, 0.0)

    def _quality(self, log_probs: FloatArray) -> FloatArray:
        """Return the mean gain of sentences over the natural one, (n,), nats.

        The mean is over the choosers: the judges, or the network that chooses. Without choosers, it
        is over the accepting models.
        """
        numbers = self._choosers or np.flatnonzero(self._objective.accepting).tolist()
        gains = log_probs[numbers] - self._start.log_probs[numbers, None]
        quality: FloatArray = gains.mean(axis=0)
        return quality

    def _odds(self, log_probs: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """Return `_ODDS` * log p(feasible) of each sentence, (n,)."""
        from scipy.special import log_ndtr

        numbers = self._networks
        if not numbers:
            return np.zeros(log_probs.shape[1])
        above = self._signs[numbers] * (log_probs - self._limits)[numbers]
        error = np.full((len(numbers), 1), _ERROR) if errors is None else errors[numbers, None]
        odds: FloatArray = _ODDS * log_ndtr(above / error).sum(axis=0)
        return odds

    def _score(self, proposals: _Proposals, share: float) -> None:
        """Score the most promising proposals exactly, and keep the feasible ones.

        `FewChanges.max_scored` limits the number of sentences that each network scores in the whole
        search. By the end of this call, a network has scored at most `share` times its limit.
        """
        if not self._choosers:  # all scores are exact
            order = np.argsort(-self._quality(proposals.estimates), kind="stable")
            for column in order[:_MIN_SCORED].tolist():
                self._found[self._sentence(proposals, column)] = proposals.estimates[:, column]
            return
        scores = np.full(proposals.estimates.shape, np.nan)
        untried = np.ones(len(proposals.n_new), np.bool_)
        best, n_failures = -np.inf, 0
        patience = _PATIENCE if self._networks else _PATIENCE_OF_JUDGES
        while n_failures < patience and all(self._batch_limit(n, share) for n in self._networks):
            expected, errors = self._calibrate(proposals, scores)
            odds = self._odds(expected, errors)
            merits = np.where(untried & (odds >= _MIN_ODDS), self._quality(expected) + odds, -inf)
            size = self._batch_limit(self._networks[0], share) if self._networks else _MAX_BATCH
            batch: dict[Sentence, int] = {}
            for column in np.argsort(-merits, kind="stable")[: 2 * size].tolist():
                if merits[column] == -inf or len(batch) == size:
                    break
                untried[column] = False
                sentence = self._sentence(proposals, column)
                if sentence not in self._tried:  # another order of changes gives the same sentence
                    batch.setdefault(sentence, column)
            if not batch:
                return
            highest, postponed = self._score_batch(batch, proposals, scores, share)
            untried[postponed] = True
            self._tried |= batch.keys() - {self._sentence(proposals, i) for i in postponed.tolist()}
            n_failures = 0 if highest > best else n_failures + bool(self._found)
            best = max(best, highest)

    def _batch_limit(self, number: int, share: float) -> int:
        """Return the maximum number of sentences in the next batch of a network."""
        most = self._most_scored[number]
        return min(-(-most // _BATCHES), int(share * most) - self._n_scored[number])

    def _score_batch(
        self, batch: dict[Sentence, int], proposals: _Proposals, scores: FloatArray, share: float
    ) -> tuple[float, IntArray]:
        """Score sentences under one model after the other: networks first, then judges.

        Sentences that are infeasible under one network are not scored under later models. If more
        sentences remain than the next model may score in a batch, the excess is postponed.

        Returns:
            The best `_quality` of a feasible sentence, nats, and the columns of the proposals that
            are postponed to later batches.
        """
        sentences, columns = [*batch], np.array([*batch.values()])
        postponed = [columns[:0]]
        scores[:, columns] = np.where(
            self._is_cheap[:, None], proposals.estimates[:, columns], np.nan
        )
        remaining = np.arange(len(sentences))
        for number in (*self._networks, *self._judges):
            limit = self._batch_limit(number, share) if number in self._networks else _MAX_BATCH
            postponed.append(columns[remaining[limit:]])
            remaining = remaining[:limit]
            if not len(remaining):
                break
            self._n_scored[number] += len(remaining)
            values = self._evaluator.score_sentences(number, [sentences[i] for i in remaining])
            scores[number, columns[remaining]] = values
            if number not in self._judges:
                remaining = remaining[(self._signs[number] * (values - self._limits[number]) >= 0)]
        for sentence, column in zip(sentences, columns.tolist(), strict=True):
            index = int(proposals.index[column])
            self._evaluator.record(self._n_visits, index, sentence, scores[:, column])
        found = columns[remaining]
        self._found |= {sentences[i]: scores[:, columns[i]] for i in remaining.tolist()}
        highest = float(self._quality(scores[:, found]).max(initial=-np.inf))
        return highest, np.concatenate(postponed)

    def _calibrate(
        self, proposals: _Proposals, scores: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return expected log-probabilities, (n_models, n), and their errors, (n_models,), nats.

        An error is the standard deviation of (exact score - expected log-probability).

        Each model without cheap scores has a Bayesian linear regression. The regression predicts
        the model's exact scores from three kinds of features: the model's estimates, the number of
        new words, and the exact scores under each model with cheap scores.
        """
        expected = proposals.estimates.copy()
        errors = np.where(self._is_cheap, 0.0, _ERROR)
        natural = self._start.log_probs[:, None]
        gains = np.maximum(proposals.estimates - natural, _LOWEST)
        constant = np.ones(len(proposals.n_new))
        for number in np.flatnonzero(~self._is_cheap).tolist():
            columns = [constant, gains[number], proposals.n_new, gains[self._is_cheap]]
            features = np.vstack(columns)
            known = np.flatnonzero(np.isfinite(scores[number]))
            prior = np.zeros(len(features))
            prior[1] = 1.0
            sds = np.array([*_PRIOR_SD[:3], *[_PRIOR_SD[3]] * (len(features) - 3)])
            x, y = features[:, known], scores[number, known] - natural[number]
            precision = x @ x.T / _ERROR**2 + np.diag(sds**-2.0)
            weights = prior + np.linalg.solve(precision, x @ (y - prior @ x) / _ERROR**2)
            squares = float(np.square(y - weights @ x).sum())
            errors[number] = np.sqrt((squares + 5 * _ERROR**2) / (len(known) + 5))
            expected[number] = natural[number] + weights @ features
            expected[number, known] = scores[number, known]
        return expected, errors

    def _sentence(self, proposals: _Proposals, column: int) -> Sentence:
        index = int(proposals.index[column])
        word = self._candidates.possible[index][proposals.word[column]]
        return proposals.bases[column].replace(index, word)

    def _rank(self) -> tuple[ScoredSentence, ...]:
        """Return the feasible sentences that the judges allow, best first.

        If there are judges, the sentences within `JUDGE_ERROR` of the judges' favourite come first,
        sorted by the disagreement of the pair.
        """
        from scipy.stats import rankdata

        sentences, scores = [*self._found], np.array([*self._found.values()]).T
        if not sentences:
            return ()
        quality = self._quality(scores)
        if self._choosers:
            first_key = rankdata(-scores[self._choosers], axis=1).mean(axis=0)
        else:
            n_new = [len(changed_positions(self._natural, sentence)) for sentence in sentences]
            first_key = np.array(n_new)
        order = np.lexsort((-quality, first_key))
        if self._judges:
            order = order[quality[order] >= -self._goal.judge_drop]
            disagreement = (self._signs * scores)[self._pair].sum(axis=0)
            is_close = quality[order] >= quality[order[:1]] - JUDGE_ERROR
            close = order[is_close]
            order = np.r_[close[np.argsort(-disagreement[close], kind="stable")], order[~is_close]]
        return tuple(self._objective.assess(sentences[i], scores[:, i]) for i in order.tolist())
