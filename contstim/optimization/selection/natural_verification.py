"""The check of a finished natural selection: every constraint, the objective and the bound."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import groupby, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VerificationError
from contstim.optimization.selection.demand import Demand, usable_rows
from contstim.optimization.selection.duals import sentence_prices
from contstim.optimization.selection.reviewed import reviewed_pairs, unfree_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.arrays import BoolArray, IntArray
    from contstim.optimization.selection.certificate import Certificate, NaturalSelection
    from contstim.optimization.selection.demand import Stratum
    from contstim.reviews import Review
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair


def verify_natural(
    table: ScoreTable,
    selection: NaturalSelection,
    *,
    per_pair: int,
    repeatable: frozenset[str] | None = None,
    counts: Mapping[tuple[str, str], int] | None = None,
    excluded: Collection[Sentence] = (),
    same_length: bool = False,
    agreeing: bool = False,
    review: Review | None = None,
) -> None:
    """Check a selection against the scores, and its optimality against its own dual prices.

    Ranks are recomputed from the scores; every constraint is checked for every pair; the objective
    is summed anew; the bound is evaluated over all sentences that the rules leave. It does not
    matter how the selection came about.

    Args:
        table: the scores that the selection was made from.
        selection: what `select_natural` returned, or what was read back from files.
        per_pair: pairs that were asked for, for each model pair.
        repeatable: the word-repetition rule that was asked for, as in `select_natural`.
        counts: model pairs that need another number, as in `select_natural`.
        excluded: sentences that were to be left out, as in `select_natural`.
        same_length: whether lengths were to be the same, as in `select_natural`.
        agreeing: which rule ranks were to keep, as in `select_natural`.
        review: what the selection was made after, as in `select_natural`.

    Raises:
        VerificationError: says what is wrong, and with which pair.
    """
    pairs, certificate = selection.pairs, selection.certificate
    question = Demand(table.models, per_pair, counts or {}, agreeing)
    banned = frozenset(sentence.words for sentence in excluded)
    usable = usable_rows(table, repeatable, banned)
    strata = question.strata(table, same_length=same_length)
    _check_question(certificate, question, strata, repeatable, len(usable), len(banned))
    # The pairs of each stratum, by their first sentence; the second must be of the same.
    of_row = np.full(len(usable), -1)
    for number, stratum in enumerate(strata):
        of_row[stratum.rows] = number
    parts: list[list[Pair]] = [[] for _ in strata]
    for pair in pairs:
        where = f"{pair.trial_id}, rows {pair.row_1} and {pair.row_2}"
        least, most = sorted((pair.row_1, pair.row_2))
        _require(least >= 0 and most < len(of_row), f"{where}: there is no such row")
        number = int(of_row[pair.row_1])
        _require(number == of_row[pair.row_2], f"{where}: lengths differ")
        _require(number >= 0, f"{where}: no pairs are asked for of this length")
        parts[number].append(pair)
    for stratum, part in zip(strata, parts, strict=True):
        # As many pairs as asked for each model pair, and none of any other.
        counts_of = Counter((pair.model_1, pair.model_2) for pair in part)
        for model_pair in {**counts_of, **stratum.counts}:
            has, needs = counts_of[model_pair], stratum.counts.get(model_pair, 0)
            of_length = f" of {stratum.words} words" if stratum.words else ""
            _require(
                has == needs, f"{'-'.join(model_pair)} has {has} pairs{of_length}, not {needs}"
            )
        _check_sentences(table, stratum, part, agreeing=agreeing)
    _check_rows(pairs, usable)
    _check_admissible(certificate, question, strata, usable)
    stay = _check_review(table, strata, usable, selection, review)
    for part in parts:
        _check_matching(table, [pair for pair in part if pair.trial_id not in stay])
    _check_optimality(table, strata, parts, usable, selection, review, stay)


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(f"The selection fails its check, do not use it: {failure}.")


def _check_question(
    certificate: Certificate,
    question: Demand,
    strata: Sequence[Stratum],
    repeatable: frozenset[str] | None,
    n_sentences: int,
    excluded: int,
) -> None:
    rule = None if repeatable is None else tuple(sorted(repeatable))
    of_lengths = tuple(
        (stratum.words, *pair, count)
        for stratum in strata
        if stratum.words
        for pair, count in stratum.counts.items()
    )
    for name, claimed, wanted in (
        ("models", certificate.models, question.models),
        ("n_sentences", certificate.n_sentences, n_sentences),
        ("per_pair", certificate.per_pair, question.per_pair),
        ("counts", certificate.counts, question.counted),
        ("length_counts", certificate.length_counts, of_lengths),
        ("agreeing", certificate.agreeing, question.agreeing),
        ("excluded", certificate.excluded, excluded),
        ("repeatable", certificate.repeatable, rule),
    ):
        _require(claimed == wanted, f"its certificate is for {name} {claimed}, asked was {wanted}")


def _check_sentences(
    table: ScoreTable, stratum: Stratum, pairs: Sequence[Pair], *, agreeing: bool
) -> None:
    """Every sentence is the table's, has its ranks, and is rejected by one model, not the other."""
    scale = 2 * len(stratum.rows)
    for pair in pairs:
        # Sentence 1 is rejected by model 1 and accepted by model 2, sentence 2 the other way round.
        for row, sentence, ranks, reject in (
            (pair.row_1, pair.sentence_1, (pair.rank_1_model_1, pair.rank_1_model_2), 0),
            (pair.row_2, pair.sentence_2, (pair.rank_2_model_1, pair.rank_2_model_2), 1),
        ):
            where = f"{pair.trial_id} ({pair.model_1}-{pair.model_2}), row {row}"
            of_row = None if table.sentences is None else table.sentences[row]
            _require(sentence == of_row, f"{where}: the sentence is '{of_row}', not '{sentence}'")
            place = np.searchsorted(stratum.rows, row)
            for model, rank in zip((pair.model_1, pair.model_2), ranks, strict=True):
                true = int(stratum.doubled[table.models.index(model), place]) / scale
                _require(rank == true, f"{where}: the rank under {model} is {true}, not {rank}")
            accepted = ranks[1 - reject] >= 0.5
            _require(accepted, f"{where}: ranks below 0.5 where it must be accepted")
            rejected = agreeing or ranks[reject] < 0.5
            _require(rejected, f"{where}: ranks 0.5 or more where it must be rejected")


def _check_rows(pairs: Sequence[Pair], usable: BoolArray) -> None:
    """Every sentence serves once, and may serve at all."""
    # Rows may differ and sentences look alike, so both are counted.
    for name, values in (
        ("row", [row for pair in pairs for row in (pair.row_1, pair.row_2)]),
        ("sentence", [sentence.bare for sentence in _sentences(pairs)]),
        ("trial_id", [pair.trial_id for pair in pairs]),
    ):
        twice = [value for value, times in Counter(values).items() if times > 1]
        _require(not twice, f"used more than once: {name} {twice}")
    chosen = [row for pair in pairs for row in (pair.row_1, pair.row_2)]
    ruled_out = sorted({row for row in chosen if not usable[row]})
    _require(not ruled_out, f"the rules about words exclude rows {ruled_out}")


def _check_admissible(
    certificate: Certificate,
    question: Demand,
    strata: Sequence[Stratum],
    usable: BoolArray,
) -> None:
    """As many sentences as stated may be used by each model against each other."""
    # Ranks as fractions, and not the selection's own account of who may use what
    ranks = [stratum.doubled / (2 * len(stratum.rows)) for stratum in strata]
    free = [usable[stratum.rows] for stratum in strata]
    admissible = tuple(
        (
            question.models[reject],
            question.models[accept],
            sum(
                int((((r[reject] < 0.5) | question.agreeing) & (r[accept] >= 0.5))[some].sum())
                for r, some in zip(ranks, free, strict=True)
            ),
        )
        for reject, accept in permutations(range(len(question.models)), 2)
    )
    _require(
        certificate.admissible == admissible,
        f"its certificate says admissible {certificate.admissible}, counted {admissible}",
    )


def _check_review(
    table: ScoreTable,
    strata: Sequence[Stratum],
    usable: BoolArray,
    selection: NaturalSelection,
    review: Review | None,
) -> dict[str, int]:
    """Check that rejected pairs are gone and all stay that can; return these, name → cost."""
    certificate = selection.certificate
    if review is None:
        numbers = (certificate.reviewed, certificate.rejected)
        _require(numbers == (0, 0), "its certificate is of a selection after a review")
        return {}
    reviewed, rejected = reviewed_pairs(review, table), review.rejected
    stay = {
        pair.item_id: pair.cost
        for stratum in strata
        for pair in stratum.best_standing(table, usable, reviewed, rejected)
    }
    chosen = {pair.trial_id: pair for pair in selection.pairs}
    able = len(stay)
    if certificate.against:
        # That no more can stay than the bound says is the solver's own account
        stay = {item_id: cost for item_id, cost in stay.items() if item_id in chosen}
    for item_id in stay:
        _require(
            item_id in chosen
            and reviewed[item_id].sentences == tuple(_sentences([chosen[item_id]]))
            and reviewed[item_id].model_1 == chosen[item_id].model_1
            and reviewed[item_id].model_2 == chosen[item_id].model_2,
            f"{item_id} was not rejected, and is not there as it was",
        )
    gone = unfree_words(review, shared=certificate.shared)
    new = [pair for pair in selection.pairs if pair.trial_id not in stay]
    again = [sentence.text for sentence in _sentences(new) if sentence.words in gone]
    _require(not again, f"sentences of rejected items or other trials are chosen again: {again}")
    for name, claimed, counted in (
        ("reviewed", certificate.reviewed, len(reviewed)),
        ("rejected", certificate.rejected, len(rejected & reviewed.keys())),
        ("kept", certificate.kept, len(stay)),
    ):
        _require(claimed == counted, f"its certificate says {name} {claimed}, counted {counted}")
    _require(
        certificate.kept <= certificate.kept_bound <= able,
        f"the bound {certificate.kept_bound} on pairs that stay is below {certificate.kept}, or "
        f"above {able}",
    )
    return stay


def _sentences(pairs: Iterable[Pair]) -> list[Sentence]:
    return [s for pair in pairs for s in (pair.sentence_1, pair.sentence_2) if s is not None]


def _check_matching(table: ScoreTable, pairs: Iterable[Pair]) -> None:
    """Inside a model pair, sentences are matched so that lengths differ as little as can be."""
    if table.sentences is None:
        return

    def models_of(pair: Pair) -> tuple[str, str]:
        return pair.model_1, pair.model_2

    for models, group in groupby(sorted(pairs, key=models_of), key=models_of):
        # (n_pairs, 2). On a line, nothing beats the k-th shortest beside the k-th shortest.
        lengths = np.array([[len(s.bare) for s in _sentences([pair])] for pair in group])
        least = np.abs(np.diff(np.sort(lengths, axis=0))).sum()
        total = np.abs(np.diff(lengths)).sum()
        _require(
            bool(total == least),
            f"{'-'.join(models)}: lengths differ by {total} characters in all, {least} is possible",
        )


def _check_optimality(
    table: ScoreTable,
    strata: Sequence[Stratum],
    parts: Sequence[Sequence[Pair]],
    usable: BoolArray,
    selection: NaturalSelection,
    review: Review | None,
    stay: Mapping[str, int],
) -> None:
    """The objective is what the pairs are worth, the bound what the prices prove: one number."""
    certificate = selection.certificate
    # Whatever stays is a part of every answer; what it uses, and what was rejected, is not free.
    kept = [pair for pair in selection.pairs if pair.trial_id in stay]
    taken = {sentence.words for sentence in _sentences(kept)}
    free = usable
    if review is not None:
        taken |= unfree_words(review, shared=certificate.shared)
        free = usable & ~np.array([s.words in taken for s in table.sentences or ()])
    of_lengths = certificate.length_prices or tuple(
        (0, reject, accept, price) for reject, accept, price in certificate.prices
    )
    sources = list(permutations(table.models, 2))
    # Prices of other sources, or so large that sums overflow, would prove nothing.
    _require(
        [each[:3] for each in of_lengths] == [(s.words, *pair) for s in strata for pair in sources],
        "its prices are not one for every ordered model pair, in the models' order",
    )
    values = [price for *_, price in of_lengths]
    _require(
        all(isinstance(u, int) and abs(u) < 2**62 // certificate.n_sentences for u in values),
        "a price is not an integer, or is too large to compute with",
    )
    # Each stratum's words, sentences, objective and bound, as `Certificate.lengths` has them
    totals = [
        (stratum.words, len(stratum.rows), *_recounted(table, stratum, part, stay, free, prices))
        for stratum, part, prices in zip(
            strata, parts, np.array(values).reshape(-1, len(sources)), strict=True
        )
    ]
    of_strata = tuple(total for stratum, total in zip(strata, totals, strict=True) if stratum.words)
    _require(
        certificate.lengths == of_strata,
        f"its lengths are {certificate.lengths}, counted was {of_strata}",
    )
    for what, named, place in (
        ("the doubled ranks sum to", "objective", 2),
        ("its prices prove the bound", "bound", 3),
    ):
        numerator = sum(each[place] for each in totals)
        claimed = getattr(certificate, f"{named}_numerator")
        _require(claimed == numerator, f"{what} {numerator}, not {claimed}")
        value = float(sum(Fraction(each[place], 2 * each[1]) for each in totals))
        claimed = getattr(certificate, named)
        _require(claimed == value, f"the {named} is {value}, not {claimed}")
    _require(
        certificate.status == "optimal" and all(each[2] == each[3] for each in totals),
        f"status {certificate.status!r} with objective {certificate.objective_numerator} and "
        f"bound {certificate.bound_numerator}: only equal ones are optimal",
    )


def _recounted(
    table: ScoreTable,
    stratum: Stratum,
    part: Sequence[Pair],
    stay: Mapping[str, int],
    free: BoolArray,
    prices: IntArray,
) -> tuple[int, int]:
    """Worth of the pairs of a stratum, and the bound that its prices prove, in doubled ranks."""
    # Eq. 5 in whole numbers: each sentence's doubled rank under the model that rejects it.
    total = sum(
        int(stratum.doubled[table.models.index(model), np.searchsorted(stratum.rows, row)])
        for pair in part
        for model, row in ((pair.model_1, pair.row_1), (pair.model_2, pair.row_2))
    )
    # sum of d_k · u_k, less what the sentences earn: recomputed from the stated prices alone.
    new = Counter(
        frozenset((pair.model_1, pair.model_2)) for pair in part if pair.trial_id not in stay
    )
    demand = np.array([new[frozenset(source)] for source in permutations(table.models, 2)])
    earned = sentence_prices(stratum.doubled, prices, stratum.below)[free[stratum.rows]]
    fixed = sum(stay.get(pair.trial_id, 0) for pair in part)
    return total, fixed + int(demand @ prices) - int(earned.sum())
