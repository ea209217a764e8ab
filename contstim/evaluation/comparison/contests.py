"""Contests: from a comparison to stimuli, by the commands or the search that set models at odds."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VocabularyError
from contstim.models.base import require_language_model
from contstim.models.specifications import with_name
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.optimization.selection.question import NaturalQuestion
from contstim.optimization.selection.strata import strata
from contstim.sentence import Sentence, repeats
from contstim.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.models.base import LanguageModel, Scorer
    from contstim.scores import ScoreTable
    from contstim.stimuli import Triplet


_SEARCH = "A search for controversial sentences"


def select_command(folder: Path, table: ScoreTable) -> str:
    """The command that selects natural pairs from the scores that a comparison writes.

    Ten for each pair of models, or as many as there surely are where few sentences tell them apart.

    Args:
        folder: that the comparison writes into.
        table: the scores.
    """
    (stratum,) = strata(table, NaturalQuestion())
    least = int(stratum.admissible().min())
    # A sentence that some models reject and the others accept is shared by as many (reject, accept)
    # as these numbers multiplied, M²/4 at most
    surely = least // (len(table.models) ** 2 // 4)
    scores, out = str(folder / "scores.csv"), str(folder / "pairs.csv")
    per_pair = str(max(1, min(10, surely)))
    parts = ["contstim", "select", "natural", "--scores", scores]
    return shlex.join([*parts, "--per-pair", per_pair, "--out", out])


@dataclass(frozen=True, eq=False)
class Contest:
    """Models, and a sentence from which a search sets each of them against each other.

    Attributes:
        models: two or more.
        start: a natural sentence made of words of the vocabulary.
        vocabulary: the words that all models know.
    """

    models: tuple[LanguageModel, ...]
    start: Sentence
    vocabulary: Vocabulary

    @classmethod
    def between(
        cls, models: Sequence[Scorer], table: ScoreTable, vocabulary: Path | None = None
    ) -> Contest:
        """From the sentence that all models of a table find likeliest.

        Args:
            models: two or more.
            table: their scores.
            vocabulary: the words to use; by default as `contstim synthesize` does.

        Raises:
            VocabularyError: no word is left, or no sentence is made of such words alone.
            ModelError: a word-level model has no counts beside it, or the scores of a model are not
                log-probabilities.
            InputError: the vocabulary cannot be read.
        """
        searchable = tuple(require_language_model(m, _SEARCH) for m in models)
        words = default_vocabulary(models) if vocabulary is None else Vocabulary.load(vocabulary)
        # a word that one of the models does not know cannot be used
        words, _ = shared_vocabulary(models, words)
        start = start_sentence(table, words)
        if start is None:
            raise VocabularyError(
                "No sentence is made of words of the vocabulary alone, none of them twice: the "
                "search has no start. Give a larger --vocabulary, or other sentences."
            )
        return cls(searchable, start, words)

    def commands(self, vocabulary: Path | None, prompt: str | None = None) -> list[str]:
        """Commands to type: every pair of models in both directions."""
        options = {m: with_name(m.name, m.specification or m.name) for m in self.models}
        extra = ["--vocabulary", str(vocabulary)] if vocabulary else []
        extra += ["--prompt", prompt] if prompt else []
        return [
            shlex.join(
                [
                    *("contstim", "synthesize", "--accept", options[accept]),
                    *("--reject", options[reject], *extra, "--sentence", self.start.text),
                ]
            )
            # in both directions: each model once accepts and once rejects
            for pair in combinations(self.models, 2)
            for reject, accept in (pair, pair[::-1])
        ]

    def run(self, *, seed: int = 0) -> list[Triplet]:
        """Triplets that these commands find: one for every pair of models.

        Raises:
            ContstimError: see `synthesize`.
        """
        return [
            synthesize_triplet(*pair, self.start, self.vocabulary, seed=seed)[0]
            for pair in combinations(self.models, 2)
        ]


def start_sentence(table: ScoreTable, vocabulary: Vocabulary) -> Sentence | None:
    """The sentence that a search may start from and that all models find likeliest.

    Its words are in the vocabulary, none but repeatable ones occurs twice, and the lowest of its
    ranks under the models is highest. None where no sentence will do.
    """
    sentences = table.sentences or ()
    lowest_ranks = table.ranks().min(axis=1)  # under the model that finds the sentence least likely
    for row in map(int, np.argsort(-lowest_ranks, kind="stable")):
        sentence = sentences[row]
        if (
            len(sentence) > 1
            and not vocabulary.missing(sentence)
            and np.isfinite(table.log_probs[row]).all()
            and not repeats(sentence.words, vocabulary.repeatable)
        ):
            return sentence
    return None
