"""Causal transformers (GPT-2, Pythia, OPT, Llama, Qwen, …) as language models."""

from __future__ import annotations

import json
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Convention, Replacements, short_hash
from contstim.models.batching import Budget
from contstim.models.boundaries import CLASSES_VERSION, word_completing
from contstim.models.causal.network import CausalNetwork, Prefix
from contstim.models.families import CAUSAL_RULES
from contstim.models.precision import precision_of, tolerance_of
from contstim.models.subwords import SubwordModel, check_rule
from contstim.models.words import WordTokens, place_of, word_and_rest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import Continuation, TokenScore
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.words import Encoding, Tokens
    from contstim.words.sentence import Sentence


class CausalModel(SubwordModel):
    """Sum over tokens of log p(token | context and earlier tokens), the end mark included.

    Rule `log-likelihood` encodes the text as it stands and normalises over the whole vocabulary.
    Rule `chain` enforces word boundaries: each token's probability is normalised over its class,
    tokens that begin a word (and end marks) or all others, and the first word is cut like any other
    word (Golan et al. 2023, Methods).

    The context before the first word never counts. By default it is the token that begins a text,
    or else the one that separates documents; see `contstim.models.contexts`. A text given as
    context is encoded apart from the sentence, and a space at its end belongs to the first word.
    The 2023 recipe is rule `chain` with the context `". "`.

    Args:
        checkpoint: a causal one.
        rule: `log-likelihood` or `chain`.
        context: a text before the sentence; None for the default.
        name: the model's name, by default the checkpoint's location.

    Raises:
        ModelError: if the checkpoint is masked, the rule unknown, or the context unusable or as
            long as the network's window.
    """

    checkpoint: Checkpoint

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        rule: str = "log-likelihood",
        context: str | None = None,
        name: str | None = None,
    ) -> None:
        if checkpoint.kind != "causal":
            raise ModelError(f"{checkpoint.location} is a masked language model, not a causal one.")
        check_rule(checkpoint, rule, CAUSAL_RULES)
        self.name = name or checkpoint.location
        self.checkpoint, self.window = checkpoint, checkpoint.window
        self._rule, self._end_apart = rule, rule == "chain"
        config = checkpoint.model.config.get_text_config()
        self._begin_with(context, checkpoint.tokenizer, checkpoint.location, config)
        if checkpoint.has_weights:
            _ = self._network  # refuse now a network that cannot be scored
        # Tokens of words of several tokens that are read to tighten the bounds of `replacements`
        self._read_ahead = Budget.for_device(checkpoint.device).tokens // 8
        self._after = lru_cache(maxsize=8)(self._read)

    @cached_property
    def convention(self) -> Convention:
        """The rule, and the context before the first word."""
        parts = [self.checkpoint.fingerprint, self._rule, self._context, self._space]
        parts += [CLASSES_VERSION] * (self._rule == "chain")
        kind = "causal" if self.checkpoint.has_weights else "tokenizer"
        return Convention(
            rule=self._rule,
            context=self._context_text,
            context_tokens=self._context_tokens,
            end_scored=True,
            fingerprint=f"{kind}-{short_hash(json.dumps(parts))}",
            precision=precision_of(self.checkpoint.model),
            tolerance=tolerance_of(self.checkpoint.model, self.log_probs),
        )

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        scores: FloatArray = self._parts(self._encode(sentences)).sum(axis=1)
        return scores

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`.

        Raises:
            ModelError: the rule is `chain`, which holds to word boundaries already, or the
                tokenizer does not mark where words begin.
        """
        if self._end_apart:
            raise ModelError(
                f"{self.name} with rule chain holds to word boundaries already; correct the rule "
                "log-likelihood."
            )
        size = int(self.checkpoint.model.config.get_text_config().vocab_size)
        completing = word_completing(self._tokenizer, size)
        encodings = self._encode(sentences)
        masses = self._network.masses(self._after(()), [e.ids for e in encodings], completing)
        plain = self.token_log_probs(sentences)
        for encoding, terms, mass in zip(encodings, plain, masses, strict=True):
            for i in range(1, len(encoding)):
                # That the word before is complete is said by the first token of the next one: it
                # goes over to the word that it completes.
                if encoding.word_of[i] != encoding.word_of[i - 1]:
                    for number, share in ((i - 1, mass[i]), (i, -mass[i])):
                        log_prob = float(terms[number].log_prob + share)
                        terms[number] = terms[number]._replace(log_prob=log_prob)
        return plain

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`: sums over the words' tokens in context."""
        network = self._network
        if self._end_apart:  # word boundaries hold for whole sentences only
            network = CausalNetwork(self.checkpoint, by_words=False)
        begin = network.begin(self._context)
        return self._sums_of_words(continuations, lambda rows: network.continuations(begin, rows))

    @cached_property
    def _network(self) -> CausalNetwork:
        return CausalNetwork(self.checkpoint, by_words=self._end_apart)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`; upper bounds from the words before the position."""
        sentence.check_position(position)
        before = self._before(sentence, position)
        candidates = self._candidates(sentence, position, words, before)
        return bounds(self._network, self._after(before), candidates, self._read_ahead, self.window)

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`; the words before are read once."""
        sentence.check_position(position)
        before = self._before(sentence, position)
        prefix = self._after(before)
        rows = [encoding.ids for encoding in self._rewritten(sentence, position, words)]
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

    def _needs(self, n_tokens: int) -> int:
        """See `SubwordModel`: with the context; nothing follows the last token."""
        return len(self._context) + n_tokens - 1

    def _parts(self, encodings: Sequence[Encoding]) -> FloatArray:
        """See `SubwordModel`: log p of each token, (n_sentences, longest), nats, else zero."""
        return self._network.continuations(self._after(()), [e.ids for e in encodings])

    def _candidates(
        self, sentence: Sentence, position: int, words: Sequence[str], before: Tokens
    ) -> WordTokens:
        """The tokens of each word at a position, after the tokens of the words before.

        With GPT-2's tokenizer, `dogs` after a space is the token `Ġdogs` in every sentence: no
        token reaches across a space, so the tokens of `dogs` are looked up once for all inner
        places. With a tokenizer that has a token `big dogs`, the sentence `The big ? bark.` is cut
        with each word in place; a word that changes the tokens of `The big`, as `dogs` does, has no
        tokens after them.
        """
        if self._words_are_independent:
            return self._in_place(words, place_of(sentence, position))
        rewritten = self._encode([sentence.replace(position, word) for word in words])
        return WordTokens.of(
            word_and_rest(encoding, position) if encoding.ids[: len(before)] == before else ((), ())
            for encoding in rewritten
        )

    def _before(self, sentence: Sentence, position: int) -> Tokens:
        """The tokens of the words before a position."""
        encoding = self._encoded(sentence)
        pairs = zip(encoding.ids, encoding.word_of, strict=True)
        return tuple(token for token, word in pairs if 0 <= word < position)

    def _read(self, before: Tokens) -> Prefix:
        if not before:
            return self._network.begin(self._context)
        return self._network.extend(self._after(()), before)


def bounds(
    network: CausalNetwork, prefix: Prefix, candidates: WordTokens, read: int, window: int | None
) -> Replacements:
    """Upper bounds and estimates for candidates, before any whole sentence is scored.

    log p(sentence) = log p(words before) + log p(candidate | words before) + log p(rest | …), and
    the last term is never positive. So the first two are an upper bound. One pass over the words
    before gives the second term for words of one token, and for longer words that of their first
    token, which bounds it. The other tokens of the longer words with the highest bounds are read
    as well; words that begin alike share the passes of their beginnings.

    For `The ?`, with log p(The) = -2 and up to 2 further tokens read:

        candidate    tokens         first token    other tokens    bound    estimate
        dog          dog               -3              none         -5        -5
        gardener     garden er         -4              -1           -7        -7
        gardening    garden ing        -4              -2           -8        -8
        xylophone    xy lo phone       -9           not read       -11       -11 - 2 * 1.5

    The tokens that were read cost 3 nats for 2 tokens, so each token that was not read is taken to
    cost 1.5 nats in the estimate, and nothing in the bound.

    Args:
        network: the causal network.
        prefix: the context and the words before the position.
        candidates: each word's tokens; the bound of a word without tokens is 0.
        read: how many tokens of long words to read at most.
        window: how many tokens the network reads, the prefix included; None for any number.
    """
    lengths = candidates.lengths  # (n_words,)
    upper = prefix.next_log_probs.take(candidates.firsts)
    upper += prefix.log_prob
    upper[lengths == 0] = 0.0
    room = int(lengths.max(initial=0)) if window is None else window - len(prefix.ids) + 1
    # Of the words of several tokens that fit the window, those with the highest bounds
    longer = np.flatnonzero((lengths > 1) & (lengths <= room))
    if len(longer) > read > 0:  # each reads one token or more, so that no more words can be read
        highest = upper[longer]
        longer = longer[highest >= np.partition(highest, -read)[-read]]
    longer = longer[np.argsort(-upper[longer], kind="stable")]
    chosen = longer[np.cumsum(lengths[longer] - 1) <= read]
    terms = network.continuations(prefix, [candidates.tokens[number] for number in chosen.tolist()])
    rests = terms[:, 1:].sum(axis=1)  # (n_chosen,): all tokens of a word but the first
    finite = np.isfinite(rests)
    counts = lengths[chosen] - 1
    mean = float(rests[finite].sum() / counts[finite].sum()) if finite.any() else 0.0
    estimate = np.maximum(lengths - 1.0, 0.0) * mean
    estimate += upper
    upper[chosen] += rests
    estimate[chosen] = upper[chosen]
    return Replacements(np.full(len(candidates), np.nan), estimate, upper, prefix.log_prob)
