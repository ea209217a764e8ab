"""Flags of stimuli on a page of review."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contstim.experiments.design.building import triplet_trials
from contstim.files.tables import write_table
from contstim.items.item_flags import FlagKind
from contstim.items.stimuli import trial_columns
from contstim.models.ngram.training import DiscountWarning, train_ngram
from contstim.steps.review import ReviewSettings, WriteReviewPage, flags_of
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import natural, some_triplets


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
    assert not page.flags.explanations[FlagKind.UNLIKELY].startswith("Not checked")


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
