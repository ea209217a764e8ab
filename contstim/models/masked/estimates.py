"""Bounds and estimates for every candidate word at one position, from few passes.

Passes that hide the whole word depend only on its number of tokens. They give

* the terms of other words in these contexts, equal for all candidates with as many tokens;
* the terms of the word itself, for all words at once, from the distribution over the vocabulary.

Contexts that show the word would need passes for each candidate and are omitted. No term is
positive, so the terms above are an upper bound of the score.

Candidates x of one token at position 1 of `The x sleeps.`, under rule `chain` (see `plan`), have
four such passes. The other passes, for `The`, `sleeps` and both, show the word:

    pass         terms
    The _ sleeps   1/3 log p(x)
     _  _ sleeps   1/6 log p(x) + 1/6 log p(The)
    The _   _      1/6 log p(x) + 1/6 log p(sleeps)
     _  _   _      1/3 log p(x) + 1/3 log p(The) + 1/3 log p(sleeps)

The bound is the sum of all of them. The terms of `The` and `sleeps` are equal for all candidates.
The terms of x are one weighted sum of log p over the vocabulary, indexed by the candidate.

Under `chain-mixture` probabilities are averaged, not their logs. The same four passes give H(V) for
all visible words V without x, see `Mixture`. From V, a walk uncovers x next with probability
1/(3 - |V|). No later probability exceeds 1, so the bound is

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
    """The sentence with k masks for the word, and the passes for all candidates of k tokens.

    Attributes:
        ids: token ids with masks for the word, (n_tokens,).
        gap: indices of the masks, (k,).
        hidden: passes that hide the whole word, (n_passes, n_tokens); the last is the one context.
        row, position, weight: the plan's questions in these passes, (n_questions,): row of
            `hidden`, index of the token in question, and weight.
        number: indices of these questions in the plan, (n_questions,).
        plan: plan that contains them.
    """

    ids: IntArray
    gap: IntArray
    hidden: BoolArray
    row: IntArray
    position: IntArray
    weight: FloatArray
    number: IntArray
    plan: Plan


_OTHER_WORD = -1  # group of questions about other words


def estimate(
    network: MaskedNetwork,
    plan_of: Callable[[Pattern], Plan],
    context: HiddenWith,
    sentence: Encoding,
    position: int,
    words: WordTokens,
) -> Replacements:
    """Estimate scores for candidates at a 0-based position of an encoded sentence.

    The estimate is the sum of the score's terms in all contexts that hide the word. If only some
    contexts of a token hide the whole word, it uses the token's mean over these. If none does, it
    uses the token's log-probability in the one context. Under a mixture, the terms are those of the
    mean over orders. The score is exact if no context shows the word.

    Args:
        network: network that answers the questions.
        plan_of: function that returns the rule's plan for a pattern.
        context: function that selects the tokens hidden in the one context.
        sentence: sentence as tokens.
        position: position of the word to replace.
        words: candidates as tokens.
    """
    # Every word is in one group, so that all values except `exact` are filled in
    exact, estimates, upper = np.full((3, len(words)), np.nan)
    groups = words.by_length
    frames = [_frame(network.mask, plan_of, context, sentence, position, k) for k in groups]
    all_tokens = [tokens for _, tokens in groups.values()]
    if any(frame.plan.mixture is not None for frame in frames):
        pairs = zip(frames, all_tokens, strict=True)
        values = [_of_mixture(network, frame, tokens) for frame, tokens in pairs]
    else:
        values = list(_of_means(network, frames, all_tokens))
    for (chosen, _), frame, (estimate, bound) in zip(groups.values(), frames, values, strict=True):
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
    # Replace the tokens of the word by as many masks as the candidates have tokens
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
        position=plan.token[in_these],
        weight=plan.weight[in_these],
        number=np.flatnonzero(in_these),
        plan=plan,
    )


def _of_means(
    network: MaskedNetwork, frames: list[_Frame], tokens: list[IntArray]
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield estimates and bounds, (n,) each, of each frame's words, whose tokens are (n, k)."""
    for frame, (terms, alone, unmasked_terms) in zip(
        frames, _sums(network, frames, tokens), strict=True
    ):
        # Sum of each mask's weights, (k, 1): 1 over the whole plan, 0 without a question
        share = np.bincount(frame.position, frame.weight, len(frame.ids))[frame.gap, None]
        means = np.where(share > 0, terms / np.where(share > 0, share, 1), alone)
        yield unmasked_terms + means.sum(axis=0), unmasked_terms + terms.sum(axis=0)


def _sums(
    network: MaskedNetwork, frames: list[_Frame], tokens: list[IntArray]
) -> Iterator[tuple[FloatArray, FloatArray, float]]:
    """Weighted sums of log p over the passes of each frame, for its words' tokens, (n, k), nats.

    Yields for each frame: the sum over the plan's questions of each word's token at each mask,
    (k, n); log p of each word's token at each mask in the one context, (k, n); and the sum over the
    plan's questions about other words, whose tokens are known.
    """
    if not frames:
        return
    mask = network.mask
    # All frames pass through the network together: rows of token ids, frame by frame
    rows = [row for frame in frames for row in np.where(frame.hidden, mask, frame.ids)]
    first_row = np.cumsum([0, *(len(frame.hidden) for frame in frames)])
    # Each mask of a frame has two groups of questions: those of the plan, and one in the one
    # context. Questions about other words have no group, because their tokens are known
    columns = []
    for i, frame in enumerate(frames):
        k, in_gap = len(frame.gap), np.isin(frame.position, frame.gap)
        group = np.where(in_gap, frame.position - frame.gap[0], _OTHER_WORD)
        one_context = np.full(k, first_row[i + 1] - 1)  # the frame's last row
        columns += [
            (
                first_row[i] + frame.row,
                frame.position,
                group,
                frame.weight,
                frame.ids[frame.position],
            ),
            (one_context, frame.gap, k + np.arange(k), np.ones(k), frame.ids[frame.gap]),
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
        # Entry (g, s): weight of the s-th spot of the word in group g
        used, index = np.unique(spots, return_inverse=True)
        weights = np.zeros((len(totals[i]), len(used)), np.float32)
        np.add.at(weights, (group[selected], index), weight[selected])
        first, last = int(used[0]), int(used[-1])
        # Spots are numbered frame by frame, so that those of a frame are mostly a slice (no copy)
        is_slice = last - first + 1 == len(used)
        device = log_probs.device
        at_spots = log_probs[slice(first, last + 1) if is_slice else to_device(used, device)]
        # (2k, n_outputs)
        sums = to_device(torch.from_numpy(weights), device).to(log_probs) @ at_spots
        # Group g is about mask g modulo k; select its sums at the words' tokens
        return sums.gather(1, to_device(np.tile(tokens[i].T, (2, 1)), device))

    def add(parts: dict[int, Tensor], selected: IntArray, log_p: Tensor) -> None:
        # Only after a batch has succeeded, because a retried batch must not count twice
        for i, part in parts.items():
            totals[i] += part.cpu().numpy()
        np.add.at(unmasked_terms, frame_of[selected], weight[selected] * log_p.cpu().numpy())

    network.ask(rows, row, position, use)
    for total, of_others in zip(totals, unmasked_terms.tolist(), strict=True):
        of_word, alone = np.split(total, 2)
        yield of_word, alone, of_others


def _of_mixture(
    network: MaskedNetwork, frame: _Frame, tokens: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return estimates and bounds, (n,) each, of words with tokens (n, k), under a mixture."""
    mixture = frame.plan.mixture
    assert mixture is not None
    used, index = np.unique(tokens, return_inverse=True)
    index = index.reshape(tokens.shape).T  # (k, n): index in `used` of each token of a word
    answers, at_masks = _mixture_answers(network, frame, used)
    # H of every pass that hides the whole word: these walks have only uncovered other words
    log_h = mixture.log_h(answers)
    in_gap = np.isin(frame.position, frame.gap)
    row, weight, number = frame.row[in_gap], frame.weight[in_gap], frame.number[in_gap]
    mask = frame.position[in_gap] - frame.gap[0]
    arriving = log_h[mixture.source[number]] + mixture.log_step[number] - np.log(mixture.n_samples)
    bound = np.full(len(tokens), -np.inf)
    estimate = np.full(len(tokens), frame.weight[~in_gap] @ answers[frame.number[~in_gap]])
    for i, of_words in enumerate(index):
        here = mask == i
        alone = at_masks[-1, i]  # the one context is the frame's last pass
        log_probs = at_masks[row[here], i]  # (n_questions, n_used)
        # Bound: walks that arrive here and uncover this token first
        first = np.logaddexp.reduce(log_probs + arriving[here, None], axis=0, initial=-np.inf)
        bound = np.logaddexp(bound, first[of_words])
        # Estimate: the terms of the mean of the logs, which give a similar ranking. The bound
        # assumes later words to be certain and mostly reflects the first words of a walk
        share = weight[here].sum()
        estimate += ((weight[here] @ log_probs) / share if share > 0 else alone)[of_words]
    return estimate, np.minimum(bound, 0)


def _mixture_answers(
    network: MaskedNetwork, frame: _Frame, used: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return log p of the other words, and of the candidates' tokens at the masks.

    Returns:
        Answers to the plan's questions, (n_questions,), nats, -inf for questions about the word or
        with visible parts of it; log p of the used tokens, (n_passes, k, n_used), nats.
    """
    size, n_rows = len(frame.gap), len(frame.hidden)
    outside_gap = np.flatnonzero(~np.isin(frame.position, frame.gap))
    answers = np.full(len(frame.plan.row), -np.inf)
    at_masks = np.empty((n_rows * size, len(used)))

    def use(logits: Tensor, questions: IntArray, spots: IntArray) -> None:
        log_probs = network.normaliser.log_softmax(logits)

        def there(indices: IntArray) -> Tensor:
            return torch.from_numpy(indices).to(log_probs.device)

        about_other = questions < len(outside_gap)
        selected = outside_gap[questions[about_other]]
        of_token = log_probs[there(spots[about_other]), there(frame.ids[frame.position[selected]])]
        answers[frame.number[selected]] = of_token.double().cpu().numpy()
        of_masks = log_probs[there(spots[~about_other])].index_select(1, there(used))
        at_masks[questions[~about_other] - len(outside_gap)] = of_masks.double().cpu().numpy()

    # First the questions about other words, then every mask in every pass
    network.ask(
        list(np.where(frame.hidden, network.mask, frame.ids)),
        np.concatenate([frame.row[outside_gap], np.repeat(np.arange(n_rows), size)]),
        np.concatenate([frame.position[outside_gap], np.tile(frame.gap, n_rows)]),
        use,
    )
    return answers, at_masks.reshape(n_rows, size, len(used))
