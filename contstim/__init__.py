"""Make language models disagree, and let people decide which one is right.

The public face, read as a table of contents. Everything is loaded when first used, so that
`import contstim` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from contstim.version import __version__

TYPE_CHECKING = False  # as in typing, whose import takes longer than all else here
if TYPE_CHECKING:
    from contstim import plot
    from contstim.cli.output import ProgressBars
    from contstim.corpus import read_sentences
    from contstim.english import generate
    from contstim.english.minimal_pairs import generate_pairs
    from contstim.errors import (
        ContstimError,
        CorpusError,
        InfeasibleError,
        InputError,
        ModelError,
        ScoreError,
        SentenceError,
        StoreError,
        VerificationError,
        VocabularyError,
        WorkerError,
    )
    from contstim.evaluation.accuracies import evaluate_minimal_pairs
    from contstim.evaluation.criteria import evaluate_acceptability
    from contstim.evaluation.desiderata import evaluate_desiderata
    from contstim.experiments.analysis.mixed.comparisons import compare_mixed
    from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
    from contstim.experiments.analysis.page import write_analysis
    from contstim.experiments.analysis.run import Analysis, analyze
    from contstim.experiments.design.artificial import artificial_participants, simulate_responses
    from contstim.experiments.design.building import build_design
    from contstim.experiments.design.power import design_power
    from contstim.experiments.design.presentation import presentation
    from contstim.experiments.design.verification import verify_design
    from contstim.experiments.platforms.jspsych import export_jspsych
    from contstim.experiments.reproduce.published import fetch_published
    from contstim.experiments.responses.table import Response, read_responses
    from contstim.filters import filter_sentences
    from contstim.models.base import Convention, LanguageModel, Replacements, Scorer
    from contstim.models.catalog import load_model, load_models, load_scorer, load_scorers
    from contstim.models.ngram.training import train_ngram
    from contstim.models.scoring import score_sentences
    from contstim.models.training.acceptability import train_acceptability
    from contstim.models.training.recurrent import train_recurrent
    from contstim.models.training.settings import (
        RecurrentSettings,
        TrainingSettings,
        TransformerSettings,
    )
    from contstim.models.training.transformers import train_transformer
    from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
    from contstim.optimization.search.recipes import RECIPES
    from contstim.optimization.search.symmetric import synthesize_pair
    from contstim.optimization.search.synthesize import synthesize, synthesize_triplet
    from contstim.optimization.selection.natural import select_natural
    from contstim.optimization.selection.question import NaturalQuestion, TripletQuestion
    from contstim.optimization.selection.triplets import select_triplets
    from contstim.optimization.selection.verification import verify_natural, verify_triplets
    from contstim.reporting.review import review_page
    from contstim.reviews import read_reviews
    from contstim.scale import Scale
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.steps.analysis import AnalyzeResponses
    from contstim.steps.design import MakeDesign
    from contstim.steps.platforms import export_step, import_step
    from contstim.steps.review import WriteReviewPage
    from contstim.steps.scoring import ScoreSentences
    from contstim.steps.selection import SelectPairs, SelectTriplets
    from contstim.steps.sentences import FindSentences
    from contstim.steps.simulation import SimulatePower, SimulateResponses
    from contstim.steps.training import TRAININGS, TrainNgram
    from contstim.steps.triplets import SearchTriplets
    from contstim.steps.vocabulary import MakeVocabulary
    from contstim.stimuli import Pair, Trial, Triplet, read_trials
    from contstim.store import Store
    from contstim.study.handing_on.archive import archive_study
    from contstim.study.planning import plan_study
    from contstim.study.running import run_study
    from contstim.study.study import Study
    from contstim.study.study_file import read_study
    from contstim.study.verification import verify_folder
    from contstim.vocabulary import Vocabulary

_HOMES = {
    # words and texts
    "Sentence": "contstim.sentence",
    "Vocabulary": "contstim.vocabulary",
    "read_sentences": "contstim.corpus",
    "filter_sentences": "contstim.filters",
    "generate": "contstim.english",
    "generate_pairs": "contstim.english.minimal_pairs",
    # models and scores
    "Scorer": "contstim.models.base",
    "LanguageModel": "contstim.models.base",
    "Replacements": "contstim.models.base",
    "Convention": "contstim.models.base",
    "load_model": "contstim.models.catalog",
    "load_models": "contstim.models.catalog",
    "load_scorer": "contstim.models.catalog",
    "load_scorers": "contstim.models.catalog",
    "default_vocabulary": "contstim.models.vocabularies",
    "shared_vocabulary": "contstim.models.vocabularies",
    "train_ngram": "contstim.models.ngram.training",
    "train_recurrent": "contstim.models.training.recurrent",
    "train_transformer": "contstim.models.training.transformers",
    "train_acceptability": "contstim.models.training.acceptability",
    "RecurrentSettings": "contstim.models.training.settings",
    "TransformerSettings": "contstim.models.training.settings",
    "TrainingSettings": "contstim.models.training.settings",
    "score_sentences": "contstim.models.scoring",
    "ScoreTable": "contstim.scores",
    "Store": "contstim.store",
    # controversial stimuli
    "synthesize": "contstim.optimization.search.synthesize",
    "synthesize_triplet": "contstim.optimization.search.synthesize",
    "synthesize_pair": "contstim.optimization.search.symmetric",
    "RECIPES": "contstim.optimization.search.recipes",
    "select_natural": "contstim.optimization.selection.natural",
    "verify_natural": "contstim.optimization.selection.verification",
    "select_triplets": "contstim.optimization.selection.triplets",
    "NaturalQuestion": "contstim.optimization.selection.question",
    "TripletQuestion": "contstim.optimization.selection.question",
    "verify_triplets": "contstim.optimization.selection.verification",
    "fetch_published": "contstim.experiments.reproduce.published",
    "Pair": "contstim.stimuli",
    "Triplet": "contstim.stimuli",
    # what reviewers say of them
    "review_page": "contstim.reporting.review",
    "read_reviews": "contstim.reviews",
    # from stimuli to people
    "Trial": "contstim.stimuli",
    "Scale": "contstim.scale",
    "read_trials": "contstim.stimuli",
    "build_design": "contstim.experiments.design.building",
    "verify_design": "contstim.experiments.design.verification",
    "presentation": "contstim.experiments.design.presentation",
    "design_power": "contstim.experiments.design.power",
    "export_jspsych": "contstim.experiments.platforms.jspsych",
    "artificial_participants": "contstim.experiments.design.artificial",
    "simulate_responses": "contstim.experiments.design.artificial",
    # what people said
    "Response": "contstim.experiments.responses.table",
    "read_responses": "contstim.experiments.responses.table",
    "Analysis": "contstim.experiments.analysis.run",
    "analyze": "contstim.experiments.analysis.run",
    "MixedSettings": "contstim.experiments.analysis.mixed.models",
    "fit_mixed": "contstim.experiments.analysis.mixed.models",
    "compare_mixed": "contstim.experiments.analysis.mixed.comparisons",
    "write_analysis": "contstim.experiments.analysis.page",
    # models on benchmarks
    "evaluate_minimal_pairs": "contstim.evaluation.accuracies",
    "evaluate_acceptability": "contstim.evaluation.criteria",
    "evaluate_desiderata": "contstim.evaluation.desiderata",
    # a study in one file
    "Study": "contstim.study.study",
    "read_study": "contstim.study.study_file",
    "plan_study": "contstim.study.planning",
    "run_study": "contstim.study.running",
    "archive_study": "contstim.study.handing_on.archive",
    "verify_folder": "contstim.study.verification",
    # its steps, from files to files
    "MakeVocabulary": "contstim.steps.vocabulary",
    "FindSentences": "contstim.steps.sentences",
    "TrainNgram": "contstim.steps.training",
    "TRAININGS": "contstim.steps.training",
    "ScoreSentences": "contstim.steps.scoring",
    "SelectPairs": "contstim.steps.selection",
    "SearchTriplets": "contstim.steps.triplets",
    "SelectTriplets": "contstim.steps.selection",
    "WriteReviewPage": "contstim.steps.review",
    "MakeDesign": "contstim.steps.design",
    "SimulatePower": "contstim.steps.simulation",
    "export_step": "contstim.steps.platforms",
    "import_step": "contstim.steps.platforms",
    "SimulateResponses": "contstim.steps.simulation",
    "AnalyzeResponses": "contstim.steps.analysis",
    "ProgressBars": "contstim.cli.output",
    # figures
    "plot": "contstim.plot",
    # what goes wrong
    "ContstimError": "contstim.errors",
    "InputError": "contstim.errors",
    "SentenceError": "contstim.errors",
    "VocabularyError": "contstim.errors",
    "CorpusError": "contstim.errors",
    "ScoreError": "contstim.errors",
    "ModelError": "contstim.errors",
    "InfeasibleError": "contstim.errors",
    "StoreError": "contstim.errors",
    "WorkerError": "contstim.errors",
    "VerificationError": "contstim.errors",
}

__all__ = [
    "RECIPES",
    "TRAININGS",
    "Analysis",
    "AnalyzeResponses",
    "ContstimError",
    "Convention",
    "CorpusError",
    "FindSentences",
    "InfeasibleError",
    "InputError",
    "LanguageModel",
    "MakeDesign",
    "MakeVocabulary",
    "MixedSettings",
    "ModelError",
    "NaturalQuestion",
    "Pair",
    "ProgressBars",
    "RecurrentSettings",
    "Replacements",
    "Response",
    "Scale",
    "ScoreError",
    "ScoreSentences",
    "ScoreTable",
    "Scorer",
    "SearchTriplets",
    "SelectPairs",
    "SelectTriplets",
    "Sentence",
    "SentenceError",
    "SimulatePower",
    "SimulateResponses",
    "Store",
    "StoreError",
    "Study",
    "TrainNgram",
    "TrainingSettings",
    "TransformerSettings",
    "Trial",
    "Triplet",
    "TripletQuestion",
    "VerificationError",
    "Vocabulary",
    "VocabularyError",
    "WorkerError",
    "WriteReviewPage",
    "__version__",
    "analyze",
    "archive_study",
    "artificial_participants",
    "build_design",
    "compare_mixed",
    "default_vocabulary",
    "design_power",
    "evaluate_acceptability",
    "evaluate_desiderata",
    "evaluate_minimal_pairs",
    "export_jspsych",
    "export_step",
    "fetch_published",
    "filter_sentences",
    "fit_mixed",
    "generate",
    "generate_pairs",
    "import_step",
    "load_model",
    "load_models",
    "load_scorer",
    "load_scorers",
    "plan_study",
    "plot",
    "presentation",
    "read_responses",
    "read_reviews",
    "read_sentences",
    "read_study",
    "read_trials",
    "review_page",
    "run_study",
    "score_sentences",
    "select_natural",
    "select_triplets",
    "shared_vocabulary",
    "simulate_responses",
    "synthesize",
    "synthesize_pair",
    "synthesize_triplet",
    "train_acceptability",
    "train_ngram",
    "train_recurrent",
    "train_transformer",
    "verify_design",
    "verify_folder",
    "verify_natural",
    "verify_triplets",
    "write_analysis",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'contstim' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"contstim.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return list(__all__)
