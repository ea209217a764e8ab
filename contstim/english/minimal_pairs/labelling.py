"""From two trees to a labelled pair: texts, prefixes, and what else BLiMP's fields say."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from contstim.english.minimal_pairs.pair import LabelledPair
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.english.derivation import Derivation
    from contstim.english.minimal_pairs.paradigm import Paradigm
    from contstim.english.minimal_pairs.template import Item
    from contstim.sentence import Sentence


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
    twins = [dataclasses.replace(tree.sentence, end=paradigm.end) for _, tree in (good, bad)]
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
    place = next((i for i, (one, other) in enumerate(pairs) if one != other), 0)
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
