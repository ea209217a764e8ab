"""Causal transformers (GPT-2, Pythia, OPT, Llama, Qwen, …) as language models."""

from __future__ import annotations

import json
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Continuation, Convention, Replacements, TokenScore, short_hash
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
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.words import Encoding, Tokens
    from contstim.words.sentence import Sentence


class CausalModel(SubwordModel):
    """Model whose score is the sum of log p(token | context and earlier tokens).

    The tokens of the end mark are scored. The rule `log-likelihood` encodes the unchanged text and
    normalises probabilities over the whole vocabulary. The rule `chain` enforces word boundaries
    (Golan et al. 2023, Methods): it normalises the probability of each token over its class, which
    is either the tokens at word boundaries or the tokens within words (see `boundaries`). `chain`
    also tokenizes the first word like any other word.

    The context before the first word is not scored. By default, the context is the token that
    begins a text. If there is no such token, the default is a token that separates documents; see
    `contstim.models.contexts`. The context is tokenized separately from the sentence. The 2023
    study uses the rule `chain` with the context `". "`.

    Args:
        checkpoint: checkpoint of a causal network.
        rule: `log-likelihood` or `chain`.
        context: text before the sentence; None for the default.
        name: name of the model, by default the checkpoint's location.

    Raises:
        ModelError: if the checkpoint is not causal; if the rule is unknown; or if the context is
            unusable, or at least as long as the network's window (its maximum number of tokens).
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
            _ = self._network  # raises an error now if the network is unusable
        # Maximum number of tokens that `replacements` scores to make the bounds of words tighter
        self._read_ahead = Budget.for_device(checkpoint.device).tokens // 8
        self.forget_prefixes()

    @cached_property
    def convention(self) -> Convention:
        """See `Scorer.convention`."""
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
        rows = [encoding.ids for encoding in self._encode(sentences)]
        scores: FloatArray = self._network.continuations(self._prefix_of(()), rows).sum(axis=1)
        return scores

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`.

        Raises:
            ModelError: if the rule is `chain`, because this rule already enforces word boundaries;
                or if the tokenizer does not mark where words begin.
        """
        if self._end_apart:
            raise ModelError(
                f"{self.name} with rule chain already preserves word boundaries. Use the "
                "boundary correction with the rule log-likelihood."
            )
        size = int(self.checkpoint.model.config.get_text_config().vocab_size)
        completing = word_completing(self._tokenizer, size)
        encodings = self._encode(sentences)
        masses = self._network.masses(self._prefix_of(()), [e.ids for e in encodings], completing)
        plain = self.token_log_probs(sentences)
        for encoding, terms, mass in zip(encodings, plain, masses, strict=True):
            for i in range(1, len(encoding)):
                # p(first token of a word) contains the factor p(the previous word is complete).
                # Move this factor to the last token of the previous word
                if encoding.word_of[i] != encoding.word_of[i - 1]:
                    for index, change in ((i - 1, mass[i]), (i, -mass[i])):
                        log_prob = float(terms[index].log_prob + change)
                        terms[index] = terms[index]._replace(log_prob=log_prob)
        return plain

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        network = self._network
        if self._end_apart:  # word boundaries are enforced for whole sentences only
            network = CausalNetwork(self.checkpoint, by_words=False)
        begin = network.begin(self._context)
        return self._sums_of_words(continuations, lambda rows: network.continuations(begin, rows))

    @cached_property
    def _network(self) -> CausalNetwork:
        return CausalNetwork(self.checkpoint, by_words=self._end_apart)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `Scorer.replacements` and the function `bounds`."""
        sentence.check_position(position)
        tokens_before = self._tokens_before(sentence, position)
        candidates = self._candidates(sentence, position, words, tokens_before)
        return bounds(
            self._network, self._prefix_of(tokens_before), candidates, self._read_ahead, self.window
        )

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`; words before the position are read once."""
        sentence.check_position(position)
        tokens_before = self._tokens_before(sentence, position)
        n_before = len(tokens_before)
        rows = [encoding.ids for encoding in self._rewritten(sentence, position, words)]
        # A word may change the tokens before it; the network then reads the whole sentence
        has_prefix = np.array([row[:n_before] == tokens_before for row in rows], np.bool_)
        scores = np.empty(len(rows))
        for chosen, tokens_read in ((has_prefix, tokens_before), (~has_prefix, ())):
            start = self._prefix_of(tokens_read)
            rests = [rows[index][len(tokens_read) :] for index in np.flatnonzero(chosen)]
            scores[chosen] = start.log_prob + self._network.continuations(start, rests).sum(axis=1)
        return scores

    def forget_prefixes(self) -> None:
        """See `Scorer.forget_prefixes`; the processed context is also forgotten."""
        self._prefix_of = lru_cache(maxsize=8)(self._read_prefix)

    def _needs(self, n_tokens: int) -> int:
        """See `SubwordModel`; the network reads the context, but not the last token."""
        return len(self._context) + n_tokens - 1

    def _parts(self, encodings: Sequence[Encoding]) -> FloatArray:
        """See `SubwordModel`; (n_sentences, longest, 2), nats."""
        rows = [encoding.ids for encoding in encodings]
        return self._network.continuations(self._prefix_of(()), rows, entropies=True)

    def _candidates(
        self, sentence: Sentence, position: int, words: Sequence[str], tokens_before: Tokens
    ) -> WordTokens:
        """Return the tokens of each word at a position, given the tokens of the words before.

        If no token extends across a space, as in GPT-2, `dogs` has the same tokens at all inner
        positions. Other tokenizers may have a token `big dogs`. With such a tokenizer, each word is
        tokenized within the sentence. A word gets no tokens if it changes the tokens before it. For
        example, in `The big ? bark.`, the word `dogs` changes the tokens of `The big`.
        """
        if self._words_are_independent:
            return self._in_place(words, place_of(sentence, position))
        rewritten = self._encode([sentence.replace(position, word) for word in words])
        return WordTokens.of(
            word_and_rest(encoding, position)
            if encoding.ids[: len(tokens_before)] == tokens_before
            else ((), ())
            for encoding in rewritten
        )

    def _tokens_before(self, sentence: Sentence, position: int) -> Tokens:
        encoding = self._encoded(sentence)
        pairs = zip(encoding.ids, encoding.word_of, strict=True)
        return tuple(token for token, word in pairs if 0 <= word < position)

    def _read_prefix(self, tokens_before: Tokens) -> Prefix:
        if not tokens_before:
            return self._network.begin(self._context)
        return self._network.extend(self._prefix_of(()), tokens_before)


def bounds(
    network: CausalNetwork, prefix: Prefix, candidates: WordTokens, read: int, window: int | None
) -> Replacements:
    """Compute upper bounds and estimates for candidates without scoring whole sentences.

    Log-probabilities are never positive. So an upper bound of log p(sentence) is

        log p(words before) + log p(first token of the candidate | words before).

    One pass over the words before the position yields this bound for all candidates. For the
    candidates with the highest bounds, the later tokens are also scored, and their
    log-probabilities are added to the bound. Candidates with the same first tokens share passes.

    Example: candidates for `The ?`, with log p(The) = -2 and `read` = 2:

        candidate    tokens         first token    later tokens    bound    estimate
        dog          dog               -3              none         -5        -5
        gardener     garden er         -4              -1           -7        -7
        gardening    garden ing        -4              -2           -8        -8
        xylophone    xy lo phone       -9           not scored     -11       -11 - 2 * 1.5

    The two scored later tokens have a mean log-probability of -1.5 nats. For each unscored token,
    the estimate adds this mean, and the bound adds 0.

    Args:
        network: causal network.
        prefix: context and words before the position.
        candidates: tokens of each word; the bound of a word without tokens is 0.
        read: maximum number of tokens to score, not counting the first token of each word.
        window: maximum number of tokens of the network, including the prefix; None if unlimited.
    """
    lengths = candidates.lengths  # (n_words,)
    upper = prefix.next_log_probs.take(candidates.firsts)
    upper += prefix.log_prob
    upper[lengths == 0] = 0.0
    room = int(lengths.max(initial=0)) if window is None else window - len(prefix.ids) + 1
    # Multi-token words that fit into the window, those with the highest bounds first
    longer = np.flatnonzero((lengths > 1) & (lengths <= room))
    longer = longer[np.argsort(-upper[longer], kind="stable")]
    chosen = longer[np.cumsum(lengths[longer] - 1) <= read]
    terms = network.continuations(prefix, [candidates.tokens[index] for index in chosen.tolist()])
    rests = terms[:, 1:].sum(axis=1)  # (n_chosen,): all tokens of a word except the first
    finite = np.isfinite(rests)
    counts = lengths[chosen] - 1
    mean = float(rests[finite].sum() / counts[finite].sum()) if finite.any() else 0.0
    estimate = np.maximum(lengths - 1.0, 0.0) * mean
    estimate += upper
    upper[chosen] += rests
    estimate[chosen] = upper[chosen]
    return Replacements(np.full(len(candidates), np.nan), estimate, upper, prefix.log_prob)
