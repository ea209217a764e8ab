"""Searches for few new words, compared with all feasible sentences."""

from __future__ import annotations

from copy import copy
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import rankdata

from contstim.errors import InputError
from contstim.items.reviews import changed_positions
from contstim.models.base import LanguageModel, Scorer
from contstim.models.costs import Tally, counting
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.search.few_changes import FewChanges
from contstim.optimization.search.settings import SearchSettings, SentenceSearchSettings
from contstim.optimization.search.synthesize import Synthesis, synthesize
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary
from tests.optimization.search.toys import NATURAL, WORDS, TableModel

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture(scope="module")
def naturals(unseen: list[Sentence], few_words: Vocabulary) -> list[Sentence]:
    return [s for s in unseen if not few_words.missing_words(s) and not repeats(s.words)][:3]


@pytest.fixture(scope="module")
def few_words(unseen: list[Sentence]) -> Vocabulary:
    """Few words, so that all pairs of new words can be tried."""
    return Vocabulary.from_sentences(unseen[:5], min_count=1)


@pytest.fixture(scope="module")
def judge(trained: object, trigram: NgramModel) -> NgramModel:
    """A judge without cheap scores."""
    del trained
    model = NgramModel(trigram.path.with_name("4gram.arpa"), name="judge")
    model.cheap_replacements = False
    return model


def feasible_sentences(
    accept: Scorer, reject: Scorer, natural: Sentence, words: Vocabulary, n_new: int, enough: float
) -> list[Sentence]:
    """Return all feasible sentences with `n_new` new words, by brute force."""
    sentences = [
        Sentence(tuple(new.get(i, word) for i, word in enumerate(natural.words)), natural.end)
        for places in combinations(range(len(natural)), n_new)
        for chosen in product(*(words.at(place) for place in places))
        for new in (dict(zip(places, chosen, strict=True)),)
    ]
    sentences = [s for s in sentences if not repeats(s.words, words.repeatable)]
    sentences = [s for s in sentences if len(changed_positions(natural, s)) == n_new]
    gains = accept.scores(sentences) - accept.scores([natural])
    drops = reject.scores([natural]) - reject.scores(sentences)
    return [s for s, ok in zip(sentences, (gains >= 0) & (drops >= enough), strict=True) if ok]


def check_result(result: Synthesis, accept: LanguageModel, reject: LanguageModel) -> None:
    natural, synthetic = result.natural, result.synthetic
    assert accept.log_probs([synthetic])[0] >= accept.log_probs([natural])[0] - 1e-6
    assert reject.log_probs([natural])[0] - reject.log_probs([synthetic])[0] >= 3 - 1e-6


def best_under_judges(
    sentences: Sequence[Sentence],
    accept: LanguageModel,
    reject: LanguageModel,
    judges: Sequence[LanguageModel],
) -> Sentence:
    """Return the sentence with the strongest disagreement among those close to the favourite."""
    scores = np.array([judge.scores(sentences) for judge in judges])
    ranks, means = rankdata(-scores, axis=1).mean(axis=0), scores.mean(axis=0)
    favourite = min(range(len(sentences)), key=lambda i: (ranks[i], -means[i]))
    close = [s for s, mean in zip(sentences, means, strict=True) if mean >= means[favourite] - 1]
    return close[int(np.argmax(accept.scores(close) - reject.scores(close)))]


def test_result_is_the_likeliest_of_fewest_words_unless_a_judge_chooses(
    bigram: NgramModel,
    trigram: NgramModel,
    judge: NgramModel,
    naturals: list[Sentence],
    few_words: Vocabulary,
) -> None:
    numbers, favourites = set(), []
    for natural, (accept, reject) in product(naturals, ((bigram, trigram), (trigram, bigram))):
        arguments = (accept, reject, natural, few_words)
        result = synthesize(*arguments, few_changes=FewChanges(3.0))
        by_number = [feasible_sentences(*arguments, n_new, 3.0) for n_new in (1, 2)]
        feasible = [*by_number[0], *by_number[1]]
        if feasible:
            n_new = 1 if by_number[0] else 2
            check_result(result, accept, reject)
            assert len(changed_positions(natural, result.synthetic)) == n_new
            assert result.choice is not None
            assert result.choice.minimal
            likeliest = accept.log_probs(by_number[n_new - 1]).max()
            assert result.log_probs[0] == pytest.approx(likeliest, abs=1e-6)
            numbers.add(n_new)
        else:
            assert len(changed_positions(natural, result.synthetic)) in (0, 3)
        goal = FewChanges(3.0, judge_drop=4.0)
        judged = synthesize(*arguments, judges=judge, few_changes=goal)
        if feasible and judge.log_probs(feasible).max() >= judge.log_probs([natural])[0] - 4:
            best = best_under_judges(feasible, accept, reject, [judge])
            favourites.append(judged.synthetic == best)
        if judged.changed:
            check_result(judged, accept, reject)
            assert judged.roles == ("accept", "reject", "judge")
            drop = judge.log_probs([natural])[0] - judge.log_probs([judged.synthetic])[0]
            assert judged.judge_drop == pytest.approx(drop, abs=1e-6)
            assert drop <= 4
    assert numbers == {1, 2}
    assert len(favourites) >= 3
    assert np.mean(favourites) >= 0.8


def test_lowest_mean_rank_of_several_judges_wins(
    bigram: NgramModel,
    trigram: NgramModel,
    judge: NgramModel,
    naturals: list[Sentence],
    few_words: Vocabulary,
) -> None:
    second = NgramModel(bigram.path.with_name("1gram.arpa"), name="second")
    second.cheap_replacements = False
    judges = [judge, second]
    goal = FewChanges(3.0, max_changes=1, judge_drop=100.0)
    compared = 0
    for natural in naturals:
        result = synthesize(bigram, trigram, natural, few_words, judges=judges, few_changes=goal)
        feasible = feasible_sentences(bigram, trigram, natural, few_words, 1, 3.0)
        if feasible:
            assert result.synthetic == best_under_judges(feasible, bigram, trigram, judges)
            compared += 1
    assert compared


@pytest.mark.parametrize("kind", ["estimate", "exact"])
def test_better_network_chooses_among_feasible_sentences(kind: str) -> None:
    found, shares = [], []
    for seed in range(5):
        accept, reject = (TableModel(seed + 10 * n, kind) for n in range(2))
        goal = FewChanges(3.0, chooser=accept.name)
        result = synthesize(accept, reject, NATURAL, WORDS, few_changes=goal)
        problem = accept, reject, NATURAL, WORDS
        feasible = [s for n in (1, 2) for s in feasible_sentences(*problem, n, 3.0)]
        if result.changed:
            check_result(result, accept, reject)
            assert len(changed_positions(NATURAL, result.synthetic)) <= 2
            shares.append(result.log_probs[0] >= accept.log_probs(feasible).max() - 1e-6)
        found.append(result.changed or not feasible)
    assert np.mean(found) > 0.8
    assert np.mean(shares) > 0.6


def test_networks_score_at_most_max_scored_sentences(
    judge: NgramModel, bigram: NgramModel, naturals: list[Sentence], few_words: Vocabulary
) -> None:
    accept = copy(bigram)
    accept.cheap_replacements = False
    scored = []
    for limit in (45, 200):
        goal = FewChanges(30.0, max_scored=limit)
        with counting(Tally()):
            result = synthesize(accept, judge, naturals[0], few_words, few_changes=goal)
        assert not result.changed  # no sentence has thirty nats
        scored.append(len(result.evaluations))
    assert scored[0] <= 45
    assert scored[1] <= 200


def test_sentences_that_one_judge_alone_refuses_are_counted() -> None:
    """Witness: the scores of all sentences that the search scored."""
    accept, reject, *judges = (TableModel(seed) for seed in range(4))
    totals = np.zeros(2)
    for limit in (-2.0, 1.0, 6.0):
        goal = FewChanges(3.0, judge_drop=limit)
        result = synthesize(accept, reject, NATURAL, WORDS, judges=judges, few_changes=goal)
        assert result.choice is not None
        scores = np.array([evaluation.log_probs for evaluation in result.evaluations])
        drops = np.array(result.natural_log_probs) - scores
        drops = drops[np.isfinite(drops).all(axis=1)]
        judged = drops[(drops[:, 0] <= 0) & (drops[:, 1] >= 3)]
        refused = judged[:, 2:] > limit
        assert result.choice.judged == len(judged)
        alone = (refused & ~refused[:, ::-1]).sum(axis=0)
        assert [*result.choice.refused.values()] == alone.tolist()
        totals += alone
    assert totals.all()


def test_settings_that_do_not_go_together_are_refused() -> None:
    assert SearchSettings(enough=0.0, restarts=3).few_changes() is None
    with pytest.raises(InputError, match="must be 1 or more"):
        FewChanges(5.0, 0)
    with pytest.raises(InputError, match="leave out `seconds`"):
        SentenceSearchSettings(enough=5.0, seconds=3.0)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("leave out `restarts`", {"enough": 5.0, "restarts": 3}),
        ("needs the recipe default", {"enough": 5.0, "recipe": "golan2023"}),
        ('set `frame` to "words"', {"frame": "none", "tags": "german.conllu"}),
        ("5 nats is a single search", {"restarts": 3}),
    ]
    for message, options in wrong:
        with pytest.raises(InputError, match=message):
            SearchSettings(**options)


def test_default_settings_have_an_empty_key() -> None:
    assert SearchQuestion(frame="none").resolved.key == {}
    keys = {"enough", "frame", "same_frequency", "same_length"}
    assert SearchQuestion().resolved.key.keys() == keys
