"""Checks of finished selections detect forged selections."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from contstim.errors import VerificationError
from contstim.items.stimuli import Pair
from contstim.optimization.selection.question import NaturalSelection, TripletSelection
from contstim.optimization.selection.verification import verify_natural, verify_triplets
from contstim.words.sentence import Sentence
from tests.optimization.selection.tables import choose, make_review, random_table, repetitive_table
from tests.optimization.selection.test_triplets import TAGS, TOKEN_COUNTS, select_example

Forgery: TypeAlias = Callable[[Any], Any]


def change_first_pair(change: Callable[[Pair], Pair]) -> Forgery:
    return lambda genuine: replace(genuine, pairs=(change(genuine.pairs[0]), *genuine.pairs[1:]))


def set_first_fields(**fields: Any) -> Forgery:
    return change_first_pair(lambda pair: replace(pair, **fields))


def set_certificate_fields(**fields: Any) -> Forgery:
    return lambda genuine: replace(genuine, certificate=replace(genuine.certificate, **fields))


def set_question_fields(**rules: Any) -> Forgery:
    return lambda selection: set_certificate_fields(
        question=replace(selection.certificate.question, **rules)
    )(selection)


def swap_sentences(p: Pair) -> Pair:
    return replace(p, sentence_1=p.sentence_2, sentence_2=p.sentence_1)


def swap_roles(p: Pair) -> Pair:
    return Pair(
        *(p.trial_id, p.model_1, p.model_2, p.sentence_2, p.sentence_1, p.row_2, p.row_1),
        *(p.rank_2_model_1, p.rank_2_model_2, p.rank_1_model_1, p.rank_1_model_2),
    )


def use_twice(selection: NaturalSelection) -> NaturalSelection:
    first, _, *other_pairs = selection.pairs
    return replace(selection, pairs=(first, replace(first, trial_id="pair-other"), *other_pairs))


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (set_first_fields(rank_1_model_1=0.001), "differ from the ranks"),
        (set_first_fields(row_1=10_000), "used more than once"),
        (set_first_fields(sentence_1="Never scored."), "has changed"),
        (change_first_pair(swap_sentences), "has changed"),
        (change_first_pair(swap_roles), "inadmissible"),
        (use_twice, "used more than once"),
        (lambda genuine: replace(genuine, pairs=genuine.pairs[:-1]), "it has .* pairs, not"),
        (set_certificate_fields(objective=0.5), "its value is"),
        (set_certificate_fields(bound=50.0), "bound 50.0"),
        (set_question_fields(per_pair=3), "it has .* pairs, not"),
        (set_question_fields(counts=(("model-0", "model-1", 3),)), "it has .* pairs, not"),
        (set_question_fields(same_length=True), "ranks|lengths"),
    ],
)
def test_forged_pairs_are_detected(forge: Forgery, message: str) -> None:
    table = random_table()
    selection = choose(table, per_pair=4)
    verify_natural(table, selection)
    with pytest.raises(VerificationError, match=message):
        verify_natural(table, forge(selection))


def test_sentences_that_a_rule_excludes_are_detected() -> None:
    selection = choose(repetitive_table(), per_pair=2)
    forged = set_question_fields(no_repeats=True, repeatable=frozenset())(selection)
    with pytest.raises(VerificationError, match="repeats"):
        verify_natural(repetitive_table(), forged)
    table = random_table()
    selection = choose(table, per_pair=2)
    excluded = [Sentence.parse(str(selection.pairs[0].sentence_1))]
    with pytest.raises(VerificationError, match="excluded"):
        verify_natural(table, selection, excluded=excluded)


def test_agreeing_pairs_are_detected() -> None:
    """Two models with equal scores agree on every pair."""
    table = random_table(20, 1)
    agreeing_table = replace(table, models=("a", "b"), log_probs=table.log_probs[:, [0, 0]])
    selection = choose(agreeing_table, per_pair=2, agreeing=True)
    verify_natural(agreeing_table, selection)
    with pytest.raises(VerificationError, match="is inadmissible"):
        verify_natural(agreeing_table, set_question_fields(agreeing=False)(selection))


def test_sentences_that_differ_only_in_end_marks_are_detected() -> None:
    """The rows were selected from a table in which the two sentences still differ."""
    table = random_table()
    selection = choose(table, per_pair=2)
    row_1, row_2 = selection.pairs[0].row_1, selection.pairs[0].row_2
    assert table.sentences is not None
    sentences = list(table.sentences)
    sentences[row_1] = replace(sentences[row_2], end="!")
    similar_table = replace(table, sentences=tuple(sentences))
    with pytest.raises(VerificationError, match="end marks"):
        verify_natural(similar_table, set_first_fields(sentence_1=sentences[row_1])(selection))


def test_rejected_pairs_in_a_selection_are_detected() -> None:
    table = random_table()
    old_selection = choose(table, per_pair=4)
    review = make_review(old_selection.pairs, {old_selection.pairs[0].trial_id})
    new_selection = choose(table, per_pair=4, review=review)
    verify_natural(table, new_selection, review=review)
    with pytest.raises(VerificationError, match="was rejected"):
        verify_natural(table, old_selection, review=review)


def set_first_natural(text: str) -> Forgery:
    def forge(selection: TripletSelection) -> TripletSelection:
        first = replace(selection.triplets[0], natural=Sentence.parse(text))
        return replace(selection, triplets=(first, *selection.triplets[1:]))

    return forge


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda s: replace(s, triplets=s.triplets[:-1]), "it has .* triplets, not"),
        (set_first_natural("Pigs fly."), "is not among the candidates, or has changed"),
        (lambda s: replace(s, triplets=(s.triplets[1], *s.triplets[1:])), "used more than once"),
        (set_certificate_fields(bound=1.0), "bound 1.0 is beyond"),
        (set_certificate_fields(objective=1.0), "its value is"),
        (set_question_fields(natural_once=True), "natural sentence"),
        (set_question_fields(word_cap=2), "word"),
        (set_question_fields(token_balance=0.0), "tokens are not balanced"),
        (set_question_fields(quantiles=4), "quantile groups"),
        (set_question_fields(objective="worst-rank"), "its value is"),
    ],
)
def test_forged_triplets_are_detected(forge: Forgery, message: str) -> None:
    triplets, genuine = select_example()
    verify_triplets(triplets, genuine, tokens=TOKEN_COUNTS)
    with pytest.raises(VerificationError, match=message):
        verify_triplets(triplets, forge(genuine), tokens=TOKEN_COUNTS)


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (set_question_fields(enough=7.5), "too few nats"),
        (set_question_fields(tags=None, enough=None, objective="controversiality"), "its value is"),
        (set_certificate_fields(objective=0.0), "its value is"),
        (set_certificate_fields(bound=1e6), "is beyond its objective"),
    ],
)
def test_forged_readable_triplets_are_detected(forge: Forgery, message: str) -> None:
    """The checked question includes the table of tags and the required nats."""
    triplets, genuine = select_example(objective="readable", tags=TAGS, quantiles=0, per_pair=9)
    verify_triplets(triplets, genuine, tokens=TOKEN_COUNTS)
    with pytest.raises(VerificationError, match=message):
        verify_triplets(triplets, forge(genuine), tokens=TOKEN_COUNTS)


def test_rejected_triplets_in_a_selection_are_detected() -> None:
    triplets, old_selection = select_example()
    review = make_review(old_selection.triplets, {old_selection.triplets[0].triplet_id})
    new_selection = select_example(review=review)[1]
    verify_triplets(triplets, new_selection, tokens=TOKEN_COUNTS, review=review)
    with pytest.raises(VerificationError, match="was rejected"):
        verify_triplets(triplets, old_selection, tokens=TOKEN_COUNTS, review=review)


def test_triplets_with_similar_sentences_are_detected() -> None:
    """By hand: a sentence of the second triplet differs from the first triplet's by a word."""
    triplets, selection = select_example()
    first, second = selection.triplets[:2]
    similar = replace(second, synthetic_1=first.synthetic_1)
    forged = replace(selection, triplets=(first, similar, *selection.triplets[2:]))
    scored_triplets = [similar if t.triplet_id == second.triplet_id else t for t in triplets]
    with pytest.raises(VerificationError, match="differ by fewer than two words"):
        verify_triplets(scored_triplets, forged, tokens=TOKEN_COUNTS)


def test_certificates_are_json_with_the_documented_fields(tmp_path: Path) -> None:
    rule: dict[str, Any] = {"no_repeats": True, "repeatable": frozenset({"the"})}
    path = tmp_path / "new" / "c.json"
    for certificate in (
        choose(repetitive_table(), per_pair=2, **rule).certificate,
        select_example(objective="readable", tags=TAGS)[1].certificate,
    ):
        certificate.save(path)
        facts = json.loads(path.read_text())
        documented = "objective bound gap status solver version tie_rule candidates seconds".split()
        assert facts.keys() == {*documented, "question", "format"}
        assert facts["seconds"] > 0
        assert facts["gap"] == pytest.approx(0, abs=2e-6)
        assert facts["objective"] == certificate.objective
