"""Commands to look at something: `contstim models`, `show`, `check` and `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import ProgressBars, Quiet, Seed, print_rows, print_sentences, remark
from contstim.errors import InputError
from contstim.steps.step import ChangedSentences

if TYPE_CHECKING:
    from contstim.stimuli import Triplet


def models(quiet: Quiet = False) -> None:
    """List the kinds of models that load, and the nine models of the 2023 study.

    Example: `contstim models`
    """
    del quiet  # it prints nothing but its result
    from contstim.models.families import families
    from contstim.models.specifications import CATALOGUE

    rows = [(f"{each.name}:", each.summary, ", ".join(each.rules)) for each in families()]
    print_rows(("family", "what it is", "scoring rules"), rows, texts=3, title="Families")
    entries = [(name, *entry) for name, entry in CATALOGUE.items()]
    header = ("name", "stands for", "what it is")
    print_rows(header, entries, texts=3, title="Models of Golan et al. (2023)")


def show(
    table: Annotated[Path, typer.Argument(help="Triplets, pairs or trials.")],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Scores of the sentences, as of `score`: log-probabilities of pairs and trials, "
            "and how often the models agree."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="The page's heading; by default the file.")] = "",
    quiet: Quiet = False,
) -> None:
    """Write a page of stimuli to look at: sentences, log-probabilities, changed words marked.

    The page is one file that needs no network. To decide which stimuli stay, see
    `contstim review`.

    Example: `contstim show triplets.csv --scores scores.csv --out triplets.html`
    """
    from contstim.files import write_text
    from contstim.reporting.stimuli_page import stimuli_report
    from contstim.reviews import named_sentences
    from contstim.scores import ScoreTable
    from contstim.steps.review import flags_of
    from contstim.stimuli import read_stimulus_table

    stimuli = read_stimulus_table(table)
    table_of_scores = None if scores is None else ScoreTable.read(scores)
    sentences = (sentence for each in stimuli for sentence in named_sentences(each)[1])
    flagged = flags_of(stimuli) if stimuli and None not in sentences else None
    page = stimuli_report(title or table.name, stimuli, scores=table_of_scores, flagged=flagged)
    write_text(out, page.html())
    remark(f"{out}: open it in a browser.", quiet=quiet)


def check(
    platform: Annotated[str, typer.Argument(help="Whose rules, such as psych-ds.")],
    folder: Annotated[Path, typer.Argument(help="The folder to check.")],
    quiet: Quiet = False,
) -> None:
    """Check a folder against the rules of a format; the exit status is 1 if it breaks one.

    Example: `contstim check psych-ds dataset`
    """
    from contstim.experiments.platforms.platform import platform_named

    place = platform_named(platform)
    exporter = None if place is None else place.exporter
    if exporter is None or exporter.check is None:
        raise InputError(f"{platform} has no rules that a folder is checked against.")
    errors, warnings = exporter.check(folder)
    for kind, findings in (("error", errors), ("warning", warnings)):
        for finding in findings:
            print(f"{kind}: {finding}")
    if errors:
        raise typer.Exit(1)
    remark(f"{folder} obeys {exporter.format}.", quiet=quiet)


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("contstim-demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show the main job from end to end, on embedded text and models trained on the spot.

    Trains a 2-gram, a 3-gram, an RNN, an LSTM, a small GPT-2 and a small BERT, which takes about a
    minute the first time, and shows where two of them disagree as soon as both are trained. Called
    again, it takes from the folder what is there.

    Example: `contstim demo --out contstim-demo`
    """
    from contstim.demo import run_demo

    run_demo(out, seed=seed, reporter=ProgressBars(quiet=quiet), show=_print_triplet)
    print(f"Everything is in {out}/; open {out / 'report.html'} in a browser.")


def _print_triplet(triplet: Triplet) -> None:
    names = {name: name for name in (triplet.model_1, triplet.model_2)}
    print_sentences(ChangedSentences(triplet.natural, triplet.labelled, names))
