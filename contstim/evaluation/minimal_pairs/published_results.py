"""Results to set beside: what people chose in BLiMP's pairs, and what published models did."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.tables import number, parsed, read_csv, read_table, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# the file has a row for each assignment of a worker, with five pairs and the worker's languages;
# `wh_islandans2` is a pair of the paradigm `wh_island` whose second sentence is acceptable
_CONDITION = re.compile(r"(?P<paradigm>.+)ans(?P<answer>[12])")
_ATTENTION = "attnchk"
_ITEMS = range(1, 6)
_NEEDED = (
    *("AssignmentStatus", "Answer.english", "Answer.navtive"),
    *(f"Input.item_{i}_condition" for i in _ITEMS),
    *(f"Input.field_{i}_{side}" for i in _ITEMS for side in (1, 2)),
    *(f"Answer.Choice{i}" for i in _ITEMS),
)


@dataclass(frozen=True)
class HumanAgreement:
    """Agreement of people with the labels of one paradigm: choices of the acceptable sentence.

    Attributes:
        individual: mean over items of the share of people who chose the acceptable sentence.
        majorities: items in which more than half of them did.
        items: how many pairs people judged.
        answers: how many choices were counted.
    """

    individual: float
    majorities: int
    items: int
    answers: int


@dataclass(frozen=True)
class PublishedResults:
    """Published results on the same paradigms.

    Attributes:
        people: agreement with the labels, by paradigm.
        models: accuracy of published models on full sentences, by model and paradigm.
    """

    people: Mapping[str, HumanAgreement]
    models: Mapping[str, Mapping[str, float]]


NOTHING_PUBLISHED = PublishedResults({}, {})


def read_human_agreement(path: Path | str) -> dict[str, HumanAgreement]:
    """Agreement by paradigm from the answers of BLiMP's crowd workers (`human_responses.csv`).

    Counted are answers of approved assignments, whose workers say that they are fluent in English
    or native speakers; attention checks and unanswered items are left out. So counted, the answers
    give every number of the published summary. An item on which people were divided evenly has no
    majority for the acceptable sentence.

    Raises:
        InputError: the file cannot be read, or lacks a column (names it).
    """
    columns = read_csv(path)
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise InputError(
            f"{path} has no column {missing[0]!r}; it is not a table of BLiMP's answers."
        )
    right: dict[str, dict[tuple[str, str], list[bool]]] = defaultdict(lambda: defaultdict(list))
    for cells in zip(*columns.values(), strict=True):
        row = dict(zip(columns, cells, strict=True))
        # the column of native speakers is spelled so in the published file
        speaks = "1" in (row["Answer.english"], row["Answer.navtive"])
        if row["AssignmentStatus"] != "Approved" or not speaks:
            continue
        for i in _ITEMS:
            condition = row[f"Input.item_{i}_condition"]
            match = _CONDITION.fullmatch(condition)
            if match is None:
                raise InputError(f"{path}: {condition!r} names no paradigm and right answer.")
            choice = row[f"Answer.Choice{i}"][:1]  # empty where nothing was chosen
            if choice and match["paradigm"] != _ATTENTION:
                pair = (row[f"Input.field_{i}_1"], row[f"Input.field_{i}_2"])
                right[match["paradigm"]][pair].append(choice == match["answer"])
    if not right:
        raise InputError(f"{path} has not an approved answer of anybody who speaks English.")
    agreement = {}
    for paradigm, items in sorted(right.items()):
        # first by pair, so that pairs that more people judged do not count for more
        shares = [float(np.mean(choices)) for choices in items.values()]
        agreement[paradigm] = HumanAgreement(
            individual=float(np.mean(shares)),
            majorities=sum(share > 0.5 for share in shares),
            items=len(shares),
            answers=sum(map(len, items.values())),
        )
    return agreement


def read_published_accuracies(path: Path | str) -> dict[str, dict[str, float]]:
    """Accuracy of each published model by paradigm (`raw_results/summary/models_summary.jsonl`).

    Its rows of averages are left out: averages are computed anew.

    Raises:
        InputError: the file cannot be read, has no field `UID`, or an accuracy is not a number.
    """
    columns = read_table(path)
    if "UID" not in columns:
        raise InputError(f"{path} has no field 'UID'; it is not a summary of BLiMP's models.")
    models = [name for name in columns if name not in {"UID", "linguistics_term"}]
    rows = [row for row, name in enumerate(columns["UID"]) if name != "overall"]
    paradigms = parsed(path, "UID", columns["UID"], text, "text")
    accuracies: dict[str, dict[str, float]] = {}
    for model in models:
        cells = [columns[model][row] for row in rows]
        numbers = parsed(path, model, cells, number, "number")
        accuracies[model] = dict(zip((paradigms[row] for row in rows), numbers, strict=True))
    return accuracies
