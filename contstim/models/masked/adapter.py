"""Masked language models, with the interface that all language models have."""

from __future__ import annotations

from copy import copy
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Convention, Replacements, short_hash
from contstim.models.boundaries import CLASSES_VERSION
from contstim.models.caching import SizedCache
from contstim.models.masked.estimates import estimate
from contstim.models.masked.network import MaskedNetwork
from contstim.models.masked.rules import RULES, draft_plan
from contstim.models.precision import precision_of, tolerance_of
from contstim.models.subwords import SubwordModel, check_rule
from contstim.models.words import (
    END_MARK,
    SPECIAL,
    Encoding,
    encode_batch,
    kind_of_place,
    place_of,
    word_and_rest,
)
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.masked.plan import Pattern, Plan


class MaskedModel(SubwordModel):
    """A masked language model, scored by the chain rule or by a pseudo-log-likelihood.

    * `chain`: the chain rule over words. Imagine that the words of a masked sentence become visible
      one by one. The score is the mean log-probability over all orders of the words. Word
      boundaries are enforced. There are two classes of tokens: tokens at word boundaries, and
      tokens within words. The probability of a token is normalised over its class (see
      `boundaries`). If all orders take more than `pass_budget` passes (runs of the network), the
      score is an estimate with a standard error. The end mark is always visible and never scored.
    * `chain-mixture`: the log of the mean probability over all orders. Consider all sentences that
      have, for example, words of 1, 2 and 1 tokens and the same end mark. The mean probabilities of
      these sentences add up to 1 (see `plan`). If all orders take more than `pass_budget` passes,
      the score is the log of the mean probability over random orders. Such scores are too low on
      average.
    * `chain-unrestricted`: as `chain`, but word boundaries are not enforced.
    * `chain-sampled`: as `chain`, but the mean over 100 random orders, as in Golan et al. (2023).
      The scores differ from the published numbers, which include a term for the end mark and are
      averages over all orders of the tokens in a word.
    * `pll-original`, `pll-word-l2r`, `pll-whole-word`, `pll-sentence-l2r`: see `rules`.

    Log-probabilities are float32 numbers, summed in float64.

    Args:
        checkpoint: network and tokenizer.
        rule: one of `RULES`.
        name: the model's name. By default, it is the checkpoint's location, with `@` and the rule
            added unless the rule is `chain`.
        seed: seed of the sampled orders.
        pass_budget: maximum number of passes per sentence, for all chain rules except
            `chain-sampled`.

    Raises:
        ModelError: if the rule is unknown, or if the tokenizer has no mask token. For rules that
            enforce word boundaries, also if tokens mark neither beginnings nor ends of words.
    """

    checkpoint: Checkpoint
    _needs_every_word = True

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        rule: str = "chain",
        name: str | None = None,
        seed: int = 0,
        pass_budget: int = 2048,
    ) -> None:
        check_rule(checkpoint, rule, RULES)
        is_default = rule == next(iter(RULES))
        self.name = name or checkpoint.location + ("" if is_default else f"@{rule}")
        self.checkpoint, self.rule = checkpoint, RULES[rule]
        self.seed, self.pass_budget = seed, pass_budget
        self._covers: int | None = None  # number of covers if this is a draft, see `draft`
        self._drafts: dict[int, MaskedModel] = {}
        longest = int(checkpoint.tokenizer.model_max_length)
        self.window = min(longest, checkpoint.window or longest)
        tokenizer, end_apart = checkpoint.tokenizer, not self.rule.end_scored
        self._encode = partial(encode_batch, tokenizer, end_apart=end_apart, check=self._check)
        self._remember_words(tokenizer)
        if checkpoint.has_weights:
            _ = self._network  # raises an error now if there is no mask token
        self._plan = _cache_plans(lambda pattern: RULES[rule].plan(pattern, seed, pass_budget))

    @cached_property
    def _network(self) -> MaskedNetwork:
        return MaskedNetwork(self.checkpoint, by_words=self.rule.restricted)

    @cached_property
    def convention(self) -> Convention:
        """See `Scorer.convention`; the context consists of the tokens that precede every text."""
        settings = [self.checkpoint.fingerprint, self.rule.name]
        if self.rule.restricted:
            settings.append(f"classes {CLASSES_VERSION}")
        if self.rule.sampled:
            settings += [str(self.seed), str(self.pass_budget)]
        sampling = self.rule.sampled.format(seed=self.seed, pass_budget=self.pass_budget)
        if self._covers is not None:
            settings.append(f"draft {self._covers}")
            sampling = f"draft of {self._covers} covers, seed {self.seed}"
        digest = short_hash("\n".join(settings))
        kind = "masked" if self.checkpoint.has_weights else "tokenizer"
        encoding = self._encode([Sentence(("a",))])[0]
        n_first = next(i for i, word in enumerate(encoding.word_of) if word != SPECIAL)
        first_tokens = self.checkpoint.tokenizer.convert_ids_to_tokens(list(encoding.ids[:n_first]))
        return Convention(
            rule=self.rule.name,
            context=" ".join(first_tokens),
            end_scored=self.rule.end_scored,
            fingerprint=f"{kind}-{digest}",
            sampling=sampling,
            precision=precision_of(self.checkpoint.model),
            tolerance=tolerance_of(self.checkpoint.model, self.log_probs),
        )

    def exact(self, sentences: Sequence[Sentence]) -> BoolArray:
        """See `LanguageModel.exact`."""
        plans = (self._plan(encoding.word_of) for encoding in self._encode(sentences))
        return np.fromiter((plan.sample_of is None for plan in plans), np.bool_, len(sentences))

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        answered = self._network.answer(self._encode(sentences), self._plan)
        return np.array([plan.score(answers) for plan, answers in answered])

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.standard_errors`. Standard errors take as many passes as scores."""
        answered = self._network.answer(self._encode(sentences), self._plan)
        return np.array([plan.standard_error(answers) for plan, answers in answered])

    def lower_bounds(self, sentences: Sequence[Sentence]) -> FloatArray | None:
        """See `LanguageModel.lower_bounds`. Lower bounds take as many passes as scores."""
        if not self.rule.mixture:
            return None
        answered = self._network.answer(self._encode(sentences), self._plan)
        return np.array([plan.weight @ answers for plan, answers in answered])

    def _parts(self, encodings: Sequence[Encoding]) -> Iterator[FloatArray]:
        """See `SubwordModel`.

        Under the chain rules, the term of a token is its mean log-probability over the orders.
        Under `chain-mixture`, the term is the token's mean gain, which may be positive; see
        `Mixture.gains`.
        """
        answered = self._network.answer(encodings, self._plan)
        return (plan.by_token(answers)[:, None] for plan, answers in answered)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements` and the module `estimates`.

        If a candidate would change tokens of other words, its exact score and its bound are
        unknown.
        """
        sentence.check_position(position)
        encoding = self._encoded(sentence)
        candidates = self._in_place(words, place_of(sentence, position))
        longest = int(candidates.lengths.max(initial=0))
        self._check_window(len(encoding) - encoding.word_of.count(position) + longest, sentence)
        estimates = estimate(
            self._network, self._plan, self.rule.context, encoding, position, candidates
        )
        # Exact scores and bounds are valid only for candidates that do not change tokens of other
        # words
        _, rest_tokens = word_and_rest(encoding, position)
        if not self._words_are_independent:
            rewritten = self._rewritten(sentence, position, words)
            unchanged = [
                e == encoding.with_word(position, t)
                for e, t in zip(rewritten, candidates.tokens, strict=True)
            ]
        elif position == len(sentence) - 1:  # a token may contain both word and end mark
            unchanged = [tokens == rest_tokens for tokens in candidates.tokens_after]
        else:
            return estimates
        fits = np.array(unchanged, np.bool_)
        estimates.exact[~fits], estimates.upper_bound[~fits] = np.nan, np.inf
        return estimates

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`."""
        sentence.check_position(position)
        answered = self._network.answer(self._rewritten(sentence, position, words), self._plan)
        return np.array([plan.score(answers) for plan, answers in answered])

    def draft(self, effort: int = 1) -> MaskedModel | None:
        """See `LanguageModel.draft`; only chain rules have drafts.

        A draft is a cheaper model that estimates the scores of this model. It averages over
        `effort` covers of the words. A cover is a random sample of passes. A pass hides a set of
        words and scores these words. In a cover of n words, every word is scored in a hidden set of
        1 word, of 2 words, …, and of n words; see `rules`. For eight words of one token each, a
        cover takes 24 passes, and the exact score takes 255 passes. If `effort` is 0, each word is
        scored once, given all other words.
        """
        if not self.rule.sampled:
            return None
        if effort not in self._drafts:
            draft = copy(self)
            draft.name, draft._covers, draft._drafts = f"{self.name} (draft)", effort, {}
            draft._plan = _cache_plans(lambda pattern: draft_plan(pattern, self.seed, effort))
            vars(draft).pop("convention", None)
            self._drafts[effort] = draft
        return self._drafts[effort]

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`; a word is known if none of its tokens is the unknown token."""
        unknown = self.checkpoint.tokenizer.unk_token_id
        kind_of_position = kind_of_place(inner=True)
        try:
            tokens = self._in_place(words, kind_of_position).tokens
        except ModelError:  # some words have a special token or no token; retry without them
            frame, position = kind_of_position
            reasons = self.unscorable([frame.replace(position, word) for word in words])
            scorable = np.array([reason is None for reason in reasons], np.bool_)
            scorable[scorable] = self.knows(list(compress(words, scorable)))
            return scorable
        return np.fromiter((unknown not in word for word in tokens), np.bool_, len(words))

    def _is_scored(self, word: int) -> bool:
        """See `SubwordModel`."""
        return word != SPECIAL and (word != END_MARK or self.rule.end_scored)


def _cache_plans(plan: Callable[[Pattern], Plan]) -> SizedCache[[Pattern], Plan]:
    """Cache plans, up to a total size of 64 MiB.

    A plan lists passes for a sentence and, for each pass, questions about tokens that the pass
    hides. It depends only on the sentence's pattern, that is, on the word to which each token
    belongs.
    """

    def n_bytes(value: Plan) -> int:
        # A plan has four numbers of 8 bytes for each question. A mixture adds at most six numbers
        return value.hidden.nbytes + (32 if value.mixture is None else 80) * len(value.row)

    return SizedCache(plan, n_bytes, 2**26)
