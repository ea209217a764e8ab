"""`contstim generate minimal-pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.commands import CommandGroup
from contstim.cli.options import Quiet, Seed
from contstim.cli.output import remark
from contstim.cli.progress import step_progress
from contstim.wording import counted


def minimal_pairs(
    out: Annotated[Path, typer.Option(help="The folder to write, a file for each paradigm.")],
    per_paradigm: Annotated[
        int, typer.Option(min=1, help="Distinct pairs of each paradigm.")
    ] = 1000,
    paradigms: Annotated[
        list[Path] | None,
        typer.Option(help="A TOML file of your own paradigms, instead of ours; repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A paradigm or a phenomenon, to leave out the others; repeatable."),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Make labelled minimal pairs in BLiMP's file format: a good sentence, and its bad twin.

    Ours are 57 paradigms of 11 phenomena. A paradigm of your own is a short entry in a TOML file:
    see docs/minimal-pairs-of-your-own.md.

    Example: `contstim generate minimal-pairs --per-paradigm 1000 --out pairs`
    """
    from contstim.english.minimal_pairs import (
        choose_paradigms,
        generate_pairs,
        read_paradigms,
        refuse_other_pairs,
        shipped_paradigms,
        write_pairs,
    )
    from contstim.records import write_record

    own = [paradigm for path in paradigms or () for paradigm in read_paradigms(path)]
    chosen = choose_paradigms(own or shipped_paradigms(), only or ())
    names = [paradigm.uid for paradigm in chosen]
    # Before anything is generated: benchmarks read whatever files a folder holds
    refuse_other_pairs(out, names)
    with step_progress("paradigms", quiet=quiet) as progress:
        pairs = generate_pairs(per_paradigm, seed=seed, paradigms=chosen, progress=progress)
    write_pairs(out, pairs)
    write_record(
        out / "minimal-pairs",
        paradigms or (),
        [out / f"{name}.jsonl" for name in names],
        seed=seed,
        per_paradigm=per_paradigm,
        paradigms=names,
    )
    phenomena = {paradigm.phenomenon for paradigm in chosen}
    remark(
        f"{out}: {counted(len(pairs), 'pair')} of "
        f"{counted(len(chosen), 'paradigm')} "
        f"({counted(len(phenomena), 'phenomenon', 'phenomena')}).",
        quiet=quiet,
    )


app = CommandGroup("Make test sentences from the embedded English.")
app.add("minimal-pairs", minimal_pairs)
