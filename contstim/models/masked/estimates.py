"""Bounds and estimates for every candidate word at one position, from few passes.

Passes that hide the whole word do not depend on it, save for its number of tokens. They tell

* the terms about other words in those contexts, the same for all words of as many tokens;
* the terms about the word itself, for all words at once, from the distribution over the vocabulary.

The contexts in which the word is visible cost passes for each candidate, and are left out. Since no
term is positive, the terms above alone bound the score from above.

Candidates x of one token at position 1 of `The x sleeps.`, under rule `chain` (see `plan`), have
four such passes; the others, of `The`, `sleeps` and both, show the word:

    pass         terms
    The _ sleeps   1/3 log p(x)
     _  _ sleeps   1/6 log p(x) + 1/6 log p(The)
    The _   _      1/6 log p(x) + 1/6 log p(sleeps)
     _  _   _      1/3 log p(x) + 1/3 log p(The) + 1/3 log p(sleeps)

The bound is the sum of all of them. The terms of `The` and `sleeps` are equal for all candidates;
those of x are one weighted sum of log p over the vocabulary, looked up at each candidate.
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
    from contstim.models.masked.rules import HiddenWith
    from contstim.models.word_tokens import WordTokens
    from contstim.models.words import Encoding


@dataclass(frozen=True, eq=False)
class Estimates:
    """Bounds and estimates for each candidate word, all (n_words,), nats.

    Attributes:
        one_context: log p(word | all other words), as in Golan et al. (2023); under
            `pll-sentence-l2r` given the words to its left. The tokens of a word are taken as
            independent.
        shared_terms: the score's terms in all contexts that hide the word. A token that only some
            of its contexts hide together with the word has its mean there; a token without such a
            context has its log-probability in the one context.
        upper_bound: the score's terms in contexts that hide the word; the score is never higher.
        exact: the score, if no context shows the word; else nan.
    """

    one_context: FloatArray
    shared_terms: FloatArray
    upper_bound: FloatArray
    exact: FloatArray


@dataclass(frozen=True, eq=False)
class _Frame:
    """The sentence with k masks at the position, and the passes for all words of k tokens.

    Attributes:
        ids: token ids with masks for the word, (n_tokens,).
        gap: places of the masks, (k,).
        hidden: passes that hide the whole word, (n_passes, n_tokens); the last is the one context.
        row, place, weight: the plan's questions in these passes, (n_questions,): the row of
            `hidden`, the token in question, its weight.
        complete: whether these are all questions of the plan.
    """

    ids: IntArray
    gap: IntArray
    hidden: BoolArray
    row: IntArray
    place: IntArray
    weight: FloatArray
    complete: bool


def estimate(
    passes: Passes,
    plan_of: Callable[[Pattern], Plan],
    context: HiddenWith,
    sentence: Encoding,
    position: int,
    words: WordTokens,
) -> Estimates:
    """Estimates for words at a 0-based position of an encoded sentence.

    Args:
        passes: the network.
        plan_of: the rule's plan for a pattern.
        context: what the one context hides with the word.
        sentence: the sentence as tokens.
        position: of the word to replace.
        words: the candidates as tokens.
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
    context: HiddenWith,
    sentence: Encoding,
    position: int,
    size: int,
) -> _Frame:
    # the word's tokens make way for as many masks as the candidates have tokens
    start = sentence.word_of.index(position)
    stop = start + sentence.word_of.count(position)
    pattern = (*sentence.word_of[:start], *(position,) * size, *sentence.word_of[stop:])
    ids = np.array((*sentence.ids[:start], *(mask,) * size, *sentence.ids[stop:]))
    gap = np.arange(start, start + size)
    plan = plan_of(pattern)
    hides_word: BoolArray = np.all(plan.hidden[:, gap], axis=1)  # (n_passes,)
    in_these = hides_word[plan.row]  # (n_questions,)
    new_row = np.cumsum(hides_word) - 1  # from a pass of the plan to a row of the frame
    return _Frame(
        ids=ids,
        gap=gap,
        hidden=np.vstack([plan.hidden[hides_word], context(gap[:1], np.array(pattern))]),
        row=new_row[plan.row[in_these]],
        place=plan.token[in_these],
        weight=plan.weight[in_these],
        complete=bool(in_these.all()),
    )


def _sums(passes: Passes, frames: list[_Frame]) -> list[FloatArray]:
    """For each frame, weighted sums of log p over its passes, for every token of the vocabulary.

    Returns:
        for each frame (n_tokens + k, n_outputs), nats: entry p of the first n_tokens is the plan's
        weighted sum of log p at place p; entry n_tokens + i is log p of the i-th mask in the one
        context.
    """
    if not frames:
        return []
    mask = passes.network.mask
    # All frames go through the network together: rows of token ids, one frame after the other
    rows = [row for frame in frames for row in np.where(frame.hidden, mask, frame.ids)]
    first_row = np.cumsum([0, *(len(frame.hidden) for frame in frames)])
    n_groups = np.array([len(frame.ids) + len(frame.gap) for frame in frames])
    first_group = np.cumsum(n_groups) - n_groups
    row, place, group, weight = [], [], [], []
    for i, frame in enumerate(frames):
        size = len(frame.gap)
        one_context = first_row[i + 1] - 1  # the frame's last row
        row += [first_row[i] + frame.row, np.full(size, one_context)]
        place += [frame.place, frame.gap]
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
    estimates: Estimates, words: IntArray, frame: _Frame, sums: FloatArray, tokens: IntArray
) -> None:
    """Fill in the estimates of some words, (n,), whose tokens are (n, k)."""
    n_tokens, size = len(frame.ids), len(frame.gap)
    # The other words' terms: their tokens are those of the sentence, whatever the candidate
    others = np.setdiff1d(np.unique(frame.place), frame.gap)
    fixed = sums[others, frame.ids[others]].sum()
    # The candidates' terms: each column is a mask, each entry looked up at the candidate's token
    word_terms = sums[frame.gap, tokens]  # (n, k)
    alone = sums[n_tokens + np.arange(size), tokens]  # (n, k): in the one context
    # A token's weights add up to 1 over the whole plan, here to a share of it
    share = np.bincount(frame.place, frame.weight, n_tokens)[frame.gap]  # (k,)
    filled = np.where(share > 0, word_terms / np.where(share > 0, share, 1), alone)
    estimates.one_context[words] = alone.sum(axis=1)
    estimates.shared_terms[words] = fixed + filled.sum(axis=1)
    estimates.upper_bound[words] = fixed + word_terms.sum(axis=1)
    if frame.complete:
        estimates.exact[words] = estimates.upper_bound[words]
