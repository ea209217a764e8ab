"""Compare synthetic sentences with their natural sentences.

The comparison concerns words, parts of speech, length and word frequency. A misfit is a new word
with another part of speech than the replaced word.

natural      The old man slept on the chair.
synthetic    The old dog slept was the chair.    two new words; "was" is a misfit
                               ^^^
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from contstim.items.reviews import changed_positions, named_sentences, naturals_of
from contstim.items.stimuli import SYNTHETIC, Trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.items.reviews import Stimulus
    from contstim.items.stimuli import Triplet
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable

MISFIT = 0.05
"""A new word is a misfit if less than this share of its uses have the replaced word's tag.

Tags are parts of speech.
"""


@dataclass(frozen=True)
class Match:
    """Comparison of a synthetic sentence with its natural sentence.

    Attributes:
        changed: 0-based positions of the new words.
        misfits: positions of new words with another part of speech than the replaced word; see
            `MISFIT`. A new word that the table of tags lacks is a misfit. If the table lacks the
            replaced word, the new word is no misfit.
        characters: difference in characters, synthetic minus natural sentence, without end marks.
        zipf: difference in mean Zipf frequency of the words, synthetic minus natural sentence. The
            Zipf frequency is the base-10 logarithm of the frequency in a billion words.
    """

    changed: frozenset[int]
    misfits: frozenset[int]
    characters: int
    zipf: float


def match(natural: Sentence, synthetic: Sentence, table: TagTable) -> Match:
    """Compare a synthetic sentence with its natural sentence.

    `table` has tags and frequencies of words.
    """
    changed = changed_positions(synthetic, natural)
    tags = table.tags(natural) if changed else ()
    shares = {i: table.shares(synthetic.words[i], initial=i == 0) for i in changed}
    return Match(
        changed,
        frozenset(i for i in changed if tags[i] and shares[i].get(tags[i], 0.0) < MISFIT),
        len(synthetic.bare) - len(natural.bare),
        table.frequencies.mean_zipf(synthetic) - table.frequencies.mean_zipf(natural),
    )


Changes = dict[str, tuple[dict[int, str], ...]]
"""Identifier of a stimulus → a dictionary for each sentence; see `changes_of`.

A dictionary maps the 0-based position of a new word to the description of the change.
"""


def changes_of(stimuli: Iterable[Stimulus], table: TagTable | None = None) -> Changes:
    """Find the new words of each sentence, and describe the changes, such as `on (IN) → was (VBD)`.

    The tags in brackets are parts of speech. New words are the words of a synthetic sentence that
    differ from its natural sentence. If the natural sentence is unknown, the two synthetic
    sentences of a trial are compared with each other. Sentences that are not synthetic have no new
    words. A description is empty if there is no table of tags or the natural sentence is unknown.
    """
    stimuli_list = list(stimuli)
    naturals, changes = naturals_of(stimuli_list), {}
    for stimulus in stimuli_list:
        name, sentences = named_sentences(stimulus)
        compared, tag_table = naturals[name], table
        if isinstance(stimulus, Trial) and stimulus.kind_1 in SYNTHETIC and None in compared:
            compared, tag_table = sentences[::-1], None
        pairs = zip(sentences, compared, strict=True)
        changes[name] = tuple(_describe_changes(*pair, tag_table) for pair in pairs)
    return changes


def _describe_changes(
    sentence: Sentence | None, counterpart: Sentence | None, table: TagTable | None
) -> dict[int, str]:
    if sentence is None or counterpart is None:
        return {}
    positions = sorted(changed_positions(sentence, counterpart))
    if table is None:
        return dict.fromkeys(positions, "")
    sides = [
        [
            f"{word} ({table.tag_name(tag) or 'unknown'})"
            for word, tag in zip(compared.words, table.tags(compared), strict=True)
        ]
        for compared in (counterpart, sentence)
    ]
    return {position: " → ".join(side[position] for side in sides) for position in positions}


ENOUGH = 5.0
"""Default minimum for each of the two `Triplet.drops`, nats.

A drop is the log-probability of the natural sentence minus that of the sentence that the model
rejects. The default comes from a reanalysis of the 2023 study. There, minimums of 5 and of 10 nats
worked best: people's answers to such triplets showed most reliably which model was better.
"""

ENOUGH_SDS = 0.5
"""Default minimum for each of the two `Triplet.drops`, if a model's scores are not in nats.

The unit is the standard deviation of a model's scores over natural sentences.
"""


def figures_of(
    triplets: Sequence[Triplet],
    flagged: float | None,
    table: TagTable | None,
    enough: float | None = 0.0,
) -> dict[str, float]:
    """Compute means and shares over triplets; keys are labels of table rows.

    Args:
        triplets: at least one triplet. The drops (see `ENOUGH`) of all triplets have the same unit.
        flagged: share of triplets with flags (possible problems, see `item_flags`); None to omit
            the row of this share.
        table: table of tags; None to omit comparisons of synthetic with natural sentences.
        enough: limit that each of the two drops must reach in the row "share with both drops of at
            least …"; 0 for the default (`ENOUGH` or `ENOUGH_SDS`), None to omit the row.
    """
    smaller = [min(triplet.drops) for triplet in triplets]
    unit, kind = triplets[0].drop_unit, "log-probability" if triplets[0].in_nats else "score"
    figures = {
        f"smaller drop in {kind}, {unit}": fmean(smaller),
        f"sum of both drops, {unit}": fmean(triplet.controversiality for triplet in triplets),
    }
    if enough is not None:
        least = enough or (ENOUGH if triplets[0].in_nats else ENOUGH_SDS)
        label = f"share with both drops of at least {least:g} {unit}"
        figures[label] = fmean(drop >= least for drop in smaller)
    if flagged is not None:
        figures["share with flags"] = flagged
    if table is not None:
        matches = [match(t.natural, s, table) for t in triplets for s in t.sentences[1:]]
        figures |= {
            "new words of a sentence": fmean(len(comparison.changed) for comparison in matches),
            "of these, with another part of speech": fmean(
                len(comparison.misfits) for comparison in matches
            ),
            "difference in characters, synthetic - natural": fmean(
                comparison.characters for comparison in matches
            ),
            "difference in mean Zipf frequency, synthetic - natural": fmean(
                comparison.zipf for comparison in matches
            ),
        }
    return figures
