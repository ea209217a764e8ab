"""A search for few changes against every sentence that it could have found."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.files.arrays import FloatArray
from contstim.items.reviews import changed_positions
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.search.climb import Step
from contstim.optimization.search.few_changes import FewChanges
from contstim.optimization.search.settings import SearchSettings, SentenceSearchSettings
from contstim.optimization.search.synthesize import synthesize, synthesize_triplet
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary
from tests.optimization.search.toys import NATURAL, WORDS, TableModel


@pytest.fixture(scope="module")
def naturals(unseen: list[Sentence], few_words: Vocabulary) -> list[Sentence]:
    """Sentences of the words of the searches."""
    return [s for s in unseen if not few_words.missing_words(s) and not repeats(s.words)][:3]


@pytest.fixture(scope="module")
def few_words(unseen: list[Sentence]) -> Vocabulary:
    """Some ninety words, so that all pairs of new words can be tried."""
    return Vocabulary.from_sentences(unseen[:12], min_count=1)


def most_nats(
    accept: NgramModel, reject: NgramModel, natural: Sentence, words: Vocabulary, changes: int
) -> tuple[float, list[tuple[Sentence, float, float]]]:
    """The most nats of all sentences with so many new words, and all that the accept model takes.

    With each sentence the nats by which the reject model finds it less likely, and by how much the
    accept model finds it likelier.
    """
    sentences = [
        Sentence(tuple(new.get(i, word) for i, word in enumerate(natural.words)))
        for places in combinations(range(len(natural)), changes)
        for chosen in product(*(words.at(place) for place in places))
        for new in (dict(zip(places, chosen, strict=True)),)
    ]
    sentences = [s for s in sentences if not repeats(s.words, words.repeatable)]
    gains = accept.log_probs(sentences) - accept.log_probs([natural])
    drops = reject.log_probs([natural]) - reject.log_probs(sentences)
    kept = gains >= -1e-9
    rows = zip(sentences, drops, gains, kept, strict=True)
    taken = [(s, float(drop), float(gain)) for s, drop, gain, keep in rows if keep]
    return max(drop for _, drop, _ in taken), taken


def test_single_changes_are_the_best_and_pairs_nearly_so(
    bigram: NgramModel, trigram: NgramModel, naturals: list[Sentence], few_words: Vocabulary
) -> None:
    """Witness: every sentence with one new word, and with two, scored by the models themselves.

    With models whose replacements are not cheap, climbs cross sentences below the floor.
    """
    accept, reject = copy(bigram), copy(trigram)
    accept.cheap_replacements = reject.cheap_replacements = False
    goal = FewChanges(enough=1_000.0, max_changes=2)
    shares, climbed = [], []
    for natural in naturals:
        result = synthesize(bigram, trigram, natural, few_words, few_changes=goal)
        assert not result.changed  # nothing is worth a thousand nats
        drops = {0: 0.0} | {point.changed: point.drop for point in result.frontier}
        assert [*drops.values()] == sorted(drops.values())
        best, _ = most_nats(bigram, trigram, natural, few_words, 1)
        assert drops.get(1, 0.0) == pytest.approx(max(best, 0.0), abs=1e-6)
        best, _ = most_nats(bigram, trigram, natural, few_words, 2)
        shares.append(max(drops.values()) / best)
        result = synthesize(accept, reject, natural, few_words, few_changes=goal)
        climbed.append(max((point.drop for point in result.frontier), default=0.0) / best)
    assert max(shares + climbed) <= 1 + 1e-6
    assert np.mean(shares) > 0.9
    assert np.mean(climbed) > 0.9


def test_a_search_that_leaves_nothing_to_chance_is_not_tried_again(
    bigram: NgramModel,
    trigram: NgramModel,
    naturals: list[Sentence],
    few_words: Vocabulary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Witness: the number of searches; nothing is worth a thousand nats."""
    asked: list[int] = []

    def counted_search(*models: Any, seed: int, **options: Any) -> Any:
        asked.append(seed)
        return synthesize(*models, seed=seed, **options)

    monkeypatch.setattr("contstim.optimization.search.synthesize.synthesize", counted_search)
    never = FewChanges(enough=1_000.0)
    pair, natural = (bigram, trigram), naturals[0]
    synthesize_triplet(*pair, natural, few_words, few_changes=never, seeds=3)
    assert asked == [0, 0]  # once in each direction
    asked.clear()
    judge = (TableModel(1), -1e9)  # its words are not cheap
    natural, words = NATURAL, WORDS
    synthesize_triplet(
        TableModel(2), TableModel(3), natural, words, fluency=judge, few_changes=never, seeds=3
    )
    assert asked == [0, 1, 2] * 2


def test_result_reaches_enough_with_the_fewest_words_and_is_the_likeliest(
    bigram: NgramModel, trigram: NgramModel, naturals: list[Sentence], few_words: Vocabulary
) -> None:
    """Witness: every sentence with one new word; with more, what the frontier says of fewer."""
    n_single = 0
    for natural in naturals:
        result = synthesize(bigram, trigram, natural, few_words, few_changes=FewChanges(enough=3.0))
        if not result.changed:
            assert all(point.drop < 3.0 for point in result.frontier)
            continue
        changed = len(changed_positions(natural, result.synthetic))
        drop = result.natural_log_probs[1] - result.log_probs[1]
        assert drop >= 3.0
        assert result.log_probs[0] >= result.natural_log_probs[0]
        assert all(point.drop < 3.0 for point in result.frontier[:-1])
        assert changed <= len(natural) // 2
        best, _ = most_nats(bigram, trigram, natural, few_words, 1)
        assert (changed == 1) == (best >= 3.0)
        if changed == 1:
            n_single += 1
            _, taken = most_nats(bigram, trigram, natural, few_words, 1)
            likeliest = max(gain for _, drop, gain in taken if drop >= 3.0)
            gain = result.log_probs[0] - result.natural_log_probs[0]
            assert gain == pytest.approx(likeliest, abs=1e-6)
    assert n_single


@pytest.mark.parametrize("kind", ["estimate", "exact"])
@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("most", [1, 2])
def test_other_models_find_the_best_changes(kind: str, judged: bool, most: int) -> None:
    """Witness: every sentence with so many new words, scored by the models themselves."""
    found = []
    for seed in range(6):
        accept, reject, judge = (TableModel(seed + 10 * n, kind) for n in range(3))
        floor = judge.log_probs([NATURAL])[0] - 1
        told: list[Step] = []
        result = synthesize(
            accept,
            reject,
            NATURAL,
            WORDS,
            fluency=(judge, floor) if judged else None,
            few_changes=FewChanges(enough=1_000.0, max_changes=most),
            on_step=told.append,
        )
        assert told == [*result.climb.steps]

        def drops(
            sentences: Sequence[Sentence],
            accept: TableModel = accept,
            reject: TableModel = reject,
            judge: TableModel = judge,
            floor: float = floor,
        ) -> FloatArray:
            """Nats of sentences, none where a floor is not kept."""
            keeps = accept.log_probs(sentences) >= accept.log_probs([NATURAL])
            if judged:
                keeps &= judge.log_probs(sentences) >= floor
            drop = reject.log_probs([NATURAL]) - reject.log_probs(sentences)
            return np.where(keeps, drop, -np.inf)

        every = [
            Sentence(tuple(new.get(i, word) for i, word in enumerate(NATURAL.words)))
            for places in combinations(range(len(NATURAL)), most)
            for chosen in product(*(WORDS.at(place) for place in places))
            for new in (dict(zip(places, chosen, strict=True)),)
        ]
        every = [s for s in every if not repeats(s.words, WORDS.repeatable)]
        best = max(0.0, float(drops(every).max()))
        points = {point.changed: point.drop for point in result.frontier}
        for point in result.frontier:
            assert point.drop == pytest.approx(drops([point.sentence])[0], abs=1e-6)
        # no sentence on the way was worth more with as few new words
        for step in result.climb.steps:
            changed = len(changed_positions(NATURAL, step.sentence))
            worth = max((nats for n, nats in points.items() if n <= changed), default=0.0)
            assert max(0.0, drops([step.sentence])[0]) <= worth + 1e-6
        drop = max(points.values(), default=0.0)
        assert drop <= best + 1e-6
        found.append(drop >= best - 1e-6)
    assert np.mean(found) > 0.6


def test_same_seed_gives_the_same_triplet(
    bigram: NgramModel, trigram: NgramModel, naturals: list[Sentence], few_words: Vocabulary
) -> None:
    first, second = (
        synthesize_triplet(
            bigram, trigram, naturals[0], few_words, few_changes=FewChanges(1.0), seed=3
        )
        for _ in range(2)
    )
    assert first[0] == second[0]
    assert [p.sentence for p in first[1].frontier] == [p.sentence for p in second[1].frontier]


def test_number_of_searches_is_refused_beside_enough() -> None:
    with pytest.raises(InputError, match="leave out `restarts`"):
        SearchSettings(enough=5.0, restarts=3)
    assert SearchSettings(enough=0.0, restarts=3).few_changes is None
    with pytest.raises(InputError, match="leave out `seconds`"):
        SentenceSearchSettings(enough=5.0, seconds=3.0)
    with pytest.raises(InputError, match="by the recipe default"):
        SearchSettings(enough=5.0, recipe="golan2023")
    with pytest.raises(InputError, match="must be 1 or more"):
        FewChanges(5.0, 0)
    with pytest.raises(InputError, match='set `frame` to "words"'):
        SearchSettings(frame="none", tags="german.conllu")
    with pytest.raises(InputError, match="5 nats ends where it reaches them"):
        SearchSettings(restarts=3)


def test_a_search_without_a_frame_is_the_result_kept_before_there_was_one() -> None:
    assert SearchQuestion(frame="none").resolved.key == {}
    assert SearchQuestion().resolved.key.keys() == {
        *("enough", "frame", "same_frequency", "same_length")
    }
