"""Pairs of sentences on which two models disagree as much as possible."""

from __future__ import annotations

import json

import numpy as np
import pytest

from contstim.errors import InputError, ModelError
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.constraints import max_changes
from contstim.optimization.search.recipes import GOLAN2023, RECIPES
from contstim.optimization.search.symmetric import synthesize_pair
from contstim.optimization.search.synthesize import synthesize, synthesize_triplet
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary
from tests.optimization.search.toys import NATURAL, WORDS, TableModel


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_each_model_prefers_its_own_sentence_and_no_single_word_adds_to_it(recipe: object) -> None:
    """Witness: all single replacements in plain loops, on scores computed afresh."""
    for seed in range(3):
        models = TableModel(seed), TableModel(seed + 50)
        pair = synthesize_pair(*models, NATURAL, WORDS, recipe=recipe)  # type: ignore[arg-type]
        both = [pair.sentence_1, pair.sentence_2]
        (a, b), (c, d) = ([m.score(s) for s in both] for m in models)
        assert pair.log_probs == ((a, b), (c, d))
        assert b >= a
        assert c >= d
        assert pair.disagreement == pytest.approx(b - a + c - d)
        for position in range(4):
            for word in WORDS.at(position):
                changed = pair.sentence_1.replace(position, word)
                lowered = [w.lower() for w in changed.words if w.lower() != "a"]
                if len(set(lowered)) < len(lowered):
                    continue
                first, second = (m.score(changed) for m in models)
                allowed = b >= first and second >= d
                assert not allowed or b - first + second - d <= pair.disagreement + 1e-9


def test_it_disagrees_at_least_as_much_as_a_triplet_does(
    bigram: NgramModel, trigram: NgramModel, unseen: list[Sentence], english: list[Sentence]
) -> None:
    """Witness: the published objective under the same recipe, summed over six sentences."""
    words = Vocabulary.from_sentences(english, min_count=3)
    naturals = [s for s in unseen if not words.missing(s)][:6]
    ours = theirs = 0.0
    for natural in naturals:
        pair = synthesize_pair(bigram, trigram, natural, words, recipe=GOLAN2023)
        t, _, _ = synthesize_triplet(bigram, trigram, natural, words, recipe=GOLAN2023)
        ours += pair.disagreement
        theirs += t.log_prob_synthetic_2_model_1 - t.log_prob_synthetic_1_model_1
        theirs += t.log_prob_synthetic_1_model_2 - t.log_prob_synthetic_2_model_2
    assert ours > theirs


def test_constraints_hold_for_both_sentences() -> None:
    pair = synthesize_pair(
        TableModel(1), TableModel(2), NATURAL, WORDS, constraints=[max_changes(1)]
    )
    for sentence in (pair.sentence_1, pair.sentence_2):
        assert np.sum([x != y for x, y in zip(sentence.words, NATURAL.words, strict=True)]) <= 1


def test_one_model_cannot_disagree_with_itself() -> None:
    with pytest.raises(ModelError, match="the same model"):
        synthesize_pair(TableModel(1), TableModel(1), NATURAL, WORDS)


def test_a_model_of_fluency_keeps_both_sentences_above_its_floor() -> None:
    """Witness: its scores computed afresh; without it a sentence falls below."""
    models = TableModel(0), TableModel(50)
    free = synthesize_pair(*models, NATURAL, WORDS)
    judge = next(
        model
        for model in map(TableModel, range(100, 200))
        if model.score(free.sentence_1) < model.score(NATURAL)
    )
    floor = judge.score(NATURAL)
    pair = synthesize_pair(*models, NATURAL, WORDS, fluency=(judge, floor))
    both = (pair.sentence_1, pair.sentence_2)
    assert pair.models == (models[0].name, models[1].name, judge.name)
    assert pair.log_probs == tuple(
        tuple(model.score(s) for s in both) for model in (*models, judge)
    )
    assert min(pair.log_probs[2]) >= floor
    assert pair.changed
    facts = pair.facts
    assert facts["log_probs_sentence_1"][judge.name] == judge.score(pair.sentence_1)
    with pytest.raises(InputError, match="below the floor"):
        synthesize_pair(*models, NATURAL, WORDS, fluency=(judge, 0.0))


def test_a_triplet_keeps_a_model_of_fluency_above_its_floor() -> None:
    """Witness: `synthesize` in each direction."""
    models = TableModel(0), TableModel(50)
    judge = TableModel(7)
    fluency = (judge, judge.score(NATURAL))
    triplet, first, second = synthesize_triplet(*models, NATURAL, WORDS, fluency=fluency)
    for found, (accept, reject) in ((first, models[::-1]), (second, models)):
        alone = synthesize(accept, reject, NATURAL, WORDS, fluency=fluency)
        assert (found.synthetic, found.log_probs) == (alone.synthetic, alone.log_probs)
        assert judge.score(found.synthetic) >= fluency[1]
    assert triplet.log_prob_synthetic_1_model_1 == models[0].score(triplet.synthetic_1)


def test_sentences_and_scores_of_a_pair_are_read_back() -> None:
    """Witness: the models asked for the scores of the sentences that the JSON holds."""
    models = TableModel(1), TableModel(51)
    facts = json.loads(json.dumps(synthesize_pair(*models, NATURAL, WORDS).facts))
    for number in (1, 2):
        sentence = Sentence.parse(facts[f"sentence_{number}"])
        expected = {model.name: model.score(sentence) for model in models}
        assert facts[f"log_probs_sentence_{number}"] == expected
    assert (facts["model_1"], facts["model_2"]) == tuple(model.name for model in models)
