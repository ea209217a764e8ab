"""Make language models disagree, and let people decide which one is right.

Each public name is imported at its first use, so that `import contstim` is fast. The imports below
are not executed. Type checkers read them. `__getattr__` also reads them as text, to find the module
of a name.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from contstim.version import __version__ as __version__

TYPE_CHECKING = False  # importing it from typing takes longer than all other imports here
if TYPE_CHECKING:
    from contstim import plot as plot
    from contstim.cli.output import ProgressBars as ProgressBars
    from contstim.english import generate as generate
    from contstim.english.minimal_pairs import generate_pairs as generate_pairs
    from contstim.errors import ContstimError as ContstimError, CorpusError as CorpusError
    from contstim.errors import InfeasibleError as InfeasibleError, InputError as InputError
    from contstim.errors import ModelError as ModelError, ScoreError as ScoreError
    from contstim.errors import SentenceError as SentenceError, StoreError as StoreError
    from contstim.errors import VerificationError as VerificationError
    from contstim.errors import VocabularyError as VocabularyError, WorkerError as WorkerError
    from contstim.evaluation.accuracies import evaluate_minimal_pairs as evaluate_minimal_pairs
    from contstim.evaluation.criteria import evaluate_acceptability as evaluate_acceptability
    from contstim.evaluation.desiderata import evaluate_desiderata as evaluate_desiderata
    from contstim.experiments.analysis.mixed.comparison import compare_mixed as compare_mixed
    from contstim.experiments.analysis.mixed.models import fit_mixed as fit_mixed
    from contstim.experiments.analysis.mixed.models import MixedSettings as MixedSettings
    from contstim.experiments.analysis.page import write_analysis as write_analysis
    from contstim.experiments.analysis.run import Analysis as Analysis, analyze as analyze
    from contstim.experiments.design.artificial import (
        artificial_participants as artificial_participants,
    )
    from contstim.experiments.design.artificial import simulate_responses as simulate_responses
    from contstim.experiments.design.building import build_design as build_design
    from contstim.experiments.design.power import design_power as design_power
    from contstim.experiments.design.assignment import presentation as presentation
    from contstim.experiments.design.verification import verify_design as verify_design
    from contstim.experiments.platforms.jspsych import export_jspsych as export_jspsych
    from contstim.experiments.reproduce.published import fetch_published as fetch_published
    from contstim.experiments.responses.table import read_responses as read_responses
    from contstim.experiments.responses.table import Response as Response
    from contstim.items.minimal_pair_scores import MinimalPairScores as MinimalPairScores
    from contstim.items.minimal_pair_scores import SentencePair as SentencePair
    from contstim.items.reviews import read_reviews as read_reviews
    from contstim.items.scale import Scale as Scale
    from contstim.items.scores import ScoreTable as ScoreTable
    from contstim.items.stimuli import Pair as Pair, read_trials as read_trials, Trial as Trial
    from contstim.items.stimuli import Triplet as Triplet
    from contstim.models.base import Convention as Convention, LanguageModel as LanguageModel
    from contstim.models.base import Replacements as Replacements, Scorer as Scorer
    from contstim.models.catalog import load_model as load_model, load_models as load_models
    from contstim.models.catalog import load_scorer as load_scorer, load_scorers as load_scorers
    from contstim.models.ngram.training import train_ngram as train_ngram
    from contstim.models.scoring import score_sentences as score_sentences
    from contstim.models.training.acceptability import train_acceptability as train_acceptability
    from contstim.models.training.run import train_network as train_network
    from contstim.models.training.settings import RecurrentSettings as RecurrentSettings
    from contstim.models.training.settings import TrainingSettings as TrainingSettings
    from contstim.models.training.settings import TransformerSettings as TransformerSettings
    from contstim.models.vocabularies import default_vocabulary as default_vocabulary
    from contstim.models.vocabularies import shared_vocabulary as shared_vocabulary
    from contstim.optimization.search.recipes import RECIPES as RECIPES
    from contstim.optimization.search.synthesize import synthesize as synthesize
    from contstim.optimization.search.synthesize import synthesize_pair as synthesize_pair
    from contstim.optimization.search.synthesize import synthesize_triplet as synthesize_triplet
    from contstim.optimization.selection.minimal_pairs import (
        select_minimal_pairs as select_minimal_pairs,
    )
    from contstim.optimization.selection.natural import select_natural as select_natural
    from contstim.optimization.selection.question import MinimalPairQuestion as MinimalPairQuestion
    from contstim.optimization.selection.question import NaturalQuestion as NaturalQuestion
    from contstim.optimization.selection.question import TripletQuestion as TripletQuestion
    from contstim.optimization.selection.triplets import select_triplets as select_triplets
    from contstim.optimization.selection.verification import (
        verify_minimal_pairs as verify_minimal_pairs,
    )
    from contstim.optimization.selection.verification import verify_natural as verify_natural
    from contstim.optimization.selection.verification import verify_triplets as verify_triplets
    from contstim.reporting.review import ReviewPage as ReviewPage
    from contstim.steps.analysis import AnalyzeResponses as AnalyzeResponses
    from contstim.steps.design import MakeDesign as MakeDesign
    from contstim.steps.platforms import export_step as export_step, import_step as import_step
    from contstim.steps.review import WriteReviewPage as WriteReviewPage
    from contstim.steps.scoring import ScoreSentences as ScoreSentences
    from contstim.steps.selection import SelectMinimalPairs as SelectMinimalPairs
    from contstim.steps.selection import SelectPairs as SelectPairs
    from contstim.steps.selection import SelectTriplets as SelectTriplets
    from contstim.steps.sentences import FindSentences as FindSentences
    from contstim.steps.simulation import SimulatePower as SimulatePower
    from contstim.steps.simulation import SimulateResponses as SimulateResponses
    from contstim.steps.training import TRAININGS as TRAININGS, TrainNgram as TrainNgram
    from contstim.steps.triplets import SearchTriplets as SearchTriplets
    from contstim.steps.vocabulary import MakeVocabulary as MakeVocabulary
    from contstim.store import Store as Store
    from contstim.study.handing_on.archive import archive_study as archive_study
    from contstim.study.planning import plan_study as plan_study
    from contstim.study.running import run_study as run_study
    from contstim.study.study import Study as Study
    from contstim.study.study_file import read_study as read_study
    from contstim.study.verification import verify_folder as verify_folder
    from contstim.words.corpus import read_sentences as read_sentences
    from contstim.words.filters import filter_sentences as filter_sentences
    from contstim.words.sentence import Sentence as Sentence
    from contstim.words.vocabulary import Vocabulary as Vocabulary

    __all__: list[str]


@cache
def _modules() -> dict[str, str]:
    """Return the module of each public name, read from the text of the imports above."""
    import ast
    from pkgutil import get_data

    modules: dict[str, str] = {}
    for node in ast.walk(ast.parse(get_data(__name__, "__init__.py") or b"")):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {alias.name: node.module for alias in node.names if alias.asname}
    return modules


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_modules())
    if name not in _modules():
        raise AttributeError(f"module 'contstim' has no attribute {name!r}")
    module = _modules()[name]
    if module == __name__:
        return import_module(f"{module}.{name}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(_modules())
