"""`contstim demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import Quiet, Seed, changed_words, remark

if TYPE_CHECKING:
    from rich.table import Table

    from contstim.demo import Demo
    from contstim.stimuli import Triplet


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("contstim-demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show the main job from end to end, on embedded text and models trained on the spot.

    Example: `contstim demo --out contstim-demo`
    """
    from rich.console import Console

    from contstim.demo import run_demo

    found = run_demo(out, seed=seed, say=lambda line: remark(f"{line} …", quiet=quiet))
    console = Console()
    for triplet in found.triplets[:5]:
        console.print(_triplet_table(triplet))
    console.print(_pair_table(found))
    console.print(f"Everything is in {out}/; open {out / 'report.html'} in a browser.")


def _triplet_table(triplet: Triplet) -> Table:
    from rich.table import Table

    from contstim.sentence import Sentence

    natural = Sentence.parse(triplet.natural)
    title = f"Synthetic, controversiality {triplet.controversiality:.1f} nats"
    table = Table("", "sentence", triplet.model_1, triplet.model_2, title=title)
    rows = (
        ("natural", "natural", triplet.natural),
        (f"{triplet.model_1} rejects", "synthetic_1", triplet.synthetic_1),
        (f"{triplet.model_2} rejects", "synthetic_2", triplet.synthetic_2),
    )
    for label, kind, text in rows:
        scores = (getattr(triplet, f"log_prob_{kind}_model_{number}") for number in (1, 2))
        words = changed_words(Sentence.parse(text), natural)
        table.add_row(label, words, *(f"{score:.2f}" for score in scores))
    return table


def _pair_table(found: Demo) -> Table:
    from rich.table import Table

    first = found.pairs[0]
    table = Table("natural pair", first.model_1, first.model_2, title="Natural pairs")
    columns = [found.scores.column(model) for model in (first.model_1, first.model_2)]
    for pair in found.pairs:
        for text, row in ((pair.sentence_1, pair.row_1), (pair.sentence_2, pair.row_2)):
            last = row == pair.row_2
            table.add_row(text, *(f"{column[row]:.2f}" for column in columns), end_section=last)
    return table
