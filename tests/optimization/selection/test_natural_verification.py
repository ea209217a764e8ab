"""The verifier catches what a selection could get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest

from contstim.errors import VerificationError
from contstim.optimization.selection.certificate import NaturalSelection
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.natural_verification import verify_natural
from contstim.sentence import Sentence
from contstim.stimuli import Pair
from tests.optimization.selection.tables import random_table, repetitive_table

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


def match_worse(pairs: list[Pair]) -> None:
    """Give every first sentence of a model pair another second one, in the opposite order."""
    group = sorted(pairs[:4], key=lambda pair: len(str(pair.sentence_2)))
    for place, (one, two) in enumerate(zip(group, reversed(group), strict=True)):
        pairs[place] = replace(
            one,
            sentence_2=two.sentence_2,
            row_2=two.row_2,
            rank_2_model_1=two.rank_2_model_1,
            rank_2_model_2=two.rank_2_model_2,
        )


def raise_price(selection: NaturalSelection) -> NaturalSelection:
    (reject, accept, price), *rest = selection.certificate.prices
    return certificate_forgery(prices=((reject, accept, price + 50), *rest))(selection)


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
    forged = change_first(
        sentence_1=table.sentences[row], row_1=row, rank_1_model_1=rank_1, rank_1_model_2=rank_2
    )(selection)
    total = selection.certificate.objective_numerator + extra
    return certificate_forgery(objective_numerator=total, objective=total / (2 * len(doubled)))(
        forged
    )


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (change_first(rank_1_model_1=0.001), "the rank under model-0 is .*, not 0.001"),
        (change_first(row_1=10_000), "no such row"),
        (change_first(sentence_1="Never scored."), "not 'Never scored.'"),
        (change_first(model_1="model-9"), "model-9-model-1 has 1 pairs, not 0|has 3 pairs, not 4"),
        (pair_forgery(swap_texts), "the sentence is"),
        (pair_forgery(swap_roles), "below 0.5 where it must be accepted"),
        (pair_forgery(use_twice), "used more than once: row"),
        (pair_forgery(drop_last), "has 3 pairs, not 4"),
        (pair_forgery(match_worse), "lengths differ by"),
        (use_costlier_sentence, "only equal ones are optimal"),
        (raise_price, "its prices prove the bound"),
        (certificate_forgery(objective_numerator=1), "the doubled ranks sum to"),
        (certificate_forgery(objective=0.5), "the objective is"),
        (certificate_forgery(bound_numerator=1), "prove the bound"),
        (certificate_forgery(bound=0.5), "the bound is"),
        (certificate_forgery(status="feasible"), "status 'feasible'"),
        (certificate_forgery(per_pair=3), "for per_pair 3, asked was 4"),
        (certificate_forgery(models=("a", "b", "c")), "for models"),
        (certificate_forgery(n_sentences=59), "for n_sentences 59"),
        (certificate_forgery(repeatable=("the",)), "for repeatable"),
        (certificate_forgery(agreeing=True), "for agreeing True, asked was False"),
        (certificate_forgery(admissible=()), "says admissible"),
        (certificate_forgery(prices=()), "one for every ordered model pair"),
        (
            lambda s: certificate_forgery(
                prices=tuple((reject, accept, 2**62) for reject, accept, _ in s.certificate.prices)
            )(s),
            "too large to compute with",
        ),
    ],
)
def test_the_verifier_catches(forge: Forgery, message: str) -> None:
    table = random_table()
    selection = select_natural(table, per_pair=4)
    verify_natural(table, selection, per_pair=4)
    with pytest.raises(VerificationError, match=message):
        verify_natural(table, forge(selection), per_pair=4)


def test_the_verifier_catches_a_sentence_that_the_rule_excludes() -> None:
    table = repetitive_table()
    selection = select_natural(table, per_pair=2)
    claimed = certificate_forgery(repeatable=())(selection)
    with pytest.raises(VerificationError, match="the rules about words exclude rows"):
        verify_natural(table, claimed, per_pair=2, repeatable=frozenset())


def test_the_verifier_knows_which_rule_ranks_keep() -> None:
    """Of two models of one order every pair is agreed on."""
    table = random_table(20, 1)
    alike = replace(table, models=("a", "b"), log_probs=table.log_probs[:, [0, 0]])
    found = select_natural(alike, per_pair=2, agreeing=True)
    verify_natural(alike, found, per_pair=2, agreeing=True)
    forged = certificate_forgery(agreeing=False)(found)
    with pytest.raises(VerificationError, match="or more where it must be rejected"):
        verify_natural(alike, forged, per_pair=2)


def test_the_verifier_sees_sentences_that_look_alike() -> None:
    """The rows are chosen from a table where the two sentences still differ."""
    table = random_table()
    found = select_natural(table, per_pair=2)
    one, two = found.pairs[0].row_1, found.pairs[0].row_2
    assert table.sentences is not None
    sentences = list(table.sentences)
    sentences[one] = replace(sentences[two], end="!")
    alike = replace(table, sentences=tuple(sentences))
    forged = change_first(sentence_1=sentences[one])(found)
    with pytest.raises(VerificationError, match="used more than once: sentence"):
        verify_natural(alike, forged, per_pair=2)


def test_the_verifier_needs_the_scores_of_the_selection() -> None:
    selection = select_natural(random_table(), per_pair=4)
    table = random_table()
    scores = table.log_probs.copy()
    scores[selection.pairs[0].row_1, 0] = -1.0
    with pytest.raises(VerificationError, match="the rank under model-0"):
        verify_natural(replace(table, log_probs=scores), selection, per_pair=4)


def test_sentences_that_were_to_be_left_out_are_found() -> None:
    table = random_table()
    found = select_natural(table, per_pair=2)
    chosen = [Sentence.parse(str(found.pairs[0].sentence_1))]
    with pytest.raises(VerificationError, match="for excluded 0, asked was 1"):
        verify_natural(table, found, per_pair=2, excluded=chosen)
    forged = certificate_forgery(excluded=1)(found)
    with pytest.raises(VerificationError, match=f"exclude rows .{found.pairs[0].row_1}"):
        verify_natural(table, forged, per_pair=2, excluded=chosen)


def test_other_counts_than_asked_are_found() -> None:
    table = random_table()
    counts = {("model-0", "model-1"): 3}
    found = select_natural(table, per_pair=2, counts=counts)
    verify_natural(table, found, per_pair=2, counts=counts)
    with pytest.raises(VerificationError, match="its certificate is for counts"):
        verify_natural(table, found, per_pair=2)
    forged = certificate_forgery(counts=tuple((*pair[:2], 2) for pair in found.certificate.counts))
    with pytest.raises(VerificationError, match="model-0-model-1 has 3 pairs, not 2"):
        verify_natural(table, forged(found), per_pair=2)
