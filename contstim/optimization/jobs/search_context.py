"""Context of a worker that searches: loaded models, and the words that searches may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contstim.jobs.worker_context import WorkerContext
from contstim.optimization.jobs.words import shared_words, usable_words

if TYPE_CHECKING:
    from contstim.models.base import LanguageModel
    from contstim.models.loading import Loading
    from contstim.optimization.jobs.plan import SynthesisPlan
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

    @classmethod
    def of_plan(cls, plan: SynthesisPlan, loading: Loading, capacity: int = 2) -> SearchContext:
        """The context with which every worker of a plan begins."""
        return cls(loading, capacity, vocabulary=plan.vocabulary, allow_unknown=plan.allow_unknown)

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
        """The words that a model lets a search use; see `words.usable_words`."""
        return usable_words(model, self.vocabulary, allow_unknown=self.allow_unknown)
