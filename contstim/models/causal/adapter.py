"""Causal transformers (GPT-2, Pythia, OPT, Llama, Qwen, …) as language models."""

from __future__ import annotations

import hashlib
import json
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import (
    Convention,
    LanguageModel,
    Replacements,
    TokenScore,
)
from contstim.models.batching import Budget
from contstim.models.boundaries import word_completing
from contstim.models.causal.bounds import bounds
from contstim.models.causal.candidates import CandidateTokens
from contstim.models.causal.context import context_tokens, wants_space
from contstim.models.causal.network import CausalNetwork, Prefix
from contstim.models.families import CAUSAL_RULES
from contstim.models.precision import in_float32, precision_of, tolerance_of
from contstim.models.special_tokens import readable
from contstim.models.training_text import TrainingText
from contstim.models.word_tokens import word_and_rest
from contstim.models.words import END_MARK, Encoding, encode_batch, unscorable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.base import Continuation
    from contstim.models.checkpoints import Checkpoint
    from contstim.sentence import Sentence

    Tokens: TypeAlias = tuple[int, ...]


class CausalModel(LanguageModel):
    """Sum over tokens of log p(token | context and earlier tokens), the end mark included.

    Rule `log-likelihood` encodes the text as it stands and normalises over the whole vocabulary.
    Rule `chain` enforces word boundaries: each token's probability is normalised over its class,
    tokens that begin a word (and end marks) or all others, and the first word is cut like any other
    word (Golan et al. 2023, Methods).

    The context before the first word never counts. By default it is the tokens that the tokenizer
    puts before every text, or, if it puts none, the beginning-of-sequence token. A prompt follows
    the tokenizer's own tokens; it is encoded apart from the sentence, and a space at its end goes
    to the first word. The 2023 recipe is rule `chain` with the prompt `". "`.

    Args:
        checkpoint: a causal one.
        rule: `log-likelihood` or `chain`.
        prompt: a text before the sentence, instead of the beginning-of-sequence token.
        name: the model's name, by default the checkpoint's location.
        read_ahead: how many tokens of words of several tokens `replacements` reads to tighten its
            bounds; by default an eighth of a batch on the device.

    Raises:
        ModelError: a masked checkpoint, an unknown rule, no context, or a prompt that fills the
            network's window.
    """

    reports_passes = True

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        rule: str = "log-likelihood",
        prompt: str | None = None,
        name: str | None = None,
        read_ahead: int | None = None,
    ) -> None:
        if checkpoint.kind != "causal":
            raise ModelError(f"{checkpoint.location} is a masked language model, not a causal one.")
        if rule not in CAUSAL_RULES:
            raise ModelError(
                f"{checkpoint.location} is a causal model, which has no rule {rule!r}; it has "
                f"{', '.join(CAUSAL_RULES)}."
            )
        self.name = name or checkpoint.location
        self._checkpoint = checkpoint
        self._tokenizer = checkpoint.tokenizer
        self._rule = rule
        self._prompt = prompt
        self._context = context_tokens(
            self._tokenizer,
            checkpoint.location,
            prompt=prompt,
            window=checkpoint.window,
            config=checkpoint.model.config.get_text_config(),
        )
        self._space = (rule == "chain" or (prompt or "").endswith(" ")) and wants_space(
            self._tokenizer
        )
        if checkpoint.has_weights:
            _ = self._network  # refuse now a network that cannot be scored
        self._candidates = CandidateTokens(self._tokenizer, self._encode)
        if read_ahead is None:
            read_ahead = Budget.for_device(checkpoint.device).tokens // 8
        self._read_ahead = read_ahead
        self._after = lru_cache(maxsize=8)(self._read)
        self._encoded = lru_cache(maxsize=64)(lambda sentence: self._encode([sentence])[0])

    @cached_property
    def convention(self) -> Convention:
        """The rule, and the context before the first word."""
        parts = [self._checkpoint.fingerprint, self._rule, self._context, self._space]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        kind = "causal" if self._checkpoint.has_weights else "tokenizer"
        beginning = " ".join(self._tokenizer.convert_ids_to_tokens(list(self._context)))
        return Convention(
            rule=self._rule,
            context=beginning if self._prompt is None else self._prompt,
            end_scored=True,
            fingerprint=f"{kind}-{digest[:24]}",
            precision=precision_of(self._checkpoint.model),
            tolerance=tolerance_of(self._checkpoint.model, self.log_probs),
        )

    @property
    def training_text(self) -> TrainingText | None:
        """See `LanguageModel.training_text`; None for checkpoints of the hub."""
        return TrainingText.beside(self._checkpoint.location)

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        scores: FloatArray = self._terms(self._encode(sentences)).sum(axis=1)
        return scores

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.float32_log_probs`."""
        twin = self.for_another_search()  # prefixes in the cache are less precise
        with in_float32(self._checkpoint.model):
            return twin.log_probs(sentences)

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`."""
        encodings = self._encode(sentences)
        return [
            [
                TokenScore(word, token, float(term))
                for word, token, term in zip(
                    encoding.word_of,
                    self._tokenizer.convert_ids_to_tokens(list(encoding.ids)),
                    row,
                    strict=False,  # rows are padded with zeros
                )
            ]
            for encoding, row in zip(encodings, self._terms(encodings), strict=True)
        ]

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`.

        Raises:
            ModelError: the rule is `chain`, which holds to word boundaries already, or the
                tokenizer does not mark where words begin.
        """
        if self._rule == "chain":
            raise ModelError(
                f"{self.name} with rule chain holds to word boundaries already; correct the rule "
                "log-likelihood."
            )
        size = int(self._checkpoint.model.config.get_text_config().vocab_size)
        completing = word_completing(self._tokenizer, size)
        encodings = self._encode(sentences)
        masses = self._network.masses(self._after(()), [e.ids for e in encodings], completing)
        corrected = []
        plain = self.token_log_probs(sentences)
        for encoding, terms, mass in zip(encodings, plain, masses, strict=True):
            log_probs = [term.log_prob for term in terms]
            for place in range(1, len(encoding)):
                # That the word before is complete is said by the first token of the next one: it
                # goes over to the word that it completes.
                if encoding.word_of[place] != encoding.word_of[place - 1]:
                    log_probs[place - 1] += mass[place]
                    log_probs[place] -= mass[place]
            corrected.append(
                [
                    term._replace(log_prob=float(log_prob))
                    for term, log_prob in zip(terms, log_probs, strict=True)
                ]
            )
        return corrected

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`: sums over the words' tokens in context."""
        encodings = self._encode([item.sentence for item in continuations], end_apart=True)
        words = [[w for w in encoding.word_of if w != END_MARK] for encoding in encodings]
        rows = [encoding.ids[: len(w)] for encoding, w in zip(encodings, words, strict=True)]
        terms = self._unrestricted.continuations(self._unrestricted.begin(self._context), rows)
        # the tokens of words from `start` on count; terms beyond a row's end are zero
        counts = np.zeros(terms.shape, np.bool_)
        for row, (item, word_of) in enumerate(zip(continuations, words, strict=True)):
            counts[row, : len(word_of)] = np.array(word_of) >= item.start
        totals: FloatArray = np.where(counts, terms, 0.0).sum(axis=1)
        return totals

    @cached_property
    def _network(self) -> CausalNetwork:
        return CausalNetwork(self._checkpoint, by_words=self._rule == "chain")

    @cached_property
    def _unrestricted(self) -> CausalNetwork:
        """The network without word boundaries, which hold for whole sentences only."""
        if self._rule == "chain":
            return CausalNetwork(self._checkpoint, by_words=False)
        return self._network

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `LanguageModel.token_counts`; the end mark counts."""
        return np.array([len(encoding) for encoding in self._encode(sentences)], np.int64)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`; upper bounds from the words before the position."""
        sentence.check_position(position)
        before = self._before(sentence, position)
        candidates = self._candidates(sentence, position, words, before)
        window = self._checkpoint.window
        return bounds(self._network, self._after(before), candidates, self._read_ahead, window)

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`; the words before are read once."""
        sentence.check_position(position)
        before = self._before(sentence, position)
        prefix = self._after(before)
        rows = self._rewritten(sentence, position, words, before)
        # A word may change the tokens before it: such rows are read from the context on
        shares = np.array([row[: len(before)] == before for row in rows], np.bool_)
        scores = np.empty(len(rows))
        for chosen, start in ((shares, prefix), (~shares, self._after(()))):
            n_read = len(start.ids) - len(self._context)
            rests = [rows[number][n_read:] for number in np.flatnonzero(chosen)]
            scores[chosen] = start.log_prob + self._network.continuations(start, rests).sum(axis=1)
        return scores

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`."""
        twin = copy(self)
        twin._after = lru_cache(maxsize=8)(twin._read)
        return twin

    def forget_prefixes(self) -> None:
        """See `LanguageModel.forget_prefixes`; the context is read anew as well."""
        self._after.cache_clear()

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`: all but special tokens, and those with the unknown one."""
        return readable(self._tokenizer, words)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        """See `LanguageModel.tokens_per_word`."""
        return self._candidates.in_place(words, initial=initial).lengths.copy()

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`."""
        return unscorable(self._encode, sentences)

    def _encode(
        self, sentences: Sequence[Sentence], *, end_apart: bool | None = None
    ) -> list[Encoding]:
        encodings = encode_batch(
            self._tokenizer,
            sentences,
            leading_space=self._space,
            special_tokens=False,
            end_apart=self._rule == "chain" if end_apart is None else end_apart,
        )
        for sentence, encoding in zip(sentences, encodings, strict=True):
            if not self._fits(len(encoding)):
                raise self._does_not_fit(sentence, len(encoding))
        return encodings

    def _fits(self, n_tokens: int) -> bool:
        """True if the network can read the context and so many tokens."""
        window = self._checkpoint.window
        # Nothing follows the last token
        return window is None or len(self._context) + n_tokens - 1 <= window

    def _does_not_fit(self, sentence: Sentence, n_tokens: int) -> ModelError:
        return ModelError(
            f"{sentence.text[:60]!r} needs {len(self._context) + n_tokens - 1:,} tokens; "
            f"{self.name} reads at most {self._checkpoint.window:,}. Leave the sentence out or use "
            f"another model."
        )

    def _terms(self, encodings: Sequence[Encoding]) -> FloatArray:
        """(n_sentences, longest) log p of each token, nats; zero beyond a sentence's end."""
        return self._network.continuations(self._after(()), [e.ids for e in encodings])

    def _rewritten(
        self, sentence: Sentence, position: int, words: Sequence[str], before: Tokens
    ) -> list[Tokens]:
        """The tokens of the sentence with each word in place.

        If words are cut independently, only those of the replaced word differ and, at the last
        position, those of the end mark.
        """
        if not self._candidates.independent:
            rewritten = [sentence.replace(position, word) for word in words]
            return [encoding.ids for encoding in self._encode(rewritten)]
        cut = self._candidates(sentence, position, words, before)
        _, after = word_and_rest(self._encoded(sentence), position)
        rests = cut.rest if position == len(sentence) - 1 else (after,) * len(cut)
        pairs = zip(cut.tokens, rests, strict=True)
        rows = [(*before, *tokens, *rest) for tokens, rest in pairs]
        for word, row in zip(words, rows, strict=True):
            if not self._fits(len(row)):
                raise self._does_not_fit(sentence.replace(position, word), len(row))
        return rows

    def _before(self, sentence: Sentence, position: int) -> Tokens:
        """The tokens of the words before a position."""
        encoding = self._encoded(sentence)
        pairs = zip(encoding.ids, encoding.word_of, strict=True)
        return tuple(token for token, word in pairs if 0 <= word < position)

    def _read(self, before: Tokens) -> Prefix:
        if not before:
            return self._network.begin(self._context)
        return self._network.extend(self._after(()), before)
