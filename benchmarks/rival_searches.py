"""Searches to compare with ours: what else one might do with the same words and the same scorer.

All of them play in a `Contest`: exact scores and their cache come from one evaluator, words from
the same constraints, and a sentence counts if it keeps the floor. A search goes on until the
contest says that what may be spent is spent, and begins anew where it gets stuck. Where several
ways to choose words are compared, cheap knowledge of all words (`Evaluator.screen`) is the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from time import process_time
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from contstim.models.causal.adapter import CausalModel
from contstim.models.costs import count
from contstim.models.masked.adapter import MaskedModel
from contstim.models.recurrent.adapter import LeftToRightModel
from contstim.models.words import encode_batch
from contstim.optimization.search.climb import climb
from contstim.optimization.search.evaluator import Evaluator
from contstim.optimization.search.objectives import Objective, ScoredSentence
from contstim.optimization.search.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.climb import Step
    from contstim.optimization.search.constraints import Candidates, Position

PRICE = 2.0  # nats of loss for each nat below the floor, where sentences below it are compared
AT_ONCE = 16  # words of a position that a rival scores exactly


class Spent(Exception):  # noqa: N818 (it ends a search as it should)
    """Passes and seconds are used up."""


class Contest(Evaluator):
    """An evaluator that ends a search in time and notes how far it has come.

    Args:
        models: the accept model, then the reject model.
        candidates: the words for the positions of the natural sentence.
        passes: how many may be made.
        seconds: of the processor, which may be used; a search ends where both are used up, or
            three times as much of one.

    Attributes:
        objective: the published one.
        natural: where all searches begin.
        curve: passes, seconds and the drop in nats, whenever the drop grew.
    """

    def __init__(
        self,
        models: tuple[LanguageModel, LanguageModel],
        candidates: Candidates,
        passes: float = np.inf,
        seconds: float = np.inf,
    ) -> None:
        super().__init__(models)
        self.candidates = candidates
        self.began, self.passes, self.seconds = process_time(), np.inf, np.inf
        log_probs = self.log_probs(candidates.natural)
        self.objective = Objective(self, (True, False), (float(log_probs[0]), 0.0))
        self.natural = self.objective.assess(candidates.natural, log_probs)
        self.passes, self.seconds = passes, seconds
        self.best, self.curve = self.natural.loss, [(0, 0.0, 0.0)]

    def counted(self, number: int) -> Any:
        """See `Evaluator.counted`; all that a model computes passes here."""
        self.end_in_time()
        return super().counted(number)

    def end_in_time(self) -> None:
        """End a search that has spent what it may."""
        passes, seconds = self.cost.rows, process_time() - self.began
        # A search that meets known sentences only makes no passes: it ends in thrice the time
        both = passes >= self.passes and seconds >= self.seconds
        if both or passes >= 3 * self.passes or seconds >= 3 * self.seconds:
            raise Spent

    def note(self, loss: float) -> None:
        """Note a sentence that keeps the floor."""
        if loss < self.best:
            self.best = loss
            drop = self.natural.loss - loss
            self.curve.append((self.cost.rows, process_time() - self.began, drop))

    def at(self, current: ScoredSentence, index: int) -> Position:
        """A position of a sentence, and the words for it."""
        self.end_in_time()  # words that are all known ask no model
        return self.candidates.at(current, index)

    def score(
        self, position: Position, words: Sequence[str], *, below: bool = False
    ) -> list[ScoredSentence]:
        """The sentences with these words, exactly scored; only those that keep the floor.

        Args:
            position: where the words stand.
            words: the candidates.
            below: also those below the floor, with the price of what they miss in their loss.
        """

        def promising(log_probs: FloatArray) -> Any:
            return self.objective.promising(log_probs, np.inf, np.inf)

        log_probs = self.evaluate(position, words, None if below else promising)
        feasible = self.objective.feasible(log_probs)
        losses = self.objective.loss(log_probs)
        for loss in losses[feasible]:
            self.note(float(loss))
        priced = losses + PRICE * self.objective.shortfall(log_probs)
        return [
            ScoredSentence(position.replace(word), log_probs[:, i], float(priced[i]))
            for i, word in enumerate(words)
            if feasible[i] or below
        ]

    def estimates(self, position: Position, *, gradients: bool = False) -> FloatArray:
        """What screening expects of each word's loss, its price included, (n_words,), nats."""
        expected = np.empty((2, len(position.words)))
        for number in range(2):
            screening = self.screen(number, position)
            estimate = screening.estimate.copy()
            if gradients and not screening.complete:
                with self.counted(number) as model:
                    estimate += first_order(model, position)
            differences = estimate - estimate[position.column]
            expected[number] = position.current.log_probs[number] + differences
        priced = self.objective.loss(expected) + PRICE * self.objective.shortfall(expected)
        return np.where(position.allowed, priced, np.inf)


Search: TypeAlias = Callable[[Contest, np.random.Generator], None]


def by_recipe(name: str, *, once: bool = False) -> Search:
    """A recipe, again and again with other seeds; or once."""
    recipe = RECIPES[name]

    def run(contest: Contest, rng: np.random.Generator) -> None:
        def note(step: Step) -> None:
            contest.note(step.loss)

        for seed in iter(lambda: int(rng.integers(2**32)), None):
            climb(
                contest.natural.sentence,
                contest.candidates,
                contest.objective,
                recipe.proposer,
                rng=np.random.default_rng(seed),
                perturbation=recipe.perturbation,
                on_step=note,
            )
            if once:
                return

    return run


def greedy(contest: Contest, rng: np.random.Generator, *, gradients: bool = False) -> None:
    """The best of a few words at each position; anew from the natural sentence when it settles.

    The words are drawn at random, or are those with the best first-order estimates (HotFlip,
    Ebrahimi et al. 2018), whole words only.
    """
    while True:
        current, failures = contest.natural, 0
        for index in cycles(contest, rng):
            position = contest.at(current, index)
            if gradients:
                # A little chance, so that a new start leads elsewhere
                losses = contest.estimates(position, gradients=True)
                losses = losses + rng.gumbel(size=len(losses))
                columns = np.argsort(losses)[:AT_ONCE]
                columns = columns[np.isfinite(losses[columns])]
            else:
                some = np.flatnonzero(position.allowed)
                columns = rng.choice(some, min(AT_ONCE, len(some)), replace=False)
            scored = contest.score(position, [position.words[i] for i in columns.tolist()])
            better = min(scored, key=lambda s: s.loss, default=current)
            failures = 0 if better.loss < current.loss else failures + 1
            if better.loss < current.loss:
                current = better
            if failures == 2 * len(contest.candidates.positions):
                break


def gradient_guided(contest: Contest, rng: np.random.Generator) -> None:
    """See `greedy`."""
    greedy(contest, rng, gradients=True)


def beam(contest: Contest, rng: np.random.Generator, width: int = 4) -> None:
    """The best few sentences at a time, each extended by its most promising words."""
    while True:
        front, passed = [contest.natural], 0
        for index in cycles(contest, rng):
            pool = {sentence.sentence: sentence for sentence in front}
            for current in front:
                position = contest.at(current, index)
                losses = contest.estimates(position)
                columns = np.argsort(losses)[: AT_ONCE // 2]
                words = [position.words[i] for i in columns.tolist() if np.isfinite(losses[i])]
                pool |= {s.sentence: s for s in contest.score(position, words)}
            after = sorted(pool.values(), key=lambda s: s.loss)[:width]
            passed = passed + 1 if set(map(_text, after)) == set(map(_text, front)) else 0
            front = after
            if passed == len(contest.candidates.positions):
                break


def _text(sentence: ScoredSentence) -> str:
    return sentence.sentence.text


def annealing(contest: Contest, rng: np.random.Generator) -> None:
    """Metropolis steps of single words; the temperature falls from 4 to 0.1 nats and again."""
    current = contest.natural
    for step in itertools.count():
        temperature = 4.0 * (0.1 / 4.0) ** ((step % 1_000) / 1_000)
        index = int(rng.choice(contest.candidates.positions))
        position = contest.at(current, index)
        word = position.words[int(rng.choice(np.flatnonzero(position.allowed)))]
        (proposed,) = contest.score(position, [word], below=True)
        if rng.random() < np.exp(min(0.0, (current.loss - proposed.loss) / temperature)):
            current = proposed


def cycles(contest: Contest, rng: np.random.Generator) -> Iterator[int]:
    """Positions in random cycles, without end."""
    while True:
        yield from rng.permutation(contest.candidates.positions).tolist()


RIVALS: dict[str, Search] = {
    "golan2023": by_recipe("golan2023", once=True),
    "default": by_recipe("default"),
    "random greedy": greedy,
    "gradients": gradient_guided,
    "beam": beam,
    "annealing": annealing,
}


def first_order(model: LanguageModel, position: Position) -> FloatArray:
    """By how much each word changes the other words' terms, to first order, (n_words,), nats.

    The inner product of the gradient, with respect to the word's input embedding, with the
    difference of embeddings, of words of several tokens with the mean of theirs. A masked model
    reads the sentence without masks. Counted as three passes: a backward pass takes about two.
    """
    if isinstance(model, LeftToRightModel):
        return _of_recurrent(model, position)
    if isinstance(model, CausalModel):
        checkpoint, before = model.checkpoint, model._context
    elif isinstance(model, MaskedModel):
        checkpoint, before = model.checkpoint, ()
    else:
        return np.zeros(len(position.words))
    tokenizer, network = checkpoint.tokenizer, checkpoint.model
    (encoding,) = encode_batch(tokenizer, [position.sentence], special_tokens=not before)
    ids = torch.tensor((*before, *encoding.ids))
    place = np.flatnonzero(np.array(encoding.word_of) == position.index) + len(before)
    table = network.get_input_embeddings().weight.detach()
    inputs = table[ids].requires_grad_()
    with torch.enable_grad():
        logits = network(inputs_embeds=inputs[None]).logits[0].log_softmax(dim=1)
        # A causal network's state before a token predicts it, a masked one's the token itself
        shift = 1 if before else 0
        others = torch.tensor([t for t in range(shift, len(ids)) if t not in place])
        total = logits[others - shift, ids[others]].sum()
        (gradient,) = torch.autograd.grad(total, inputs)
    count(3, 3 * len(ids))
    slope = gradient[place].sum(dim=0)
    space = " " if before and position.index else ""
    tokens = tokenizer([space + w for w in position.words], add_special_tokens=False)["input_ids"]
    means = torch.stack([table[torch.tensor(some)].mean(dim=0) for some in tokens])
    return np.asarray(((means - inputs.detach()[place].mean(dim=0)) @ slope).double().numpy())


def _of_recurrent(model: LeftToRightModel, position: Position) -> FloatArray:
    network, words = model._network, model._words
    ids = torch.tensor([0, *words.numbers(position.sentence.words).tolist(), 0])
    table = network.embedding.weight.detach()
    inputs = table[ids[:-1]].requires_grad_()
    with torch.enable_grad():
        states, _ = network.forwards(inputs[None])
        terms = network.distributions(states[0])[torch.arange(len(ids) - 1), ids[1:]]
        # The word itself is the term at its index; those after it depend on its embedding
        total = terms.sum() - terms[position.index]
        (gradient,) = torch.autograd.grad(total, inputs)
    count(3, 3 * len(ids))
    place = position.index + 1  # the boundary is read first
    candidates = table[torch.tensor(words.numbers(position.words))]
    return np.asarray(((candidates - table[ids[place]]) @ gradient[place]).double().numpy())
