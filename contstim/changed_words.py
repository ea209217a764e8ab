"""Words of a stimulus that differ from those of the natural sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.stimuli import Condition, Kind, Trial, Triplet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.reviews import Stimulus
    from contstim.sentence import Sentence

_NOTHING: frozenset[int] = frozenset()


def differing(sentence: Sentence, other: Sentence) -> frozenset[int]:
    """Places, from 0, of the words that differ; none where the sentences differ in length."""
    if len(sentence) != len(other):
        return _NOTHING
    pairs = enumerate(zip(sentence.words, other.words, strict=True))
    return frozenset(place for place, (word, before) in pairs if word != before)


def changed_words(stimuli: Iterable[Stimulus]) -> dict[str, tuple[frozenset[int], ...]]:
    """Places of the words that a search changed, for each sentence of each stimulus.

    Two synthetic sentences of a trial are compared with their natural sentence, if another trial of
    the same triplet has it, and else with each other. Sentences that nobody changed, and shuffled
    ones, have no places.

    Returns:
        By `trial_id` or `triplet_id`, as many sets of places, from 0, as the stimulus has
        sentences.
    """
    every = list(stimuli)
    natural = {
        trial.source_id: trial.sentence_1
        for trial in every
        if isinstance(trial, Trial) and trial.condition is Condition.NATURAL_SYNTHETIC
    }
    places: dict[str, tuple[frozenset[int], ...]] = {}
    for stimulus in every:
        if isinstance(stimulus, Triplet):
            synthetic = (stimulus.synthetic_1, stimulus.synthetic_2)
            changes = (differing(sentence, stimulus.natural) for sentence in synthetic)
            places[stimulus.triplet_id] = (_NOTHING, *changes)
            continue
        places[stimulus.trial_id] = (_NOTHING, _NOTHING)
        if isinstance(stimulus, Trial):
            first, second = stimulus.sentence_1, stimulus.sentence_2
            if stimulus.condition is Condition.NATURAL_SYNTHETIC:
                places[stimulus.trial_id] = (_NOTHING, differing(second, first))
            elif stimulus.kind_1 is Kind.SYNTHETIC_1 and stimulus.kind_2 is Kind.SYNTHETIC_2:
                places[stimulus.trial_id] = (
                    differing(first, natural.get(stimulus.source_id, second)),
                    differing(second, natural.get(stimulus.source_id, first)),
                )
    return places
