"""`contstim select …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.output import Quiet, remark
from contstim.errors import InputError

app = typer.Typer(help="Select the most controversial stimuli, exactly.", no_args_is_help=True)


@app.callback()
def _select() -> None:
    """Select the most controversial stimuli, exactly."""


@app.command("natural")
def natural(
    scores: Annotated[Path, typer.Option(help="Scores: .csv, .parquet, .jsonl or .npz.")],
    out: Annotated[Path, typer.Option(help="The table of pairs to write.")],
    per_pair: Annotated[int, typer.Option(help="Sentence pairs for each pair of models.")] = 10,
    no_repeats: Annotated[
        bool, typer.Option("--no-repeats", help="Leave out sentences in which a word repeats.")
    ] = False,
    repeatable: Annotated[
        Path | None,
        typer.Option(
            help="With --no-repeats: words that may repeat, one a line, or a vocabulary file with "
            "a list [repeatable]; by default English articles and prepositions."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Select natural sentence pairs on which each pair of models disagrees most (2023, Eq. 5).

    Exact: the certificate beside the table holds the objective and its proven bound.

    Example: `contstim select natural --scores scores.csv --per-pair 10 --out pairs.csv`
    """
    from contstim.optimization.selection import select_natural
    from contstim.records import write_record
    from contstim.scores import ScoreTable
    from contstim.stimuli import write_pairs
    from contstim.vocabulary import REPEATABLE_ENGLISH, read_repeatable

    if repeatable is not None and not no_repeats:
        raise InputError("--repeatable names the exceptions of --no-repeats: give both.")
    exempt = REPEATABLE_ENGLISH if no_repeats else None
    if repeatable is not None:
        exempt = read_repeatable(repeatable)
    found = select_natural(ScoreTable.read(scores), per_pair=per_pair, repeatable=exempt)
    write_pairs(out, found.pairs)
    found.certificate.save(Path(f"{out}.certificate.json"))
    write_record(out, scores=str(scores), per_pair=per_pair)
    remark(
        f"{out}: {len(found.pairs):,} pairs; objective {found.certificate.objective:.10f}, proven "
        f"bound {found.certificate.bound:.10f}.",
        quiet=quiet,
    )
