"""The checks of finished selections catch what these could get wrong."""

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
from tests.optimization.selection.tables import choose, random_table, repetitive_table, reviewed
from tests.optimization.selection.test_triplets import COUNTED, TAGS, selected

Forgery: TypeAlias = Callable[[Any], Any]


def with_first(change: Callable[[Pair], Pair]) -> Forgery:
    return lambda found: replace(found, pairs=(change(found.pairs[0]), *found.pairs[1:]))


def change_first(**fields: Any) -> Forgery:
    return with_first(lambda pair: replace(pair, **fields))


def stating(**fields: Any) -> Forgery:
    return lambda found: replace(found, certificate=replace(found.certificate, **fields))


def asking(**rules: Any) -> Forgery:
    return lambda found: stating(question=replace(found.certificate.question, **rules))(found)


def swap_roles(p: Pair) -> Pair:
    return Pair(
        *(p.trial_id, p.model_1, p.model_2, p.sentence_2, p.sentence_1, p.row_2, p.row_1),
        *(p.rank_2_model_1, p.rank_2_model_2, p.rank_1_model_1, p.rank_1_model_2),
    )


def use_twice(found: NaturalSelection) -> NaturalSelection:
    first, _, *others = found.pairs
    return replace(found, pairs=(first, replace(first, trial_id="pair-other"), *others))


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (change_first(rank_1_model_1=0.001), "other ranks"),
        (change_first(row_1=10_000), "used more than once"),
        (change_first(sentence_1="Never scored."), "has changed"),
        (
            with_first(lambda p: replace(p, sentence_1=p.sentence_2, sentence_2=p.sentence_1)),
            "has changed",
        ),
        (with_first(swap_roles), "inadmissible"),
        (use_twice, "used more than once"),
        (lambda found: replace(found, pairs=found.pairs[:-1]), "it has .* pairs, not"),
        (stating(objective=0.5), "it is worth"),
        (stating(bound=50.0), "bound 50.0"),
        (asking(per_pair=3), "it has .* pairs, not"),
        (asking(counts=(("model-0", "model-1", 3),)), "it has .* pairs, not"),
        (asking(same_length=True), "ranks|lengths"),
    ],
)
def test_forged_pairs_are_caught(forge: Forgery, message: str) -> None:
    table = random_table()
    selection = choose(table, per_pair=4)
    verify_natural(table, selection)
    with pytest.raises(VerificationError, match=message):
        verify_natural(table, forge(selection))


def test_sentences_that_a_rule_leaves_out_are_caught() -> None:
    found = choose(repetitive_table(), per_pair=2)
    claimed = asking(no_repeats=True, repeatable=frozenset())(found)
    with pytest.raises(VerificationError, match="repeats"):
        verify_natural(repetitive_table(), claimed)
    table = random_table()
    found = choose(table, per_pair=2)
    with pytest.raises(VerificationError, match="excluded"):
        verify_natural(table, found, excluded=[Sentence.parse(str(found.pairs[0].sentence_1))])


def test_pairs_that_both_models_order_alike_are_caught() -> None:
    """Of two models of one order every pair is agreed on."""
    table = random_table(20, 1)
    alike = replace(table, models=("a", "b"), log_probs=table.log_probs[:, [0, 0]])
    found = choose(alike, per_pair=2, agreeing=True)
    verify_natural(alike, found)
    with pytest.raises(VerificationError, match="is inadmissible"):
        verify_natural(alike, asking(agreeing=False)(found))


def test_sentences_that_look_alike_are_caught() -> None:
    """The rows are chosen from a table where the two sentences still differ."""
    table = random_table()
    found = choose(table, per_pair=2)
    one, two = found.pairs[0].row_1, found.pairs[0].row_2
    assert table.sentences is not None
    sentences = list(table.sentences)
    sentences[one] = replace(sentences[two], end="!")
    alike = replace(table, sentences=tuple(sentences))
    with pytest.raises(VerificationError, match="end marks"):
        verify_natural(alike, change_first(sentence_1=sentences[one])(found))


def test_what_a_review_of_pairs_leaves_is_held_against_it() -> None:
    table = random_table()
    before = choose(table, per_pair=4)
    review = reviewed(before.pairs, {before.pairs[0].trial_id})
    after = choose(table, per_pair=4, review=review)
    verify_natural(table, after, review=review)
    with pytest.raises(VerificationError, match="was rejected"):
        verify_natural(table, before, review=review)


def showing(text: str) -> Forgery:
    def forge(found: TripletSelection) -> TripletSelection:
        first = replace(found.triplets[0], natural=Sentence.parse(text))
        return replace(found, triplets=(first, *found.triplets[1:]))

    return forge


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda found: replace(found, triplets=found.triplets[:-1]), "it has .* triplets, not"),
        (showing("Pigs fly."), "was not given, or has changed"),
        (
            lambda found: replace(found, triplets=(found.triplets[1], *found.triplets[1:])),
            "used more than once",
        ),
        (stating(bound=1.0), "bound 1.0 is beyond"),
        (stating(objective=1.0), "it is worth"),
        (asking(natural_once=True), "natural sentence"),
        (asking(word_cap=2), "word"),
        (asking(token_balance=0.0), "tokens are not balanced"),
        (asking(quantiles=4), "quantiles"),
        (asking(objective="worst-rank"), "it is worth"),
    ],
)
def test_forged_triplets_are_caught(forge: Forgery, message: str) -> None:
    triplets, found = selected()
    verify_triplets(triplets, found, tokens=COUNTED)
    with pytest.raises(VerificationError, match=message):
        verify_triplets(triplets, forge(found), tokens=COUNTED)


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (asking(enough=7.5), "too few nats"),
        (asking(tags=None, enough=None, objective="controversiality"), "it is worth"),
        (stating(objective=0.0), "it is worth"),
        (stating(bound=1e6), "is beyond its objective"),
    ],
)
def test_forged_readable_triplets_are_caught(forge: Forgery, message: str) -> None:
    """The table of tags and enough nats are part of the question that is checked."""
    triplets, found = selected(objective="readable", tags=TAGS, quantiles=0, per_pair=9)
    verify_triplets(triplets, found, tokens=COUNTED)
    with pytest.raises(VerificationError, match=message):
        verify_triplets(triplets, forge(found), tokens=COUNTED)


def test_what_a_review_of_triplets_leaves_is_held_against_it() -> None:
    triplets, before = selected()
    review = reviewed(before.triplets, {before.triplets[0].triplet_id})
    after = selected(review=review)[1]
    verify_triplets(triplets, after, tokens=COUNTED, review=review)
    with pytest.raises(VerificationError, match="was rejected"):
        verify_triplets(triplets, before, tokens=COUNTED, review=review)


def test_triplets_with_similar_sentences_are_caught() -> None:
    """By hand: the second triplet's sentence differs from the first one's by a word."""
    triplets, found = selected()
    first, second = found.triplets[:2]
    similar = replace(second, synthetic_1=first.synthetic_1)
    forged = replace(found, triplets=(first, similar, *found.triplets[2:]))
    given = [similar if t.triplet_id == second.triplet_id else t for t in triplets]
    with pytest.raises(VerificationError, match="differ by less than two words"):
        verify_triplets(given, forged, tokens=COUNTED)


def test_certificates_are_json_with_the_promised_fields(tmp_path: Path) -> None:
    rule: dict[str, Any] = {"no_repeats": True, "repeatable": frozenset({"the"})}
    path = tmp_path / "new" / "c.json"
    for certificate in (
        choose(repetitive_table(), per_pair=2, **rule).certificate,
        selected(objective="readable", tags=TAGS)[1].certificate,
    ):
        certificate.save(path)
        facts = json.loads(path.read_text())
        promised = "objective bound gap status solver version tie_rule candidates seconds".split()
        assert facts.keys() == {*promised, "question", "format"}
        assert facts["seconds"] > 0
        assert facts["gap"] == pytest.approx(0, abs=2e-6)
        assert facts["objective"] == certificate.objective
