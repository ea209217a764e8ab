"""Models that change the input or the scores of another model.

Most public n-gram models are trained on lower-case text. Such a model does not know `The`, so the
first word of each sentence gets the score of an unknown word. `kenlm:FILE@lower` converts all words
to lower case, and `kenlm:FILE@upper` converts them to capitals. With `@no-end-mark`, the model
ignores end marks such as the full stop, even if its vocabulary contains them; see `vocabularies`.
`@lower@no-end-mark` combines two of these rules. Recurrent models also have these rules.

Two transforms make the scores of a language model comparable between sentences:

    +mean   log p / number of tokens that the scoring rule scores
    +slor   (log p - unigram log p of the words) / number of words (Pauls & Klein 2012; Lau et al.
            2017). The unigram model may have a rule, as in +slor:FILE@lower. By default, it has
            the rule of the language model. If the unigram model reads end marks, their unigram
            log p is subtracted as well.

Transformed scores are not log-probabilities. Searches divide differences of a model's transformed
scores by the standard deviation of the model's scores of natural sentences.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import (
    Continuation,
    Convention,
    LanguageModel,
    Replacements,
    Scorer,
    require_language_model,
    short_hash,
)
from contstim.models.caching import WORDS, SizedCache, as_tuple
from contstim.models.vocabularies import NO_END_MARK, reads_end_mark
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary, WordTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.models.specifications import Specification
    from contstim.reporter import Reporter

_Method = TypeVar("_Method", bound="Callable[..., object]")

LETTER_CASES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}
"""Letter-case rules of word-level models, with the function that converts a word."""

WORD_RULES = (*LETTER_CASES, NO_END_MARK, *(f"{case}@{NO_END_MARK}" for case in LETTER_CASES))
"""Rules of word-level models: a letter case, no end marks, or both."""

_SENTENCES = 4_096  # maximum number of cached converted sentences
_MAX_UNKNOWN_SHARE = 0.02  # a command warns above this proportion of unknown words


def split_word_rule(argument: str) -> tuple[str, str]:
    """Split the argument of `+slor` into the unigram model's file and its rule (empty if none)."""
    # Longer rules first: `FILE@lower@no-end-mark` also ends with `@no-end-mark`
    rule = next((rule for rule in reversed(WORD_RULES) if argument.endswith(f"@{rule}")), "")
    return (argument.removesuffix(f"@{rule}"), rule) if rule else (argument, "")


def word_rule(rule: str) -> tuple[str, bool]:
    """Return a rule's letter case (empty for none), and whether the rule allows end marks."""
    case, _, marks_rule = rule.partition("@")
    return case if case in LETTER_CASES else "", NO_END_MARK not in (case, marks_rule)


def _of_model(method: _Method) -> _Method:
    """Return a method that calls the same method of the wrapped model with converted arguments."""
    name = method.__name__

    def call_model(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self._model, name)(*map(self._as_read, args), **options)

    # `updated=()`: the attribute that marks abstract methods must not be copied
    return cast("_Method", wraps(method, updated=())(call_model))


class _Wrapper(Scorer):
    """Scorer that calls the methods of another scorer with converted arguments."""

    def __init__(self, model: Scorer, name: str) -> None:
        self.name = name
        self._wrap(model)

    def _wrap(self, model: Scorer) -> Self:
        self._model, self.training_text = model, model.training_text
        self.cheap_replacements = model.cheap_replacements
        self.reports_passes, self.is_black_box = model.reports_passes, model.is_black_box
        return self

    def _around(self, model: Scorer) -> Self:
        """Return a copy that wraps another model."""
        return copy(self)._wrap(model)

    def _as_read(self, argument: Any) -> Any:
        """Return an argument as the wrapped model receives it."""
        return argument

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`."""
        return self._around(self._model.for_another_search())

    forget_prefixes = _of_model(Scorer.forget_prefixes)
    n_parameters = _of_model(Scorer.n_parameters)
    candidate_contexts = _of_model(Scorer.candidate_contexts)
    unscorable = _of_model(Scorer.unscorable)
    exact = _of_model(Scorer.exact)
    knows = _of_model(Scorer.knows)
    vocabulary = _of_model(Scorer.vocabulary)
    tokens_per_word = _of_model(Scorer.tokens_per_word)


class InLetterCase(_Wrapper, LanguageModel):
    """A word-level model that reads every word in lower case, or in capitals.

    `vocabulary` returns lower-case words for positions inside a sentence, and capitalised words for
    the start of a sentence. Hashes of sentences in `training_text` ignore case.
    """

    def __init__(self, model: LanguageModel, case: str) -> None:
        super().__init__(model, model.name)
        self.case = case
        convert = LETTER_CASES[case]
        # Cached, since a search scores the same lists of words repeatedly
        self._words = SizedCache(lambda words: WordTuple(map(convert, words)), len, WORDS)
        self._sentence = lru_cache(_SENTENCES)(
            lambda sentence: replace(sentence, words=tuple(map(convert, sentence.words)))
        )

    @property
    def convention(self) -> Convention:
        """Definition of the scores. Its rule and its fingerprint contain the letter case.

        The fingerprint is the key of cached scores.
        """
        return self._model.convention.with_suffix(self.case)

    def _as_read(self, argument: Any) -> Any:
        """Convert sentences, continuations and words; do not change numbers."""
        if isinstance(argument, Sentence):
            return self._sentence(argument)
        if isinstance(argument, Continuation):
            return Continuation(self._sentence(argument.sentence), argument.start)
        if isinstance(argument, int):
            return argument
        if all(isinstance(item, str) for item in argument[:1]):
            return self._words(as_tuple(argument))
        return [self._as_read(item) for item in argument]

    log_probs = _of_model(LanguageModel.log_probs)
    replacements = _of_model(LanguageModel.replacements)
    replacement_log_probs = _of_model(LanguageModel.replacement_log_probs)
    continuation_log_probs = _of_model(LanguageModel.continuation_log_probs)
    token_log_probs = _of_model(LanguageModel.token_log_probs)
    completed_word_log_probs = _of_model(LanguageModel.completed_word_log_probs)

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `LanguageModel.vocabulary`."""
        words = self._model.vocabulary(min_count)
        if words is None:
            return None
        lower_case = [word.lower() for word in words.initial]
        capitalised = tuple(word[:1].upper() + word[1:] for word in lower_case)
        # `Vocabulary` drops duplicates: `The` and `the` become the same word
        return Vocabulary(capitalised, tuple(map(str.lower, words.inner)), words.repeatable)


UnknownWords: TypeAlias = tuple[str, bool]
"""Message about words that a model does not know, and whether the message is a warning.

The message is empty if the model knows all words.
"""


def unknown_words(model: Scorer, sentences: Sequence[Sentence]) -> UnknownWords:
    """Describe which words in the sentences a model does not know; count each occurrence.

    The message recommends a letter case if both conditions hold:

    * The model does not know most of the words that are not in this case.
    * If all words were in this case, the model would know more than half of the words that it does
      not know now.
    """

    def count_unknown(words: Counter[str]) -> Counter[str]:
        pairs = zip(words.items(), model.knows(tuple(words)), strict=True)
        return Counter({word: n for (word, n), is_known in pairs if not is_known})

    words = Counter(word for sentence in sentences for word in sentence.words)
    unknown = count_unknown(words)
    if not unknown:
        return "", False
    n_unknown, n_words = unknown.total(), words.total()
    first, *further = (word for word, _ in unknown.most_common(3))
    example = next(sentence for sentence in sentences if first in sentence.words)
    examples = ", ".join((f"{first} (in {example.text!r})", *further))
    text = (
        f"{model.name} does not know {n_unknown:,} of {n_words:,} words "
        f"({100 * n_unknown / n_words:.1f} %), such as {examples}. The model gives all unknown "
        f"words the same score."
    )
    for case, convert in LETTER_CASES.items():
        # A model that is trained on text in both cases needs no conversion. Such a model knows most
        # words that a conversion changes
        changeable = [word for word in words if convert(word) != word]
        converted = Counter(convert(word) for word in unknown.elements())
        mostly_unknown = sum(2 * unknown[word] - words[word] for word in changeable) > 0
        if mostly_unknown and 2 * count_unknown(converted).total() < n_unknown:
            letters = {"lower": "lower case", "upper": "capitals"}[case]
            text += (
                f" It knows most of these words in {letters}. Write @{case} after its file, as in "
                f"kenlm:FILE@{case}."
            )
            break
    return text, n_unknown > _MAX_UNKNOWN_SHARE * n_words


def tell_vocabulary(name: str, rule: str, unknown: UnknownWords, reporter: Reporter) -> None:
    """Report whether a model reads end marks, and report or warn about unknown words.

    `rule` is the rule of the model's convention.
    """
    if reads_end_mark(rule):
        reporter.say(
            f"The vocabulary of {name} contains end marks such as the full stop, so {name} reads "
            f"and scores each sentence's end mark. Write @{NO_END_MARK} after its file to ignore "
            "end marks."
        )
    text, is_warning = unknown
    if text:
        (reporter.warn if is_warning else reporter.say)(text)


def tell_unknown_words(
    models: Iterable[Scorer], sentences: Sequence[Sentence], reporter: Reporter
) -> None:
    """Call `tell_vocabulary` for each model and the words of sentences."""
    for model in models:
        rule, unknown = model.convention.rule, unknown_words(model, sentences)
        tell_vocabulary(model.name, rule, unknown, reporter)


def apply_transform(scorer: Scorer, specification: Specification) -> Transformed:
    """Wrap a model in the transform of its specification.

    Raises:
        ModelError: if the scores of the model are not log-probabilities. For `+slor`, also if the
            unigram model is missing, or if its order is not 1.
    """
    from contstim.models.ngram.adapter import NgramModel

    model = require_language_model(scorer, f"The transform +{specification.transform}")
    if specification.transform == "mean":
        return Transformed(model, specification.name)
    file, file_rule = split_word_rule(specification.argument)
    case, end_mark = word_rule(file_rule or specification.rule)
    unigram = NgramModel(file, end_mark=end_mark)
    if unigram.order != 1:
        raise ModelError(
            f"The model for +slor must have order 1, got order {unigram.order} in {file}. "
            "Train one with 'contstim train ngram --order 1'."
        )
    return Transformed(
        model, specification.name, unigram=InLetterCase(unigram, case) if case else unigram
    )


class Transformed(_Wrapper):
    """Scorer that transforms the scores of a language model; see the top of this file.

    The transform is `+slor` if there is a unigram model, otherwise `+mean`.
    """

    def __init__(self, model: Scorer, name: str, *, unigram: LanguageModel | None = None) -> None:
        super().__init__(model, name)
        self._unigram = unigram

    @property
    def convention(self) -> Convention:
        """Convention of the transformed scores, in nats per token or per word."""
        plain = self._model.convention
        suffix, unit, parts = "+mean", "nats per token", [plain.fingerprint, "+mean"]
        if self._unigram is not None:
            suffix, unit = "+slor", "nats per word"
            if reads_end_mark(self._unigram.convention.rule):
                suffix += "@end-mark"
            parts = [plain.fingerprint, "+slor", self._unigram.convention.fingerprint]
        fingerprint = f"transformed-{short_hash(' '.join(parts))}"
        return replace(plain, rule=plain.rule + suffix, unit=unit, fingerprint=fingerprint)

    @property
    def order_fingerprint(self) -> str:
        """See `Scorer.order_fingerprint`.

        If words are tokens, `+mean` divides the scores of equally long sentences by the same
        number, which does not change the order of the sentences. The result is then the fingerprint
        of the wrapped model.
        """
        if self._unigram is None and self._keeps_sizes:
            return self._model.order_fingerprint
        return super().order_fingerprint

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `Scorer.scores`; transformed scores may be positive."""
        return self._transform(self._model.scores(sentences), sentences)

    def float32_scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `Scorer.float32_scores`."""
        return self._transform(self._model.float32_scores(sentences), sentences)

    def _transform(self, scores: FloatArray, sentences: Sequence[Sentence]) -> FloatArray:
        if self._unigram is not None:
            scores = scores - _words_alone(self._unigram, sentences)
        return scores / self._sizes(sentences)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `Scorer.replacements`."""
        plain = self._model.replacements(sentence, position, words)
        scores = np.stack([plain.exact, plain.estimate, plain.upper_bound])  # (3, n_words)
        return Replacements(*self._transform_replaced(scores, sentence, position, words))

    def replacement_scores(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `Scorer.replacement_scores`."""
        scores = self._model.replacement_scores(sentence, position, words)
        return self._transform_replaced(scores, sentence, position, words)

    def _transform_replaced(
        self, scores: FloatArray, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """Transform scores, (…, n_words), of the sentence with each word at the position."""
        if self._unigram is not None:
            # Only the term of the replaced word changes
            alone = self._unigram.replacement_log_probs(sentence, position, words)
            rest = _words_alone(self._unigram, [sentence]) - self._unigram.log_probs([sentence])
            scores = scores - (alone + rest)
        sentences = [sentence]
        if not self._keeps_sizes:
            sentences = [sentence.replace(position, word) for word in words]
        return scores / self._sizes(sentences)

    @property
    def _keeps_sizes(self) -> bool:
        """True if a new word never changes the divisor of the score.

        The divisor is the number of words for `+slor`, and the number of tokens for `+mean`. If the
        tokens of a model are words, neither number changes. The subclass `Opponent` in
        `optimization` divides by a constant.
        """
        return self._unigram is not None or self._model.tokens_per_word((), initial=False) is None

    def draft(self, effort: int = 1) -> Self | None:
        """See `Scorer.draft`."""
        draft = self._model.draft(effort)
        return None if draft is None else self._around(draft)

    def with_context(self, text: str | None) -> Self:
        """See `Scorer.with_context`."""
        return self._around(self._model.with_context(text))

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `Scorer.standard_errors`. Unigram log-probabilities have no error."""
        return self._model.standard_errors(sentences) / self._sizes(sentences)

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `Scorer.token_counts`."""
        if self._unigram is not None:
            return super().token_counts(sentences)
        return self._model.token_counts(sentences)

    def _sizes(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return the number of tokens (`+mean`) or words (`+slor`) of each sentence."""
        if self._unigram is None:
            return self._model.token_counts(sentences).astype(np.float64)
        return np.fromiter(map(len, sentences), np.float64, len(sentences))


def _words_alone(unigram: LanguageModel, sentences: Sequence[Sentence]) -> FloatArray:
    """Return each sentence's unigram log p, (n_sentences,), nats.

    This is the sum over the words. The sum includes the end mark if the unigram model reads end
    marks, but never the end of the sentence.
    """
    log_probs = unigram.continuation_log_probs([Continuation(s, 0) for s in sentences])
    if reads_end_mark(unigram.convention.rule):
        terms = unigram.token_log_probs(sentences)
        # Add the term of the end mark, which is between the last word and the sentence's end
        log_probs += [
            sum(term.log_prob for term in sentence_terms[len(sentence) : -1])
            for sentence, sentence_terms in zip(sentences, terms, strict=True)
        ]
    if np.isneginf(log_probs).any():
        sentence = sentences[int(np.argmin(log_probs))]
        raise ModelError(
            f"The unigram model {unigram.name} gives a word of {sentence.text!r} probability zero, "
            "so the score +slor of this sentence is undefined. Train the unigram model on more "
            "text."
        )
    return log_probs
