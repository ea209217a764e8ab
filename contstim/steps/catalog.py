"""All steps by the words of their commands; none is imported before it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contstim.steps.step import Step

_NETWORKS = ("rnn", "lstm", "bilstm", "gpt2", "bert")

STEPS: dict[str, str] = {
    name: f"contstim.steps.{place}"
    for name, place in {
        "train ngram": "training:TrainNgram",
        **{f"train {kind}": f"training:TRAININGS.{kind}" for kind in _NETWORKS},
        "train acceptability": "training:TrainAcceptability",
        "vocabulary": "vocabulary:MakeVocabulary",
        "sentences": "sentences:FindSentences",
        "score": "scoring:ScoreSentences",
        "synthesize": "synthesis:SynthesizeSentence",
        "triplets": "triplets:SearchTriplets",
        "select natural": "pairs:SelectPairs",
        "select triplets": "selection:SelectTriplets",
        "review": "review:WriteReviewPage",
        "design": "design:MakeDesign",
        "power": "design:SimulatePower",
        "simulate": "responses:SimulateResponses",
        "analyze": "analysis:AnalyzeResponses",
        "mixed": "mixed:FitMixed",
        "compare": "evaluation:CompareModels",
        "controls": "controls:CompareControls",
        "evaluate blimp": "evaluation:EvaluateMinimalPairs",
        "evaluate acceptability": "evaluation:EvaluateAcceptability",
        "evaluate desiderata": "evaluation:EvaluateDesiderata",
        "reproduce golan2023": "reproduction:ReproduceGolan2023",
        "reproduce adc": "reproduction:ReproduceAdc",
        "generate sentences": "embedded_text:GenerateSentences",
        "generate minimal-pairs": "minimal_pairs:GenerateMinimalPairs",
    }.items()
}
"""`module:name` of each step, or of a dictionary of steps and the key in it; those of platforms,
such as `import jspsych`, are made of the registry of platforms."""


def found(target: str) -> Any:
    """What `module:name` or `module:name.key` names."""
    module, _, name = target.partition(":")
    name, _, key = name.partition(".")
    value = getattr(import_module(module), name)
    return value[key] if key else value


def step_names() -> list[str]:
    """The words of all commands that are steps."""
    from contstim.experiments.platforms.platform import platform_names

    names = platform_names()
    return [*STEPS, *(f"{word} {name}" for word in ("export", "import") for name in names)]


def step_named(name: str) -> type[Step[Any]] | None:
    """The step of a command; None where nothing is exported to a platform, or imported."""
    word, _, kind = name.partition(" ")
    if word == "export":
        from contstim.steps.export import export_step

        return export_step(kind)
    if word == "import":
        from contstim.steps.responses import import_step

        return import_step(kind)
    step: type[Step[Any]] = found(STEPS[name])
    return step
