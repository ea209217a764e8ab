"""A minimal pair in the fields of BLiMP, and its file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files import write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class LabelledPair:
    """A sentence and its ungrammatical twin, as a line of BLiMP's files has them.

    Attributes:
        sentence_good: the grammatical sentence.
        sentence_bad: the other.
        field: of linguistics, such as `syntax`.
        linguistics_term: the phenomenon, such as `island_effects`.
        UID: the paradigm.
        pairID: number of the pair within the paradigm, from 0.
        lexically_identical: whether both have the same lemmas, in whatever order and form.
        one_prefix: what both begin with, and the next word of the good and of the bad sentence.
        two_prefix: what the good and the bad sentence begin with, and the word that follows both.
    """

    sentence_good: str
    sentence_bad: str
    field: str
    linguistics_term: str
    UID: str
    pairID: str  # noqa: N815 - BLiMP's name
    lexically_identical: bool
    one_prefix: tuple[str, str, str] | None = None
    two_prefix: tuple[str, str, str] | None = None

    @property
    def row(self) -> dict[str, Any]:
        """The fields of BLiMP's JSON lines; those of prefix methods only where they apply."""
        row = asdict(self)
        one, two = row.pop("one_prefix"), row.pop("two_prefix")
        row |= {
            "simple_LM_method": True,
            "one_prefix_method": one is not None,
            "two_prefix_method": two is not None,
        }
        names = ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad")
        row |= dict(zip(names, one or (), strict=False))
        names = ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word")
        return row | dict(zip(names, two or (), strict=False))


def write_pairs(folder: Path | str, pairs: Iterable[LabelledPair]) -> list[Path]:
    """Write UID.jsonl for each paradigm; what lay there under that name is replaced.

    Raises:
        InputError: a file cannot be written.
    """
    lines: dict[str, list[str]] = {}
    for pair in pairs:
        lines.setdefault(pair.UID, []).append(json.dumps(pair.row, ensure_ascii=False) + "\n")
    paths = [Path(folder) / f"{uid}.jsonl" for uid in lines]
    for path, of_paradigm in zip(paths, lines.values(), strict=True):
        write_text(path, "".join(of_paradigm))
    return paths


def refuse_other_pairs(folder: Path | str, paradigms: Sequence[str]) -> None:
    """Refuse a folder in which pairs of other paradigms would pass for ones of this run.

    Raises:
        InputError: there is a file of another paradigm.
    """
    expected = {f"{uid}.jsonl" for uid in paradigms}
    others = sorted({path.name for path in Path(folder).glob("*.jsonl")} - expected)
    if others:
        raise InputError(
            f"{Path(folder) / others[0]} is not a paradigm of this run, yet an evaluation of the "
            "folder would read it too. Give --out a new folder, or remove the file"
            + (f" and {len(others) - 1} more like it." if others[1:] else ".")
        )
