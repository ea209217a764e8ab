"""The words that a search between models may use, from what each model knows by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import VocabularyError
from contstim.models.vocabularies import DEFAULT_MIN_COUNT, default_vocabulary

if TYPE_CHECKING:
    from contstim.models.base import LanguageModel
    from contstim.vocabulary import Vocabulary


def usable_words(
    model: LanguageModel, wanted: Vocabulary | None, *, allow_unknown: bool
) -> Vocabulary | None:
    """The words that a model lets a search use; None where every word will do.

    Args:
        model: the model.
        wanted: the words that the user wants; None for those frequent in the model's own text.
        allow_unknown: whether the model need not know these words.

    Raises:
        VocabularyError: the model knows none of the words.
        ModelError: the model's counts, which are its own words, are not at hand.
    """
    if wanted is None:
        return model.vocabulary(DEFAULT_MIN_COUNT)
    return wanted if allow_unknown else wanted.restrict(model.knows)[0]


def shared_words(models: tuple[str, ...], words: tuple[Vocabulary | None, ...]) -> Vocabulary:
    """Usable words that models have in common; the embedded English where any word will do.

    Args:
        models: the models' names.
        words: what `usable_words` says of each.

    Raises:
        VocabularyError: nothing, for the start of a sentence or elsewhere.
    """
    # Models that take any word do not count; where both do, the embedded English is the limit.
    first, *others = [v for v in words if v is not None] or [default_vocabulary(())]
    for place, words_there in (
        ("start a sentence", [set(v.initial) for v in (first, *others)]),
        ("follow another", [set(v.inner) for v in (first, *others)]),
    ):
        if not set.intersection(*words_there):
            raise VocabularyError(
                f"No word of the vocabulary that may {place} is known to "
                f"{'both' if len(models) == 2 else 'all of'} {' and '.join(models)}. Give a "
                f"vocabulary in the models' language and case."
            )
    for other in others:
        first = first.intersect(other)
    return first
