"""Gathering of trials, responses and scores, and errors that name the cause."""

from dataclasses import replace

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.ratings import Scope, gather, roles, scope_mask
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.sentence import Sentence
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.experiments.stimuli import new_trial


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return simulate(groups=(2, 3))


def test_ratings_and_scores_are_aligned(experiment: Experiment) -> None:
    """Witness: values looked up by name, for shuffled responses."""
    rng = np.random.default_rng(1)
    shuffled = [experiment.responses[n] for n in rng.permutation(len(experiment.responses))]
    ratings = gather(experiment.trials, shuffled, experiment.scores)
    rating_by_key = {(r.participant, r.trial_id): r.rating for r in experiment.responses}
    assert [len(group.participants) for group in ratings.groups] == [2, 3]
    texts = experiment.scores.sentences or ()
    for group in ratings.groups:
        for row, name in enumerate(group.participants):
            for column, trial in enumerate(group.trials):
                assert group.ratings[row, column] == rating_by_key[name, trial.trial_id]
        for column, trial in enumerate(group.trials):
            for position, text in enumerate((trial.sentence_1, trial.sentence_2)):
                expected = experiment.scores.log_probs[texts.index(text)]
                assert group.log_probs[:, column, position].tolist() == expected.tolist()
    assert len(set(ratings.participants)) == 5


def test_end_marks_are_part_of_a_sentence(experiment: Experiment) -> None:
    """Trials and scores both end in a question mark."""
    questions = tuple(
        replace(t, sentence_1=replace(t.sentence_1, end="?")) for t in experiment.trials
    )
    sentences = tuple(
        replace(s, end="?") if s.words[0] == "First" else s
        for s in experiment.scores.sentences or ()
    )
    scores = ScoreTable(sentences, experiment.scores.models, experiment.scores.log_probs)
    ratings = gather(questions, experiment.responses, scores)
    expected = experiment.gather()
    assert ratings.groups[0].ratios.tolist() == expected.groups[0].ratios.tolist()
    with pytest.raises(InputError, match=r"no scores: 'First g1x0\?'"):
        gather(questions, experiment.responses, experiment.scores)


def test_sentences_without_scores_are_counted_once(experiment: Experiment) -> None:
    """By hand: sentences that are not in the first half of the table, in any group."""
    scores = experiment.scores
    half = len(scores.sentences or ()) // 2
    first_half = ScoreTable((scores.sentences or ())[:half], scores.models, scores.log_probs[:half])
    first = experiment.trials[0]
    last = replace(experiment.trials[-1], sentence_1=experiment.trials[-2].sentence_1)
    trials = (first, *experiment.trials[1:-1], last)
    missing = {t for x in trials for t in (x.sentence_1, x.sentence_2)} - set(
        first_half.sentences or ()
    )
    assert len(missing) < len(scores.sentences or ()) - half
    with pytest.raises(InputError, match=rf"^{len(missing)} sentences of the trials have no sc"):
        gather(trials, experiment.responses, first_half)


def test_contradictory_scores_are_rejected(experiment: Experiment) -> None:
    scores = experiment.scores
    sentences = (*(scores.sentences or ()), Sentence.parse("First g1x0"))
    with pytest.raises(InputError, match="has two scores, in rows 0 and"):
        ScoreTable(sentences, scores.models, np.vstack([scores.log_probs, [[-1.0, -1.0, -1.0]]]))
    unnamed = ScoreTable(None, scores.models, scores.log_probs)
    with pytest.raises(InputError, match="table of scores has no sentences"):
        gather(experiment.trials, experiment.responses, unnamed)


def test_errors_name_missing_models_and_invalid_ratings(experiment: Experiment) -> None:
    trials, responses, scores = experiment.trials, experiment.responses, experiment.scores
    fewer = ScoreTable(scores.sentences, scores.models[:2], scores.log_probs[:, :2])
    with pytest.raises(InputError, match="models without scores: c; there are scores of a, b"):
        gather(trials, responses, fewer)
    with pytest.raises(InputError, match="g1p0 did not rate every trial"):
        gather(trials, responses[1:], experiment.scores)
    with pytest.raises(InputError, match="g1p0 rated the same trial more than once"):
        gather(trials, (*responses, responses[0]), experiment.scores)
    changed = (replace(responses[0], rating=7), *responses[1:])
    with pytest.raises(InputError, match="g1p0 gave ratings outside"):
        gather(trials, changed, experiment.scores)
    with pytest.raises(InputError, match="no responses"):
        gather(trials, (), experiment.scores)


def make_trial(condition: Condition, kind_1: Kind, kind_2: Kind, models: str = "ab") -> Trial:
    kinds = (kind_1, kind_2)
    return new_trial("t", 1, "One.", "Two.", condition, (models[:1], models[1:]), kinds)


REJECTED_BY_A = make_trial(Condition.NATURAL_SYNTHETIC, Kind.NATURAL, Kind.SYNTHETIC_1)
REJECTED_BY_B = make_trial(Condition.NATURAL_SYNTHETIC, Kind.NATURAL, Kind.SYNTHETIC_2)
TRIALS = (
    make_trial(Condition.RANDOM_NATURAL, Kind.NATURAL, Kind.NATURAL, ""),
    make_trial(Condition.NATURAL_CONTROVERSIAL, Kind.NATURAL, Kind.NATURAL),
    make_trial(Condition.SYNTHETIC_SYNTHETIC, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2),
    REJECTED_BY_A,
    REJECTED_BY_B,
    make_trial(Condition.CATCH, Kind.NATURAL, Kind.SHUFFLED, ""),
)


def test_model_n_rejects_synthetic_n() -> None:
    """Equation 4 and the columns of triplets.csv."""
    assert roles(REJECTED_BY_A) == ("b", "a")
    assert roles(REJECTED_BY_B) == ("a", "b")


def test_catch_trials_count_overall_on_request() -> None:
    """As published in 2023; all other scopes stay the same."""
    for scope in Scope:
        plain, published = (scope_mask(TRIALS, scope, ("a", "c"), catch=c) for c in (False, True))
        assert (plain != published)[:, :-1].sum() == 0
        assert published[:, -1].all() == (scope is Scope.OVERALL)
