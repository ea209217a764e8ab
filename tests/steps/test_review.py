"""Trials after a review stand where those stood that they replace, for participants too."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from contstim.experiments.design.building import build_design, triplet_trials
from contstim.experiments.design.presentation import Shown, presentation
from contstim.files.tables import write_table
from contstim.items.item_flags import FlagKind
from contstim.items.stimuli import Condition, Trial, content_id, read_trials, trial_columns
from contstim.models.ngram.training import DiscountWarning, train_ngram
from contstim.steps.review import ReviewSettings, WriteReviewPage, flags_of, trials_in_place
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import natural, some_pairs, some_triplets

BEFORE = build_design(
    some_pairs(6, ("ngram", "rnn")), natural=natural(60), groups=3, random_per_group=3,
    catch_per_group=2,
).trials  # fmt: skip


def other(trial: Trial, word: str) -> Trial:
    """Another random pair of the same group."""
    words = (*trial.sentence_1.words, word)
    return replace(
        trial,
        trial_id=content_id("trial", *words),
        sentence_1=replace(trial.sentence_1, words=words),
        instead_of="",
    )


def shown_to(trials: tuple[Trial, ...], group: int, participant: int) -> tuple[Shown, ...]:
    return presentation(trials, group=group, participant=participant, seed=0)


def test_what_stays_is_presented_as_before(tmp_path: Path) -> None:
    """Witness: turn and side of every trial, for people of each group, over two reviews."""
    first, second, *_ = (t for t in BEFORE if t.condition is Condition.RANDOM_NATURAL)
    trials, path = BEFORE, tmp_path / "trials.csv"
    for gone in (first, other(first, "again"), second):
        # As a design is made: anew, and in another order
        now = [other(t, "again") if t.trial_id == gone.trial_id else t for t in trials]
        rows = trials_in_place(trials, [replace(t, instead_of="") for t in reversed(now)])
        write_table(path, trial_columns(rows))
        after = read_trials(path)
        for group, participant in product((1, 2, 3), range(1, 7)):
            for old, new in zip(
                shown_to(trials, group, participant), shown_to(after, group, participant),
                strict=True,
            ):  # fmt: skip
                assert (new.left, new.position) == (old.left, old.position)
                stays = old.trial.trial_id != gone.trial_id
                assert (new.trial.trial_id == old.trial.trial_id) == stays
        assert trials_in_place(after, [replace(t, instead_of="") for t in after]) == list(after)
        trials = after


def test_a_judge_reads_the_natural_sentence_of_trials_that_do_not_show_it(tmp_path: Path) -> None:
    (triplet,) = some_triplets(1, ("ngram", "rnn"))
    (trial,) = triplet_trials(triplet, twins=False)
    write_table(tmp_path / "trials.csv", trial_columns([replace(trial, group=1)]))
    with pytest.warns(DiscountWarning):
        train_ngram([*triplet.sentences, *natural(9)], 2, tmp_path / "2.arpa")
    settings = ReviewSettings(judge=f"kenlm:{tmp_path / '2.arpa'}")
    out = tmp_path / "page.html"
    page = WriteReviewPage(table=tmp_path / "trials.csv", out=out, settings=settings).run()
    assert page.flags is not None
    assert not page.flags.explanations[FlagKind.UNLIKELY].startswith("Not looked for")


def test_sentences_that_are_not_english_are_not_flagged_by_rules_of_english() -> None:
    """Witness: the German nouns, capitalised as they must be, are no names."""
    (triplet,) = some_triplets(1, ("ngram", "rnn"))
    german = replace(
        triplet,
        natural=Sentence.parse("Der alte Hund schläft"),
        synthetic_1=Sentence.parse("Der alte Vogel schläft"),
        synthetic_2=Sentence.parse("Der junge Hund schläft"),
    )
    assert not flags_of([german]).flags
