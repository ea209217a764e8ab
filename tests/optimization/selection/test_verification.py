"""The checks of finished selections catch what these could get wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from contstim.errors import VerificationError
from contstim.items.reviews import Decision, Review, Stimulus, undecided
from contstim.items.stimuli import Pair, content_id
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


def raise_price(selection: NaturalSelection) -> NaturalSelection:
    (*source, price), *rest = selection.certificate.prices
    return certificate_forgery(prices=((*source, price + 50), *rest))(selection)


def use_costlier_sentence(selection: NaturalSelection) -> NaturalSelection:
    """Consistent in every way, but not optimal: s1 of the first pair is a free, dearer sentence."""
    table = random_table()
    assert table.sentences is not None
    doubled, first = table.doubled_ranks(), selection.pairs[0]
    used = {row for pair in selection.pairs for row in (pair.row_1, pair.row_2)}
    length = len(str(first.sentence_1))
    row = next(
        r
        for r in range(len(doubled))
        if r not in used
        and doubled[r, 1] >= len(doubled)
        and doubled[r, 0] > doubled[first.row_1, 0]
        and len(str(table.sentences[r])) == length
    )
    extra = int(doubled[row, 0] - doubled[first.row_1, 0])
    rank_1, rank_2 = (doubled[row, :2] / (2 * len(doubled))).tolist()
    shown = (table.sentences[row], first.sentence_2)
    forged = change_first(
        trial_id=content_id("pair", first.model_1, first.model_2, *shown),
        sentence_1=shown[0],
        row_1=row,
        rank_1_model_1=rank_1,
        rank_1_model_2=rank_2,
    )(selection)
    ((_, n, total, bound),) = selection.certificate.strata
    total += extra
    return certificate_forgery(strata=((0, n, total, bound),), objective=total / (2 * n))(forged)


def claim(**settings: Any) -> Forgery:
    def forge(selection: NaturalSelection) -> NaturalSelection:
        question = replace(selection.certificate.question, **settings)
        return certificate_forgery(question=question)(selection)

    return forge


def reviewed(stimuli: Sequence[Stimulus], rejected: Collection[str]) -> Review:
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in undecided(stimuli, "Ann")
        )
    )


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (change_first(rank_1_model_1=0.001), "should be"),
        (change_first(row_1=10_000), "it has .* pairs, not"),
        (change_first(sentence_1="Never scored."), "should be"),
        (pair_forgery(swap_texts), "should be"),
        (pair_forgery(swap_roles), "inadmissible|should be"),
        (pair_forgery(use_twice), "should be|used more than once"),
        (pair_forgery(drop_last), "it has .* pairs, not"),
        (use_costlier_sentence, "objective and bound differ"),
        (raise_price, "its strata are"),
        (certificate_forgery(strata=((0, 60, 1, 1),)), "its strata are"),
        (certificate_forgery(objective=0.5), "its strata are"),
        (certificate_forgery(bound=0.5), "its strata are"),
        (certificate_forgery(status="feasible"), "objective and bound differ"),
        (certificate_forgery(models=("a", "b", "c")), "of other models"),
        (certificate_forgery(prices=()), "prices are of other models"),
        (
            lambda s: certificate_forgery(
                prices=tuple((*source, 2**62) for *source, _ in s.certificate.prices)
            )(s),
            "too large to compute with",
        ),
        (claim(per_pair=3), "it has .* pairs, not"),
        (claim(counts=(("model-0", "model-1", 3),)), "it has .* pairs, not"),
        (certificate_forgery(kept=1), "reviewed pairs"),
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
    with pytest.raises(VerificationError, match=r"it has .* pairs, not"):
        verify_natural(repetitive_table(), claimed)
    table = random_table()
    found = choose(table, per_pair=2)
    with pytest.raises(VerificationError, match=r"it has .* pairs, not"):
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
    with pytest.raises(VerificationError, match=r"it has .* pairs, not"):
        verify_natural(alike, change_first(sentence_1=sentences[one])(found))


def test_other_scores_are_caught() -> None:
    selection = choose(random_table(), per_pair=4)
    table = random_table()
    scores = table.log_probs.copy()
    scores[selection.pairs[0].row_1, 0] = -1.0
    with pytest.raises(VerificationError, match="should be"):
        verify_natural(replace(table, log_probs=scores), selection)


def test_what_a_review_of_pairs_leaves_is_held_against_it() -> None:
    table = random_table()
    before = choose(table, per_pair=4)
    review = reviewed(before.pairs, {before.pairs[0].trial_id})
    after = choose(table, per_pair=4, review=review)
    verify_natural(table, after, review=review)
    for forged, given_review, message in (
        (before, review, "rejected or other items are chosen again"),
        (after, None, "its strata are"),
        (after, reviewed(before.pairs, {before.pairs[1].trial_id}), "chosen again"),
        (certificate_forgery(kept=3)(after), review, "11 stay of 11"),
        (certificate_forgery(kept_bound=12)(after), review, "11 stay of 11"),
    ):
        with pytest.raises(VerificationError, match=message):
            verify_natural(table, forged, review=given_review)


def forge_price(found: TripletSelection) -> TripletSelection:
    (name, price), *others = found.certificate.prices
    changed = replace(found.certificate, prices=((name, price + 0.5), *others))
    return replace(found, certificate=changed)


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
        (
            lambda found: replace(found, triplets=found.triplets[:-1]),
            "1 in all, allowed is 2|3 in all, allowed is 4",
        ),
        (showing("Pigs fly."), "was not given, or has changed"),
        (
            lambda found: replace(found, triplets=(found.triplets[1], *found.triplets[1:])),
            "used more than once",
        ),
        (stating(bound=1.0), "the bound 1.0 is beyond"),
        (stating(objective=1.0), "it is worth"),
        (stating(prices=(("x", 1.0),)), "prices are of other rules"),
        (stating(status="gap"), "its status"),
        (stating(edges=()), "edges of quantiles"),
        (stating(reviewed=1), "counted"),
        (forge_price, "its prices prove"),
        (asking(natural_once=True), "natural sentence '.*': "),
        (asking(word_cap=2), "word '.*': .* allowed is 0 to 2"),
        (asking(token_balance=0.0), "balance of .* tokens"),
        (asking(quantiles=4), "edges of quantiles"),
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
        (asking(enough=7.5), "less than 7.5 nats on a side: . in all, allowed is 0"),
        (asking(tags=None), "it is worth|its prices prove"),
        (asking(tags=None, enough=None, objective="controversiality"), "it is worth"),
        (stating(objective=0.0), "it is worth"),
        (stating(bound=1e6), "is beyond the objective"),
        (forge_price, "its prices prove"),
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
    for forged, given_review, message in (
        (before, review, r"7 or fewer can stay"),
        (after, None, r"counted \[0, 0, 0, 0\]"),
        (stating(kept=6)(after), review, "its certificate says"),
        (stating(kept_price_bound=9)(after), review, "its certificate says"),
        (stating(kept_prices=(("x", 1.0),))(after), review, "other rules|can stay|counted"),
        (stating(kept_bound=6)(after), review, "or fewer can stay"),
        (replace(after, triplets=before.triplets), review, "rejected triplets: 1|counted"),
    ):
        with pytest.raises(VerificationError, match=message):
            verify_triplets(triplets, forged, tokens=COUNTED, review=given_review)
