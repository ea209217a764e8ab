"""The commands `models`, `show`, `check` and `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import ProgressBars, Quiet, print_parts, print_rows, remark
from contstim.errors import InputError
from contstim.models.catalog import one_at_a_time
from contstim.models.families import families, family_named
from contstim.models.loading import Device, Loading, TrustRemoteCode
from contstim.models.specifications import CATALOGUE, parse_model, parse_models, with_contexts
from contstim.options import Help, Seed
from contstim.steps.fields import ModelContexts
from contstim.wording import quantity

if TYPE_CHECKING:
    from contstim.items.stimuli import Triplet
    from contstim.models.base import Scorer


def models(
    *,
    specifications: Annotated[
        tuple[str, ...],
        Help(
            "Models to test; without models, families are listed.",
            argument=True,
            metavar="[[NAME=]MODEL]...",
        ),
    ] = (),
    context: ModelContexts = (),
    device: Annotated[Device, Help("Device of networks.")] = "auto",
    trust_remote_code: TrustRemoteCode = False,
    quiet: Quiet = False,
) -> None:
    """Test models on 50 sentences of the embedded English, or list the families of models.

    The embedded English is a grammar of contstim that generates sentences. For each model, the
    command prints the number of parameters, scoring rule, context, unknown words and speed. It also
    counts the sentences that the model prefers to the same words in random order. The context is
    the text that a causal model reads before a sentence. For a causal model, the command prints the
    mean log-probability of the sentences after each possible context.

    Without a model, the command lists the families of models that can be loaded. It also lists the
    nine models of the 2023 study.

    Example: `contstim models hf:gpt2 kenlm:trigram.arpa`
    """
    del quiet  # the command prints only its result
    if specifications:
        loading = Loading(device=device, trust_remote_code=trust_remote_code)
        with_context = with_contexts(specifications, context)
        for loaded in one_at_a_time(parse_models(with_context.values()), loading):
            _print_overview(loaded[0])
        return
    if context:
        raise InputError("--context needs models. Name the models.")
    rows = [(f"{family.name}:", family.summary, ", ".join(family.rules)) for family in families()]
    print_rows(("family", "what it is", "scoring rules"), rows, texts=3, title="Families")
    entries = [(name, *entry) for name, entry in CATALOGUE.items()]
    header = ("name", "specification", "what it is")
    print_rows(header, entries, texts=3, title="Models of Golan et al. (2023)")


def _print_overview(scorer: Scorer) -> None:
    from contstim.evaluation.overview import model_overview

    facts = model_overview(scorer)
    convention = facts.convention
    n, unit = facts.n_sentences, convention.unit
    unknown = ", ".join(facts.unknown[:5])
    context = " ".join(convention.context_tokens) or convention.context
    rows = [
        ("kind", _describe_kind(scorer)),
        ("parameters", "unknown" if facts.n_parameters is None else f"{facts.n_parameters:,}"),
        ("rule", convention.rule),
        ("context", context or "none"),
        (f"mean score, {unit}", f"{facts.mean:.2f}"),
        ("better than shuffled", f"{facts.n_better} of {quantity(n, 'sentence')}"),
        (
            "unknown words",
            f"{len(facts.unknown)} of {facts.n_words}" + (f": {unknown}" if unknown else ""),
        ),
        ("sentences a second", f"{facts.speed:.3g}"),
    ]
    print_rows(("", scorer.name), rows, texts=2)
    if facts.contexts:
        compared = [
            (" ".join(c.context_tokens), f"{mean:.2f}", "read" if c == convention else "")
            for c, mean in facts.contexts.items()
        ]
        print_rows(("context", f"mean score, {unit}", ""), compared)


def _describe_kind(scorer: Scorer) -> str:
    family = family_named(parse_model(scorer.specification, scorer.name).family)
    kind = "causal" if scorer.convention.context_tokens else "masked"
    return f"{kind} transformer" if family.name == "hf" else family.summary.partition(";")[0]


def show(
    *,
    table: Annotated[Path, Help("Table of triplets, pairs or trials.", argument=True)],
    out: Annotated[Path, Help("The page to write.")],
    scores: Annotated[
        Path | None,
        Help(
            "Scores of the sentences, from `score`. With scores, the page also shows the "
            "log-probabilities of pairs and trials, and how often two models prefer the same "
            "sentence."
        ),
    ] = None,
    title: Annotated[str, Help("Heading of the page; by default the name of the file.")] = "",
    quiet: Quiet = False,
) -> None:
    """Write a page of stimuli: sentences and log-probabilities, with changed words highlighted.

    The page is one file that needs no network. To keep or reject stimuli, use `contstim review`.

    Example: `contstim show triplets.csv --scores scores.csv --out triplets.html`
    """
    from contstim.files.files import write_text
    from contstim.items.reviews import named_sentences
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import read_stimulus_table
    from contstim.reporting.stimuli_page import stimuli_report
    from contstim.steps.review import flags_of

    stimuli = read_stimulus_table(table)
    table_of_scores = None if scores is None else ScoreTable.from_file(scores)
    sentences = (sentence for stimulus in stimuli for sentence in named_sentences(stimulus)[1])
    flagged = flags_of(stimuli) if stimuli and None not in sentences else None
    page = stimuli_report(title or table.name, stimuli, scores=table_of_scores, flagged=flagged)
    write_text(out, page.html())
    remark(f"{out}: open it in a browser.", quiet=quiet)


def check(
    *,
    platform: Annotated[str, Help("Platform or standard, such as psych-ds.", argument=True)],
    folder: Annotated[Path, Help("The folder to check.", argument=True)],
    quiet: Quiet = False,
) -> None:
    """Check whether a folder follows the rules of a format.

    The exit status is 1 if the folder breaks a rule.

    Example: `contstim check psych-ds dataset`
    """
    from contstim.experiments.platforms.platform import platform_named

    entry = platform_named(platform)
    exporter = None if entry is None else entry.exporter
    if exporter is None or exporter.check is None:
        raise InputError(f"{platform} has no rules for folders. Name another platform.")
    errors, warnings = exporter.check(folder)
    for kind, findings in (("error", errors), ("warning", warnings)):
        for finding in findings:
            print(f"{kind}: {finding}")
    if errors:
        raise typer.Exit(1)
    remark(f"{folder} follows {exporter.format}.", quiet=quiet)


def demo(
    *,
    out: Annotated[Path, Help("The folder to write.")] = Path("contstim-demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show the main workflow from start to end, with generated text and small models.

    The demo trains a 2-gram, a 3-gram, an RNN, an LSTM, a small GPT-2 and a small BERT in about a
    minute. As soon as two models are trained, the command prints sentences on which these models
    disagree. A second run with the same folder uses the trained models.

    Example: `contstim demo --out contstim-demo`
    """
    from contstim.demo import run_demo

    run_demo(out, seed=seed, reporter=ProgressBars(quiet=quiet), show=_print_triplet)
    print(f"The results are in {out}/; open {out / 'report.html'} in a browser.")


def _print_triplet(triplet: Triplet) -> None:
    from contstim.reporting.stimuli_page import stimuli_table

    print_parts([stimuli_table([triplet])])
