"""Minimal pairs in an experiment: trials, analysis by paradigm, and damaged tables."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.english.words import tag_table
from contstim.errors import InputError
from contstim.experiments.analysis.ratings import Scope, gather
from contstim.experiments.analysis.run import analyze
from contstim.experiments.analysis.trivial_rivals import GRAMMAR, trivial_rivals
from contstim.experiments.design.building import Design, build_design
from contstim.experiments.design.summary import summarise
from contstim.experiments.responses.table import Response
from contstim.files.tables import columns_of, write_table
from contstim.items import stimuli
from contstim.items.scores import ScoreTable
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import Sentence


def build_pair(n: int) -> stimuli.ControversialMinimalPair:
    """Model b is right in every second pair, model a in the others."""
    models = ("a", "b") if n % 2 else ("b", "a")
    good, bad = (Sentence.parse(f"{text} {n}.") for text in ("The cats sleep", "Cat the sleep"))
    paradigm = f"p{n % 3}"
    return stimuli.ControversialMinimalPair(
        f"minimal-{n}", *models, paradigm, str(n), good, bad, -30.0, -20.0, -20.0, -30.0
    )


PAIRS = tuple(map(build_pair, range(12)))
SIZES = {"groups": 2, "random_per_group": 0, "catch_per_group": 0}


@pytest.fixture(scope="module")
def design() -> Design:
    return build_design(PAIRS, **SIZES)  # type: ignore[arg-type]


def build_scores() -> ScoreTable:
    rows = {
        sentence: {p.model_1: first, p.model_2: second}
        for p in PAIRS
        for sentence, first, second in (
            (p.good, p.log_prob_good_model_1, p.log_prob_good_model_2),
            (p.bad, p.log_prob_bad_model_1, p.log_prob_bad_model_2),
        )
    }
    return ScoreTable(
        (*rows,),
        ("a", "b"),
        np.array([[log_probs["a"], log_probs["b"]] for log_probs in rows.values()]),
    )


def test_trials_are_balanced_and_read_back(design: Design, tmp_path: Path) -> None:
    shares = Counter((t.group, t.model_1) for t in design.trials)
    assert shares == {(group, model): 3 for group in (1, 2) for model in "ab"}
    by_id = {p.trial_id: p for p in PAIRS}
    for trial in design.trials:
        pair = by_id[trial.source_id]
        assert (trial.sentence_1, trial.sentence_2) == (pair.good, pair.bad)
        assert (trial.kind_1, trial.kind_2) == (stimuli.Kind.ACCEPTABLE, stimuli.Kind.UNACCEPTABLE)
        assert (trial.condition, trial.paradigm) == (stimuli.Condition.MINIMAL_PAIR, pair.paradigm)
    summary = summarise(design, WordFrequencies.of([PAIRS[0].good]), seconds_per_trial=8.0)
    role = (stimuli.Condition.MINIMAL_PAIR, "acceptable – unacceptable")
    assert summary.roles == {role: (1, 6, 6)}
    write_table(tmp_path / "trials.csv", stimuli.trial_columns(design.trials))
    assert stimuli.read_trials(tmp_path / "trials.csv") == design.trials


def test_agreement_is_counted_by_paradigm(design: Design) -> None:
    """Witness: shares counted by hand. Participants follow the grammar in p0, else model b."""
    responses = []
    for trial in design.trials:
        b_prefers_1 = trial.model_2 == "b"
        for person in range(3):
            likes_1 = trial.paradigm == "p0" or (b_prefers_1 if person else not b_prefers_1)
            name, rating = f"{trial.group}-{person}", 1 if likes_1 else 6
            responses.append(Response(name, trial.group, trial.trial_id, rating, 1, 1, 900.0))
    table = tag_table(None)
    analysis = analyze(
        design.trials, responses, build_scores(), rivals=trivial_rivals(design.trials, table)
    )
    trial_by_id = {trial.trial_id: trial for trial in design.trials}
    for row in analysis.paradigms:
        agrees: dict[str, list[bool]] = {}  # by participant
        right = []
        for response in responses:
            trial = trial_by_id[response.trial_id]
            if row["paradigm"] in ("all", trial.paradigm):
                is_right = row["judge"] in (GRAMMAR, trial.model_2)
                right.append(is_right)
                agreed = (response.rating == 1) == is_right
                agrees.setdefault(response.participant, []).append(agreed)
        assert row["prefers_acceptable"] == pytest.approx(np.mean(right))
        assert row["value"] == pytest.approx(np.mean([np.mean(a) for a in agrees.values()]))
        assert row["n_trials"] == len(right) / 3
    assert [row["judge"] for row in analysis.paradigms] == [GRAMMAR, "a", "b"] * 4
    scope = analysis.result(Scope.MINIMAL, analysis.main.measure)
    rivals = analysis.rivals_of(scope)
    assert rivals is not None
    assert GRAMMAR in {row.model for row in rivals.models}
    assert not gather(design.trials, responses, build_scores()).n_missing


def test_errors_of_a_damaged_table(tmp_path: Path) -> None:
    path = tmp_path / "minimal.csv"
    path.write_text("sentence,a,b\nCats sleep.,-9,-8\n")
    with pytest.raises(InputError, match="of minimal pairs of 'contstim select minimal-pairs': it"):
        stimuli.read_controversial_minimal_pairs(path)
    write_table(path, columns_of(stimuli.ControversialMinimalPair, PAIRS))
    assert stimuli.read_controversial_minimal_pairs(path) == PAIRS
    assert stimuli.read_stimuli(path) == [*(p.good for p in PAIRS), *(p.bad for p in PAIRS)]
    for values, message in (
        ({"bad": PAIRS[0].good}, "row 0: good and bad must be different"),
        ({"model_2": "b"}, "row 0"),
        ({"trial_id": "minimal-1"}, "minimal-1"),
    ):
        rows = (replace(PAIRS[0], **values), *PAIRS[1:])
        write_table(path, columns_of(stimuli.ControversialMinimalPair, rows))
        with pytest.raises(InputError, match=message):
            stimuli.read_controversial_minimal_pairs(path)
