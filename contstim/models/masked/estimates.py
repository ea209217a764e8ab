"""What few passes tell about every candidate word at one position.

Passes that hide the whole word do not depend on it, save for its number of tokens. They tell

* the terms about other words in those contexts, the same for all words of as many tokens;
* the terms about the word itself, for all words at once, from the distribution over the vocabulary.

What they leave out are the contexts that show the word: these cost passes for each candidate. Since
no term is positive, the known terms bound the score from above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.masked.passes import Passes
    from contstim.models.masked.plan import Pattern, Plan
    from contstim.models.masked.rules import Hides
    from contstim.models.word_tokens import WordTokens
    from contstim.models.words import Encoding


@dataclass(frozen=True, eq=False)
class Estimates:
    """Cheap knowledge about each candidate word, all (n_words,), nats.

    Attributes:
        one_context: log p(word | all other words), as in 2023; under `pll-sentence-l2r` given the
            words to its left. The tokens of a word are taken as independent.
        shared_terms: the score's terms in all contexts that hide the word. Where only some contexts
            of a token do, they stand for the others; where none does, the one context does.
        upper_bound: the known terms alone, which the score cannot exceed.
        exact: the score where nothing is unknown, else nan.
    """

    one_context: FloatArray
    shared_terms: FloatArray
    upper_bound: FloatArray
    exact: FloatArray


@dataclass(frozen=True, eq=False)
class _Frame:
    """The sentence with a number of masks at the position, and what its plan shares.

    Attributes:
        ids: token ids with masks for the word, (n_tokens,).
        own: places of the word's tokens, (k,).
        hidden: passes that hide the whole word, (n_passes, n_tokens); the last is the one context.
        row, place, weight: the plan's questions in these passes, (n_questions,).
        complete: whether the plan asks no other questions.
    """

    ids: IntArray
    own: IntArray
    hidden: BoolArray
    row: IntArray
    place: IntArray
    weight: FloatArray
    complete: bool


def estimate(
    passes: Passes,
    plan_of: Callable[[Pattern], Plan],
    context: Hides,
    sentence: Encoding,
    position: int,
    words: WordTokens,
) -> Estimates:
    """Estimates for words at a 0-based position of an encoded sentence.

    Args:
        passes: the network.
        plan_of: the rule's plan for a pattern.
        context: what is hidden in the one context by which words are first judged.
        sentence: tokens.
        position: of the word to replace.
        words: candidates as tokens.
    """
    estimates = Estimates(*np.full((4, len(words)), np.nan))
    mask, groups = passes.network.mask, words.by_length
    frames = [_frame(mask, plan_of, context, sentence, position, length) for length in groups]
    for group, frame, sums in zip(groups.values(), frames, _sums(passes, frames), strict=True):
        _fill(estimates, group.words, frame, sums, group.tokens)
    return estimates


def _frame(
    mask: int,
    plan_of: Callable[[Pattern], Plan],
    context: Hides,
    sentence: Encoding,
    position: int,
    size: int,
) -> _Frame:
    start = sentence.word_of.index(position)
    stop = start + sentence.word_of.count(position)
    pattern = (*sentence.word_of[:start], *(position,) * size, *sentence.word_of[stop:])
    ids = np.array((*sentence.ids[:start], *(mask,) * size, *sentence.ids[stop:]))
    own = np.arange(start, start + size)
    plan = plan_of(pattern)
    hides_word: BoolArray = np.all(plan.hidden[:, own], axis=1)  # (n_passes,)
    asked = hides_word[plan.row]
    return _Frame(
        ids=ids,
        own=own,
        hidden=np.vstack([plan.hidden[hides_word], context(own[:1], np.array(pattern))]),
        row=(np.cumsum(hides_word) - 1)[plan.row[asked]],
        place=plan.token[asked],
        weight=plan.weight[asked],
        complete=bool(asked.all()),
    )


def _sums(passes: Passes, frames: list[_Frame]) -> list[FloatArray]:
    """For each frame the weighted sums of log p at each place, and in the one context.

    Returns:
        for each frame (n_tokens + k, n_outputs), nats; the last k are the word's own places.
    """
    if not frames:
        return []
    mask = passes.network.mask
    rows = [row for frame in frames for row in np.where(frame.hidden, mask, frame.ids)]
    first_row = np.cumsum([0, *(len(frame.hidden) for frame in frames)])
    n_groups = np.array([len(frame.ids) + len(frame.own) for frame in frames])
    first_group = np.cumsum(n_groups) - n_groups
    row, place, group, weight = [], [], [], []
    for i, frame in enumerate(frames):
        size = len(frame.own)
        row += [first_row[i] + frame.row, np.full(size, first_row[i + 1] - 1)]
        place += [frame.place, frame.own]
        group += [first_group[i] + frame.place, first_group[i] + len(frame.ids) + np.arange(size)]
        weight += [frame.weight, np.ones(size)]
    sums = passes.weighted_sums(
        rows,
        row=np.concatenate(row),
        place=np.concatenate(place),
        group=np.concatenate(group),
        weight=np.concatenate(weight),
    )
    return np.split(sums, first_group[1:])


def _fill(
    estimates: Estimates, chosen: IntArray, frame: _Frame, sums: FloatArray, tokens: IntArray
) -> None:
    n_tokens, size = len(frame.ids), len(frame.own)
    others = np.setdiff1d(np.unique(frame.place), frame.own)
    fixed = sums[others, frame.ids[others]].sum()
    word_terms = sums[frame.own, tokens]  # (n, k)
    alone = sums[n_tokens + np.arange(size), tokens]  # (n, k)
    share = np.bincount(frame.place, frame.weight, n_tokens)[frame.own]  # (k,): of 1
    filled = np.where(share > 0, word_terms / np.where(share > 0, share, 1), alone)
    estimates.one_context[chosen] = alone.sum(axis=1)
    estimates.shared_terms[chosen] = fixed + filled.sum(axis=1)
    estimates.upper_bound[chosen] = fixed + word_terms.sum(axis=1)
    if frame.complete:
        estimates.exact[chosen] = estimates.upper_bound[chosen]
