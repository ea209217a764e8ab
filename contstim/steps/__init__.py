"""The steps of a study.

Each step reads files and writes files. It lists these files in a record, a JSON file next to its
output. A step is declared once, as a dataclass with annotated fields (`contstim.options`). The
declaration determines the command and its options, the section of a study file, and the stage of a
study. It also determines the record and the reference pages.

The module `step` contains the base class, `fields` contains shared fields, and `execution` contains
the options for workers. A step is imported when it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contstim.steps.step import Step

_PLACES = {
    "train ngram": "training:TrainNgram",
    **{f"train {k}": f"training:TRAININGS.{k}" for k in ("rnn", "lstm", "bilstm", "gpt2", "bert")},
    "train acceptability": "training:TrainAcceptability",
    "vocabulary": "vocabulary:MakeVocabulary",
    "sentences": "sentences:FindSentences",
    "score": "scoring:ScoreSentences",
    "synthesize": "synthesis:SynthesizeSentence",
    "triplets": "triplets:SearchTriplets",
    "near-pairs": "near_pairs:FindNearPairs",
    "select natural": "selection:SelectPairs",
    "select triplets": "selection:SelectTriplets",
    "select minimal-pairs": "selection:SelectMinimalPairs",
    "review": "review:WriteReviewPage",
    "design": "design:MakeDesign",
    "waves": "waves:DesignWaves",
    "power": "simulation:SimulatePower",
    "simulate": "simulation:SimulateResponses",
    "analyze": "analysis:AnalyzeResponses",
    "mixed": "analysis:FitMixed",
    "diff": "diff:FindDifferences",
    "compare": "evaluation:CompareModels",
    "verdict": "verdict:FindVerdict",
    "controls": "analysis:CompareControls",
    "evaluate blimp": "evaluation:EvaluateMinimalPairs",
    "evaluate acceptability": "evaluation:EvaluateAcceptability",
    "evaluate desiderata": "evaluation:EvaluateDesiderata",
    "reproduce golan2023": "reproduction:ReproduceGolan2023",
    "reproduce adc": "reproduction:ReproduceAdc",
    "generate sentences": "generation:GenerateSentences",
    "generate minimal-pairs": "generation:GenerateMinimalPairs",
}
BY_DEFAULT = ("sentences", "score")
"""Steps that need no section in a study file: they run if another step reads their output."""

STEPS = {name: f"contstim.steps.{target}" for name, target in _PLACES.items()}
"""Words of a command → `module:name` of its step, or `module:name.key` if `name` is a dictionary.

The registry of platforms defines further steps, such as `import jspsych`.
"""


def import_target(target: str) -> Any:
    """Import the object that `module:name` or `module:name.key` names."""
    module, _, name = target.partition(":")
    name, _, key = name.partition(".")
    value = getattr(import_module(module), name)
    return value[key] if key else value


def step_names() -> list[str]:
    """Return the words of all commands that are steps."""
    from contstim.experiments.platforms.platform import platform_names

    names = platform_names()
    return [*STEPS, *(f"{word} {name}" for word in ("export", "import") for name in names)]


def step_named(name: str) -> type[Step[Any]] | None:
    """Return the step of the command `name`; None if a platform has no such export or import."""
    word, _, kind = name.partition(" ")
    if word in ("export", "import"):
        of_platform = import_target(f"contstim.steps.platforms:{word}_step")
        step: type[Step[Any]] | None = of_platform(kind)
    else:
        step = import_target(STEPS[name])
    return step
