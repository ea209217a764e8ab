"""Allotment of natural sentences to the pairs of a study, as a table: allotment.csv.

A study that has grown step by step has other sentences than one that had all its models from the
start. From its allotment it can be repeated elsewhere, with the same sentences for the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.stimuli import CELL_READERS
from contstim.tables import columns_of, read_rows, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from contstim.models.specifications import Specification
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.sentence import Sentence


@dataclass(frozen=True)
class AllottedSentence:
    """A natural sentence of a pair of models; fields are the columns of allotment.csv.

    Attributes:
        model_1: as in triplets.csv.
        model_2: as in triplets.csv.
        place: from 0, the order in which the pair's sentences are searched; some may be left out.
        sentence: searched, passed over, or held ready.
    """

    model_1: str
    model_2: str
    place: int
    sentence: Sentence


def write_allotment(path: Path | str, allotment: Iterable[AllottedSentence]) -> None:
    """Write allotment.csv (or `.parquet`, `.jsonl`): the fields of `AllottedSentence`.

    Raises:
        InputError: the file cannot be written.
    """
    write_table(path, columns_of(AllottedSentence, allotment))


def read_allotment(path: Path | str) -> tuple[AllottedSentence, ...]:
    """Read what `write_allotment` wrote; further columns are ignored.

    Raises:
        InputError: the file cannot be read, lacks a column, has no rows, or holds a value of
            another type; a row does not name two models, a place is negative or given twice to a
            pair, or a sentence stands in two rows.
    """
    rows = read_rows(path, AllottedSentence, CELL_READERS, rows_are="allotted sentences")
    places: dict[tuple[frozenset[str], int], int] = {}
    sentences: dict[Sentence, int] = {}
    for number, row in enumerate(rows):
        if not row.model_1 or not row.model_2 or row.model_1 == row.model_2:
            raise InputError(
                f"{path}, row {number}: model_1 and model_2 must name two models, not "
                f"{row.model_1!r} and {row.model_2!r}."
            )
        if row.place < 0:
            raise InputError(f"{path}, row {number}: the place {row.place} is below 0.")
        before = places.setdefault((frozenset({row.model_1, row.model_2}), row.place), number)
        if before != number:
            raise InputError(
                f"{path} has place {row.place} of {row.model_1} × {row.model_2} in rows {before} "
                f"and {number}; every place has one sentence."
            )
        before = sentences.setdefault(row.sentence, number)
        if before != number:
            raise InputError(
                f"{path} has the sentence {shortened(row.sentence.text)} in rows {before} and "
                f"{number}; every sentence stands once, for one pair of models."
            )
    return rows


def specified(
    allotment: Iterable[AllottedSentence], given: Iterable[Specification]
) -> tuple[AllottedSentence, ...]:
    """The same with each model's specification for its name, as searches know it."""
    models = {model.name: model.specification for model in given}
    return tuple(
        replace(
            row,
            model_1=models.get(row.model_1, row.model_1),
            model_2=models.get(row.model_2, row.model_2),
        )
        for row in allotment
    )


def models_of(allotment: Sequence[AllottedSentence]) -> list[str]:
    """The models of an allotment, in the order in which all its pairs name them.

    Raises:
        InputError: there is no such order.
    """
    sorter = TopologicalSorter[str]()
    for row in allotment:
        sorter.add(row.model_1)
        sorter.add(row.model_2, row.model_1)
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise InputError(
            f"The allotment names models in two orders ({' × '.join(error.args[1])}): of two "
            f"models the same must be model_1 in all rows."
        ) from None


def standing_sentences(
    allotment: Sequence[AllottedSentence],
    plan: SynthesisPlan,
    usable: Sequence[Callable[[Sentence], bool]],
) -> dict[tuple[str, str], dict[int, str]]:
    """The sentences that the pairs of a new study begin with, by their places without gaps.

    Args:
        allotment: with models as in the plan; other models' sentences are left out.
        plan: of the study, its models in the order of the allotment.
        usable: for each pair of the plan, whether it can use a sentence.

    Raises:
        InputError: the allotment is of other models, or has a sentence that is not among the
            plan's, or that its pair cannot use.
    """
    pool = {*plan.sentences}
    standing: dict[tuple[str, str], dict[int, str]] = {}
    for pair, can_use in zip(plan.pairs, usable, strict=True):
        rows = [row for row in allotment if (row.model_1, row.model_2) == pair]
        for place, row in enumerate(sorted(rows, key=lambda row: row.place)):
            if row.sentence not in pool or not can_use(row.sentence):
                why = (
                    "has a word that one of them does not know, or that the vocabulary lacks"
                    if row.sentence in pool
                    else "is not among the natural sentences"
                )
                raise InputError(
                    f"The allotment gives {pair[0]} × {pair[1]} the sentence "
                    f"{row.sentence.text!r}, which {why}. Give the natural sentences and the "
                    f"vocabulary of the study that the allotment is of."
                )
            standing.setdefault(pair, {})[place] = row.sentence.text
    if allotment and not standing:
        raise InputError(
            f"The allotment is of other models ({', '.join(models_of(allotment))}): name models as "
            f"it does."
        )
    return standing
