"""Which words a search changed; witness: by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from contstim.changed_words import changed_words, differing
from contstim.experiments.design.building import triplet_trials
from contstim.reviews import Stimulus
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Pair, Trial, Triplet

Places = tuple[set[int], ...]
NATURAL, FIRST, SECOND = map(
    Sentence.parse, ("The old dog sat.", "The old zinc sat.", "A old dog ran.")
)
TRIPLET = Triplet("t", "a", "b", NATURAL, FIRST, SECOND, *(-1.0,) * 6, 1.0)


def places_of(stimuli: Iterable[Stimulus]) -> dict[str, Places]:
    return {name: tuple(map(set, sets)) for name, sets in changed_words(stimuli).items()}


def test_sentences_of_different_lengths_are_not_compared_word_by_word() -> None:
    assert differing(Sentence.parse("A b c"), Sentence.parse("A x c!")) == {1}
    assert differing(Sentence.parse("A b"), Sentence.parse("C d e")) == set()


def test_triplets_are_compared_with_their_natural_sentence() -> None:
    assert places_of([TRIPLET]) == {"t": (set(), {2}, {0, 3})}


def test_trials_of_two_synthetic_sentences_too_where_the_table_has_it() -> None:
    trials = triplet_trials(TRIPLET)
    places = places_of(trials)
    by_condition = {(trial.condition, trial.kind_2): places[trial.trial_id] for trial in trials}
    assert by_condition == {
        (Condition.NATURAL_SYNTHETIC, Kind.SYNTHETIC_1): (set(), {2}),
        (Condition.NATURAL_SYNTHETIC, Kind.SYNTHETIC_2): (set(), {0, 3}),
        (Condition.SYNTHETIC_SYNTHETIC, Kind.SYNTHETIC_2): ({2}, {0, 3}),
    }
    alone = [trial for trial in trials if trial.condition is Condition.SYNTHETIC_SYNTHETIC]
    assert places_of(alone) == {alone[0].trial_id: ({0, 2, 3}, {0, 2, 3})}


def test_natural_and_shuffled_sentences_have_no_places_of() -> None:
    pair = Pair("p", "a", "b", NATURAL, FIRST, 0, 1, 0.1, 0.9, 0.9, 0.1)
    shuffled = Sentence.parse("sat The dog old.")
    catch = Trial(
        *("c", 1, Condition.CATCH, "", "", NATURAL, shuffled, Kind.NATURAL, Kind.SHUFFLED, "")
    )
    natural = replace(catch, trial_id="n", condition=Condition.RANDOM_NATURAL, sentence_2=FIRST)
    places = places_of([pair, catch, natural])
    assert places == dict.fromkeys(("p", "c", "n"), (set(), set()))
