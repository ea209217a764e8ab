"""The checks of finished selections catch what these could get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from contstim.errors import VerificationError
from contstim.items.reviews import Decision, Review, Stimulus, undecided_items
from contstim.items.stimuli import Pair
from contstim.optimization.selection.question import NaturalSelection, TripletSelection
from contstim.optimization.selection.verification import verify_natural, verify_triplets
from contstim.words.sentence import Sentence
from tests.optimization.selection.tables import choose, random_table, repetitive_table
from tests.optimization.selection.test_triplets import COUNTED, TAGS, selected

Forgery: TypeAlias = Callable[[NaturalSelection], NaturalSelection]


def pair_forgery(change: Callable[[list[Pair]], None]) -> Forgery:
    def forge(selection: NaturalSelection) -> NaturalSelection:
        pairs = list(selection.pairs)
        change(pairs)
        return replace(selection, pairs=tuple(pairs))

    return forge


def change_first(**fields: object) -> Forgery:
    def change(pairs: list[Pair]) -> None:
        pairs[0] = replace(pairs[0], **fields)  # type: ignore[arg-type]

    return pair_forgery(change)


def certificate_forgery(**fields: object) -> Forgery:
    def forge(selection: NaturalSelection) -> NaturalSelection:
        certificate = replace(selection.certificate, **fields)  # type: ignore[arg-type]
        return replace(selection, certificate=certificate)

    return forge


def swap_roles(pairs: list[Pair]) -> None:
    p = pairs[0]
    pairs[0] = Pair(
        *(p.trial_id, p.model_1, p.model_2, p.sentence_2, p.sentence_1, p.row_2, p.row_1),
        *(p.rank_2_model_1, p.rank_2_model_2, p.rank_1_model_1, p.rank_1_model_2),
    )


def swap_texts(pairs: list[Pair]) -> None:
    pairs[0] = replace(pairs[0], sentence_1=pairs[0].sentence_2, sentence_2=pairs[0].sentence_1)


def use_twice(pairs: list[Pair]) -> None:
    pairs[1] = replace(pairs[0], trial_id="pair-other")


def drop_last(pairs: list[Pair]) -> None:
    pairs.pop()


def claim(**settings: Any) -> Forgery:
    def forge(selection: NaturalSelection) -> NaturalSelection:
        question = replace(selection.certificate.question, **settings)
        return certificate_forgery(question=question)(selection)

    return forge


def reviewed(stimuli: Sequence[Stimulus], rejected: Collection[str]) -> Review:
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in undecided_items(stimuli, "Ann")
        )
    )


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (change_first(rank_1_model_1=0.001), "other ranks"),
        (change_first(row_1=10_000), "used more than once"),
        (change_first(sentence_1="Never scored."), "has changed"),
        (pair_forgery(swap_texts), "has changed"),
        (pair_forgery(swap_roles), "inadmissible"),
        (pair_forgery(use_twice), "used more than once"),
        (pair_forgery(drop_last), "it has .* pairs, not"),
        (certificate_forgery(objective=0.5), "it is worth"),
        (certificate_forgery(bound=50.0), "bound 50.0"),
        (claim(per_pair=3), "it has .* pairs, not"),
        (claim(counts=(("model-0", "model-1", 3),)), "it has .* pairs, not"),
        (claim(same_length=True), "ranks|lengths"),
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
    claimed = claim(no_repeats=True, repeatable=frozenset())(found)
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
        verify_natural(alike, claim(agreeing=False)(found))


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


def test_other_scores_are_caught() -> None:
    selection = choose(random_table(), per_pair=4)
    table = random_table()
    scores = table.log_probs.copy()
    scores[selection.pairs[0].row_1, 0] = -1.0
    with pytest.raises(VerificationError, match="other ranks"):
        verify_natural(replace(table, log_probs=scores), selection)


def test_what_a_review_of_pairs_leaves_is_held_against_it() -> None:
    table = random_table()
    before = choose(table, per_pair=4)
    review = reviewed(before.pairs, {before.pairs[0].trial_id})
    after = choose(table, per_pair=4, review=review)
    verify_natural(table, after, review=review)
    with pytest.raises(VerificationError, match="was rejected"):
        verify_natural(table, before, review=review)


def stating(**fields: Any) -> Callable[[TripletSelection], TripletSelection]:
    def forge(found: TripletSelection) -> TripletSelection:
        return replace(found, certificate=replace(found.certificate, **fields))

    return forge


def asking(**rules: Any) -> Callable[[TripletSelection], TripletSelection]:
    def forge(found: TripletSelection) -> TripletSelection:
        return stating(question=replace(found.certificate.question, **rules))(found)

    return forge


def showing(*texts: str) -> Callable[[TripletSelection], TripletSelection]:
    def forge(found: TripletSelection) -> TripletSelection:
        first = replace(found.triplets[0], natural=Sentence.parse(texts[0]))
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
def test_forged_triplets_are_caught(
    forge: Callable[[TripletSelection], TripletSelection], message: str
) -> None:
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
def test_forged_readable_triplets_are_caught(
    forge: Callable[[TripletSelection], TripletSelection], message: str
) -> None:
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
