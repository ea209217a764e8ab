"""`contstim synthesize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import Device, Dtype, Prompt, Quiet, Seed, changed_words, remark

if TYPE_CHECKING:
    from contstim.optimization.climb import Step
    from contstim.optimization.synthesis import Synthesis


def synthesize(
    accept: Annotated[
        str, typer.Option(help="The model that is to find the sentence no less likely.")
    ],
    reject: Annotated[
        str, typer.Option(help="The model that is to find it as unlikely as can be.")
    ],
    sentence: Annotated[str, typer.Option(help="The natural sentence to start from.")],
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Words to use; by default those frequent in the models' own text."),
    ] = None,
    allow_unknown: Annotated[
        bool,
        typer.Option("--allow-unknown", help="Also use words that a word-level model cannot tell."),
    ] = False,
    prompt: Prompt = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Change a sentence word by word until one model rejects what another accepts.

    Shows each step, both models' log-probabilities (nats), and why the search ended.

    Example: `contstim synthesize --accept kenlm:trigram.arpa --reject kenlm:bigram.arpa
    --sentence "Luke has a ton of experience with winning" --vocabulary vocab.txt`
    """
    from contstim.models.base import conventions
    from contstim.models.catalog import load_models
    from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
    from contstim.optimization.synthesis import synthesize as run
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary

    natural = Sentence.parse(sentence)
    words = None if vocabulary is None else Vocabulary.load(vocabulary)
    models = load_models([accept, reject], device=device, dtype=dtype, prompt=prompt)
    words = words or default_vocabulary(models)
    dropped: tuple[str, ...] = ()
    if not allow_unknown:
        words, dropped = shared_vocabulary(models, words)
    if dropped:
        remark(
            f"{len(dropped):,} of {len(dropped) + len(words.words):,} words of the vocabulary are "
            f"not known to both models and are left out.",
            quiet=quiet,
        )
    on_step = None if as_json or quiet else _print_step
    found = run(models[0], models[1], natural, words, seed=seed, on_step=on_step)
    if as_json:
        facts = {"models": conventions(models), "words_dropped": len(dropped), "seed": seed}
        print(json.dumps(_as_json(found) | facts, indent=2, ensure_ascii=False))
    else:
        _print_result(found)
        rules = ", ".join(f"{model.name}: {model.convention.rule}" for model in models)
        print(f"Scoring rules: {rules}.")


def _print_step(step: Step) -> None:
    accept, reject = step.log_probs
    remark(f"{accept:9.2f} {reject:9.2f}  {step.old} → {step.new}: {step.sentence.text}")


def _print_result(found: Synthesis) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("", "sentence")
    for role, name in (("accept", found.accept), ("reject", found.reject)):
        table.add_column(Text(f"{role}: {name}"))
    for kind, sentence, scores in (
        ("natural", found.natural, found.natural_log_probs),
        ("synthetic", found.synthetic, found.log_probs),
    ):
        text = changed_words(sentence, found.natural)
        table.add_row(kind, text, *(f"{score:.2f}" for score in scores))
    console = Console()
    console.print(table)
    console.print(
        f"Log-probabilities in nats. {len(found.climb.steps)} words replaced in "
        f"{found.climb.visits} visits; ended because {found.climb.end.value}."
    )


def _as_json(found: Synthesis) -> dict[str, object]:
    def scores(log_probs: tuple[float, ...]) -> dict[str, float]:
        return dict(zip(("accept", "reject"), log_probs, strict=True))

    return {
        "accept": found.accept,
        "reject": found.reject,
        "natural": found.natural.text,
        "synthetic": found.synthetic.text,
        "log_probs_natural": scores(found.natural_log_probs),
        "log_probs_synthetic": scores(found.log_probs),
        "steps": [
            {
                "visit": step.visit,
                "position": step.position,
                "old": step.old,
                "new": step.new,
                "sentence": step.sentence.text,
                "log_probs": scores((step.log_probs[0].item(), step.log_probs[1].item())),
            }
            for step in found.climb.steps
        ],
        "visits": found.climb.visits,
        "end": found.climb.end.value,
    }
