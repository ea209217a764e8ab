"""The program: where each of its commands is."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from contstim.cli.commands import group
from contstim.version import __version__


def _of_platforms(step: str) -> dict[str, Any]:
    """A command for each platform, which is imported when it is named or all are listed."""
    from contstim.experiments.platforms.platform import platform_names
    from contstim.steps.export import export_step
    from contstim.steps.responses import import_step

    of_platform = export_step if step == "export" else import_step
    return {name: partial(of_platform, name) for name in platform_names()}


_KINDS = ("rnn", "lstm", "bilstm", "gpt2", "bert")

app = group(
    "Make language models disagree, and let people decide which one is right.",
    {
        "new": "contstim.cli.study:new",
        "plan": "contstim.cli.study:plan",
        "run": "contstim.cli.study:run",
        "status": "contstim.cli.study:status",
        "verify": "contstim.cli.study:verify",
        "archive": "contstim.cli.study:archive",
        "models": "contstim.cli.models:models",
        "train": group(
            "Train a model on a text.",
            {
                "ngram": "contstim.steps.training:TrainNgram",
                **{kind: f"contstim.steps.training:TRAININGS.{kind}" for kind in _KINDS},
                "acceptability": "contstim.steps.training:TrainAcceptability",
            },
        ),
        "vocabulary": "contstim.steps.vocabulary:MakeVocabulary",
        "sentences": "contstim.steps.sentences:FindSentences",
        "score": "contstim.steps.scoring:ScoreSentences",
        "synthesize": "contstim.steps.synthesis:SynthesizeSentence",
        "triplets": "contstim.steps.triplets:SearchTriplets",
        "select": group(
            "Select the most controversial stimuli, exactly.",
            {
                "natural": "contstim.steps.pairs:SelectPairs",
                "triplets": "contstim.steps.selection:SelectTriplets",
            },
        ),
        "show": "contstim.cli.show:show",
        "review": "contstim.cli.review:REVIEW",
        "design": "contstim.steps.design:MakeDesign",
        "power": "contstim.steps.design:SimulatePower",
        "export": group(
            "Turn trials into an experiment that people take part in, or into a public data set.",
            partial(_of_platforms, "export"),
        ),
        "check": "contstim.cli.check:check",
        "collect": "contstim.cli.collect:collect",
        "simulate": "contstim.steps.responses:SimulateResponses",
        "import": group(
            "Make responses.csv from the data of a platform.", partial(_of_platforms, "import")
        ),
        "analyze": "contstim.steps.analysis:AnalyzeResponses",
        "mixed": "contstim.steps.mixed:FitMixed",
        "compare": "contstim.steps.evaluation:CompareModels",
        "controls": "contstim.steps.controls:CompareControls",
        "evaluate": group(
            "Evaluate models without people: on benchmarks, and on what scores should be like.",
            {
                "blimp": "contstim.steps.evaluation:EvaluateMinimalPairs",
                "acceptability": "contstim.steps.evaluation:EvaluateAcceptability",
                "desiderata": "contstim.steps.evaluation:EvaluateDesiderata",
            },
        ),
        "reproduce": group(
            "Analyse published data again, claim by claim.",
            {
                "golan2023": "contstim.steps.reproduction:ReproduceGolan2023",
                "adc": "contstim.steps.reproduction:ReproduceAdc",
            },
        ),
        "generate": group(
            "Make test sentences from the embedded English.",
            {
                "sentences": "contstim.steps.embedded_text:GenerateSentences",
                "minimal-pairs": "contstim.steps.minimal_pairs:GenerateMinimalPairs",
            },
        ),
        "demo": "contstim.cli.demo:demo",
    },
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"contstim {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Make language models disagree, and let people decide which one is right."""
