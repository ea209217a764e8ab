"""How a synthetic sentence matches its natural one: words, parts of speech, length, frequency.

natural      The old man slept on the chair.
synthetic    The old dog slept of the chair.     two new words, one of another part of speech
                              ^^ misfit
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from contstim.items.reviews import differing, named_sentences, naturals_of
from contstim.items.stimuli import SYNTHETIC, Trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.items.reviews import Stimulus
    from contstim.items.stimuli import Triplet
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable

MISFIT = 0.05
"""Share of a word's occurrences with a tag below which it does not fit in place of that tag."""


@dataclass(frozen=True)
class Match:
    """A synthetic sentence beside its natural one.

    Attributes:
        changed: positions, from 0, of the new words.
        misfits: those of them where the new word is of another part of speech: less than `MISFIT`
            of its occurrences have the tag of the word that it replaced. A new word that the table
            does not list fits nowhere, and in place of such a word every other fits.
        characters: length of the synthetic sentence, less that of the natural one.
        zipf: mean Zipf frequency of its words, less that of the natural one's, in the text in which
            the tags were counted.
    """

    changed: frozenset[int]
    misfits: frozenset[int]
    characters: int
    zipf: float


def match(natural: Sentence, synthetic: Sentence, table: TagTable) -> Match:
    """Compare a synthetic sentence with its natural one.

    Args:
        natural: the sentence, which is tagged as it stands.
        synthetic: made from it.
        table: how often words have which tag.
    """
    changed = differing(synthetic, natural)
    tags = table.tags(natural) if changed else ()
    return Match(
        changed,
        frozenset(i for i in changed if tags[i] and _share(i, synthetic, tags[i], table) < MISFIT),
        len(synthetic.bare) - len(natural.bare),
        table.frequencies.mean_zipf(synthetic) - table.frequencies.mean_zipf(natural),
    )


def _share(place: int, sentence: Sentence, tag: str, table: TagTable) -> float:
    return table.shares(sentence.words[place], initial=place == 0).get(tag, 0.0)


Changes = dict[str, tuple[dict[int, str], ...]]
"""Of each sentence of each stimulus, by its identifier: places of new words, and the changes."""


def changes_of(stimuli: Iterable[Stimulus], table: TagTable | None = None) -> Changes:
    """New words, each with what it replaced and both parts of speech, in words.

    Two synthetic sentences of a trial are compared with their natural sentence, if a trial of the
    same triplet has it, and else with each other. Sentences that nobody changed, and shuffled
    ones, have no new words.

    Args:
        stimuli: triplets, pairs or trials.
        table: of tags; without it, and where the natural sentence is not known, a change is empty.
    """
    every = list(stimuli)
    naturals, changes = naturals_of(every), {}
    for stimulus in every:
        name, sentences = named_sentences(stimulus)
        compared, of_tags = naturals[name], table
        if isinstance(stimulus, Trial) and stimulus.kind_1 in SYNTHETIC and None in compared:
            compared, of_tags = sentences[::-1], None
        both = zip(sentences, compared, strict=True)
        changes[name] = tuple(_changes(*each, of_tags) for each in both)
    return changes


def _changes(
    sentence: Sentence | None, other: Sentence | None, table: TagTable | None
) -> dict[int, str]:
    if sentence is None or other is None:
        return {}
    places = sorted(differing(sentence, other))
    if table is None:
        return dict.fromkeys(places, "")
    sides = [
        [
            f"{word} ({table.tag_name(tag) or 'unknown'})"
            for word, tag in zip(each.words, table.tags(each), strict=True)
        ]
        for each in (other, sentence)
    ]
    return {place: " → ".join(side[place] for side in sides) for place in places}


ENOUGH = 5.0
"""Nats on each side; in a replay of the 2023 study 5 and 10 named models best."""


def figures_of(
    triplets: Sequence[Triplet],
    flagged: float | None,
    table: TagTable | None,
    enough: float | None = 0.0,
) -> dict[str, float]:
    """Figures of a set of triplets, by what they are called in tables: means, and shares.

    Args:
        triplets: one or more.
        flagged: the share of them that has flags; None to leave it out.
        table: of tags; None where none fits, so that nothing is told of parts of speech.
        enough: nats that each side is to have; 0 for `ENOUGH`, None to leave their share out.
    """
    smaller = [min(triplet.drops) for triplet in triplets]
    figures = {
        "smaller drop in log-probability, nats": fmean(smaller),
        "sum of both drops, nats": fmean(triplet.controversiality for triplet in triplets),
    }
    if enough is not None:
        nats = enough or ENOUGH
        share = fmean(side >= nats for side in smaller)
        figures[f"share with {nats:g} nats on both sides"] = share
    if flagged is not None:
        figures["share with flags"] = flagged
    if table is not None:
        matches = [match(t.natural, s, table) for t in triplets for s in t.sentences[1:]]
        figures |= {
            "new words of a sentence": fmean(len(each.changed) for each in matches),
            "of these, of another part of speech": fmean(len(each.misfits) for each in matches),
            "characters above the natural sentence's": fmean(each.characters for each in matches),
            "mean Zipf frequency above the natural sentence's": fmean(m.zipf for m in matches),
        }
    return figures
