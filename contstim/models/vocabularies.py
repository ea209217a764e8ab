"""Which words a search may use: those that every one of its models can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VocabularyError
from contstim.vocabulary import REPEATABLE_ENGLISH, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray
    from contstim.models.base import LanguageModel

DEFAULT_MIN_COUNT = 5


def shared_vocabulary(
    models: Sequence[LanguageModel], vocabulary: Vocabulary
) -> tuple[Vocabulary, tuple[str, ...]]:
    """The words that every model knows, and those dropped because one does not.

    Raises:
        VocabularyError: no word is left, at the start of a sentence or elsewhere.
    """

    def known(words: Sequence[str]) -> BoolArray:
        by_all: BoolArray = np.logical_and.reduce([model.knows(words) for model in models])
        return by_all

    kept, dropped = vocabulary.restrict(known)
    for place, words in (("start a sentence", kept.initial), ("follow another", kept.inner)):
        if not words:
            names = ", ".join(model.name for model in models)
            raise VocabularyError(
                f"No word of the vocabulary that may {place} is known to all of {names}."
            )
    return kept, dropped


def default_vocabulary(
    models: Sequence[LanguageModel], min_count: int = DEFAULT_MIN_COUNT
) -> Vocabulary:
    """The words frequent enough in the training text of every word-level model.

    Where no model is word-level, the embedded English lexicon.

    Raises:
        ModelError: a word-level model has no counts beside it.
        VocabularyError: no word is frequent enough for every model.
    """
    found = [v for v in (model.vocabulary(min_count) for model in models) if v is not None]
    if not found:
        return _embedded()
    common = found[0]
    for other in found[1:]:
        common = common.intersect(other)
    return common


def _embedded() -> Vocabulary:
    """The word forms of the embedded English, in alphabetical order; each may start a sentence."""
    from contstim.english.lexicon import lexicon

    forms = tuple(sorted(lexicon().forms))
    capitalised = tuple(form[:1].upper() + form[1:] for form in forms)
    return Vocabulary(capitalised, forms, REPEATABLE_ENGLISH.intersection(forms))
