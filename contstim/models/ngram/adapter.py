"""N-gram models from ARPA files and, where the kenlm package is installed, its binary files."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property, lru_cache
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from contstim.errors import ModelError
from contstim.files.files import checksum, is_file, reading
from contstim.models.base import Continuation, Convention, LanguageModel, Replacements, TokenScore
from contstim.models.caching import WORDS, SizedCache, as_tuple
from contstim.models.end_marks import EndMarks
from contstim.models.ngram.arpa import parse_arpa
from contstim.models.ngram.kenlm import KenlmQuery, is_binary
from contstim.models.ngram.replace import ReplacementScores
from contstim.models.ngram.tables import BEGIN, END, SPECIAL_WORDS, UNKNOWN, NgramTables
from contstim.models.training_text import training_text_beside
from contstim.models.vocabularies import WordList, counts_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

_NATS = math.log(10.0)
_CACHED_SENTENCES = 4_096  # sentences whose word ids are cached


class NgramModel(LanguageModel):
    """An n-gram model: log p of the words and of the end of the sentence, given its start.

    An ARPA file is read into sorted tables, which score all candidate words at once. A KenLM binary
    file does not list its n-grams: the kenlm package reads it and scores one word at a time.
    Conditional probabilities are float32 and equal KenLM's; their sums are float64. One exception:
    pruned models may have probabilities above 1, for which KenLM returns the inverse. `<s>`, `</s>`
    and `<unk>` in a sentence are unknown words. The end mark is scored if it is a word of the model
    (see `EndMarks`).

    Args:
        path: an ARPA file, compressed or not, or a binary file of KenLM.
        name: name of the model in columns and files; by default the path.
        end_mark: whether to score an end mark that is a word of the model.

    Raises:
        ModelError: if the file is missing or cannot be read; or if it is a KenLM binary file and
            the kenlm package is not installed.
    """

    reports_passes = True

    def __init__(self, path: Path | str, name: str | None = None, *, end_mark: bool = True) -> None:
        self.path = Path(path)
        self.name = name or str(path)
        _require_file(self.path)
        self.training_text = training_text_beside(self.path)
        self.cheap_replacements = not is_binary(self.path)
        self._query: KenlmQuery | NgramTables
        self.tables: NgramTables | None = None
        if self.cheap_replacements:
            with reading(path, ModelError):
                content = self.path.read_bytes()
            self._digest = hashlib.sha256(content).hexdigest()
            self._query = self.tables = parse_arpa(content, path)
        else:
            self._digest = checksum(self.path).removeprefix("sha256:")
            self._query = KenlmQuery(self.path)
        self._end_marks = EndMarks.known_to(self._query.holds) if end_mark else EndMarks()

    @property
    def convention(self) -> Convention:
        """The rule: the sum of log-probabilities from `<s>` to `</s>`."""
        plain = Convention(
            rule="log-likelihood",
            context="<s>",
            end_scored=True,
            fingerprint=f"kenlm-{self._digest[:24]}",
        )
        return self._end_marks.convention(plain)

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`: searches do not change a model, so they share it."""
        return self

    def n_parameters(self) -> int | None:
        """See `Scorer.n_parameters`: the number of n-grams; None for a binary file."""
        if self.tables is None:
            return None
        return sum(len(table.keys) for table in self.tables.orders)

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        return self._query.totals(self._end_marks.with_marks(sentences), end=True) * _NATS

    @property
    def order(self) -> int:
        """Length of the longest n-grams."""
        if self.tables is None:
            return self._query.order
        # The file of a unigram model has an empty section of bigrams
        return sum(len(table.keys) > 0 for table in self.tables.orders)

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`: one term for each word and for `</s>`."""
        marks, log10_probs = self._end_marks, self._query.log10_probs
        return [
            marks.terms(
                sentence, (value * _NATS for value in log10_probs(marks.with_mark(sentence)))
            )
            for sentence in sentences
        ]

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`: each term is a whole word already."""
        return self.token_log_probs(sentences)

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        sentences = [sentence for sentence, _ in continuations]
        starts = [start for _, start in continuations]
        return self._query.totals(sentences, starts, end=False) * _NATS

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`; exact for every word."""
        return Replacements.all_exact(self.replacement_log_probs(sentence, position, words))

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`."""
        if self.tables is None:
            return super().replacement_log_probs(sentence, position, words)
        sentence.check_position(position)
        scored_words = self._end_marks.with_mark(sentence).words
        scores = self._scores_by_word(scored_words, position, as_tuple(words))
        scores *= _NATS
        return scores

    @cached_property
    def _scores_by_word(self) -> Callable[[tuple[str, ...], int, tuple[str, ...]], FloatArray]:
        """Log10 probabilities of a sentence with each candidate at one position, (n_candidates,).

        Ids are cached, since a search scores the same sentences and candidates repeatedly.
        """
        assert self.tables is not None
        id_of, replacement_scores = self.tables.word_ids.get, ReplacementScores(self.tables)
        ids = lru_cache(_CACHED_SENTENCES)(
            lambda words: (BEGIN, *map(id_of, words, repeat(UNKNOWN)), END)
        )
        candidates = SizedCache(self.tables.ids, len, WORDS)
        # <s> has index 0, so a word at `position` has the index position + 1
        return lambda words, position, replacements: replacement_scores(
            ids(words), position + 1, candidates(replacements)
        )

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`: the words of the training text."""
        in_text = (self._query.holds(w) and w.lower() not in SPECIAL_WORDS for w in words)
        return np.fromiter(in_text, np.bool_, len(words))

    def vocabulary(self, min_count: int) -> Vocabulary:
        """See `LanguageModel.vocabulary`; only models trained by contstim have counts."""
        path = counts_path(self.path)
        if not is_file(path):
            raise ModelError(
                f"{self.path} has no file of word counts ({path.name}). Name a vocabulary "
                "that 'contstim vocabulary' wrote."
            )
        return WordList.from_file(path).vocabulary(min_count)


def _require_file(path: Path) -> None:
    if not path.is_file():
        note = "It is a folder. " if path.is_dir() else ""
        raise ModelError(
            f"{path} is not an n-gram model. {note}Train one with 'contstim train ngram'."
        )
