"""Context of a worker that searches: loaded models, and the words that searches may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contstim.errors import VocabularyError
from contstim.jobs.worker_context import WorkerContext
from contstim.models.vocabularies import DEFAULT_MIN_COUNT, default_vocabulary

if TYPE_CHECKING:
    from contstim.models.base import LanguageModel
    from contstim.vocabulary import Vocabulary


@dataclass
class SearchContext(WorkerContext):
    """A worker's options and models, and the words of searches between them.

    Attributes:
        vocabulary: words to use; None for those frequent in the models' own training text.
        allow_unknown: also use words that a word-level model cannot tell.
    """

    vocabulary: Vocabulary | None = None
    allow_unknown: bool = False
    _words: dict[tuple[str, ...], Vocabulary] = field(default_factory=dict, init=False)

    def words(self, names: tuple[str, ...]) -> Vocabulary:
        """The words that a search between two models, and a judge if any, may use.

        Raises:
            VocabularyError: there is none.
        """
        if names not in self._words:
            usable = tuple(self.usable_words(model) for model in self.models(names))
            # Of one pair only: a worker mostly stays with a pair, and vocabularies are large.
            self._words = {names: shared_words(names, usable)}
        return self._words[names]

    def usable_words(self, model: LanguageModel) -> Vocabulary | None:
        """The words that a model lets a search use; None where every word will do.

        Raises:
            VocabularyError: the model knows none of the words.
            ModelError: the model's counts, which are its own words, are not at hand.
        """
        if self.vocabulary is None:
            return model.vocabulary(DEFAULT_MIN_COUNT)
        return self.vocabulary if self.allow_unknown else self.vocabulary.restrict(model.knows)[0]


def shared_words(models: tuple[str, ...], words: tuple[Vocabulary | None, ...]) -> Vocabulary:
    """Usable words that models have in common; the embedded English where any word will do.

    Args:
        models: the models' names.
        words: what `SearchContext.usable_words` says of each.

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
