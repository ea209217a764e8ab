"""Linguistic controls, tested on planted preferences and on features counted by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis import controls
from contstim.experiments.analysis.ratings import Ratings, gather
from contstim.experiments.responses.table import Response
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Trial
from contstim.testing.models import ToyModel
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import new_trial

N = 20


def make_trials(condition: Condition = Condition.SYNTHETIC_SYNTHETIC) -> list[Trial]:
    pair = ("gpt2", "rnn")
    return [new_trial(f"t{n}", 1, f"First {n}.", f"Second {n}.", condition, pair) for n in range(N)]


def make_ratings(
    trials: list[Trial], people: list[list[int]], prefers_second: dict[str, list[bool]]
) -> Ratings:
    """Gather `people` × trials; models prefer the stated sentence by 5 nats."""
    responses = [
        Response(f"p{person}", 1, trial.trial_id, rating, 0, 0, math.nan)
        for person, ratings_of_person in enumerate(people)
        for trial, rating in zip(trials, ratings_of_person, strict=True)
    ]
    texts = [text for trial in trials for text in (trial.sentence_1, trial.sentence_2)]
    columns = [
        [score for second in choices for score in ((-9.0, -4.0) if second else (-4.0, -9.0))]
        for choices in prefers_second.values()
    ]
    scores = ScoreTable(tuple(texts), tuple(prefers_second), np.array(columns).T)
    return gather(trials, responses, scores)


def make_scores(trials: list[Trial], first: list[float], second: list[float]) -> dict[str, float]:
    return {
        text: value
        for trial, pair in zip(trials, zip(first, second, strict=True), strict=True)
        for text, value in zip((str(trial.sentence_1), str(trial.sentence_2)), pair, strict=True)
    }


def test_token_counts_by_hand() -> None:
    """15 of 18 pairs with fewer tokens: two-sided binomial p = 2 · 988 / 2^18 (from a table)."""
    trials = make_trials()
    ratings = make_ratings(trials, [[1] * N, [2] * N], {"gpt2": [True] * N, "rnn": [False] * N})
    tokens = {
        "gpt2": make_scores(trials, [9.0] * 17 + [8.0] * 3, [8.0] * 15 + [12.0] * 2 + [8.0, 8, 9])
    }
    overall, errors = controls.token_count_control(ratings, tokens)
    assert (overall["model"], overall["errors_only"], errors["errors_only"]) == (
        "gpt2",
        False,
        True,
    )
    assert (overall["equal"], overall["pairs"], overall["fewer"]) == (2, 18, 15)
    assert overall["share"] == 15 / 18
    assert overall["p_value"] == pytest.approx(2 * (816 + 153 + 18 + 1) / 2**18)
    assert overall["adjusted"] == overall["p_value"]
    assert overall["low"] < 0.6 < overall["share"] < overall["high"]
    assert (errors["equal"], errors["pairs"], errors["fewer"]) == (2, 18, 15)


def test_only_the_planted_preference_is_found() -> None:
    """gpt2 prefers frequent words, participants are indifferent, rnn agrees with participants."""
    rng = np.random.default_rng(0)
    trials = make_trials()
    first, second = rng.normal(size=(2, N))
    people = np.where(rng.random(N) < 0.5, 2, 5)
    ratings = make_ratings(
        trials,
        [people.tolist()] * 3,
        {"gpt2": (second > first).tolist(), "rnn": (people > 3).tolist()},
    )
    features = {"frequency": make_scores(trials, first.tolist(), second.tolist())}
    gpt2, rnn = controls.feature_preferences(ratings, features)
    assert gpt2["model_share"] == 1
    assert gpt2["model_difference"] == pytest.approx(np.abs(second - first).mean())
    assert gpt2["adjusted"] < 0.01
    assert rnn["people_difference"] == pytest.approx(gpt2["people_difference"])
    assert (rnn["difference"].statistic, rnn["difference"].p_value) == (0.0, 1.0)
    assert rnn["model_share"] == rnn["people_share"] == gpt2["people_share"]


def test_error_names_sentences_and_models_without_values() -> None:
    trials = make_trials()
    ratings = make_ratings(trials, [[1] * N], {"gpt2": [True] * N, "rnn": [True] * N})
    incomplete = dict(list(make_scores(trials, [1.0] * N, [2.0] * N).items())[2:])
    with pytest.raises(InputError, match="2 sentences of the trials have no value of length"):
        controls.feature_preferences(ratings, {"length": incomplete})
    with pytest.raises(InputError, match="no log-probabilities of 'bert', only of gpt2, rnn"):
        controls.token_count_control(ratings, {"bert": incomplete})


def test_features_are_read_by_sentence_from_csv(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text('sentence,length,"mean GloVe"\n"No, never.",2,0.5\nYes it is,3,-1e-3\n')
    assert controls.read_features(path) == {
        "length": {"No, never.": 2.0, "Yes it is.": 3.0},
        "mean GloVe": {"No, never.": 0.5, "Yes it is.": -0.001},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence\nYes\n", "must have a column `sentence` and a column for each feature"),
        ("text,length\nYes,1\n", "its columns are text, length"),
        ("sentence,length\nYes,one\n", "row 0: 'one' under length is not a number"),
        ("sentence,length\nYes,nan\n", "'nan' under length is not a number"),
        ("sentence,length\nYes,1\nYes.,2\n", "'Yes.' has two values of length"),
    ],
)
def test_invalid_feature_tables_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "features.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        controls.read_features(path)


def test_model_tokens_are_counted_by_sentence() -> None:
    """By hand: letters, spaces and the end token."""
    sentences = [Sentence.parse(text) for text in ("She went home.", "He did not go there!")]
    counts = {"She went home.": 14.0, "He did not go there!": 20.0}
    assert controls.count_tokens([ToyModel(name="toy")], sentences) == {"toy": counts}
