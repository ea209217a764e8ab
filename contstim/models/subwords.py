"""Base class of causal and masked transformers, and of transformers on a server."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Continuation, LanguageModel, TokenScore, weights_of
from contstim.models.caching import as_tuple
from contstim.models.contexts import candidate_contexts, context_of
from contstim.models.training_text import training_text_beside
from contstim.models.words import (
    END_MARK,
    are_readable,
    encode_batch,
    kind_of_place,
    place_of,
    too_long_error,
    unscorable,
    words_are_independent,
    words_in_places,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.words import Encoding, Place, Tokens, WordTokens
    from contstim.words.sentence import Sentence


def check_rule(checkpoint: Checkpoint, rule: str, rules: Iterable[str]) -> None:
    """Check that models of the checkpoint's kind (causal or masked) have a scoring rule.

    Raises:
        ModelError: if the rule is not in `rules`.
    """
    if rule not in rules:
        raise ModelError(
            f"{checkpoint.location} is a {checkpoint.kind} model, which has no rule "
            f"{rule!r}. Use one of {', '.join(rules)}."
        )


class SubwordModel(LanguageModel):
    """Language model with a sub-word tokenizer.

    Attributes:
        window: maximum number of tokens of an input; None if unlimited.
        checkpoint: checkpoint of the network; None if the network is on a server.
    """

    reports_passes = True
    window: int | None
    # Arguments of `_begin_with` other than `text`; empty if the model reads no context
    _begin_again: tuple[Any, ...] = ()
    checkpoint: Checkpoint | None = None
    _encode: Callable[..., list[Encoding]]  # `encode_batch` with this model's options
    # Whether to add a space before the first word, so that it is tokenized like later words
    _space = False
    _end_apart = False  # whether the end mark, such as a full stop, must have separate tokens
    _needs_every_word = False  # whether to refuse a sentence if one of its words has no tokens

    def _remember_words(self, tokenizer: Any) -> None:
        """Set the tokenizer and the file of training sentences, and create caches of tokens."""
        self._tokenizer = tokenizer
        if self.checkpoint is not None:
            self.training_text = training_text_beside(self.checkpoint.location)
        self._words_are_independent = words_are_independent(tokenizer)
        self._cut_words = words_in_places(self._encode)
        self._encoded = lru_cache(maxsize=64)(lambda sentence: self._encode([sentence])[0])

    def _begin_with(self, text: str | None, tokenizer: Any, location: str, config: Any) -> None:
        """Set the context, a text that precedes every sentence; see `context_of`."""
        context = context_of(tokenizer, config, text, location)
        if self.window is not None and len(context) >= self.window:
            raise ModelError(
                f"context must be shorter than the {self.window:,} tokens that {location} "
                f"reads, got {len(context):,} tokens. Use a shorter text."
            )
        self._context, self._begin_again = context, (tokenizer, location, config)
        self._context_tokens = tuple(map(str, tokenizer.convert_ids_to_tokens(list(context))))
        self._context_text = " ".join(self._context_tokens) if text is None else text
        spaced = self._end_apart or (text or "").endswith(" ")
        # Some tokenizers themselves add a space before the first word
        self._space = spaced and not tokenizer.tokenize("a")[0].startswith(("Ġ", "▁"))
        self._encode = partial(
            encode_batch,
            tokenizer,
            leading_space=self._space,
            special_tokens=False,
            end_apart=self._end_apart,
            check=self._check,
        )
        self._remember_words(tokenizer)

    def candidate_contexts(self) -> tuple[str, ...]:
        """See `Scorer.candidate_contexts`."""
        if not self._begin_again:
            return ()
        tokenizer, _, config = self._begin_again
        return candidate_contexts(tokenizer, config)

    def with_context(self, text: str | None) -> Self:
        """See `Scorer.with_context`."""
        if not self._begin_again:
            return super().with_context(text)
        model = self.for_another_search()
        vars(model).pop("convention", None)  # cached; describes the old context
        model._begin_with(text, *self._begin_again)
        return model

    @abstractmethod
    def _parts(self, encodings: Sequence[Encoding]) -> Iterable[FloatArray]:
        """Yield an array for each sentence, nats: (n_tokens, 2), or (n_tokens, 1).

        Column 0 contains log p of each token. Column 1 contains the entropy of the distribution
        that predicts the token; it is omitted if entropies are unknown. An array may have more than
        n_tokens rows. The additional rows are at the end and contain zeros.
        """

    def _is_scored(self, word: int) -> bool:  # noqa: ARG002
        """Return True if tokens with this value in `Encoding.word_of` are scored."""
        return True

    def _needs(self, n_tokens: int) -> int:
        """Return the length in tokens of the input for a sentence of `n_tokens` tokens.

        In subclasses, the input can also contain a context.
        """
        return n_tokens

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`."""
        terms = []
        encodings = self._encode(sentences)
        for encoding, parts in zip(encodings, self._parts(encodings), strict=True):
            tokens = self._tokenizer.convert_ids_to_tokens(list(encoding.ids))
            # Not strict, since rows of zeros may follow the rows of the tokens
            rows = zip(encoding.word_of, tokens, parts.tolist(), strict=False)
            terms.append([TokenScore(w, t, *values) for w, t, values in rows if self._is_scored(w)])
        return terms

    def n_parameters(self) -> int | None:
        """See `Scorer.n_parameters`."""
        return None if self.checkpoint is None else weights_of(self.checkpoint.model)

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `LanguageModel.token_counts`."""
        scored = (sum(map(self._is_scored, e.word_of)) for e in self._encode(sentences))
        return np.fromiter(scored, np.int64, len(sentences))

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.float32_log_probs`."""
        if self.checkpoint is None:
            return super().float32_log_probs(sentences)
        from contstim.models.precision import in_float32

        # A copy with an empty cache: cached states of prefixes were computed in lower precision
        model = self.for_another_search()
        with in_float32(self.checkpoint.model):
            return model.log_probs(sentences)

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `Scorer.knows`. A known word has tokens, and none of them is special or unknown."""
        return are_readable(self._tokenizer, words)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        """See `Scorer.tokens_per_word`."""
        return self._in_place(words, kind_of_place(inner=not initial)).lengths.copy()

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`."""
        return unscorable(self._encode, sentences)

    def _sums_of_words(
        self,
        continuations: Sequence[Continuation],
        terms: Callable[[Sequence[Tokens]], Iterable[FloatArray]],
    ) -> FloatArray:
        """Return the sum of log p over the tokens of each continuation, (n_continuations,), nats.

        The tokens of a continuation are those of its sentence's words from `Continuation.start` on,
        without the end mark. The function `terms` receives one row of tokens for each sentence: the
        tokens of all words, without the end mark. For each row, it yields log p of the row's
        tokens; zeros may follow.
        """
        encodings = self._encode([item.sentence for item in continuations], end_apart=True)
        words = [[w for w in encoding.word_of if w != END_MARK] for encoding in encodings]
        rows = terms([e.ids[: len(w)] for e, w in zip(encodings, words, strict=True)])
        totals = np.zeros(len(words))
        for i, (item, word_of, row) in enumerate(zip(continuations, words, rows, strict=True)):
            counts = np.zeros(len(row), np.bool_)  # `row` may be longer than `word_of`
            counts[: len(word_of)] = np.array(word_of) >= item.start
            totals[i] = np.where(counts, row, 0.0).sum()
        return totals

    def _check(self, sentence: Sentence, encoding: Encoding) -> None:
        self._check_window(len(encoding), sentence)
        if self._needs_every_word and not {*encoding.word_of} >= {*range(len(sentence))}:
            word = next(w for i, w in enumerate(sentence.words) if i not in encoding.word_of)
            raise ModelError(
                f"The tokenizer of {self.name} has no token for {word!r} in "
                f"{sentence.text!r}. Remove the word, or use another model."
            )

    def _in_place(self, words: Sequence[str], frame: Place) -> WordTokens:
        """Return the tokens of each word at a kind of position (first, inner or last).

        `frame` is an example of such a position: a short sentence and a 0-based position in it; see
        `Place`.
        """
        return self._cut_words(as_tuple(words), frame)

    def _rewritten(self, sentence: Sentence, position: int, words: Sequence[str]) -> list[Encoding]:
        """Tokenize the sentence once for each word, with this word at the position."""
        # Usually, only the tokens of the replaced word change. Other tokens can change if tokens of
        # this tokenizer can extend across words. They can also change if the replaced word is the
        # last one, because a token can extend into the end mark
        if not self._words_are_independent or position == len(sentence) - 1:
            return self._encode([sentence.replace(position, word) for word in words])
        encoding = self._encoded(sentence)
        tokens_of_words = self._in_place(words, place_of(sentence, position)).tokens
        rewritten = [encoding.with_word(position, tokens) for tokens in tokens_of_words]
        for word, candidate in zip(words, rewritten, strict=True):
            if self.window is not None and self._needs(len(candidate)) > self.window:
                self._check_window(len(candidate), sentence.replace(position, word))
        return rewritten

    def _check_window(self, n_tokens: int, sentence: Sentence) -> None:
        if self.window is not None and self._needs(n_tokens) > self.window:
            raise too_long_error(sentence, self._needs(n_tokens), self.name, self.window)
