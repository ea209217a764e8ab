"""Models of sub-words: what causal, masked and served transformers share, and the `hf:` family."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Continuation, LanguageModel, TokenScore
from contstim.models.caching import as_tuple
from contstim.models.training_text import training_text_beside
from contstim.models.words import (
    END_MARK,
    encode_batch,
    kind_of_place,
    place_of,
    readable,
    too_long,
    unscorable,
    words_are_independent,
    words_in_places,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.loading import Loading
    from contstim.models.words import Encoding, Place, Tokens, WordTokens
    from contstim.sentence import Sentence


def load_transformer(location: str, *, name: str, rule: str, loading: Loading) -> LanguageModel:
    """Load a checkpoint and score with a rule of its kind, which its configuration tells.

    The default rule is `log-likelihood` for causal models and `chain` for masked ones. Masked
    models read no prompt.

    Raises:
        ModelError: see `load_checkpoint`; or the rule belongs to the other kind of model.
    """
    from contstim.models.checkpoints import load_checkpoint
    from contstim.models.checkpoints.source import foreign_errors

    checkpoint = load_checkpoint(location, loading)
    given: dict[str, Any] = {"name": name} | ({"rule": rule} if rule else {})
    with foreign_errors(location):
        if checkpoint.kind == "causal":
            from contstim.models.causal.adapter import CausalModel

            return CausalModel(checkpoint, prompt=loading.prompt, **given)
        from contstim.models.masked.adapter import MaskedModel

        return MaskedModel(checkpoint, **given)


def check_rule(checkpoint: Checkpoint, rule: str, rules: Iterable[str]) -> None:
    """Refuse a rule that models of a checkpoint's kind do not have.

    Raises:
        ModelError: names those that they have.
    """
    if rule not in rules:
        raise ModelError(
            f"{checkpoint.location} is a {checkpoint.kind} model, which has no rule {rule!r}; it "
            f"has {', '.join(rules)}."
        )


class SubwordModel(LanguageModel):
    """A language model that reads the tokens of a sub-word tokenizer.

    Attributes:
        window: how many tokens it reads; None for any number.
        checkpoint: of the network, where that is in this process.
    """

    reports_passes = True
    window: int | None
    checkpoint: Checkpoint | None = None  # whose network is in this process
    _encode: Callable[..., list[Encoding]]  # sentences as tokens: `encode_batch` with options
    _space = False  # before the first word, so that it is cut like any other
    _end_apart = False  # the end mark must be a token of its own
    _needs_every_word = False  # a sentence of which the tokenizer drops a word has no score

    def _remember_words(self, tokenizer: Any) -> None:
        """Remember words and sentences as they are cut; the last step of reading."""
        self._tokenizer = tokenizer
        if self.checkpoint is not None:
            self.training_text = training_text_beside(self.checkpoint.location)
        self._words_are_independent = words_are_independent(tokenizer)
        self._cut_words = words_in_places(self._encode)
        self._encoded = lru_cache(maxsize=64)(lambda sentence: self._encode([sentence])[0])

    def _begin_with(self, prompt: str | None, tokenizer: Any, location: str, config: Any) -> None:
        """Read every sentence after a prompt, or else after the tokens that begin a sequence.

        A prompt is encoded apart from the sentence; a space at its end goes to the first word.

        Args:
            prompt: a text before the sentence; None for none.
            tokenizer: a `transformers` tokenizer.
            location: where it came from, for messages.
            config: the network's text configuration, or None where only the tokenizer is at hand.

        Raises:
            ModelError: a blank prompt, one that fills the window, or nothing to begin with.
        """
        if prompt is None:
            context = _beginning(tokenizer, config)
        elif not prompt.strip():
            raise ModelError(f"The prompt {prompt!r} is blank; give a text such as '. ', or none.")
        else:
            framed = tokenizer(prompt.removesuffix(" "), return_special_tokens_mask=True)
            ids, special = framed["input_ids"], framed["special_tokens_mask"]
            while special and special[-1]:  # what closes a text, such as an end-of-sequence token
                ids, special = ids[:-1], special[:-1]
            context = tuple(ids)
        if not context:
            raise ModelError(
                f"{location} has nothing to read before the first word: its tokenizer names no "
                f"beginning of a sequence. Give a prompt, such as '. '."
            )
        if self.window is not None and len(context) >= self.window:
            raise ModelError(
                f"The prompt has {len(context):,} tokens; {location} reads at most {self.window:,}."
            )
        names = " ".join(tokenizer.convert_ids_to_tokens(list(context)))
        self._context, self._context_text = context, names if prompt is None else prompt
        spaced = self._end_apart or (prompt or "").endswith(" ")
        # A space is of use if a word at the start of a text is cut otherwise than after one
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

    @abstractmethod
    def _parts(self, encodings: Sequence[Encoding]) -> Iterable[FloatArray]:
        """The part of each token in the score of each sentence, (n_tokens or more,), nats."""

    def _is_scored(self, word: int) -> bool:  # noqa: ARG002
        """True if tokens of a word, `END_MARK` or `SPECIAL` are scored."""
        return True

    def _needs(self, n_tokens: int) -> int:
        """Tokens of the window that a sentence of so many takes."""
        return n_tokens

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`."""
        encodings = self._encode(sentences)
        return [
            [
                TokenScore(word, token, float(part))
                for word, token, part in zip(
                    encoding.word_of,
                    self._tokenizer.convert_ids_to_tokens(list(encoding.ids)),
                    parts,
                    strict=False,  # zeros may follow
                )
                if self._is_scored(word)
            ]
            for encoding, parts in zip(encodings, self._parts(encodings), strict=True)
        ]

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `LanguageModel.token_counts`."""
        scored = (sum(map(self._is_scored, e.word_of)) for e in self._encode(sentences))
        return np.fromiter(scored, np.int64, len(sentences))

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.float32_log_probs`."""
        if self.checkpoint is None:
            return super().float32_log_probs(sentences)
        from contstim.models.precision import in_float32

        twin = self.for_another_search()  # prefixes in the cache are less precise
        with in_float32(self.checkpoint.model):
            return twin.log_probs(sentences)

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`: all but special tokens, and those with the unknown one."""
        return readable(self._tokenizer, words)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        """See `LanguageModel.tokens_per_word`."""
        return self._in_place(words, kind_of_place(inner=not initial)).lengths.copy()

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`."""
        return unscorable(self._encode, sentences)

    def _sums_of_words(
        self,
        continuations: Sequence[Continuation],
        terms: Callable[[Sequence[Tokens]], Iterable[FloatArray]],
    ) -> FloatArray:
        """Sums over the tokens of words from the start on; `terms` scores the tokens of rows."""
        encodings = self._encode([item.sentence for item in continuations], end_apart=True)
        words = [[w for w in encoding.word_of if w != END_MARK] for encoding in encodings]
        rows = terms([e.ids[: len(w)] for e, w in zip(encodings, words, strict=True)])
        totals = np.zeros(len(words))
        for i, (item, word_of, row) in enumerate(zip(continuations, words, rows, strict=True)):
            counts = np.zeros(len(row), np.bool_)  # zeros may follow the row
            counts[: len(word_of)] = np.array(word_of) >= item.start
            totals[i] = np.where(counts, row, 0.0).sum()
        return totals

    def _check(self, sentence: Sentence, encoding: Encoding) -> None:
        """Refuse a sentence that does not fit the window, or of which a word is dropped."""
        self._check_window(len(encoding), sentence)
        if self._needs_every_word and not {*encoding.word_of} >= {*range(len(sentence))}:
            word = next(w for i, w in enumerate(sentence.words) if i not in encoding.word_of)
            raise ModelError(
                f"The tokenizer of {self.name} has no token for {word!r} in {sentence.text!r}. "
                f"Leave the word out, or use another model."
            )

    def _in_place(self, words: Sequence[str], place: Place) -> WordTokens:
        """The tokens of each word in a kind of place."""
        return self._cut_words(as_tuple(words), place)

    def _rewritten(self, sentence: Sentence, position: int, words: Sequence[str]) -> list[Encoding]:
        """The sentence with each word in place, as tokens.

        If words are cut independently, only the tokens of the replaced word differ, except at the
        last position, where the end mark may join them.
        """
        if not self._words_are_independent or position == len(sentence) - 1:
            return self._encode([sentence.replace(position, word) for word in words])
        encoding = self._encoded(sentence)
        cut = self._in_place(words, place_of(sentence, position)).tokens
        rewritten = [encoding.with_word(position, tokens) for tokens in cut]
        for word, each in zip(words, rewritten, strict=True):
            if self.window is not None and self._needs(len(each)) > self.window:
                self._check_window(len(each), sentence.replace(position, word))
        return rewritten

    def _check_window(self, n_tokens: int, sentence: Sentence) -> None:
        if self.window is not None and self._needs(n_tokens) > self.window:
            raise too_long(sentence, self._needs(n_tokens), self.name, self.window)


def _beginning(tokenizer: Any, config: Any) -> Tokens:
    """The tokens that begin a sequence: those that the tokenizer puts before every text.

    If it puts none, the beginning-of-sequence token; models without it (Qwen) begin with the end of
    another text.
    """
    # What comes before the tokens of a text, such as GLM's `[gMASK]<sop>`
    framed, plain = (tokenizer("a", add_special_tokens=s)["input_ids"] for s in (True, False))
    starts = range(len(framed) - len(plain) + 1)
    start = next((i for i in starts if framed[i : i + len(plain)] == plain), 0)
    if start:
        return tuple(framed[:start])
    of_network = (getattr(config, f"{name}_token_id", None) for name in ("bos", "eos"))
    # Without a configuration, the tokenizer's end of a text has to do
    of_tokenizer = tokenizer.eos_token_id if config is None else None
    for option in (tokenizer.bos_token_id, *of_network, of_tokenizer):
        token = option[0] if isinstance(option, list) else option
        if token is not None:
            return (int(token),)
    return ()
