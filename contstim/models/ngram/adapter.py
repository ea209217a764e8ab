"""N-gram models from ARPA files and, if the kenlm package is installed, from KenLM binary files."""

from __future__ import annotations

import hashlib
import math
import struct
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from contstim.errors import ModelError
from contstim.files.files import checksum, is_file, reading
from contstim.models.base import Continuation, Convention, Replacements, TokenScore
from contstim.models.caching import WORDS, SizedCache, as_tuple
from contstim.models.ngram.arpa import parse_arpa
from contstim.models.ngram.replace import ReplacementScores
from contstim.models.ngram.tables import MAX_ORDER, SPECIAL_WORDS, UNKNOWN, NgramTables
from contstim.models.training_text import training_text_beside
from contstim.models.vocabularies import WordList, WordModel, counts_path, spellings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

_NATS = math.log(10.0)
_CACHED_SENTENCES = 4_096  # sentences whose word ids are cached
_BINARY = b"mmap lm http://kheafield.com/code"
# Size in bytes of the first part of a binary file. This part shows the number formats of the
# machine that wrote the file. KenLM refuses the file if this machine has other formats
_SANITY = 88
_MAX_MESSAGE_LENGTH = 300  # characters of KenLM's message
_FIXED = struct.Struct("<B3xfiB3xI")  # order, multiplier, kind, has words, version


class NgramModel(WordModel):
    """Model whose score is the sum of log p(word | words before), including the sentence end.

    An ARPA file is read into sorted tables. The tables score all candidate words for a position at
    once. A KenLM binary file is read by the kenlm package, which scores one sentence at a time.

    Conditional probabilities are float32 and equal KenLM's, with one exception (see `NgramTables`).
    Sums are float64. If a sentence contains the text `<s>`, `</s>` or `<unk>`, this text counts as
    an unknown word. The end mark of a sentence, such as its full stop, is scored if it is a word of
    the model.

    Args:
        path: an ARPA file, compressed or not, or a binary file of KenLM.
        name: name of the model in columns and files; by default the path.
        end_mark: whether to score an end mark that is a word of the model.

    Raises:
        ModelError: if the file is missing or cannot be read; or if it is a KenLM binary file and
            the kenlm package is not installed.
    """

    def __init__(self, path: Path | str, name: str | None = None, *, end_mark: bool = True) -> None:
        self.path = Path(path)
        self.name = name or str(path)
        if not self.path.is_file():
            note = "It is a folder. " if self.path.is_dir() else ""
            raise ModelError(
                f"{path} is not an n-gram model. {note}Train one with 'contstim train ngram'."
            )
        self.training_text = training_text_beside(self.path)
        self.cheap_replacements = not is_binary(self.path)
        self._query: KenlmQuery | NgramTables
        self.tables: NgramTables | None = None
        if self.cheap_replacements:
            with reading(path, ModelError):
                content = self.path.read_bytes()
            self._digest = hashlib.sha256(content).hexdigest()
            self._query = self.tables = parse_arpa(content, path)
            self._replacement_scores = ReplacementScores(self.tables)
            self._sentence_ids = lru_cache(_CACHED_SENTENCES)(self.tables.sentence_ids)
            self._candidate_ids = SizedCache(self.tables.ids, len, WORDS)
        else:
            self._digest = checksum(self.path).removeprefix("sha256:")
            self._query = KenlmQuery(self.path)
        self._read_end_marks(self._query.holds, end_mark=end_mark)

    @property
    def convention(self) -> Convention:
        """See `Scorer.convention`; the context is `<s>`."""
        return self._convention(f"kenlm-{self._digest[:24]}")

    def for_another_search(self) -> Self:
        """Return the model itself, which concurrent searches can share."""
        return self

    def n_parameters(self) -> int | None:
        """Return the number of n-grams; None for a binary file."""
        return None if self.tables is None else sum(len(t.keys) for t in self.tables.orders)

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        return self._query.totals([*map(self._with_mark, sentences)], end=True) * _NATS

    @property
    def order(self) -> int:
        """Length of the longest n-grams."""
        if self.tables is None:
            return self._query.order
        # The file of a unigram model has an empty section of bigrams, whose table does not count
        return sum(len(table.keys) > 0 for table in self.tables.orders)

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`; the tokens are the words and `</s>`."""
        marked = [*map(self._with_mark, sentences)]
        rows = ([value * _NATS for value in self._query.log10_probs(s)] for s in marked)
        return [*map(self._token_scores, sentences, rows, map(self._entropies, marked))]

    def _entropies(self, sentence: Sentence) -> list[float]:
        """Return the entropies of the distributions that predict each word and `</s>`, nats.

        The list is empty for a binary file.
        """
        if self.tables is None:
            return []
        ids, size = self._sentence_ids(sentence.words), self.tables.order - 1
        contexts = (ids[max(0, i - size) : i] for i in range(1, len(ids)))
        return [*map(self._replacement_scores.entropy_after, contexts)]

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        sentences = [sentence for sentence, _ in continuations]
        starts = [start for _, start in continuations]
        return self._query.totals(sentences, starts, end=False) * _NATS

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`; the scores of all words are exact."""
        return Replacements.all_exact(self.replacement_log_probs(sentence, position, words))

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`."""
        if self.tables is None:
            return super().replacement_log_probs(sentence, position, words)
        sentence.check_position(position)
        ids = self._sentence_ids(self._with_mark(sentence).words)
        candidates = self._candidate_ids(as_tuple(words))
        scores = self._replacement_scores(ids, position + 1, candidates)  # <s> has index 0
        scores *= _NATS
        return scores

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`; the model does not know `<unk>`, `<s>` and `</s>`."""
        in_text = (self._query.holds(w) and w.lower() not in SPECIAL_WORDS for w in words)
        return np.fromiter(in_text, np.bool_, len(words))

    def vocabulary(self, min_count: int) -> Vocabulary:
        """See `LanguageModel.vocabulary`; only models trained by contstim have counts."""
        path = counts_path(self.path)
        if not is_file(path):
            raise ModelError(
                f"{self.path} has no file of word counts ({path.name}). Use a vocabulary that "
                "'contstim vocabulary' wrote."
            )
        return WordList.from_file(path).vocabulary(min_count)


def is_binary(path: Path) -> bool:
    """Return True if a file is a KenLM binary file."""
    with path.open("rb") as file:
        return file.read(len(_BINARY)) == _BINARY


def _check_header(path: Path) -> None:
    """Refuse a binary file that could kill the process when KenLM reads it.

    KenLM allocates memory before it checks the numbers in a file. So this function checks the
    numbers in the header first. It does not detect damage after the header, since the file has no
    checksum.
    """
    with path.open("rb") as file:
        start = file.read(1 << 16)  # a header is much shorter
    end = _SANITY + _FIXED.size
    order, multiplier, *_ = _FIXED.unpack_from(start.ljust(end, b"\0"), _SANITY)
    if len(start) < end + 8 * order:
        raise ModelError(f"{path} is truncated: the header of the binary file is incomplete.")
    if not 1.0 <= multiplier <= 100.0:  # also refuses nan
        raise ModelError(f"{path} is damaged: it has {multiplier:g} hash-table slots per n-gram.")
    counts = struct.unpack_from(f"<{order}Q", start, end)  # number of n-grams of each order
    if not 1 <= len(counts) <= MAX_ORDER:
        raise ModelError(
            f"The order of {path} must be from 1 to {MAX_ORDER}, got {len(counts)}. Use another "
            "model."
        )
    if not counts[0] or max(counts) > path.stat().st_size:
        numbers = ", ".join(f"{count:,}" for count in counts)
        raise ModelError(
            f"{path} is damaged: its header has impossible numbers of n-grams, {numbers}. Build it "
            "again from the ARPA file."
        )


class KenlmQuery:
    """Conditional probabilities from KenLM.

    Args:
        path: a KenLM binary file, or an ARPA file that KenLM can read.

    Raises:
        ModelError: if the kenlm package is not installed or cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        self._model = _load(path)
        self.order = int(self._model.order)  # KenLM reports 2 for a unigram model

    def log10_probs(self, sentence: Sentence) -> list[float]:
        """See `NgramTables.log10_probs`."""
        # (log10 probability, n-gram length, is unknown) for each word and for </s>
        return [term[0] for term in self._model.full_scores(self._words_for_kenlm(sentence))]

    def totals(
        self, sentences: Sequence[Sentence], starts: Sequence[int] | None = None, *, end: bool
    ) -> FloatArray:
        """See `NgramTables.totals`."""
        full_scores = self._model.full_scores
        totals = np.zeros(len(sentences))
        for i, sentence in enumerate(sentences):
            start = 0 if starts is None else starts[i]
            # `sum` is not used, because its rounding depends on the version of Python
            for term in islice(full_scores(self._words_for_kenlm(sentence), eos=end), start, None):
                totals[i] += term[0]
        return totals

    def holds(self, word: str) -> bool:
        """See `NgramTables.holds`."""
        return self._spelling(word) in self._model

    def _words_for_kenlm(self, sentence: Sentence) -> str:
        """Return the words in the model's spelling; `<s>` and `</s>` become the unknown word."""
        bare, unknown = sentence.bare, SPECIAL_WORDS[UNKNOWN]
        if bare.isascii() and "<" not in bare and "'" not in bare:
            return bare
        words = map(self._spelling, sentence.words)
        return " ".join(unknown if word in SPECIAL_WORDS else word for word in words)

    def _spelling(self, word: str) -> str:
        """Return the model's spelling of a word; an unknown word is returned unchanged."""
        return next(filter(self._model.__contains__, (word, *spellings(word))), word)


def _load(path: Path) -> Any:
    try:
        import kenlm
    except ImportError as error:
        raise ModelError(
            f"{path} is a KenLM binary file, but the package kenlm is not installed. Run pip "
            "install 'contstim[kenlm]', which needs a C++ compiler and CMake; or use the "
            "original ARPA file."
        ) from error
    if is_binary(path):
        _check_header(path)
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(str(path), config)
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        # The reason is at the end of KenLM's message, after a source file and a line number
        reason = " ".join(str(error).split())[-_MAX_MESSAGE_LENGTH:].rstrip(".")
        raise ModelError(f"KenLM cannot read {path}: {reason}.") from error
