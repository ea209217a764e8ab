"""The words of a search: those that all of its models can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VocabularyError
from contstim.vocabulary import REPEATABLE_ENGLISH, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray
    from contstim.models.base import Scorer

DEFAULT_MIN_COUNT = 5


def shared_vocabulary(
    models: Sequence[Scorer], vocabulary: Vocabulary, *, same_token_count: bool = False
) -> tuple[Vocabulary, tuple[str, ...]]:
    """The words that every model knows, and the other words of the vocabulary.

    Args:
        models: the models of a search.
        vocabulary: the words to choose from.
        same_token_count: also drop words that the models' tokenizers cut into different numbers of
            tokens, at the start of a sentence or elsewhere: a word of more tokens is less likely
            for that reason alone. Word-level models have no tokens to compare.

    Raises:
        VocabularyError: no word is left, at the start of a sentence or elsewhere; or there are
            fewer than two tokenizers to compare.
    """

    def known_to_all(words: Sequence[str]) -> BoolArray:
        by_all: BoolArray = np.logical_and.reduce([model.knows(words) for model in models])
        return by_all

    # Knowledge first: a word that a model does not know has no number of tokens to compare
    shared, _ = vocabulary.restrict(known_to_all)
    if same_token_count:
        shared = _same_token_count(models, shared)
    for place, words in (("start a sentence", shared.initial), ("follow another", shared.inner)):
        if not words:
            names = ", ".join(model.name for model in models)
            how = " in the same number of tokens" if same_token_count else ""
            raise VocabularyError(
                f"No word of the vocabulary that may {place} is known to all of {names}{how}."
            )
    remaining = set(shared.words)
    return shared, tuple(word for word in vocabulary.words if word not in remaining)


def _same_token_count(models: Sequence[Scorer], vocabulary: Vocabulary) -> Vocabulary:
    def equal(words: tuple[str, ...], *, initial: bool) -> tuple[str, ...]:
        counts = [model.tokens_per_word(words, initial=initial) for model in models]
        by_tokenizer = [count for count in counts if count is not None]
        if len(by_tokenizer) < 2:
            raise VocabularyError(
                "Words with equal numbers of tokens need two models with tokenizers or more; "
                f"given {', '.join(model.name for model in models)}."
            )
        # (n_tokenizers, n_words) against the first of them
        same = np.all(np.stack(by_tokenizer) == by_tokenizer[0], axis=0)
        return tuple(word for word, yes in zip(words, same, strict=True) if yes)

    return Vocabulary(
        equal(vocabulary.initial, initial=True),
        equal(vocabulary.inner, initial=False),
        vocabulary.repeatable,
    )


def tokens_of_words(
    models: Sequence[Scorer], vocabulary: Vocabulary
) -> dict[str, list[str] | list[int]]:
    """The number of tokens of each word: columns `word`, `place`, and one for each model.

    A word that may start a sentence and stand elsewhere has a row for each place, `initial` and
    `inner`. A word of a word-level model is 1 token; 0 means that the model does not know the word,
    or cannot score it.
    """
    table: dict[str, list[str] | list[int]] = {
        "word": [*vocabulary.initial, *vocabulary.inner],
        "place": ["initial"] * len(vocabulary.initial) + ["inner"] * len(vocabulary.inner),
    }
    for model in models:
        column: list[int] = []
        for words, initial in ((vocabulary.initial, True), (vocabulary.inner, False)):
            rows = np.flatnonzero(model.knows(words))
            # only words that the model knows can be cut into tokens
            counts = model.tokens_per_word([words[i] for i in rows], initial=initial)
            numbers = np.zeros(len(words), np.int64)
            numbers[rows] = 1 if counts is None else counts
            column += numbers.tolist()
        table[model.name] = column
    return table


def default_vocabulary(models: Sequence[Scorer], min_count: int = DEFAULT_MIN_COUNT) -> Vocabulary:
    """The words frequent enough in the training text of every word-level model.

    If no model is word-level, the embedded English lexicon.

    Raises:
        ModelError: a word-level model has no counts beside it.
        VocabularyError: no word is frequent enough for every model.
    """
    vocabularies = [v for v in (model.vocabulary(min_count) for model in models) if v is not None]
    if not vocabularies:
        from contstim.english.lexicon import lexicon

        # In alphabetical order; each of these words may start a sentence, then capitalised
        forms = tuple(sorted(lexicon().forms))
        capitalised = tuple(form[:1].upper() + form[1:] for form in forms)
        return Vocabulary(capitalised, forms, REPEATABLE_ENGLISH.intersection(forms))
    common = vocabularies[0]
    for other in vocabularies[1:]:
        common = common.intersect(other)
    return common
