"""`contstim generate minimal-pairs`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import Quiet, Seed, progress_bars, remark
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.english.minimal_pairs import Paradigm

app = typer.Typer(help="Make test sentences from the embedded English.", no_args_is_help=True)


@app.callback()
def _generate() -> None:
    """Make test sentences from the embedded English."""


@app.command("minimal-pairs")
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
        generate_pairs,
        read_paradigms,
        shipped_paradigms,
        write_pairs,
    )
    from contstim.records import write_record

    found = [one for path in paradigms or () for one in read_paradigms(path)]
    wanted = _only(found or shipped_paradigms(), only or [])
    names = [paradigm.uid for paradigm in wanted]
    _check_folder(out, names)
    with _bar(len(wanted), quiet=quiet) as progress:
        pairs = generate_pairs(per_paradigm, seed=seed, paradigms=wanted, progress=progress)
    write_pairs(out, pairs)
    write_record(out / "minimal-pairs", seed=seed, per_paradigm=per_paradigm, paradigms=names)
    phenomena = {paradigm.phenomenon for paradigm in wanted}
    remark(
        f"{out}: {counted(len(pairs), 'pair')} of "
        f"{counted(len(wanted), 'paradigm')} "
        f"({counted(len(phenomena), 'phenomenon', 'phenomena')}).",
        quiet=quiet,
    )


def _only(paradigms: Sequence[Paradigm], names: Sequence[str]) -> list[Paradigm]:
    from contstim.errors import InputError

    known = {name for one in paradigms for name in (one.uid, one.phenomenon)}
    strange = [name for name in names if name not in known]
    if strange:
        raise InputError(
            f"There is no paradigm or phenomenon {', '.join(strange)}; there are "
            f"{', '.join(sorted(known))}."
        )
    return [one for one in paradigms if not names or {one.uid, one.phenomenon} & set(names)]


def _check_folder(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder in which older paradigms would pass for ones of this run."""
    from contstim.errors import InputError

    others = sorted({path.name for path in folder.glob("*.jsonl")} - {f"{n}.jsonl" for n in names})
    if others:
        raise InputError(
            f"{folder / others[0]} is not a paradigm of this run, yet an evaluation of the folder "
            "would read it too. Give --out a new folder, or remove the file"
            + (f" and {len(others) - 1} more like it." if others[1:] else ".")
        )


@contextmanager
def _bar(total: int, *, quiet: bool) -> Iterator[Callable[[Paradigm], None]]:
    with progress_bars(quiet=quiet, passing=True) as progress:
        task = progress.add_task("paradigms", total=total)
        yield lambda _paradigm: progress.advance(task)
