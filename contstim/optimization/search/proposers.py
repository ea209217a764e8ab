"""Proposal of better words at a position: the interface, our own strategy, and the published one.

`ScreeningProposer` asks cheap questions first. All words are screened, estimated by what costs
least; the promising ones are scored by drafts, models that cost a fraction, or exactly where a
model has no draft because exact scores are cheap; the best of these are scored exactly under all
models. Each stage is calibrated by what came out at the next, for as long as the search lasts.

`RegressionProposer` is the published way, exact scores regressed on estimates (Golan et al. 2023,
Methods, Eq. 3). At each visit a line is fitted to the exact log-probabilities of a few words on
their estimates. If none of these words is a gain, the word with the best prediction is scored, and
the line is refitted, a few times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.objectives import ScoredSentence
from contstim.optimization.search.screening import PositionEstimates, SearchState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.base import Replacements
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective


class Proposer(ABC):
    """A way to look for a better word.

    It is frozen; what it learns on the way is in the state that it starts, and goes on with. A
    strategy with a memory of another kind starts a subclass of `SearchState`.
    """

    def start(self, evaluator: Evaluator, rng: np.random.Generator) -> SearchState:
        """The state at the beginning of a search: nothing is learned yet.

        Args:
            evaluator: of the search.
            rng: for what the strategy leaves to chance.
        """
        return SearchState(len(evaluator.models), rng)

    @abstractmethod
    def propose(
        self, position: Position, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """The sentence with another word, an exactly lower loss, and the constraint kept, or None.

        Args:
            position: the sentence as it stands, and the words that may be put there.
            objective: what to minimise and to keep, and what scores exactly.
            state: what has been learned so far, to which this visit may add; its `rng` decides
                what is left to chance.
        """


def best_word(
    position: Position, objective: Objective, words: Sequence[str], log_probs: FloatArray
) -> ScoredSentence | None:
    """The sentence with the word of lowest loss among those that improve on the position.

    Of equally good words the first; None where no word is an improvement.

    Args:
        position: what to improve on.
        objective: what to minimise and to keep.
        words: the candidates.
        log_probs: exact, (n_models, n_words), nats; nan where not known or ruled out.
    """
    losses = objective.loss(log_probs)
    eligible = ~np.isnan(log_probs).any(axis=0) & objective.feasible(log_probs)
    eligible &= losses < position.current.loss
    if not eligible.any():
        return None
    best = int(np.argmin(np.where(eligible, losses, np.inf)))
    return ScoredSentence(position.replace(words[best]), log_probs[:, best], float(losses[best]))


def rank_exactly(
    position: Position, objective: Objective, words: Sequence[str], log_probs: FloatArray
) -> ScoredSentence | None:
    """The best word where exact scores of all words are there already; it alone is recorded."""
    better = best_word(position, objective, words, log_probs)
    if better is not None:
        told = (position.visit, position.index, better.sentence, better.log_probs)
        objective.evaluator.record(*told)
    return better


@dataclass(frozen=True)
class ScreeningProposer(Proposer):
    """Screen all words, draft the promising ones, score the best exactly, with any mix of models.

    Attributes:
        draft_share: of the passes that one exact score under all models takes, what a visit spends
            on drafts under each model.
        min_draft_passes: passes that it spends on these however little exact scores take.
        draft_covers: how much work a draft is; see `LanguageModel.draft`.
        min_expected_improvement: nats, above which a word is scored exactly.
        patience: exact evaluations without gain after which the position is given up.
        max_batch: how many words are scored exactly at once, at most.
    """

    draft_share: float = 0.25
    min_draft_passes: int = 16
    draft_covers: int = 1
    min_expected_improvement: float = 0.5
    patience: int = 5
    max_batch: int = 8

    def propose(
        self, position: Position, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        # Screen all words. Where every model tells exact scores, as n-gram models do, that is all.
        words, evaluator = position.words, objective.evaluator
        estimates = PositionEstimates(position, objective, state)
        if not estimates.spread.any():
            log_probs = np.where(estimates.open, estimates.mean, np.nan)
            return rank_exactly(position, objective, words, log_probs)

        # Draft the promising ones. The longer exact scores take, the more drafts are worth.
        passes = max(self.min_draft_passes, self.draft_share * sum(evaluator.exact_passes))
        ready = estimates.refine(passes, self.draft_covers)

        # Score the best exactly, until they promise too little or several in a row were no better.
        # Of a batch, the next model scores only what the ones before have not ruled out.
        def promising(log_probs: FloatArray) -> BoolArray:
            return objective.promising(log_probs, np.inf, position.current.loss)

        log_probs = np.full(estimates.mean.shape, np.nan)  # (n_models, n_words), exact or nan
        better = None
        failures = 0
        while failures < self.patience:
            loss = (better or position.current).loss
            # As many words as it has paid so far to score exactly at once
            limit = state.batch_size(self.max_batch)
            chosen = estimates.most_promising(ready, limit, loss, self.min_expected_improvement)
            if not len(chosen):
                break
            ready[chosen] = False
            names = [words[i] for i in chosen.tolist()]
            log_probs[:, chosen] = evaluator.evaluate(position, names, promising)
            better = best_word(position, objective, words, log_probs)
            improved = better is not None and better.loss < loss
            estimates.calibrate(chosen, log_probs[:, chosen], improved=improved)
            failures = 0 if improved else failures + len(chosen)
        return better


@dataclass(frozen=True)
class RegressionProposer(Proposer):
    """The published strategy; models that are exact take part as they are.

    Attributes:
        threshold: under models that read from left to right, the least log-probability, nats, of a
            candidate given the words before it; all that reach it are scored exactly.
        threshold_step: by how much the threshold falls, nats, while too few candidates reach it.
        min_candidates: how many are enough.
        patience: predictions without gain after which the position is given up.
        penalty: what a nat by which a prediction misses the constraint adds to its loss.
    """

    # Of a word's first token, in the paper; ours, of all its tokens where these have been read
    # anyway, and normalised as the model's rule says (in the code over all tokens). In the paper
    # for GPT-2; here for every model that reads from left to right: GPT-2, RNN and LSTM, of which
    # the published code scores all words for the last two. Masked models do not read so under any
    # rule, since all their masks are seen at once.
    threshold: float = -10.0
    threshold_step: float = 5.0
    # Words that may stand there; the code counts tokens that begin a word.
    min_candidates: int = 10
    # Each line starts from the words with the highest and the lowest approximation, scored under
    # that model alone, and from the word that stands there; a gain among them is taken. Ours never
    # falls: a better approximation predicts no worse. Then the best prediction is scored, whether
    # it promises a gain or not, five times at most; the code counts only words no better than an
    # earlier one, and stops at six in a row.
    patience: int = 5
    # A missed constraint outweighs any loss, so that words that keep it by prediction come first,
    # and then those that miss it least.
    penalty: float = 1e5

    def propose(
        self, position: Position, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        del state  # lines are fitted anew at every visit
        # Candidates are the words that every left-to-right model finds likely enough after those
        # before them; such models then score them all exactly. Rows of arrays are models, columns
        # candidates.
        evaluator = objective.evaluator
        screenings = [evaluator.screen(number, position) for number in range(len(evaluator.models))]
        chosen = self._likely_enough(screenings, position.allowed)
        words = [position.words[i] for i in np.flatnonzero(chosen)]
        exact = np.stack([screening.exact[chosen] for screening in screenings])
        for number, screening in enumerate(screenings):
            if screening.is_left_to_right and np.isnan(exact[number]).any():
                exact[number] = evaluator.replacement_log_probs(number, position, words)
        if not np.isnan(exact).any():
            return rank_exactly(position, objective, words, exact)

        # Lines for the models that only estimate begin with three points: the candidates with the
        # highest and the lowest estimate, and the word that stands there (column `here`).
        here = position.column
        estimates = np.stack([screening.estimate[chosen] for screening in screenings])
        current = np.array([screening.estimate[here] for screening in screenings])
        extremes = _extremes(exact, estimates, current)
        for number, column in extremes:
            scores = evaluator.replacement_log_probs(number, position, [words[column]])
            exact[number, column] = scores[0]
        for column in dict.fromkeys(column for _, column in extremes):
            sentence = position.replace(words[column])
            evaluator.record(position.visit, position.index, sentence, exact[:, column])

        # While none of the scored words is a gain, score the one with the best prediction; each
        # score moves the lines.
        better = best_word(position, objective, words, exact)
        for _ in range(self.patience):
            scored = ~np.isnan(exact).any(axis=0)
            if better is not None or scored.all():
                break
            # Words that are scored come last, the others by predicted loss, penalty included.
            predicted = _predict(exact, estimates, position.current.log_probs, current)
            with np.errstate(invalid="ignore"):  # -inf + inf
                losses = objective.loss(predicted) + self.penalty * objective.shortfall(predicted)
            losses = np.where(np.isnan(losses), np.inf, losses)
            column = int(np.lexsort((losses, scored))[0])
            exact[:, [column]] = evaluator.evaluate(position, [words[column]])
            better = best_word(position, objective, words, exact)
        return better

    def _likely_enough(self, screenings: list[Replacements], allowed: BoolArray) -> BoolArray:
        """The allowed words that every left-to-right model finds likely enough, (n_words,)."""
        # Log-probabilities of the words given those before them, under each of these models.
        conditional = [
            r.upper_bound - r.prefix_log_prob
            for r in screenings
            if r.is_left_to_right and not r.complete
        ]
        if not conditional:
            return allowed
        least: FloatArray = np.min(conditional, axis=0)
        threshold, lowest = self.threshold, least[allowed & np.isfinite(least)].min(initial=0.0)
        while (allowed & (least >= threshold)).sum() < self.min_candidates and threshold > lowest:
            threshold -= self.threshold_step
        return allowed & (least >= threshold)


def _extremes(
    exact: FloatArray, estimates: FloatArray, current: FloatArray
) -> list[tuple[int, int]]:
    """The words with the highest and the lowest estimate under each model that only estimates.

    Pairs of row and column. Where the word that stands there is itself the extreme, its exact score
    is known and no other takes its place.

    Args:
        exact: (n_models, n_words), nats, nan where not known.
        estimates: (n_models, n_words).
        current: of the word that stands there, (n_models,).
    """
    extremes = []
    for number in np.flatnonzero(np.isnan(exact).any(axis=1)).tolist():
        highest, lowest = int(estimates[number].argmax()), int(estimates[number].argmin())
        extremes += [(number, highest)] * bool(estimates[number, highest] > current[number])
        extremes += [(number, lowest)] * bool(estimates[number, lowest] < current[number])
    return extremes


def _predict(
    exact: FloatArray, estimates: FloatArray, current_exact: FloatArray, current: FloatArray
) -> FloatArray:
    """Log-probabilities, (n_models, n_words): exact ones, and points of the fitted lines.

    Lines are least-squares fits, and never fall: a higher estimate predicts no lower score.

    Args:
        exact: see `_extremes`, as for the estimates.
        estimates: of the words.
        current_exact: of the sentence as it stands, (n_models,), nats.
        current: the estimate of the word that stands there, (n_models,).
    """
    predicted = exact.copy()
    for number, (known, of_words) in enumerate(zip(exact, estimates, strict=True)):
        unscored = np.isnan(known)
        # Points of the line: the words scored so far, and the one that stands there.
        x = np.append(of_words[~unscored], current[number])
        y = np.append(known[~unscored], current_exact[number])
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        if not len(x):  # nothing to fit: estimates are taken as they are
            predicted[number, unscored] = of_words[unscored]
            continue
        centred = x - x.mean()
        squares = float(centred @ centred)
        slope = max(0.0, float(centred @ y) / squares) if squares > 0 else 1.0
        predicted[number, unscored] = y.mean() + slope * (of_words[unscored] - x.mean())
    return predicted
