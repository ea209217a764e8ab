"""Masked language models under the contract of every language model."""

from __future__ import annotations

import hashlib
from copy import copy
from functools import cached_property, lru_cache
from itertools import chain, compress
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import (
    Convention,
    LanguageModel,
    Replacements,
    TokenScore,
)
from contstim.models.batching import Budget
from contstim.models.boundaries import Normaliser, token_classes
from contstim.models.caching import SizedCache
from contstim.models.masked.estimates import Estimates, estimate
from contstim.models.masked.network import MaskedNetwork, window_of
from contstim.models.masked.passes import Passes
from contstim.models.masked.rules import RULES
from contstim.models.masked.sampling import draft_plan
from contstim.models.precision import in_float32, precision_of, tolerance_of
from contstim.models.training_text import TrainingText
from contstim.models.word_tokens import PlaceKind, WordsInPlaces, word_and_rest
from contstim.models.words import (
    END_MARK,
    SPECIAL,
    Encoding,
    encode_batch,
    unscorable,
    words_are_independent,
)
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.masked.plan import Pattern, Plan

_PLAN_CACHE_BYTES = 2**26
_ROWS_AT_ONCE = 16_384  # passes that are collected before they are run


class MaskedModel(LanguageModel):
    """A masked language model, scored by the chain rule or by a pseudo-log-likelihood.

    * `chain`: the chain rule over words, averaged over all orders in which they can be uncovered,
      with word boundaries enforced. Exact if that takes at most `pass_budget` passes; in longer
      sentences an estimate from that many, with `standard_errors`. The end mark is always visible
      and never scored.
    * `chain-mixture`: the log of the mean probability over the same orders, in the same contexts:
      a distribution over all sentences with as many tokens in each word. Beyond the budget the log
      of a mean over random orders, which is too low on average.
    * `chain-unrestricted`: `chain` without word boundaries.
    * `chain-sampled`: 100 random orders, as in Golan et al. (2023). The numbers differ from the
      published ones, which have a term for the end mark and average the tokens inside a word over
      all orders.
    * `pll-original`, `pll-word-l2r`, `pll-whole-word`, `pll-sentence-l2r`: see `rules`.

    Log-probabilities are float32 numbers, summed in float64.

    Args:
        checkpoint: network and tokenizer.
        rule: one of `RULES`.
        name: the model's name; by default its location, followed by the rule unless it is `chain`.
        seed: of the orders that are sampled.
        pass_budget: passes per sentence up to which `chain` is exact.

    Raises:
        ModelError: an unknown rule, or a tokenizer without masks or, under rules that enforce word
            boundaries, without marks of where words begin or end.
    """

    reports_passes = True

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        rule: str = "chain",
        name: str | None = None,
        seed: int = 0,
        pass_budget: int = 2048,
    ) -> None:
        if rule not in RULES:
            raise ModelError(f"Masked models have no rule {rule!r}; they have {', '.join(RULES)}.")
        is_default = rule == next(iter(RULES))
        self.name = name or checkpoint.location + ("" if is_default else f"@{rule}")
        self.checkpoint, self.rule = checkpoint, RULES[rule]
        self.seed, self.pass_budget = seed, pass_budget
        self._covers: int | None = None  # of a draft; see `draft`
        self._drafts: dict[int, MaskedModel] = {}
        self._window = window_of(checkpoint)
        if checkpoint.has_weights:
            _ = self._passes  # refuse now a network that cannot be scored
        self._words_are_independent = words_are_independent(checkpoint.tokenizer)
        self._plan = self._remember_plans()
        self._in_places = WordsInPlaces(self._encode)
        self._encoded = lru_cache(maxsize=64)(lambda sentence: self._encode([sentence])[0])

    @cached_property
    def _passes(self) -> Passes:
        network = MaskedNetwork(self.checkpoint)
        tokenizer, size = self.checkpoint.tokenizer, network.n_outputs
        classes = token_classes(tokenizer, size) if self.rule.restricted else None
        return Passes(
            network, Normaliser(classes, network.device), Budget.for_device(network.device)
        )

    @cached_property
    def convention(self) -> Convention:
        """The rule, and what surrounds the words."""
        # the seed and the budget change only rules that sample
        settings = [self.checkpoint.fingerprint, self.rule.name]
        if self.rule.sampled:
            settings += [str(self.seed), str(self.pass_budget)]
        if self._covers is not None:
            settings.append(f"draft {self._covers}")
        digest = hashlib.sha256("\n".join(settings).encode()).hexdigest()
        kind = "masked" if self.checkpoint.has_weights else "tokenizer"
        # the tokens that the tokenizer puts before every text, such as [CLS]
        probe = self._encode([Sentence(("a",))])[0]
        first = next(i for i, word in enumerate(probe.word_of) if word != SPECIAL)
        before = self.checkpoint.tokenizer.convert_ids_to_tokens(list(probe.ids[:first]))
        return Convention(
            rule=self.rule.name,
            context=" ".join(before),
            end_scored=self.rule.end_scored,
            fingerprint=f"{kind}-{digest[:24]}",
            sampling=self._sampling,
            precision=precision_of(self.checkpoint.model),
            tolerance=tolerance_of(self.checkpoint.model, self.log_probs),
        )

    @property
    def _sampling(self) -> str:
        if self._covers is not None:
            return f"draft of {self._covers} covers, seed {self.seed}"
        return self.rule.sampled.format(seed=self.seed, pass_budget=self.pass_budget)

    def exact(self, sentences: Sequence[Sentence]) -> BoolArray:
        """See `LanguageModel.exact`."""
        plans = (self._plan(encoding.word_of) for encoding in self._encode(sentences))
        return np.fromiter((plan.sample_of is None for plan in plans), np.bool_, len(sentences))

    @property
    def training_text(self) -> TrainingText | None:
        """See `LanguageModel.training_text`; None for checkpoints of the hub."""
        return TrainingText.beside(self.checkpoint.location)

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        encodings = self._encode(sentences)
        scores = (plan.score(answers) for _, plan, answers in self._answers(encodings))
        return np.fromiter(scores, np.float64, len(sentences))

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.float32_log_probs`."""
        with in_float32(self.checkpoint.model):
            return self.log_probs(sentences)

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.standard_errors`; costs as many passes as the scores."""
        encodings = self._encode(sentences)
        errors = (plan.standard_error(answers) for _, plan, answers in self._answers(encodings))
        return np.fromiter(errors, np.float64, len(sentences))

    def lower_bounds(self, sentences: Sequence[Sentence]) -> FloatArray | None:
        """See `LanguageModel.lower_bounds`; costs as many passes as the scores."""
        if not self.rule.mixture:
            return None
        encodings = self._encode(sentences)
        means = (plan.mean(answers) for _, plan, answers in self._answers(encodings))
        return np.fromiter(means, np.float64, len(sentences))

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`.

        Under the chain rules a token's part is its mean log-probability over the orders; under the
        mixture, by how much it raises the log of the mean probability when it is uncovered, which
        may be more than 0; see `Mixture.gains`.
        """
        return [
            self._token_scores(encoding, plan.by_token(answers))
            for encoding, plan, answers in self._answers(self._encode(sentences))
        ]

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `LanguageModel.token_counts`."""
        scored = (sum(map(self._is_scored, e.word_of)) for e in self._encode(sentences))
        return np.fromiter(scored, np.int64, len(sentences))

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`; from passes that hide the word, see `estimates`."""
        estimates = self.estimates(sentence, position, words)
        return Replacements(
            exact=estimates.exact,
            estimate=estimates.shared_terms,
            upper_bound=estimates.upper_bound,
        )

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`."""
        sentence.check_position(position)
        encodings = self._rewritten(sentence, position, words)
        scores = (plan.score(answers) for _, plan, answers in self._answers(encodings))
        return np.fromiter(scores, np.float64, len(words))

    def estimates(self, sentence: Sentence, position: int, words: Sequence[str]) -> Estimates:
        """Two estimates and an upper bound, from passes that hide the word.

        A word is cut into tokens as at the beginning, in the middle or at the end of any sentence.
        A word that would change the tokens of the rest of the sentence has no bound.

        Raises:
            SentenceError: the sentence has no such position.
            ModelError: a word cannot be scored.
        """
        sentence.check_position(position)
        encoding = self._encoded(sentence)
        cut = self._in_places(words, PlaceKind.of(sentence, position))
        longest = int(cut.lengths.max(initial=0))
        self._check_window(len(encoding) - encoding.word_of.count(position) + longest, sentence)
        estimates = estimate(self._passes, self._plan, self.rule.context, encoding, position, cut)
        # The estimates hold for words that leave the tokens of the rest as they are
        replaced, rest = word_and_rest(encoding, position)
        if not self._words_are_independent:
            before = encoding.ids[: len(encoding) - len(replaced) - len(rest)]
            rewritten = self._encode([sentence.replace(position, word) for word in words])
            same = (
                new.ids == (*before, *tokens, *rest)
                for tokens, new in zip(cut.tokens, rewritten, strict=True)
            )
            fits = np.fromiter(same, np.bool_, len(words))
        elif position == len(sentence) - 1:  # the end mark may join the word
            fits = cut.followed_by(rest)
        else:
            return estimates
        estimates.exact[~fits], estimates.upper_bound[~fits] = np.nan, np.inf
        return estimates

    def draft(self, effort: int = 1) -> MaskedModel | None:
        """See `LanguageModel.draft`; under the chain rules, from `effort` covers of the words.

        One cover of eight words takes 24 passes instead of 255; with effort 0 each word counts
        once, given all others. The pseudo-log-likelihoods are cheap and have no draft.
        """
        if not self.rule.sampled:
            return None
        if effort not in self._drafts:
            # the same network and tokenizer with other plans, and so another convention
            draft = copy(self)
            draft.name, draft._covers, draft._drafts = f"{self.name} (draft)", effort, {}
            draft._plan = draft._remember_plans()
            vars(draft).pop("convention", None)
            self._drafts[effort] = draft
        return self._drafts[effort]

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`: words that it can score without the unknown token."""
        unknown = self.checkpoint.tokenizer.unk_token_id
        try:
            tokens = self._in_places(words, PlaceKind(inner=True)).tokens
        except ModelError:  # some words have no tokens, or special ones; ask again without them
            reasons = self.unscorable([Sentence(("a", word, "a")) for word in words])
            scorable = np.array([reason is None for reason in reasons], np.bool_)
            scorable[scorable] = self.knows(list(compress(words, scorable)))
            return scorable
        return np.fromiter((unknown not in word for word in tokens), np.bool_, len(words))

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        """See `LanguageModel.tokens_per_word`."""
        return self._in_places(words, PlaceKind(inner=not initial)).lengths.copy()

    def _is_scored(self, word: int) -> bool:
        return word != SPECIAL and (word != END_MARK or self.rule.end_scored)

    def _token_scores(self, encoding: Encoding, parts: FloatArray) -> list[TokenScore]:
        tokens = self.checkpoint.tokenizer.convert_ids_to_tokens(list(encoding.ids))
        return [
            TokenScore(word, token, float(part))
            for word, token, part in zip(encoding.word_of, tokens, parts, strict=True)
            if self._is_scored(word)
        ]

    def _remember_plans(self) -> SizedCache[[Pattern], Plan]:
        return SizedCache(self._make_plan, lambda plan: plan.n_bytes, _PLAN_CACHE_BYTES)

    def _make_plan(self, pattern: Pattern) -> Plan:
        if self._covers is not None:
            return draft_plan(pattern, self.seed, self._covers)
        return self.rule.plan(pattern, self.seed, self.pass_budget)

    def _rewritten(self, sentence: Sentence, position: int, words: Sequence[str]) -> list[Encoding]:
        """The sentence with each word in place, as tokens.

        If words are cut independently, only the tokens of the replaced word differ, except at the
        last position, where the end mark may join them.
        """
        if not self._words_are_independent or position == len(sentence) - 1:
            return self._encode([sentence.replace(position, word) for word in words])
        encoding = self._encoded(sentence)
        start = encoding.word_of.index(position)
        stop = start + encoding.word_of.count(position)
        rewritten = []
        cut = self._in_places(words, PlaceKind.of(sentence, position))
        for word, tokens in zip(words, cut.tokens, strict=True):
            ids = (*encoding.ids[:start], *tokens, *encoding.ids[stop:])
            places = (position,) * len(tokens)
            word_of = (*encoding.word_of[:start], *places, *encoding.word_of[stop:])
            if len(ids) > self._window:
                self._check_window(len(ids), sentence.replace(position, word))
            rewritten.append(Encoding(ids, word_of))
        return rewritten

    def _answers(
        self, encodings: Sequence[Encoding]
    ) -> Iterator[tuple[Encoding, Plan, FloatArray]]:
        """Each sentence's tokens, its plan, and the answers to the plan's questions, nats.

        Plans of many sentences run together, so that equal inputs pass through the network once.
        """
        waiting: list[tuple[Encoding, Plan]] = []
        n_rows = 0
        for encoding in encodings:
            plan = self._plan(encoding.word_of)
            waiting.append((encoding, plan))
            n_rows += len(plan.hidden)
            if n_rows >= _ROWS_AT_ONCE:
                yield from self._run(waiting)
                waiting, n_rows = [], 0
        yield from self._run(waiting)

    def _run(
        self, waiting: list[tuple[Encoding, Plan]]
    ) -> Iterator[tuple[Encoding, Plan, FloatArray]]:
        if not waiting:
            return
        ids = [np.array(encoding.ids, np.int64) for encoding, _ in waiting]  # (n_tokens,) each
        plans = [plan for _, plan in waiting]
        mask = self._passes.network.mask
        inputs = [np.where(p.hidden, mask, tokens) for p, tokens in zip(plans, ids, strict=True)]
        # The rows of all sentences are numbered through: those of sentence i begin at starts[i]
        starts = np.cumsum([0, *map(len, inputs)])[:-1]
        answers = self._passes.answer(
            list(chain.from_iterable(inputs)),
            row=np.concatenate([start + p.row for start, p in zip(starts, plans, strict=True)]),
            place=np.concatenate([plan.token for plan in plans]),
            token=np.concatenate([tokens[p.token] for tokens, p in zip(ids, plans, strict=True)]),
        )
        parts = np.split(answers, np.cumsum([len(plan.row) for plan in plans])[:-1])
        for (encoding, plan), part in zip(waiting, parts, strict=True):
            yield encoding, plan, part

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`."""
        return unscorable(self._encode, sentences)

    def _encode(self, sentences: Sequence[Sentence]) -> list[Encoding]:
        encodings = encode_batch(
            self.checkpoint.tokenizer, sentences, end_apart=not self.rule.end_scored
        )
        for sentence, encoding in zip(sentences, encodings, strict=True):
            self._check_window(len(encoding), sentence)
            present = set(encoding.word_of)
            for position, word in enumerate(sentence.words):
                if position not in present:
                    raise ModelError(
                        f"The tokenizer of {self.name} has no token for {word!r} in "
                        f"{sentence.text!r}. Leave the word out, or use another model."
                    )
        return encodings

    def _check_window(self, n_tokens: int, sentence: Sentence) -> None:
        if n_tokens > self._window:
            raise ModelError(
                f"{sentence.text[:60]!r} has {n_tokens} tokens with special ones; {self.name} "
                f"reads at most {self._window}. Shorten the sentence."
            )
