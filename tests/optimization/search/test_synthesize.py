from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import (
    InputError,
    ModelError,
    SentenceError,
    VerificationError,
    VocabularyError,
)
from contstim.files.arrays import FloatArray
from contstim.models.base import Replacements
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.optimization.search import synthesize as synthesis
from contstim.optimization.search.recipes import GOLAN2023, RECIPES, Recipe
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize, synthesize_pair, synthesize_triplet
from contstim.optimization.search.verification import Problem
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.search.toys import NATURAL, WORDS, TableModel


class Lying(TableModel):
    """It tells that every word is three nats likelier than it is."""

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        known = super().replacements(sentence, position, words)
        return Replacements.all_exact(known.exact + 3)


class Impossible(TableModel):
    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        del sentence, stop
        return -np.inf


@pytest.fixture
def words(english: list[Sentence]) -> Vocabulary:
    return Vocabulary.from_sentences(english, min_count=10)


@pytest.fixture
def naturals(unseen: list[Sentence], words: Vocabulary) -> list[Sentence]:
    return [s for s in unseen if not words.missing_words(s)]


@pytest.fixture
def natural(naturals: list[Sentence]) -> Sentence:
    return naturals[0]


def test_the_constraint_holds_exactly_and_the_loss_falls(
    bigram: NgramModel, trigram: NgramModel, words: Vocabulary, naturals: list[Sentence]
) -> None:
    """Witness: both sentences scored afresh by KenLM."""
    drops = []
    for natural in naturals[:2]:
        found = synthesize(trigram, bigram, natural, words, seed=1, restarts=SINGLE)
        accepted, rejected = (m.log_probs([natural, found.synthetic]) for m in (trigram, bigram))
        assert accepted[1] >= accepted[0]
        assert rejected[1] < rejected[0] or found.synthetic == natural
        assert found.natural_log_probs == (accepted[0], rejected[0])
        assert found.log_probs == (accepted[1], rejected[1])
        drops.append(rejected[0] - rejected[1])
    assert min(drops) > 1


def test_a_triplets_numbers_follow_equation_4(
    bigram: NgramModel, trigram: NgramModel, words: Vocabulary, natural: Sentence
) -> None:
    """Witness: Eq. 4 from scores computed afresh; model_1 rejects synthetic_1."""
    triplet, _, _ = synthesize_triplet(bigram, trigram, natural, words, recipe=GOLAN2023)
    texts = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
    n, s1, s2 = np.stack([m.log_probs([*texts]) for m in (bigram, trigram)]).T
    assert triplet.controversiality == pytest.approx(n[0] - s1[0] + n[1] - s2[1])
    assert s1[0] < n[0]
    assert s1[1] >= n[1]
    assert s2[1] < n[1]
    assert s2[0] >= n[0]
    assert (triplet.log_prob_synthetic_1_model_2, triplet.log_prob_synthetic_2_model_1) == (
        s1[1],
        s2[0],
    )


def test_unusable_input_is_refused(
    bigram: NgramModel, trigram: NgramModel, trained: Path, words: Vocabulary, natural: Sentence
) -> None:
    with pytest.raises(SentenceError, match="one word"):
        synthesize(trigram, bigram, Sentence.parse("Hello"), words)
    with pytest.raises(VocabularyError, match="xylograph"):
        synthesize(trigram, bigram, natural.replace(1, "xylograph"), words)
    again = NgramModel(trained / "2gram.arpa", name="another name")
    with pytest.raises(ModelError, match="the same model"):
        synthesize(again, bigram, natural, words)
    for accept, reject in ((Impossible(1), bigram), (bigram, Impossible(1))):
        with pytest.raises(ModelError, match="probability zero"):
            synthesize(accept, reject, natural, words)
    with pytest.raises(ModelError, match="at least one accept model"):
        synthesize([], bigram, natural, words)
    namesake = NgramModel(trained / "4gram.arpa", "3-gram")
    with pytest.raises(InputError, match="must have different names"):
        synthesize([trigram, namesake], bigram, natural, words)
    with pytest.raises(InputError, match="`few_changes`"):
        synthesize(trigram, bigram, natural, words, judges=TableModel(1))
    with pytest.raises(InputError, match="outside the comparison"):
        synthesize(trigram, bigram, natural, words, judges=again)
    with pytest.raises(InputError, match="must have different names"):
        synthesize(trigram, bigram, natural, words, judges=namesake)
    with pytest.raises(InputError, match="seed must be 0 or more, not -1"):
        synthesize(trigram, bigram, natural, words, seed=-1)


def test_a_model_whose_replacements_lie_is_caught() -> None:
    """The check at the end scores the result from scratch."""
    with pytest.raises(VerificationError, match="failed its check"):
        synthesize(Lying(1), TableModel(2), NATURAL, WORDS)


@pytest.fixture
def fourgram(trained: Path) -> NgramModel:
    return NgramModel(trained / "4gram.arpa", name="4-gram")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_one_model_against_many(
    bigram: NgramModel,
    trigram: NgramModel,
    fourgram: NgramModel,
    words: Vocabulary,
    naturals: list[Sentence],
    recipe: Recipe,
) -> None:
    """Witness: scores computed afresh; one rejects what two accept, and the reverse."""
    natural, options = naturals[0], dict[str, Any](recipe=recipe, restarts=SINGLE)
    found = synthesize([trigram, fourgram], bigram, natural, words, **options)
    for model in (trigram, fourgram):
        scores = model.log_probs([natural, found.synthetic])
        assert scores[1] >= scores[0]
    scores = bigram.log_probs([natural, found.synthetic])
    assert scores[0] - scores[1] > 2
    assert (found.accept, found.reject) == ("3-gram & 4-gram", "2-gram")
    assert found.log_probs[2] == scores[1]
    back = synthesize(bigram, [trigram, fourgram], natural, words, **options)
    scores = bigram.log_probs([natural, back.synthetic])
    assert scores[1] >= scores[0]
    for model in (trigram, fourgram):
        scores = model.log_probs([natural, back.synthetic])
        assert scores[1] <= scores[0]


GERMAN = """
der alte Mann liest ein gutes Buch
die kleine Frau öffnet eine schwere Tür
das müde Kind hört ein schönes Märchen
der große Hund frißt einen süßen Apfel
die alte Frau schließt das große Fenster
ein kleines Mädchen trägt den schweren Korb
der müde Bäcker verkauft das süße Brot
eine große Straße führt über den alten Fluß
das gute Kind grüßt die müde Bäuerin
der kleine Vogel baut ein rundes Nest
""".strip().splitlines()


@pytest.mark.parametrize("n_words", [3, 12, pytest.param(20, marks=pytest.mark.slow)])
def test_any_language_and_any_length(tmp_path: Path, n_words: int) -> None:
    """Witness: KenLM's scores; German n-grams, sentences of 3 to 20 words with umlauts."""
    rng = np.random.default_rng(n_words)
    lines = [" ".join(rng.permutation(GERMAN).tolist()).split() for _ in range(40)]
    text = [Sentence((line[0].title(), *line[1:n_words])) for line in lines]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for order in (1, 2):
            train_ngram(text, order, tmp_path / f"{order}.arpa")
    unigram, bigram = (NgramModel(tmp_path / f"{order}.arpa") for order in (1, 2))
    vocabulary = Vocabulary.from_sentences(text)
    found = synthesize(unigram, bigram, text[0], vocabulary)
    accept, reject = (m.log_probs([text[0], found.synthetic]) for m in (unigram, bigram))
    assert accept[1] >= accept[0]
    assert reject[1] < reject[0]
    assert len(found.synthetic) == n_words


def test_evaluations_and_costs_tell_the_whole_story() -> None:
    """Property of toy models: what was scored is what they were asked; costs are what they did."""
    accept, reject = (TableModel(seed, "estimate", 1.0) for seed in (3, 4))
    found = synthesize(accept, reject, NATURAL, WORDS)
    scored = {evaluation.sentence for evaluation in found.evaluations}
    assert {step.sentence for step in found.climb.steps} <= scored
    assert [e.visit for e in found.evaluations] == sorted(e.visit for e in found.evaluations)
    for model in (accept, reject):
        asked = model.scored_sentences
        assert len(asked) - 1 == len(set(asked))  # the result once more
        assert found.costs[model.name].rows > len(scored)
    assert [s.cost.rows for s in found.climb.steps] == sorted(
        s.cost.rows for s in found.climb.steps
    )


class Unsteady(TableModel):
    """Scored alone, every sentence but the natural one is a hair less likely than in company."""

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        alone = len(sentences) == 1 and sentences[0] != NATURAL
        return super().log_probs(sentences) - 1e-5 * alone


def test_a_constraint_kept_only_by_rounding_is_not_kept() -> None:
    """Property: scored alone, as the floor was, every result reaches it."""
    for seed in range(10):
        accept = Unsteady(seed, "estimate")
        found = synthesize(
            accept, TableModel(seed + 50), NATURAL, WORDS, recipe=RECIPES["golan2023"]
        )
        scores = [accept.log_probs([sentence])[0] for sentence in (NATURAL, found.synthetic)]
        assert scores[1] >= scores[0]


FEW_WORDS = Vocabulary(tuple("AEF"), tuple("bcdg"), frozenset())


def test_further_seeds_are_tried_where_a_search_finds_nothing() -> None:
    """Witness: `synthesize` with each seed by itself; costs are those of all searches."""
    accept, reject = TableModel(197), TableModel(697)
    natural = Sentence(("A", "b", "c", "d"))
    alone = [synthesize(accept, reject, natural, FEW_WORDS, seed=seed) for seed in range(2)]
    assert [one.changed for one in alone] == [False, True]
    without, _, _ = synthesize_triplet(reject, accept, natural, FEW_WORDS)
    assert without.synthetic_1 == natural
    assert "table 697 exact should reject is the natural sentence" in without.equality_note
    triplet, first, _ = synthesize_triplet(reject, accept, natural, FEW_WORDS, seeds=3)
    assert triplet.synthetic_1 == alone[1].synthetic
    for name, cost in first.costs.items():
        assert cost == alone[0].costs[name] + alone[1].costs[name]
    later, _, _ = synthesize_triplet(reject, accept, natural, FEW_WORDS, seed=1, seeds=3)
    assert later.synthetic_1 == triplet.synthetic_1
    with pytest.raises(InputError, match="seeds must be at least 1, got 0"):
        synthesize_triplet(reject, accept, natural, FEW_WORDS, seeds=0)


def test_both_directions_do_not_end_in_the_same_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is searched again with the next seed, the first is left as it is."""
    natural, same, other = (Sentence(("A", "b", "c", word)) for word in "dge")
    asked: list[tuple[str, int]] = []
    genuine = synthesis._solve

    def solve_as_told(problem: Problem, recipe: Recipe, seed: int, *rest: Any) -> Any:
        asked.append((problem.models[0].name, seed))
        found = genuine(problem, recipe, seed, *rest)
        sentence = other if seed == 6 else same
        return replace(found, climb=replace(found.climb, sentence=sentence))

    monkeypatch.setattr(synthesis, "_solve", solve_as_told)
    models = TableModel(1), TableModel(2)
    triplet, _, _ = synthesize_triplet(*models, natural, FEW_WORDS, seed=5, seeds=3)
    assert asked == [(models[1].name, 5), (models[0].name, 5), (models[0].name, 6)]
    assert (triplet.synthetic_1, triplet.synthetic_2) == (same, other)
    assert triplet.equality_note == ""
    again, _, _ = synthesize_triplet(*models, natural, FEW_WORDS, seed=5)
    assert again.equality_note == "both models should reject the same sentence"


def test_sentences_and_scores_of_one_direction_are_read_back() -> None:
    """Witness: the models asked for the scores of the sentences that the JSON holds."""
    accept, reject = TableModel(1), TableModel(51)
    facts = json.loads(json.dumps(synthesize(accept, reject, NATURAL, WORDS).facts))
    synthetic = Sentence.parse(facts["synthetic"])
    assert facts["changed"]
    assert facts["log_probs_natural"]["accept"] == accept.score(NATURAL)
    assert facts["log_probs_synthetic"] == {
        "accept": accept.score(synthetic),
        "reject": reject.score(synthetic),
    }
    assert facts["steps"][-1]["sentence"] == facts["synthetic"]
    assert set(facts["costs"]) == {accept.name, reject.name}


def test_models_and_the_sentence_may_be_given_as_texts(
    trained: Path, english: list[Sentence]
) -> None:
    """Witness: the same search between models that were loaded."""
    words = Vocabulary.from_sentences(english, min_count=8)
    text = next(s.text for s in english if not words.missing_words(s))
    one, two = (f"kenlm:{trained}/{n}gram.arpa" for n in (2, 3))
    found = synthesize(one, two, text, words, recipe=RECIPES["golan2023"])
    accept, reject = (NgramModel(trained / f"{n}gram.arpa") for n in (2, 3))
    same = synthesize(accept, reject, Sentence.parse(text), words, recipe=RECIPES["golan2023"])
    assert (found.synthetic, found.log_probs) == (same.synthetic, same.log_probs)
    assert f"{found.synthetic.text!r}; {one} accepts" in repr(found)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((7, TableModel(1), NATURAL, WORDS), "A model must be a result of load_model.*got 7"),
        ((TableModel(0), None, NATURAL, WORDS), "'kenlm:trigram.arpa', got None"),
        ((TableModel(0), TableModel(1), 7, WORDS), "must be a text or a Sentence, not 7"),
        ((TableModel(0), TableModel(1), NATURAL, ["a"]), r"must be a Vocabulary.*got \['a'\]"),
    ],
)
def test_what_is_expected_is_said_where_something_else_is_given(given: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        synthesize(*given)


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
