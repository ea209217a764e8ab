"""Trials from an export's own columns: the trials from which it was simulated must come back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.gorilla.columns import GorillaOptions
from contstim.experiments.platforms.gorilla.reading import import_gorilla
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial
from tests.experiments.responses.experiment import make_responses, make_trials
from tests.experiments.responses.exports import gorilla_rows, is_rating, write_gorilla

TRIALS = make_trials()
RESPONSES = make_responses(TRIALS, {"9001": 1, "9002": 2, "9003": 1})


def scores_of(trials: list[Trial]) -> ScoreTable:
    """gpt2 (model_1) rejects sentence_1, rnn (model_2) sentence_2, or both the other way round.

    In natural-synthetic trials with synthetic_2, model_1 accepts the synthetic sentence.
    """
    log_probs: dict[Sentence, tuple[float, float]] = {}
    for n, trial in enumerate(trials):
        low, high = (-60.0 - n, -40.0), (-40.0, -60.0 - n)
        accepts_first = trial.kind_2 is Kind.SYNTHETIC_1
        log_probs[trial.sentence_1] = high if accepts_first else low
        log_probs[trial.sentence_2] = low if accepts_first else high
    return ScoreTable(tuple(log_probs), ("gpt2", "rnn"), np.array(list(log_probs.values())))


def bare(trial: Trial) -> Trial:
    """Without what an export cannot know: identifiers, and the order of a random pair."""
    first, second = trial.sentence_1, trial.sentence_2
    if trial.condition is Condition.RANDOM_NATURAL:
        first, second = sorted((first, second), key=str)
    return replace(trial, trial_id="", sentence_1=first, sentence_2=second)


def test_trials_come_back_in_canonical_order(tmp_path: Path) -> None:
    """Groups from shared pairs, conditions from kinds, roles of the models from the scores."""
    path = write_gorilla(tmp_path / "export.csv", gorilla_rows(TRIALS, RESPONSES, suffixed=True))
    found = import_gorilla([path], scores=scores_of(TRIALS))
    assert {bare(trial) for trial in found.trials} == {bare(trial) for trial in TRIALS}
    assert len({trial.trial_id for trial in found.trials}) == len(TRIALS)
    assert found.report.findings == ()
    by_id = {trial.trial_id: trial for trial in [*TRIALS, *found.trials]}
    for built, given in zip(found.responses, RESPONSES, strict=True):
        trial, original = by_id[built.trial_id], by_id[given.trial_id]
        same = trial.sentence_1 == original.sentence_1
        assert built.rating == (given.rating if same else 7 - given.rating)
        assert (built.group, built.position) == (given.group, given.position)


def test_groups_that_share_a_pair_and_are_not_stated_are_hinted_at(tmp_path: Path) -> None:
    """One random pair in both groups: everybody seems to be in one, which nobody finished."""
    place = next(n for n, t in enumerate(TRIALS) if t.condition is Condition.RANDOM_NATURAL)
    one, other = TRIALS[place], TRIALS[20 + place]
    shared = replace(other, sentence_1=one.sentence_1, sentence_2=one.sentence_2)
    trials = [*TRIALS[: 20 + place], shared, *TRIALS[21 + place :]]
    path = write_gorilla(tmp_path / "export.csv", gorilla_rows(trials, RESPONSES))
    hint = "name the column that holds the group"
    assert hint in import_gorilla([path], scores=scores_of(trials)).notes[-1]
    options = GorillaOptions(columns={"group": ("counterbalance-k3d9",)})
    stated = import_gorilla([path], scores=scores_of(trials), options=options)
    assert stated.report.findings == ()
    assert not any(hint in note for note in stated.notes)


def test_a_sentence_shown_bare_has_the_end_mark_it_was_scored_with(tmp_path: Path) -> None:
    asked = [
        replace(
            t,
            sentence_1=replace(t.sentence_1, end="?"),
            sentence_2=replace(t.sentence_2, end="!"),
        )
        for t in TRIALS
    ]
    path = write_gorilla(tmp_path / "export.csv", gorilla_rows(asked, RESPONSES, suffixed=True))
    found = import_gorilla([path], scores=scores_of(asked))
    assert {bare(trial) for trial in found.trials} == {bare(trial) for trial in asked}
    assert found.report.findings == ()


@pytest.mark.parametrize("rejecting", ["gpt2", "rnn"])
def test_the_kind_of_a_synthetic_sentence_names_who_rejects_it(
    tmp_path: Path, rejecting: str
) -> None:
    """synthetic_1 is the one that model_1 rejects."""
    kind = Kind.SYNTHETIC_1 if rejecting == "gpt2" else Kind.SYNTHETIC_2
    trials = [
        replace(trial, kind_2=kind)
        for trial in TRIALS
        if trial.condition is Condition.NATURAL_SYNTHETIC
    ]
    rows = gorilla_rows(trials, make_responses(trials, {"9001": 1, "9002": 2}))
    path = write_gorilla(tmp_path / "export.csv", rows)
    found = import_gorilla([path], scores=scores_of(trials))
    assert {trial.kind_2 for trial in found.trials} == {kind}
    assert {(trial.model_1, trial.model_2) for trial in found.trials} == {("gpt2", "rnn")}


def test_an_export_may_state_conditions_and_models_of_the_trial(tmp_path: Path) -> None:
    """One group of thirty, models as columns of the trial, one condition for all."""
    trials = [t for t in make_trials(1) if t.condition is Condition.SYNTHETIC_SYNTHETIC]
    people = {str(9000 + n): 1 for n in range(30)}
    responses = make_responses(trials, people)
    rows = gorilla_rows(trials, responses)
    for row in rows:
        for name in ("_type", "_model"):
            for place in "12":
                row.pop(f"sentence{place}{name}", None)
        row |= {"Model 1": "GPT two", "Model 2": "rnn"}
    path = write_gorilla(tmp_path / "export.csv", rows)
    options = GorillaOptions(
        constants={"condition": "synthetic-synthetic"}, values={"GPT two": "gpt2"}
    )
    found = import_gorilla([path], scores=scores_of(trials), options=options)
    assert {bare(trial) for trial in found.trials} == {bare(trial) for trial in trials}
    assert {r.group for r in found.responses} == {1}
    assert len(found.report.participants) == 30
    assert [r.rating for r in found.responses] == [r.rating for r in responses]


def test_groups_may_be_stated(tmp_path: Path) -> None:
    """A shared pair would join the groups of two people who otherwise share nothing."""
    shared = replace(TRIALS[28], sentence_1=TRIALS[8].sentence_1, sentence_2=TRIALS[8].sentence_2)
    trials = [*TRIALS[:28], shared, *TRIALS[29:]]
    path = write_gorilla(tmp_path / "export.csv", gorilla_rows(trials, RESPONSES))
    joined = import_gorilla([path], scores=scores_of(trials))
    assert {trial.group for trial in joined.trials} == {1}
    assert len(joined.report.findings) == 3
    options = GorillaOptions(columns={"group": ("counterbalance-k3d9",)})
    stated = import_gorilla([path], scores=scores_of(trials), options=options)
    assert stated.report.findings == ()
    assert {bare(trial) for trial in stated.trials} == {bare(trial) for trial in trials}


def test_unstated_shuffles_are_told_by_capitals_and_it_says_so(tmp_path: Path) -> None:
    trials = [
        replace(t, sentence_2=Sentence.parse(t.sentence_2.text[0].lower() + t.sentence_2.text[1:]))
        for t in TRIALS
        if t.condition is Condition.CATCH
    ]
    rows = gorilla_rows(trials, make_responses(trials, {"9001": 1, "9002": 2}))
    for row in rows:
        row.pop("sentence1_type", None)
        row.pop("sentence2_type", None)
    found = import_gorilla([write_gorilla(tmp_path / "export.csv", rows)])
    assert {bare(trial) for trial in found.trials} == {bare(trial) for trial in trials}
    assert any("is the capitalised one" in note for note in found.notes)


def drop(name: str) -> list[dict[str, object]]:
    rows = gorilla_rows(TRIALS, RESPONSES)
    for row in rows:
        row.pop(f"sentence1{name}", None)
        row.pop(f"sentence2{name}", None)
    return rows


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        ("_type", "are the sentences natural or synthetic"),
        ("_model", "a trial that is .* compares two models"),
    ],
)
def test_what_cannot_be_told_is_asked_for(tmp_path: Path, dropped: str, message: str) -> None:
    path = write_gorilla(tmp_path / "export.csv", drop(dropped))
    with pytest.raises(InputError, match=message):
        import_gorilla([path], scores=scores_of(TRIALS))


def test_roles_need_scores_of_every_sentence_and_model(tmp_path: Path) -> None:
    path = write_gorilla(tmp_path / "export.csv", gorilla_rows(TRIALS, RESPONSES))
    scores = scores_of(TRIALS)
    with pytest.raises(InputError, match=r"does gpt2 reject\? Give the scores"):
        import_gorilla([path])
    with pytest.raises(InputError, match="there are no scores of '"):
        import_gorilla([path], scores=scores_of(TRIALS[:1]))
    other = ScoreTable(scores.sentences, ("gpt2", "lstm"), scores.log_probs)
    with pytest.raises(InputError, match="no scores of the model 'rnn', only of gpt2, lstm"):
        import_gorilla([path], scores=other)


def test_a_trial_described_in_two_ways_is_refused(tmp_path: Path) -> None:
    rows = gorilla_rows(TRIALS, RESPONSES)
    last = next(row for row in reversed(rows) if is_rating(row))
    last["sentence1_model"] = "bert"
    with pytest.raises(InputError, match="described here in another way"):
        import_gorilla([write_gorilla(tmp_path / "e.csv", rows)], scores=scores_of(TRIALS))


def test_words_of_the_export_need_a_translation(tmp_path: Path) -> None:
    rows = gorilla_rows(TRIALS, RESPONSES)
    for row in rows:
        for place in "12":
            if row.get(f"sentence{place}_type") == "S":
                row[f"sentence{place}_type"] = "made up"
    path = write_gorilla(tmp_path / "export.csv", rows)
    with pytest.raises(InputError, match=r"'made up' under kind_.* is not a kind of sentence"):
        import_gorilla([path], scores=scores_of(TRIALS))
    options = GorillaOptions(values={"made up": "synthetic"})
    found = import_gorilla([path], scores=scores_of(TRIALS), options=options)
    assert {bare(trial) for trial in found.trials} == {bare(trial) for trial in TRIALS}
