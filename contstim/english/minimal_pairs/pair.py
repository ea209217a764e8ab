"""A minimal pair in the fields of BLiMP: made of two trees, and written to its file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files import write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.english.derivation import Derivation
    from contstim.english.minimal_pairs.paradigm import Paradigm
    from contstim.english.minimal_pairs.template import Item
    from contstim.sentence import Sentence


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
        one_prefix, two_prefix = row.pop("one_prefix"), row.pop("two_prefix")
        row |= {
            "simple_LM_method": True,
            "one_prefix_method": one_prefix is not None,
            "two_prefix_method": two_prefix is not None,
        }
        names = ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad")
        row |= dict(zip(names, one_prefix or (), strict=False))
        names = ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word")
        return row | dict(zip(names, two_prefix or (), strict=False))


def labelled(
    paradigm: Paradigm,
    number: int,
    good: tuple[Sequence[Item], Derivation],
    bad: tuple[Sequence[Item], Derivation],
) -> LabelledPair | None:
    """A numbered pair from the items and trees of two sentences; None if they read the same.

    Raises:
        InputError: the paradigm's prefix method does not fit the sentences.
    """
    twins = [replace(tree.sentence, end=paradigm.end) for _, tree in (good, bad)]
    if twins[0] == twins[1]:
        return None
    lemmas = [sorted(entry.lemma for entry in tree.entries()) for _, tree in (good, bad)]
    return LabelledPair(
        sentence_good=twins[0].text,
        sentence_bad=twins[1].text,
        field=paradigm.field,
        linguistics_term=paradigm.phenomenon,
        UID=paradigm.uid,
        pairID=str(number),
        lexically_identical=lemmas[0] == lemmas[1],
        one_prefix=_one_prefix(paradigm, *twins) if paradigm.prefix == "one" else None,
        two_prefix=_two_prefix(paradigm, good, bad, twins) if paradigm.prefix == "two" else None,
    )


def _one_prefix(paradigm: Paradigm, good: Sentence, bad: Sentence) -> tuple[str, str, str]:
    pairs = list(zip(good.words, bad.words, strict=False))
    place = next((i for i, (word, other) in enumerate(pairs) if word != other), 0)
    if not place:
        raise InputError(
            f"Paradigm {paradigm.uid}: {good.text!r} and {bad.text!r} do not begin alike and go on "
            f"with different words; prefix = 'one' does not fit them."
        )
    return " ".join(good.words[:place]), good.words[place], bad.words[place]


def _two_prefix(
    paradigm: Paradigm,
    good: tuple[Sequence[Item], Derivation],
    bad: tuple[Sequence[Item], Derivation],
    twins: Sequence[Sentence],
) -> tuple[str, str, str]:
    prefixes, words = [], []
    for (items, tree), sentence in zip((good, bad), twins, strict=True):
        # the words before the critical constituent are those of the constituents before it
        place = [item.name for item in items].index(paradigm.critical)
        lengths = [sum(len(e.words) for e in child.entries()) for child in tree.children]
        start = sum(lengths[:place])
        prefixes.append(" ".join(sentence.words[:start]))
        words.append(" ".join(sentence.words[start : start + lengths[place]]))
    if words[0] != words[1] or prefixes[0] == prefixes[1]:
        raise InputError(
            f"Paradigm {paradigm.uid}: {twins[0].text!r} and {twins[1].text!r} do not have "
            f"{paradigm.critical!r} after different beginnings; prefix = 'two' does not fit them."
        )
    return prefixes[0], prefixes[1], words[0]


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
