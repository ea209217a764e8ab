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
    from contstim.experiments.design import build_design
    from contstim.experiments.design_verification import verify_design
    from contstim.experiments.power_report import design_power
    from contstim.experiments.presentation import presentation
    from contstim.filters import keep
    from contstim.models.base import LanguageModel, Replacements
    from contstim.models.catalog import load_model, load_models
    from contstim.models.ngram.training import train_ngram
    from contstim.models.scoring import score_sentences
    from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
    from contstim.optimization.selection import select_natural
    from contstim.optimization.synthesis import synthesize, synthesize_triplet
    from contstim.optimization.triplet_question import TripletQuestion
    from contstim.optimization.triplet_verification import verify_triplets
    from contstim.optimization.triplets import select_triplets
    from contstim.optimization.verification import verify_natural
    from contstim.published.fetch import fetch_published
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Trial, Triplet
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
    "select_natural": "contstim.optimization.selection",
    "verify_natural": "contstim.optimization.verification",
    "select_triplets": "contstim.optimization.triplets",
    "TripletQuestion": "contstim.optimization.triplet_question",
    "verify_triplets": "contstim.optimization.triplet_verification",
    "fetch_published": "contstim.published.fetch",
    "Pair": "contstim.stimuli",
    "Triplet": "contstim.stimuli",
    # from stimuli to people
    "Trial": "contstim.stimuli",
    "build_design": "contstim.experiments.design",
    "verify_design": "contstim.experiments.design_verification",
    "presentation": "contstim.experiments.presentation",
    "design_power": "contstim.experiments.power_report",
    # what goes wrong
    "ContstimError": "contstim.errors",
}

__all__ = [
    "ContstimError",
    "LanguageModel",
    "Pair",
    "Replacements",
    "ScoreTable",
    "Sentence",
    "Store",
    "Trial",
    "Triplet",
    "TripletQuestion",
    "Vocabulary",
    "__version__",
    "build_design",
    "default_vocabulary",
    "design_power",
    "fetch_published",
    "generate",
    "keep",
    "load_model",
    "load_models",
    "presentation",
    "read_sentences",
    "score_sentences",
    "select_natural",
    "select_triplets",
    "shared_vocabulary",
    "synthesize",
    "synthesize_triplet",
    "train_ngram",
    "verify_design",
    "verify_natural",
    "verify_triplets",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'contstim' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
