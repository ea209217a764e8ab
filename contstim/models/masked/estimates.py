"""Bounds and estimates for every candidate word at one position, from few passes.

A pass is one run of the network on the sentence with some tokens masked. Below, "the word" is the
candidate at its position in the sentence. Passes that hide the whole word are equal for all
candidates with equally many tokens. These passes give

* the terms of the other words of the sentence, which are equal for all these candidates;
* the terms of the word itself, for all candidates at once, from the distribution over the
  vocabulary.

Passes that show the word differ between candidates and are omitted. No term is positive, so the sum
of the terms above is an upper bound of the score.

For candidates x of one token in `The x sleeps.`, rule `chain` (see `plan`) has four passes that
hide x. The other three passes, which hide `The`, `sleeps` or both, show x:

    pass         terms
    The _ sleeps   1/3 log p(x)
     _  _ sleeps   1/6 log p(x) + 1/6 log p(The)
    The _   _      1/6 log p(x) + 1/6 log p(sleeps)
     _  _   _      1/3 log p(x) + 1/3 log p(The) + 1/3 log p(sleeps)

The bound is the sum of all these terms. For all candidates x together, the terms of x are one
vector: the weighted sum of the four log-probability vectors over the vocabulary.

Under `chain-mixture`, the same four passes give H(V) for all sets V of visible words that do not
contain x. A walk makes the words of a masked sentence visible one by one, in random order. The
value of a walk for V is the product of the probabilities of the words in V, or 0 if the visible
words are never exactly V. H(V) is the mean of the values of all walks for V; see `plan`. If the |V|
words in V are visible, a walk makes x visible next with the probability 1/(3 - |V|). The words that
become visible after x have probabilities of at most 1, so the bound is

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
    """Sentence with k masks in place of the word, and passes for all candidates of k tokens.

    Attributes:
        ids: token ids, with masks in place of the word, (n_tokens,).
        gap: indices of these masks, (k,).
        hidden: mask of the tokens that each pass hides, (n_passes, n_tokens). The passes are those
            of the plan that hide the whole word. The last row is the extra pass of `estimate`.
        row, position, weight: the plan's questions in these passes, (n_questions,) each. A question
            asks for the log-probability of a hidden token. `row` is the row of `hidden`, `position`
            is the index of the token in question, and `weight` is the weight of the answer.
        number: indices of these questions in the plan, (n_questions,).
        plan: plan that contains these questions.
    """

    ids: IntArray
    gap: IntArray
    hidden: BoolArray
    row: IntArray
    position: IntArray
    weight: FloatArray
    number: IntArray
    plan: Plan


_OTHER_WORD = -1  # instead of a group number (see `_estimate_means`): question about another word


def estimate(
    network: MaskedNetwork,
    plan_of: Callable[[Pattern], Plan],
    context: HiddenWith,
    sentence: Encoding,
    position: int,
    words: WordTokens,
) -> Replacements:
    """Estimate scores for candidates at a 0-based position of an encoded sentence.

    The estimate uses only passes that hide the whole word. It is the sum of

    * the terms of the other words in these passes, and
    * for each token of the candidate, its weighted mean log-probability in these passes. If the
      plan never asks for the token in these passes, its log-probability in an extra pass is used.

    A mixture is the log of a mean probability over orders of the words. Its estimate uses the terms
    of `chain`, the mean log-probability over these orders. If no pass of the plan shows the word,
    the bound is the candidate's exact score. `context` selects the tokens to hide in the extra
    pass.
    """
    exact, estimates, upper = np.full((3, len(words)), np.nan)
    groups = words.by_length
    masked = (sentence.with_word(position, (network.mask,) * k) for k in groups)
    frames = [_frame(plan_of, context, encoding, position) for encoding in masked]
    all_tokens = [tokens for _, tokens in groups.values()]
    if any(frame.plan.mixture is not None for frame in frames):
        values = [*map(partial(_estimate_mixture, network), frames, all_tokens)]
    else:
        values = [*_estimate_means(network, frames, all_tokens)]
    for (chosen, _), frame, (estimate, bound) in zip(groups.values(), frames, values, strict=True):
        estimates[chosen], upper[chosen] = estimate, bound
        if len(frame.number) == len(frame.plan.row):  # no pass shows the word
            exact[chosen] = bound
    return Replacements(exact, estimates, upper)


def _frame(
    plan_of: Callable[[Pattern], Plan], context: HiddenWith, masked: Encoding, position: int
) -> _Frame:
    plan, gap = plan_of(masked.word_of), np.flatnonzero(np.array(masked.word_of) == position)
    hides_word: BoolArray = np.all(plan.hidden[:, gap], axis=1)  # (n_passes,)
    is_usable = hides_word[plan.row]  # (n_questions,)
    new_row = np.cumsum(hides_word) - 1  # entry i: row of the frame for pass i of the plan
    extra_pass = context(gap[:1], np.array(masked.word_of))
    return _Frame(
        ids=np.array(masked.ids),
        gap=gap,
        hidden=np.vstack([plan.hidden[hides_word], extra_pass]),
        row=new_row[plan.row[is_usable]],
        position=plan.token[is_usable],
        weight=plan.weight[is_usable],
        number=np.flatnonzero(is_usable),
        plan=plan,
    )


def _estimate_means(
    network: MaskedNetwork, frames: list[_Frame], tokens: list[IntArray]
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield estimates and bounds, (n,) each, for the n candidates of each frame.

    The passes of all frames run together. `tokens` contains the token ids of each frame's
    candidates, (n, k).
    """
    if not frames:
        return
    mask = network.mask
    rows = [row for frame in frames for row in np.where(frame.hidden, mask, frame.ids)]
    first_row = np.cumsum([0, *(len(frame.hidden) for frame in frames)])
    # The answers of a group of questions are added up, for each candidate. Each mask of a frame has
    # two groups: the plan's questions about the mask, and one question in the extra pass. Questions
    # about other words need no group, because all candidates have the same answer
    columns = []
    for i, frame in enumerate(frames):
        k, in_gap = len(frame.gap), np.isin(frame.position, frame.gap)
        group = np.where(in_gap, frame.position - frame.gap[0], _OTHER_WORD)
        extra_row = np.full(k, first_row[i + 1] - 1)  # the frame's last row
        plan_row = first_row[i] + frame.row
        columns += [
            (plan_row, frame.position, group, frame.weight, frame.ids[frame.position]),
            (extra_row, frame.gap, k + np.arange(k), np.ones(k), frame.ids[frame.gap]),
        ]
    row, position, group, weight, token = map(np.concatenate, zip(*columns, strict=True))
    frame_of = np.searchsorted(first_row, row, side="right") - 1
    totals = [np.zeros((2 * len(f.gap), len(t))) for f, t in zip(frames, tokens, strict=True)]
    unmasked_terms = np.zeros(len(frames))

    def use(logits: Tensor, questions: IntArray, spots: IntArray) -> Write:
        log_probs = network.normaliser.log_softmax(logits)
        about_word = group[questions] != _OTHER_WORD
        selected, spots_of_word = questions[about_word], spots[about_word]
        parts = {}
        for i in np.unique(frame_of[selected]).tolist():
            in_frame = frame_of[selected] == i
            parts[i] = sums_of_words(i, log_probs, selected[in_frame], spots_of_word[in_frame])
        selected, spots = questions[~about_word], spots[~about_word]
        device = log_probs.device
        log_p_of_tokens = log_probs[to_device(spots, device), to_device(token[selected], device)]
        return partial(add, parts, selected, log_p_of_tokens.double())

    def sums_of_words(i: int, log_probs: Tensor, selected: IntArray, spots: IntArray) -> Tensor:
        # A spot is a position of a row (see `network`). Entry (g, s) of `weights` is the weight of
        # used spot s in group g
        used, index = np.unique(spots, return_inverse=True)
        weights = np.zeros((len(totals[i]), len(used)), np.float32)
        np.add.at(weights, (group[selected], index), weight[selected])
        first, last = int(used[0]), int(used[-1])
        # The spots of a frame are mostly consecutive; a slice of them needs no copy
        is_slice = last - first + 1 == len(used)
        device = log_probs.device
        at_spots = log_probs[slice(first, last + 1) if is_slice else to_device(used, device)]
        # (2k, n_outputs)
        sums = to_device(torch.from_numpy(weights), device).to(log_probs) @ at_spots
        # Groups g and k + g ask about mask g. Select their sums for each candidate's g-th token
        return sums.gather(1, to_device(np.tile(tokens[i].T, (2, 1)), device))

    def add(parts: dict[int, Tensor], selected: IntArray, log_p: Tensor) -> None:
        # Called after the batch has succeeded, because a retried batch must not count twice
        for i, part in parts.items():
            totals[i] += part.cpu().numpy()
        np.add.at(unmasked_terms, frame_of[selected], weight[selected] * log_p.cpu().numpy())

    network.ask(rows, row, position, use)
    for frame, total, other_terms in zip(frames, totals, unmasked_terms.tolist(), strict=True):
        # Sums over the plan's questions about each mask, for the token of each candidate, (k, n);
        # and log p of these tokens at each mask in the extra pass, (k, n)
        terms, extra_terms = np.split(total, 2)
        # Total weight of the frame's questions about each mask, (k, 1). It is below 1 if the plan
        # also asks about the mask in passes that show a part of the word
        share = np.bincount(frame.position, frame.weight, len(frame.ids))[frame.gap, None]
        means = np.where(share > 0, terms / np.where(share > 0, share, 1), extra_terms)
        yield other_terms + means.sum(axis=0), other_terms + terms.sum(axis=0)


def _estimate_mixture(
    network: MaskedNetwork, frame: _Frame, tokens: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return estimates and bounds under a mixture, (n,) each, for words with tokens (n, k)."""
    mixture = frame.plan.mixture
    assert mixture is not None
    used, index = np.unique(tokens, return_inverse=True)
    answers, at_masks = _mixture_answers(network, frame, used)
    # Only passes that hide the whole word have valid values of `log_h`. Walks to these passes make
    # only other words visible, so the answers about other words suffice
    log_h = mixture.log_h(answers)
    in_gap = np.isin(frame.position, frame.gap)
    row, weight, number = frame.row[in_gap], frame.weight[in_gap], frame.number[in_gap]
    mask = frame.position[in_gap] - frame.gap[0]
    arriving = log_h[mixture.source[number]] + mixture.log_step[number] - np.log(mixture.n_samples)
    bound = np.full(len(tokens), -np.inf)
    estimate = np.full(len(tokens), frame.weight[~in_gap] @ answers[frame.number[~in_gap]])
    # `of_words` (n,): index in `used` of the i-th token of each word
    for i, of_words in enumerate(index.reshape(tokens.shape).T):
        about_mask = mask == i
        extra = at_masks[-1, i]  # the extra pass is the frame's last one
        log_probs = at_masks[row[about_mask], i]  # (n_questions, n_used)
        # For the bound: walks that make this token visible before the other tokens of its word
        first = np.logaddexp.reduce(log_probs + arriving[about_mask, None], axis=0, initial=-np.inf)
        bound = np.logaddexp(bound, first[of_words])
        # The estimate uses the terms of `chain`, because `chain` and the mixture rank candidates
        # similarly. The bound ranks candidates worse, since it sets the probabilities of all later
        # words of a walk to 1
        share = weight[about_mask].sum()
        estimate += ((weight[about_mask] @ log_probs) / share if share > 0 else extra)[of_words]
    return estimate, np.minimum(bound, 0)


def _mixture_answers(
    network: MaskedNetwork, frame: _Frame, used: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Ask for the other words of the sentence, and for the tokens of all candidates at each mask.

    `used` contains the ids of the candidates' tokens, (n_used,).

    Returns:
        Two arrays, nats. The first contains the answers to the plan's questions, (n_questions,),
        and -inf for questions that are not asked. The second contains log p of the used tokens at
        each mask in each pass, (n_passes, k, n_used).
    """
    size, n_rows = len(frame.gap), len(frame.hidden)
    outside_gap = np.flatnonzero(~np.isin(frame.position, frame.gap))
    answers = np.full(len(frame.plan.row), -np.inf)
    at_masks = np.empty((n_rows * size, len(used)))

    def use(logits: Tensor, questions: IntArray, spots: IntArray) -> None:
        log_probs = network.normaliser.log_softmax(logits)
        on_device = partial(to_device, device=log_probs.device)
        about_other = questions < len(outside_gap)
        selected = outside_gap[questions[about_other]]
        tokens = frame.ids[frame.position[selected]]
        of_token = log_probs[on_device(spots[about_other]), on_device(tokens)]
        answers[frame.number[selected]] = of_token.double().cpu().numpy()
        of_masks = log_probs[on_device(spots[~about_other])].index_select(1, on_device(used))
        at_masks[questions[~about_other] - len(outside_gap)] = of_masks.double().cpu().numpy()

    # First the questions about other words, then every mask in every pass
    network.ask(
        list(np.where(frame.hidden, network.mask, frame.ids)),
        np.concatenate([frame.row[outside_gap], np.repeat(np.arange(n_rows), size)]),
        np.concatenate([frame.position[outside_gap], np.tile(frame.gap, n_rows)]),
        use,
    )
    return answers, at_masks.reshape(n_rows, size, len(used))
