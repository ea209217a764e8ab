"""`contstim select …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.commands import CommandGroup
from contstim.cli.options import Earlier, Quiet, Reviews
from contstim.cli.progress import ProgressBars
from contstim.steps.pairs import PairSettings, select_pairs
from contstim.steps.selection import SelectionSettings, choose_triplets


def natural(
    *,
    scores: Annotated[Path, typer.Option(help="Scores: .csv, .parquet, .jsonl or .npz.")],
    out: Annotated[Path, typer.Option(help="The table of pairs to write.")],
    settings: PairSettings,
    review: Reviews = None,
    earlier: Earlier = None,
    quiet: Quiet = False,
) -> None:
    """Select natural sentence pairs on which each pair of models disagrees most (2023, Eq. 5).

    Exact: the certificate beside the table holds the objective and its proven bound.

    After a review, pairs that were not rejected stay as they are; no sentence of a rejected one is
    chosen again, neither of the two.

    Examples: `contstim select natural --scores scores.csv --per-pair 10 --out pairs.csv`

    `contstim select natural --scores scores.csv --per-pair 10 --review review.csv
    --earlier pairs.csv --earlier trials.csv --out pairs-2.csv`
    """
    watch = ProgressBars(quiet=quiet)
    before = earlier or ()
    select_pairs(scores, out, settings=settings, review=review or (), earlier=before, watch=watch)


def triplets(
    *,
    triplets: Annotated[Path, typer.Option(help="Triplets to choose from, for all model pairs.")],
    out: Annotated[Path, typer.Option(help="The table of chosen triplets to write.")],
    settings: SelectionSettings,
    review: Reviews = None,
    earlier: Earlier = None,
    quiet: Quiet = False,
) -> None:
    """Select triplets of a natural and two synthetic sentences, the most controversial ones.

    Triplets whose three sentences are not all different, because a search found nothing better
    than the natural sentence, are left out and counted.

    Exact: the certificate beside the table holds the objective and its proven bound.

    After a review no rejected triplet is chosen again. Of the others as many stay as the rules
    allow, and of the sets that keep so many the best is chosen.

    Examples: `contstim select triplets --triplets triplets.csv --per-pair 10
    --objective worst-rank --out selected.csv`

    `contstim select triplets --triplets triplets.csv --per-pair 10 --review review.csv
    --earlier selected.csv --earlier trials.csv --out selected-2.csv`
    """
    watch = ProgressBars(quiet=quiet)
    before = earlier or ()
    choose_triplets(
        triplets, out, settings=settings, review=review or (), earlier=before, watch=watch
    )


app = CommandGroup("Select the most controversial stimuli, exactly.")
app.add("natural", natural)
app.add("triplets", triplets)
