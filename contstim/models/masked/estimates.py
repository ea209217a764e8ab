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

Under `chain-mixture` probabilities are averaged, not their logs. The same four passes tell H(V) for
all visible words V without x, see `Mixture`, and from there a walk uncovers x with probability
1/(3 - |V|). No later probability is above 1, so that the bound is

    log of  1/3 p(x | _ _ _) H() + 1/2 p(x | The _ _) H(The) + 1/2 p(x | _ _ sleeps) H(sleeps)
            + p(x | The _ sleeps) H(The, sleeps).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from contstim.models.base import Replacements
from contstim.models.batching import to_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.batching import Write
    from contstim.models.masked.network import MaskedNetwork
    from contstim.models.masked.plan import Pattern, Plan
    from contstim.models.masked.rules import HiddenWith
    from contstim.models.words import Encoding, WordTokens


@dataclass(frozen=True, eq=False)
class _Frame:
    """The sentence with k masks at the position, and the passes for all words of k tokens.

    Attributes:
        ids: token ids with masks for the word, (n_tokens,).
        gap: places of the masks, (k,).
        hidden: passes that hide the whole word, (n_passes, n_tokens); the last is the one context.
        row, place, weight: the plan's questions in these passes, (n_questions,): the row of
            `hidden`, the token in question, its weight.
        number: their numbers among the plan's questions, (n_questions,).
        plan: the plan of which they are a part.
    """

    ids: IntArray
    gap: IntArray
    hidden: BoolArray
    row: IntArray
    place: IntArray
    weight: FloatArray
    number: IntArray
    plan: Plan


_OTHER_WORD = -1  # the group of a question about another word


def estimate(
    network: MaskedNetwork,
    plan_of: Callable[[Pattern], Plan],
    context: HiddenWith,
    sentence: Encoding,
    position: int,
    words: WordTokens,
) -> Replacements:
    """Estimates for words at a 0-based position of an encoded sentence.

    The estimate is the sum of the score's terms in all contexts that hide the word. A token that
    only some of its contexts hide together with the word has its mean there; a token without such a
    context its log-probability given all that the one context shows. Under a mixture, the terms are
    those of the mean over orders. Exact is the score if no context shows the word.

    Args:
        network: the network.
        plan_of: the rule's plan for a pattern.
        context: what the one context hides with the word.
        sentence: the sentence as tokens.
        position: of the word to replace.
        words: the candidates as tokens.
    """
    # Every word is in one group, so that all but `exact` are filled in
    exact, estimates, upper = np.full((3, len(words)), np.nan)
    groups = words.by_length
    frames = [_frame(network.mask, plan_of, context, sentence, position, k) for k in groups]
    all_tokens = [tokens for _, tokens in groups.values()]
    if any(frame.plan.mixture is not None for frame in frames):
        pairs = zip(frames, all_tokens, strict=True)
        known = [_of_mixture(network, frame, tokens) for frame, tokens in pairs]
    else:
        known = list(_of_means(network, frames, all_tokens))
    for (chosen, _), frame, (estimate, bound) in zip(groups.values(), frames, known, strict=True):
        estimates[chosen], upper[chosen] = estimate, bound
        if len(frame.number) == len(frame.plan.row):  # no context shows the word
            exact[chosen] = bound
    return Replacements(exact, estimates, upper)


def _frame(
    mask: int,
    plan_of: Callable[[Pattern], Plan],
    context: HiddenWith,
    sentence: Encoding,
    position: int,
    size: int,
) -> _Frame:
    # the word's tokens make way for as many masks as the candidates have tokens
    masked = sentence.with_word(position, (mask,) * size)
    plan, gap = plan_of(masked.word_of), np.flatnonzero(np.array(masked.word_of) == position)
    hides_word: BoolArray = np.all(plan.hidden[:, gap], axis=1)  # (n_passes,)
    in_these = hides_word[plan.row]  # (n_questions,)
    new_row = np.cumsum(hides_word) - 1  # from a pass of the plan to a row of the frame
    one_context = context(gap[:1], np.array(masked.word_of))
    return _Frame(
        ids=np.array(masked.ids),
        gap=gap,
        hidden=np.vstack([plan.hidden[hides_word], one_context]),
        row=new_row[plan.row[in_these]],
        place=plan.token[in_these],
        weight=plan.weight[in_these],
        number=np.flatnonzero(in_these),
        plan=plan,
    )


def _of_means(
    network: MaskedNetwork, frames: list[_Frame], tokens: list[IntArray]
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Estimates and bounds of words, (n,) each, for each frame, whose tokens are (n, k)."""
    for frame, (terms, alone, others) in zip(frames, _sums(network, frames, tokens), strict=True):
        # Sum of each mask's weights, (k, 1), which over the whole plan is 1; 0 for no question
        share = np.bincount(frame.place, frame.weight, len(frame.ids))[frame.gap, None]
        means = np.where(share > 0, terms / np.where(share > 0, share, 1), alone)
        yield others + means.sum(axis=0), others + terms.sum(axis=0)


def _sums(
    network: MaskedNetwork, frames: list[_Frame], tokens: list[IntArray]
) -> Iterator[tuple[FloatArray, FloatArray, float]]:
    """Weighted sums of log p over the passes of each frame, for its words' tokens, (n, k), nats.

    Yields for each frame those of each word's token at each mask over the plan's questions, (k, n);
    log p of each word's token at each mask in the one context, (k, n); and the sum over the plan's
    questions about other words, whose tokens are known.
    """
    if not frames:
        return
    mask = network.mask
    # All frames go through the network together: rows of token ids, one frame after the other
    rows = [row for frame in frames for row in np.where(frame.hidden, mask, frame.ids)]
    first_row = np.cumsum([0, *(len(frame.hidden) for frame in frames)])
    # Groups of questions about the word, two for each mask of a frame: the plan's, then that in the
    # one context. Questions about other words have no group: their tokens are those of the sentence
    columns = []
    for i, frame in enumerate(frames):
        k, in_gap = len(frame.gap), np.isin(frame.place, frame.gap)
        group = np.where(in_gap, frame.place - frame.gap[0], _OTHER_WORD)
        one_context = np.full(k, first_row[i + 1] - 1)  # the frame's last row
        columns += [
            (first_row[i] + frame.row, frame.place, group, frame.weight, frame.ids[frame.place]),
            (one_context, frame.gap, k + np.arange(k), np.ones(k), frame.ids[frame.gap]),
        ]
    row, place, group, weight, token = map(np.concatenate, zip(*columns, strict=True))
    frame_of = np.searchsorted(first_row, row, side="right") - 1
    totals = [np.zeros((2 * len(f.gap), len(t))) for f, t in zip(frames, tokens, strict=True)]
    others = np.zeros(len(frames))

    def use(logits: Tensor, questions: IntArray, spots: IntArray) -> Write:
        log_probs = network.normaliser.log_softmax(logits)
        about_word = group[questions] != _OTHER_WORD
        asked, spots_of_word = questions[about_word], spots[about_word]
        parts = {}
        for i in np.unique(frame_of[asked]).tolist():
            in_frame = frame_of[asked] == i
            parts[i] = sums_of_words(i, log_probs, asked[in_frame], spots_of_word[in_frame])
        asked, spots = questions[~about_word], spots[~about_word]
        device = log_probs.device
        there = log_probs[to_device(spots, device), to_device(token[asked], device)]
        return partial(add, parts, asked, there.double())

    def sums_of_words(i: int, log_probs: Tensor, asked: IntArray, spots: IntArray) -> Tensor:
        # entry (g, s): the weight of the s-th spot about the word in group g
        used, index = np.unique(spots, return_inverse=True)
        weights = np.zeros((len(totals[i]), len(used)), np.float32)
        np.add.at(weights, (group[asked], index), weight[asked])
        first, last = int(used[0]), int(used[-1])
        # Spots are numbered frame by frame, so that a frame's are mostly a slice, without a copy
        is_slice = last - first + 1 == len(used)
        device = log_probs.device
        there = log_probs[first : last + 1] if is_slice else log_probs[to_device(used, device)]
        sums = to_device(torch.from_numpy(weights), device).to(log_probs) @ there  # (2k, n_outputs)
        # Group g is about mask g, modulo k: of its sums, those at the words' tokens there
        return sums.gather(1, to_device(np.tile(tokens[i].T, (2, 1)), device))

    def add(parts: dict[int, Tensor], asked: IntArray, there: Tensor) -> None:
        # Only once a batch has succeeded: one that is tried again must not count twice
        for i, part in parts.items():
            totals[i] += part.cpu().numpy()
        np.add.at(others, frame_of[asked], weight[asked] * there.cpu().numpy())

    network.ask(rows, row, place, use)
    for total, of_others in zip(totals, others.tolist(), strict=True):
        of_word, alone = np.split(total, 2)
        yield of_word, alone, of_others


def _of_mixture(
    network: MaskedNetwork, frame: _Frame, tokens: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Estimates and bounds of words, (n,) each, whose tokens are (n, k), under a mixture."""
    mixture = frame.plan.mixture
    assert mixture is not None
    used, index = np.unique(tokens, return_inverse=True)
    index = index.reshape(tokens.shape).T  # (k, n): of each token of a word in `used`
    answers, at_masks = _mixture_answers(network, frame, used)
    # H of every pass that hides the whole word: the walks there have uncovered other words alone
    log_h = mixture.log_h(answers)
    in_gap = np.isin(frame.place, frame.gap)
    row, weight, number = frame.row[in_gap], frame.weight[in_gap], frame.number[in_gap]
    mask = frame.place[in_gap] - frame.gap[0]
    arriving = log_h[mixture.source[number]] + mixture.log_step[number] - np.log(mixture.n_samples)
    bound = np.full(len(tokens), -np.inf)
    estimate = np.full(len(tokens), frame.weight[~in_gap] @ answers[frame.number[~in_gap]])
    for i, of_words in enumerate(index):
        here = mask == i
        alone = at_masks[-1, i]  # the one context is the frame's last pass
        log_probs = at_masks[row[here], i]  # (n_questions, n_used)
        # The bound: walks that arrive, and uncover this token first
        first = np.logaddexp.reduce(log_probs + arriving[here, None], axis=0, initial=-np.inf)
        bound = np.logaddexp(bound, first[of_words])
        # The estimate: the terms of the mean of the logs, which rank words alike. A bound that
        # takes later words for certain is mostly about the first words of a walk
        share = weight[here].sum()
        estimate += ((weight[here] @ log_probs) / share if share > 0 else alone)[of_words]
    return estimate, np.minimum(bound, 0)


def _mixture_answers(
    network: MaskedNetwork, frame: _Frame, used: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Log p of the other words, and of any token at the masks.

    Returns:
        The answers to the plan's questions, (n_questions,), nats, -inf where they are about the
        word or visible parts of it; log p of the tokens used, (n_passes, k, n_used), nats.
    """
    size, n_rows = len(frame.gap), len(frame.hidden)
    others = np.flatnonzero(~np.isin(frame.place, frame.gap))
    answers = np.full(len(frame.plan.row), -np.inf)
    at_masks = np.empty((n_rows * size, len(used)))

    def use(logits: Tensor, questions: IntArray, spots: IntArray) -> None:
        log_probs = network.normaliser.log_softmax(logits)

        def there(indices: IntArray) -> Tensor:
            return torch.from_numpy(indices).to(log_probs.device)

        about_other = questions < len(others)
        asked = others[questions[about_other]]
        of_token = log_probs[there(spots[about_other]), there(frame.ids[frame.place[asked]])]
        answers[frame.number[asked]] = of_token.double().cpu().numpy()
        of_masks = log_probs[there(spots[~about_other])].index_select(1, there(used))
        at_masks[questions[~about_other] - len(others)] = of_masks.double().cpu().numpy()

    # First the questions about other words, then every mask in every pass
    network.ask(
        list(np.where(frame.hidden, network.mask, frame.ids)),
        np.concatenate([frame.row[others], np.repeat(np.arange(n_rows), size)]),
        np.concatenate([frame.place[others], np.tile(frame.gap, n_rows)]),
        use,
    )
    return answers, at_masks.reshape(n_rows, size, len(used))
