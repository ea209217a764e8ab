"""`contstim evaluate desiderata`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import (
    Device,
    Dtype,
    KeptScores,
    Prompt,
    Quiet,
    Seed,
    TrustRemoteCode,
    remark,
    scoring_progress,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.benchmarks.desiderata.run import Desiderata
    from contstim.models.base import LanguageModel
    from contstim.sentence import Sentence


def desiderata(
    model: Annotated[
        list[str], typer.Option(help="A model with its rule, as hf:DIR@pll-word-l2r; repeatable.")
    ],
    sentences: Annotated[
        Path, typer.Option(help="Sentences, one a line, or a table with columns of sentences.")
    ],
    frequencies: Annotated[
        Path,
        typer.Option(help="A text to count words in, or a table with columns word and count."),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    reference: Annotated[
        str | None, typer.Option(help="A causal model to correlate scores with.")
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="Sentences to draw by chance; 0 for all.")] = 0,
    words: Annotated[
        int, typer.Option(min=1, help="Words of small letters to draw from the frequencies.")
    ] = 500,
    word_list: Annotated[
        Path | None, typer.Option(help="The words, one a line, instead of drawn ones.")
    ] = None,
    carrier: Annotated[
        list[str] | None,
        typer.Option(
            help="A sentence with '_' for the word; repeatable. By default three neutral "
            "ones and '_' alone."
        ),
    ] = None,
    prompt: Prompt = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    trust_remote_code: TrustRemoteCode = False,
    store: KeptScores = None,
    seed: Seed = 0,
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
    from contstim.experiments.benchmarks.desiderata.carriers import CARRIERS, Carrier
    from contstim.experiments.benchmarks.desiderata.frequencies import read_frequencies
    from contstim.experiments.benchmarks.desiderata.report import write_desiderata
    from contstim.experiments.benchmarks.desiderata.run import evaluate_desiderata
    from contstim.models.catalog import load_models
    from contstim.stimuli import read_stimuli
    from contstim.store import Store

    carriers = [Carrier(text) for text in carrier or CARRIERS]
    chosen = _drawn(read_stimuli(sentences), sample, seed)
    counts = read_frequencies(frequencies)
    wanted = list(read_lines(word_list)) if word_list else counts.sample(words, seed=seed)
    names = [*model, *([reference] if reference and reference not in model else [])]
    loaded = load_models(
        names, device=device, dtype=dtype, prompt=prompt, trust_remote_code=trust_remote_code
    )
    by_name: dict[str, LanguageModel] = dict(zip(names, loaded, strict=True))
    total = len(set(chosen)) + len(carriers) * len(wanted)
    with (
        Store(store or out / "contstim.sqlite") as kept,
        scoring_progress(total, quiet=quiet) as progress,
    ):
        found = evaluate_desiderata(
            [by_name[name] for name in model],
            chosen,
            wanted,
            counts,
            carriers=carriers,
            reference=by_name[reference] if reference else None,
            store=kept,
            progress=progress,
        )
    data = [path for path in (sentences, frequencies, word_list) if path]
    write_desiderata(found, out, models=loaded, data=data, seed=seed, sample=sample)
    _show(found)
    sentences_lost = {one.sentence for one in found.left_out}
    for what, lost in (("sentences", sentences_lost), ("words", found.words_left_out)):
        if lost:
            remark(f"{len(lost):,} {what} were left out: see {out / 'left_out.csv'}.", quiet=quiet)
    remark(f"{out}: tables, scatter plots and report.md.", quiet=quiet)


def _drawn(sentences: Sequence[Sentence], n: int, seed: int) -> list[Sentence]:
    """A random sample of distinct sentences in their own order; all of them for n = 0."""
    distinct = list(dict.fromkeys(sentences))
    if not n or n >= len(distinct):
        return distinct
    rows = sorted(random.Random(seed).sample(range(len(distinct)), n))
    return [distinct[row] for row in rows]


def _show(found: Desiderata) -> None:
    from rich.console import Console
    from rich.table import Table

    from contstim.experiments.benchmarks.desiderata.report import desiderata_table
    from contstim.experiments.benchmarks.names import short_names

    columns = desiderata_table(found)
    shown = [name for name in columns if name.endswith("_r")]
    shown += ["split_words", "advantage_of_several"]
    table = Table("model", title="Desiderata of scoring rules")
    for name in shown:
        table.add_column(name.replace("_", "\n", 1).replace("_", " "), justify="right")
    for row, name in enumerate(short_names(columns["model"])):
        table.add_row(name, *(f"{columns[column][row]:.3f}" for column in shown))
    Console().print(table)
