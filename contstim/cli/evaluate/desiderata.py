"""`contstim evaluate desiderata`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Folder, Model, Quiet, Sentences, StoreInFolder
from contstim.cli.output import print_summary, remark, tell_unknown_words
from contstim.cli.progress import scoring_progress
from contstim.evaluation.settings import DesiderataSettings
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution
from contstim.wording import counted


def desiderata(
    *,
    model: Model,
    sentences: Sentences,
    frequencies: Annotated[
        Path,
        typer.Option(
            help="Where word frequencies come from: a text, a table with the columns word and "
            "count, or a trained model of words."
        ),
    ],
    out: Folder,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME=]MODEL",
            help="A causal model to correlate scores with; may be the NAME of a --model.",
        ),
    ] = None,
    word_list: Annotated[
        Path | None, typer.Option(help="The words, one a line, instead of drawn ones.")
    ] = None,
    settings: DesiderataSettings,
    execution: ScoringExecution,
    loading: Loading,
    store: StoreInFolder = None,
    quiet: Quiet = False,
) -> None:
    """Ask of scoring rules what any measure of likelihood should do (Kauf & Ivanova 2023).

    Scores should fall with a sentence's length, rise with a word's frequency in a neutral sentence,
    agree with a causal model's, and not favour words that are cut into several tokens. Writes
    tables, scatter plots and a report. An interrupted run goes on where it stopped.

    Example: `contstim evaluate desiderata --model hf:runs/bert@pll-original --model
    hf:runs/bert@pll-word-l2r --reference hf:runs/gpt2 --sentences heldout.txt --frequencies
    train.txt --out desiderata`
    """
    from contstim.corpus import read_lines
    from contstim.evaluation.desiderata import (
        evaluate_desiderata,
        sample_items,
        with_reference,
    )
    from contstim.evaluation.desiderata_report import desiderata_findings
    from contstim.evaluation.folder import write_findings
    from contstim.frequencies import read_frequencies
    from contstim.stimuli import read_stimuli
    from contstim.store import Store

    counts = read_frequencies(frequencies)
    given = list(read_lines(word_list)) if word_list else None
    chosen, words = sample_items(read_stimuli(sentences), counts, settings, given)
    # Every word is scored in every carrier.
    total = len(chosen) + len(settings.carrier) * len(words)
    specifications, compared = with_reference(model, reference)
    at_once = not execution.is_local
    with (
        execution.scorers(specifications, loading, partial(remark, quiet=quiet)) as loaded,
        Store(store or out / "contstim.sqlite") as opened,
        scoring_progress(total, quiet=quiet, together=at_once) as progress,
    ):
        tell_unknown_words(loaded, chosen, quiet=quiet)
        results = evaluate_desiderata(
            # A reference of its own is the last of those loaded, and is not evaluated
            loaded[: len(model)],
            chosen,
            words,
            counts,
            carriers=settings.carrier,
            reference=None if compared is None else loaded[compared],
            store=opened,
            progress=progress,
        )
    data = [path for path in (sentences, frequencies, word_list) if path]
    findings, drawn = (
        desiderata_findings(results),
        {"seed": settings.seed, "sample": settings.sample},
    )
    write_findings(findings, out, models=loaded, data=data, **drawn)
    print_summary(findings.title, findings.summary, [each.model for each in results.models])
    sentences_lost = {omission.sentence for omission in results.left_out}
    for what, lost in (("sentence", sentences_lost), ("word", results.words_left_out)):
        if lost:
            number = counted(len(lost), what)
            remark(f"Left out: {number}; see {out / 'left_out.csv'}.", quiet=quiet)
    remark(f"{out}: tables, scatter plots and report.html.", quiet=quiet)
