"""Reviews of stimuli: files, merging, and refused reviews."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.design.building import pair_trial, triplet_trials
from contstim.items.matching import changes_of
from contstim.items.reviews import (
    Decision,
    ItemKind,
    Review,
    ReviewedItem,
    Stimulus,
    changed_positions,
    read_reviews,
    undecided_items,
    write_review,
)
from contstim.items.stimuli import Condition, Kind, Pair, Trial, Triplet
from contstim.words.sentence import Sentence


def make_triplet(number: int) -> Triplet:
    natural, first, second = (
        Sentence.parse(f"{word} stands at place {number}") for word in ("It", "She", "Nothing")
    )
    log_probs = (-1.0, -1.0, -2.0, -1.0, -1.0, -2.0)
    return Triplet(f"triplet-{number}", "a", "b", natural, first, second, *log_probs, 2.0)


TRIPLETS = [make_triplet(number) for number in range(4)]


def make_decisions(reviewer: str, *decisions: str) -> tuple[ReviewedItem, ...]:
    return tuple(
        replace(item, decision=Decision(decision), reason="odd" if decision == "reject" else "")
        for item, decision in zip(undecided_items(TRIPLETS, reviewer), decisions, strict=True)
    )


def undecided_trials(triplet: Triplet) -> tuple[ReviewedItem, ...]:
    trials = triplet_trials(triplet, twins=True)
    return tuple(undecided_items(replace(trial, group=1) for trial in trials))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_written_review_is_read_unchanged(tmp_path: Path, suffix: str) -> None:
    decisions = make_decisions("Ann", "keep", "", "reject", "")
    write_review(tmp_path / f"review{suffix}", decisions)
    assert read_reviews([tmp_path / f"review{suffix}"]).decisions == decisions


def test_columns_of_review_csv(tmp_path: Path) -> None:
    write_review(tmp_path / "review.csv", ())
    columns = "reviewer item_id kind source_id condition group model_1 model_2 "
    columns += "sentence_1 sentence_2 sentence_3 decision reason"
    header = ",".join(f'"{name}"' for name in columns.split())
    assert (tmp_path / "review.csv").read_text() == f"{header}\n"


def test_reviews_are_merged_and_disagreements_listed(tmp_path: Path) -> None:
    write_review(tmp_path / "ann.csv", make_decisions("Ann", "keep", "reject", "reject", ""))
    write_review(tmp_path / "unnamed.csv", make_decisions("", "reject", "reject", "", ""))
    review = read_reviews([tmp_path / "ann.csv", tmp_path / "unnamed.csv"])
    assert review.rejected == {"triplet-0", "triplet-1", "triplet-2"}
    assert {
        item_id: [(item.reviewer, str(item.decision)) for item in items]
        for item_id, items in review.disagreements.items()
    } == {"triplet-0": [("Ann", "keep"), ("unnamed", "reject")]}


def test_rejected_trial_rejects_its_triplet() -> None:
    trials = undecided_trials(TRIPLETS[2])
    review = Review((replace(trials[0], decision=Decision.REJECT), *trials[1:]))
    assert review.rejected == {trials[0].item_id, "triplet-2"}
    synthetic_review = Review((*trials[:2], replace(trials[2], decision=Decision.REJECT)))
    sentences = (TRIPLETS[2].natural, TRIPLETS[2].synthetic_1, TRIPLETS[2].synthetic_2)
    assert synthetic_review.rejected_words == {sentence.words for sentence in sentences}


def test_pair_and_its_trial_may_both_be_reviewed() -> None:
    """The trial of a pair has the pair's identifier."""
    words = (Sentence.parse("It stands"), Sentence.parse("She stands"))
    pair = Pair("pair-1", "a", "b", *words, 0, 1, 0.1, 0.9, 0.9, 0.1)
    trial = replace(pair_trial(pair), group=2)
    review = Review((*undecided_items([pair], "Ann"), *undecided_items([trial], "Bea")))
    assert review.of_kind(ItemKind.PAIR)["pair-1"].group == 0
    assert review.of_kind(ItemKind.TRIAL)["pair-1"].group == 2


def test_decisions_with_semicolons_capitals_and_spaces_are_read(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    write_review(path, make_decisions("Ann", "keep", "", "reject", ""))
    text = path.read_text().replace('"reject"', '" Reject"')
    text = text.replace('","', '";"').replace(',"', ';"').replace('",', '";')
    assert "," not in text
    path.write_text(text)
    assert read_reviews([path]).decisions == make_decisions("Ann", "keep", "", "reject", "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"reject"', '"perhaps"', "under decision is not a decision"),
        ('"triplet-2"', '""', "row 2: the item_id is empty"),
        ('"Nothing stands at place 2."', '""', "row 2: a triplet must have 3 sentences"),
        ('"decision"', '"judgement"', "it lacks decision"),
    ],
)
def test_damaged_reviews_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "review.csv"
    write_review(path, make_decisions("Ann", "", "", "reject", ""))
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        read_reviews([path])


@pytest.mark.parametrize(
    ("rounds", "rejected"),
    [
        ([("Ann", "reject"), ("Ann", "keep")], False),
        ([("Ann", "keep"), ("Ann", "reject")], True),
        ([("Ann", "reject"), ("Ann", "")], True),
        ([("Ann", "reject"), ("Bea", "keep")], True),
        ([("Ann", "reject"), ("Bea", "reject"), ("Ann", "keep")], True),
        ([("Ann", "reject"), ("Bea", "reject"), ("Ann", "keep"), ("Bea", "keep")], False),
        ([("Ann", "reject"), ("Ann", "keep"), ("Ann", "reject")], True),
        ([("Ann", ""), ("Bea", "")], False),
    ],
)
def test_last_decisions_count_and_one_rejection_suffices(
    tmp_path: Path, rounds: list[tuple[str, str]], rejected: bool
) -> None:
    paths = [tmp_path / f"review-{number}.csv" for number in range(len(rounds))]
    for path, (reviewer, decision) in zip(paths, rounds, strict=True):
        write_review(path, make_decisions(reviewer, "", decision, "", ""))
    review = read_reviews(paths)
    assert review.rejected == ({"triplet-1"} if rejected else set())
    assert review.first_rows == tuple(range(0, 4 * len(rounds), 4))


def test_kept_items_belong_to_the_last_file_that_lists_them() -> None:
    trials = undecided_trials(TRIPLETS[3])
    first_items = make_decisions("Ann", "keep", "", "reject", "")[:3]
    review = Review((*first_items, *undecided_items(TRIPLETS[:1], "Bea"), *trials), (0, 3, 4))
    kept_items = [[*items] for items in review.kept_items(ItemKind.TRIPLET)]
    assert kept_items == [["triplet-3"], ["triplet-0"], ["triplet-1"]]
    assert [*review.kept_items(ItemKind.TRIAL)[0]] == [trial.item_id for trial in trials]
    assert review.shown_words == {s.words for s in TRIPLETS[3].sentences}


def test_review_of_other_or_changed_items_is_refused() -> None:
    changed = replace(TRIPLETS[0], natural=Sentence.parse("It is another sentence"))
    with pytest.raises(InputError, match="triplet-0 has different sentences in two rows"):
        Review((*undecided_items(TRIPLETS, "Ann"), *undecided_items([changed], "Bea")))
    review = Review(make_decisions("Ann", "keep", "", "reject", ""))
    review.require_items_of([*TRIPLETS, make_triplet(9)], "t.csv")  # more items than were reviewed
    with pytest.raises(InputError, match=r"other items than t\.csv: the table lacks 1 of 4 rev"):
        review.require_items_of(TRIPLETS[1:], "t.csv")
    changed = replace(TRIPLETS[3], synthetic_2=Sentence.parse("Nobody stands at place 3"))
    message = "triplet-3 has changed since the review: it had 'Nothing stands"
    with pytest.raises(InputError, match=message):
        review.require_items_of([*TRIPLETS[:3], changed], "t.csv")


PositionSets = tuple[set[int], ...]
NATURAL, FIRST, SECOND = map(
    Sentence.parse, ("The old dog sat.", "The old zinc sat.", "A old dog ran.")
)
CHANGED = Triplet("t", "a", "b", NATURAL, FIRST, SECOND, *(-1.0,) * 6, 1.0)


def positions_by_item(stimuli: Iterable[Stimulus]) -> dict[str, PositionSets]:
    return {name: tuple(map(set, sets)) for name, sets in changes_of(stimuli).items()}


def test_sentences_of_different_lengths_are_not_compared_word_by_word() -> None:
    assert changed_positions(Sentence.parse("A b c"), Sentence.parse("A x c!")) == {1}
    assert changed_positions(Sentence.parse("A b"), Sentence.parse("C d e")) == set()


def test_triplets_and_their_trials_are_compared_with_the_natural_sentence() -> None:
    assert positions_by_item([CHANGED]) == {"t": (set(), {2}, {0, 3})}
    trials = triplet_trials(CHANGED, twins=True)
    positions = positions_by_item(trials)
    positions_by_condition = {(t.condition, t.kind_2): positions[t.trial_id] for t in trials}
    assert positions_by_condition == {
        (Condition.NATURAL_SYNTHETIC, Kind.SYNTHETIC_1): (set(), {2}),
        (Condition.NATURAL_SYNTHETIC, Kind.SYNTHETIC_2): (set(), {0, 3}),
        (Condition.SYNTHETIC_SYNTHETIC, Kind.SYNTHETIC_2): ({2}, {0, 3}),
    }
    trial = trials[-1]
    assert positions_by_item([trial]) == {trial.trial_id: ({2}, {0, 3})}
    positions = positions_by_item([replace(trial, source=None)])
    assert positions == {trial.trial_id: ({0, 2, 3}, {0, 2, 3})}


def test_trials_without_a_source_id_use_their_own_natural_sentence() -> None:
    """Witness: by hand. Without `source_id`, trials cannot share a natural sentence."""
    other_triplet = replace(CHANGED, triplet_id="u", natural=Sentence.parse("Some cats sat still."))
    trials = [*triplet_trials(CHANGED, twins=True), *triplet_trials(other_triplet, twins=True)]
    unnamed_trials = [replace(trial, source_id="") for trial in trials]
    assert positions_by_item(unnamed_trials) == positions_by_item(trials)
    sourceless = replace(unnamed_trials[2], source=None)
    positions = positions_by_item([*unnamed_trials[:2], sourceless])
    assert positions[sourceless.trial_id] == ({0, 2, 3}, {0, 2, 3})


def test_natural_and_shuffled_sentences_have_no_changed_positions() -> None:
    pair = Pair("p", "a", "b", NATURAL, FIRST, 0, 1, 0.1, 0.9, 0.9, 0.1)
    shuffled = Sentence.parse("sat The dog old.")
    kinds = (Kind.NATURAL, Kind.SHUFFLED)
    catch = Trial("c", 1, Condition.CATCH, "", "", NATURAL, shuffled, *kinds, "")
    natural = replace(catch, trial_id="n", condition=Condition.RANDOM_NATURAL, sentence_2=FIRST)
    positions = positions_by_item([pair, catch, natural])
    assert positions == dict.fromkeys(("p", "c", "n"), (set(), set()))
