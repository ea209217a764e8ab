"""Synthetic controversial sentences: one direction, or a whole triplet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import (
    InputError,
    ModelError,
    SentenceError,
    VerificationError,
    VocabularyError,
)
from contstim.models.costs import Cost
from contstim.optimization.climb import Climb, Step, climb
from contstim.optimization.objective import AcceptReject
from contstim.optimization.proposals import Candidates
from contstim.optimization.recipes import DEFAULT
from contstim.sentence import repeats
from contstim.stimuli import Triplet, content_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contstim.models.base import LanguageModel
    from contstim.optimization.evaluation import Evaluation
    from contstim.optimization.recipe import Recipe
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


@dataclass(frozen=True)
class Synthesis:
    """A sentence that one model accepts and another rejects, and the way there.

    Log-probabilities in nats.

    Attributes:
        accept: the accept model's name.
        reject: the reject model's name.
        natural: where the search started.
        climb: the accepted steps and why they ended.
        recipe: the recipe's name.
        evaluations: every candidate that was scored exactly, in that order. Where a model knows all
            replacements at once they are not listed, but the step that was taken is.
        costs: what each model computed, by its name.
    """

    accept: str
    reject: str
    natural: Sentence
    climb: Climb
    recipe: str
    evaluations: tuple[Evaluation, ...]
    costs: Mapping[str, Cost]

    @property
    def synthetic(self) -> Sentence:
        """The sentence found."""
        return self.climb.sentence

    @property
    def natural_log_probs(self) -> tuple[float, float]:
        """Of the natural sentence, under the accept and the reject model."""
        accept, reject = self.climb.start_log_probs.tolist()
        return accept, reject

    @property
    def log_probs(self) -> tuple[float, float]:
        """Of the synthetic sentence, under the accept and the reject model."""
        accept, reject = self.climb.log_probs.tolist()
        return accept, reject


def synthesize(
    accept: LanguageModel,
    reject: LanguageModel,
    natural: Sentence,
    vocabulary: Vocabulary,
    *,
    recipe: Recipe = DEFAULT,
    seed: int = 0,
    on_step: Callable[[Step], None] | None = None,
) -> Synthesis:
    """Change words until one model rejects what the other still accepts (2023, Eq. 2).

    The result is scored again from scratch before it is returned.

    Args:
        accept: must find the result at least as likely as the natural sentence.
        reject: is to find it as unlikely as possible.
        natural: where the search starts; its words are in the vocabulary.
        vocabulary: the words allowed; see `contstim.models.vocabularies.shared_vocabulary`.
        recipe: how to search.
        seed: decides the order of positions.
        on_step: told of each accepted step as it happens.

    Raises:
        ModelError: the two models are one and the same, or the accept model gives the natural
            sentence probability zero.
        SentenceError: the natural sentence has fewer than two words.
        VocabularyError: a word of the natural sentence is not in the vocabulary.
        VerificationError: scored from scratch, the result breaks a constraint.
    """
    _check(accept, reject, natural, vocabulary)
    if seed < 0:
        raise InputError(f"The seed must not be negative, but is {seed}.")
    floor = float(accept.log_probs([natural])[0])
    if floor == -np.inf:
        raise ModelError(
            f"{accept.name} gives {natural.text!r} probability zero, so every sentence would be "
            f"acceptable to it. Choose another natural sentence."
        )
    objective = AcceptReject((accept, reject), floor)
    proposer = recipe.proposer(Candidates(vocabulary))
    found = climb(natural, objective, proposer, rng=np.random.default_rng(seed), on_step=on_step)
    _verify(found, objective, vocabulary)
    costs = {accept.name: Cost(), reject.name: Cost()}
    return Synthesis(accept.name, reject.name, natural, found, recipe.name, (), costs)


def synthesize_triplet(
    model_1: LanguageModel,
    model_2: LanguageModel,
    natural: Sentence,
    vocabulary: Vocabulary,
    *,
    recipe: Recipe = DEFAULT,
    seed: int = 0,
) -> tuple[Triplet, Synthesis, Synthesis]:
    """Both directions from one natural sentence: model_1 rejects synthetic_1, model_2 synthetic_2.

    Controversiality is Eq. 4 of the 2023 paper,
    log p(n|m1)/p(s1|m1) + log p(n|m2)/p(s2|m2), in nats. Raises what `synthesize` raises.
    """
    first = synthesize(model_2, model_1, natural, vocabulary, recipe=recipe, seed=seed)
    second = synthesize(model_1, model_2, natural, vocabulary, recipe=recipe, seed=seed)
    natural_2, natural_1 = first.natural_log_probs
    synthetic_1_model_2, synthetic_1_model_1 = first.log_probs
    synthetic_2_model_1, synthetic_2_model_2 = second.log_probs
    texts = (natural.text, first.synthetic.text, second.synthetic.text)
    triplet = Triplet(
        content_id("triplet", model_1.name, model_2.name, *texts),
        model_1.name,
        model_2.name,
        *texts,
        log_prob_natural_model_1=natural_1,
        log_prob_natural_model_2=natural_2,
        log_prob_synthetic_1_model_1=synthetic_1_model_1,
        log_prob_synthetic_1_model_2=synthetic_1_model_2,
        log_prob_synthetic_2_model_1=synthetic_2_model_1,
        log_prob_synthetic_2_model_2=synthetic_2_model_2,
        controversiality=natural_1 - synthetic_1_model_1 + natural_2 - synthetic_2_model_2,
    )
    return triplet, first, second


def _check(
    accept: LanguageModel, reject: LanguageModel, natural: Sentence, vocabulary: Vocabulary
) -> None:
    if accept.convention.fingerprint == reject.convention.fingerprint:
        raise ModelError(
            f"{accept.name} and {reject.name} are the same model: they can never disagree."
        )
    if len(natural) < 2:
        raise SentenceError(
            f"{natural.text!r} has one word; a search needs two or more, so that something of the "
            f"natural sentence can stay."
        )
    missing = vocabulary.missing(natural)
    if missing:
        raise VocabularyError(
            f"{natural.text!r} has words that are not in the vocabulary shared by the models where "
            f"they stand: {', '.join(missing)}. Choose another sentence, or add them to the "
            f"vocabulary if every model knows them."
        )


def _verify(found: Climb, objective: AcceptReject, vocabulary: Vocabulary) -> None:
    """Score the result from scratch, and check every constraint on that."""
    again = np.array([model.log_probs([found.sentence])[0] for model in objective.models])
    broken = []
    if not np.allclose(again, found.log_probs, rtol=1e-6, atol=1e-4):
        broken.append(f"its scores are {again}, not {found.log_probs}")
    if not objective.feasible(again[:, None])[0]:
        broken.append("the accept model finds it less likely than the natural sentence")
    if vocabulary.missing(found.sentence):
        broken.append(f"words outside the vocabulary: {vocabulary.missing(found.sentence)}")
    if (
        found.steps
        and repeats(found.sentence.words, vocabulary.repeatable)
        and not repeats(found.start.words, vocabulary.repeatable)
    ):
        broken.append("a word occurs twice")
    if broken:
        raise VerificationError(f"{found.sentence.text!r} failed its check: {'; '.join(broken)}.")
