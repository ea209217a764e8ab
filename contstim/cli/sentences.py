"""`contstim sentences`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Quiet, Text
from contstim.cli.output import INCOMPLETE, print_table, remark, results_table
from contstim.cli.progress import ProgressBars
from contstim.errors import InputError
from contstim.steps.text_settings import SentenceSettings

if TYPE_CHECKING:
    from contstim.experiments.design.sentence_needs import SentenceNeeds


@dataclass(frozen=True, kw_only=True)
class StudySize:
    """The size of a study that sentences are counted for."""

    for_models: Annotated[
        int | None,
        typer.Option(
            metavar="M", help="Count for a study of so many models whether there are enough."
        ),
    ] = None
    triplets_per_pair: Annotated[
        int, typer.Option(help="With --for-models: as of triplets --per-pair.")
    ] = 100
    pairs_per_pair: Annotated[
        int, typer.Option(help="With --for-models: as of select natural --per-pair.")
    ] = 10
    groups: Annotated[int, typer.Option(help="With --for-models: as of design.")] = 10
    random_per_group: Annotated[int, typer.Option(help="With --for-models: as of design.")] = 9
    catch_per_group: Annotated[int, typer.Option(help="With --for-models: as of design.")] = 12

    def needs(self) -> SentenceNeeds | None:
        """Numbers of sentences needed, by use; None where no study was asked about."""
        from contstim.experiments.design.sentence_needs import sentences_needed

        if self.for_models is None:
            if self != StudySize():
                raise InputError("The numbers of a study are for --for-models: give both.")
            return None
        return sentences_needed(
            self.for_models,
            triplets_per_pair=self.triplets_per_pair,
            pairs_per_pair=self.pairs_per_pair,
            groups=self.groups,
            random_per_group=self.random_per_group,
            catch_per_group=self.catch_per_group,
        )


def sentences(
    *,
    text: Text,
    out: Annotated[Path, typer.Option(help="The file of natural sentences to write.")],
    vocabulary: Annotated[
        Path | None, typer.Option(help="Keep sentences of these words only.")
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(help="Leave out sentences of this text, read like --text; repeatable."),
    ] = None,
    settings: SentenceSettings,
    study: StudySize,
    quiet: Quiet = False,
) -> None:
    """Find natural sentences in a text: whole ones, of one length, without repeated words.

    Lines that are no sentences are left out: those that do not start and end like one, that hold
    parts of addresses, abbreviations or words on a block list, or that are capitalised like
    headings. Of sentences that differ by one word the first is kept.

    With --for-models it also says how many sentences a study of so many models needs, and, where
    too few are left, which single rule to loosen gains how many; the exit status is then 3.

    Examples: `contstim sentences --text corpus.txt --vocabulary vocab.txt --out natural.txt`

    `contstim sentences --text corpus.txt --for-models 3 --triplets-per-pair 40 --out natural.txt`
    """
    from contstim.corpus import read_sentences
    from contstim.steps.sentences import costs_of_rules, find_sentences

    selection = find_sentences(
        text,
        out,
        settings=settings,
        vocabulary=vocabulary,
        exclude=exclude or (),
        needs=study.needs(),
        watch=ProgressBars(quiet=quiet),
    )
    if selection.needs is not None:
        _print_needs(selection.needs)
    if selection.too_few:
        remark(
            f"{selection.too_few:,} sentences too few for a study of {study.for_models} "
            f"models: give more text, ask for less, or loosen a rule."
        )
        # What was read is gone by now; a pipe cannot be read again
        if str(text) == "-":
            remark("What a rule costs is counted for files only: give --text FILE.")
        else:
            costs = costs_of_rules(read_sentences(text, prose=settings.prose), selection.rules)
            for cost in costs:
                if cost.gain > 0:
                    remark(
                        f"  {cost.gain:>+9,} left out only because {cost.reason} "
                        f"({cost.loosened_by})"
                    )
            if all(cost.gain <= 0 for cost in costs):
                remark("  No single rule gains any.")
        raise typer.Exit(INCOMPLETE)


def _print_needs(needs: SentenceNeeds) -> None:
    table = results_table("natural sentences for", "model pairs or groups", "each", "needed")
    for row in needs.rows:
        last = row is needs.rows[-1]
        numbers = ("", "") if last else (f"{row.times:,}", f"{row.each:,}")
        table.add_row(row.use, *numbers, f"{row.needed:,}")
    print_table(table)
