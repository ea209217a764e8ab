"""Make language models disagree, and let people decide which one is right.

The public face, read as a table of contents. Everything is loaded when first used, so that
`import contstim` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from contstim.version import __version__

if TYPE_CHECKING:
    from contstim.corpus import read_sentences
    from contstim.english import generate
    from contstim.errors import ContstimError
    from contstim.filters import keep
    from contstim.models.base import LanguageModel, Replacements
    from contstim.models.catalog import load_model, load_models
    from contstim.models.ngram.training import train_ngram
    from contstim.models.scoring import score_sentences
    from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
    from contstim.optimization.recipes import RECIPES
    from contstim.optimization.selection import select_natural
    from contstim.optimization.symmetric import synthesize_pair
    from contstim.optimization.synthesis import synthesize, synthesize_triplet
    from contstim.optimization.verification import verify_natural
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Triplet
    from contstim.store import Store
    from contstim.vocabulary import Vocabulary

_HOMES = {
    # words and texts
    "Sentence": "contstim.sentence",
    "Vocabulary": "contstim.vocabulary",
    "read_sentences": "contstim.corpus",
    "keep": "contstim.filters",
    "generate": "contstim.english",
    # models and scores
    "LanguageModel": "contstim.models.base",
    "Replacements": "contstim.models.base",
    "load_model": "contstim.models.catalog",
    "load_models": "contstim.models.catalog",
    "default_vocabulary": "contstim.models.vocabularies",
    "shared_vocabulary": "contstim.models.vocabularies",
    "train_ngram": "contstim.models.ngram.training",
    "score_sentences": "contstim.models.scoring",
    "ScoreTable": "contstim.scores",
    "Store": "contstim.store",
    # controversial stimuli
    "synthesize": "contstim.optimization.synthesis",
    "synthesize_triplet": "contstim.optimization.synthesis",
    "synthesize_pair": "contstim.optimization.symmetric",
    "RECIPES": "contstim.optimization.recipes",
    "select_natural": "contstim.optimization.selection",
    "verify_natural": "contstim.optimization.verification",
    "Pair": "contstim.stimuli",
    "Triplet": "contstim.stimuli",
    # what goes wrong
    "ContstimError": "contstim.errors",
}

__all__ = [
    "RECIPES",
    "ContstimError",
    "LanguageModel",
    "Pair",
    "Replacements",
    "ScoreTable",
    "Sentence",
    "Store",
    "Triplet",
    "Vocabulary",
    "__version__",
    "default_vocabulary",
    "generate",
    "keep",
    "load_model",
    "load_models",
    "read_sentences",
    "score_sentences",
    "select_natural",
    "shared_vocabulary",
    "synthesize",
    "synthesize_pair",
    "synthesize_triplet",
    "train_ngram",
    "verify_natural",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'contstim' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
