"""`contstim demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Quiet, Seed
from contstim.cli.output import changed_words, results_table, terminal
from contstim.cli.progress import ProgressBars

if TYPE_CHECKING:
    from rich.table import Table

    from contstim.stimuli import Pair, Triplet


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

    console = terminal()
    results = run_demo(
        out,
        seed=seed,
        reporter=ProgressBars(quiet=quiet),
        show=lambda triplet: console.print(_triplet_table(triplet)),
    )
    # Of each pair of models, the natural pair with the lowest sum of ranks (Eq. 5).
    best: dict[tuple[str, str], Pair] = {}
    for pair in sorted(results.pairs, key=lambda pair: pair.rank_1_model_1 + pair.rank_2_model_2):
        best.setdefault((pair.model_1, pair.model_2), pair)
    header = ("model", "rejects", "log p", "prefers", "log p")
    table = results_table(*header, texts=len(header), title="Natural pairs")
    for (model_1, model_2), pair in best.items():
        sentences = ((pair.sentence_1, pair.row_1), (pair.sentence_2, pair.row_2))
        # model_1 rejects sentence_1, model_2 sentence_2
        for model, (no, yes) in ((model_1, sentences), (model_2, sentences[::-1])):
            column = results.scores.column(model)
            cells = (str(no[0]), f"{column[no[1]]:.2f}", str(yes[0]), f"{column[yes[1]]:.2f}")
            table.add_row(model, *cells, end_section=model == model_2)
    console.print(table)
    console.print(f"Everything is in {out}/; open {out / 'report.html'} in a browser.")


def _triplet_table(triplet: Triplet) -> Table:
    title = f"Synthetic, controversiality {triplet.controversiality:.1f} nats"
    models = (triplet.model_1, triplet.model_2)
    table = results_table("", "sentence", *models, texts=2, title=title)
    rows = (
        ("natural", "natural", triplet.natural),
        (f"{triplet.model_1} rejects", "synthetic_1", triplet.synthetic_1),
        (f"{triplet.model_2} rejects", "synthetic_2", triplet.synthetic_2),
    )
    for label, kind, sentence in rows:
        scores = (getattr(triplet, f"log_prob_{kind}_model_{number}") for number in (1, 2))
        words = changed_words(sentence, triplet.natural)
        table.add_row(label, words, *(f"{score:.2f}" for score in scores))
    return table
