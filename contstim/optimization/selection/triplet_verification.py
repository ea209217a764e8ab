"""The check of a finished selection of triplets: its rules are counted, its bound recomputed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from contstim.errors import VerificationError
from contstim.optimization.selection.programs import priced_bound
from contstim.optimization.selection.reviewed import ReviewedTriplets
from contstim.optimization.selection.triplet_objective import (
    EXACT,
    TIE_RULES,
    as_bound,
    set_value,
    triplet_costs,
)
from contstim.optimization.selection.triplet_question import (
    build_rules,
    by_model_pair,
    edges_of,
    recomputed,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.optimization.selection.certificate import TripletCertificate, TripletSelection
    from contstim.optimization.selection.programs import LinearRule
    from contstim.optimization.selection.triplet_question import TripletQuestion
    from contstim.reviews import Review
    from contstim.stimuli import Triplet


def verify_triplets(
    triplets: Sequence[Triplet],
    selection: TripletSelection,
    question: TripletQuestion,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    review: Review | None = None,
) -> None:
    """Check a selection against its question, and its bound against its own prices.

    It does not matter how the selection came about: what was chosen is counted against every rule
    of the question, its worth is summed anew, and the bound is computed from the prices without
    rounding. Where `bound` is tighter than `price_bound` it is the solver's account, which cannot
    be checked.

    Args:
        triplets: what was chosen from.
        selection: what `select_triplets` returned, or what was read back from files.
        question: what was asked.
        tokens: as in `select_triplets`.
        review: as in `select_triplets`.

    Raises:
        VerificationError: says what is wrong.
    """
    chosen, certificate = selection.triplets, selection.certificate
    places = {triplet.triplet_id: place for place, triplet in enumerate(triplets)}
    for triplet in chosen:
        place = places.get(triplet.triplet_id)
        _require(
            place is not None and recomputed(triplets[place]) == triplet,
            f"{triplet.triplet_id} was not given, or states another controversiality",
        )
    for name, times in Counter(triplet.triplet_id for triplet in chosen).items():
        _require(times == 1, f"triplet {name!r} is used {times} times, at most 1 is allowed")
    _check_question(triplets, certificate, question)
    rules = build_rules(triplets, question, tokens or {})
    chosen_places = {places[triplet.triplet_id] for triplet in chosen}
    if review is not None:
        after = ReviewedTriplets.of(review, triplets)
        rules += after.rules(shared=certificate.shared)
        _check_kept(triplets, certificate, after, rules, chosen_places)
        rules.append(after.keeping(certificate.kept))
    else:
        numbers = (certificate.reviewed, certificate.kept)
        _require(numbers == (0, 0), "its certificate is of a selection after a review")
    # Every rule is counted over the chosen triplets, whatever the solver said of it.
    for rule in rules:
        weights = zip(rule.members, rule.weights, strict=True)
        has = sum(weight for member, weight in weights if member in chosen_places)
        allowed = f"{rule.lower} to {rule.upper}" if rule.lower < rule.upper else f"{rule.upper}"
        _require(
            rule.lower <= has <= rule.upper, f"{rule.name}: {has} in all, allowed is {allowed}"
        )
    edges = tuple((*names, each) for names, each in edges_of(triplets, question).items())
    _require(certificate.edges == edges, "its certificate is for other edges of quantiles")
    _check_worth(triplets, selection, question, rules)


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(f"The selection fails its check, do not use it: {failure}.")


def _check_question(
    triplets: Sequence[Triplet], certificate: TripletCertificate, question: TripletQuestion
) -> None:
    counts = tuple((*pair, question.count(pair)) for pair in by_model_pair(triplets))
    uncapped = () if question.word_cap is None else tuple(sorted(question.uncapped))
    for name, claimed, wanted in (
        ("objective", certificate.objective_name, question.objective),
        ("tie_rule", certificate.tie_rule, TIE_RULES[question.objective]),
        ("candidates", certificate.candidates, len(triplets)),
        ("quantiles", certificate.quantiles, question.quantiles),
        ("natural_once", certificate.natural_once, question.natural_once),
        ("word_cap", certificate.word_cap, question.word_cap),
        ("uncapped", certificate.uncapped, uncapped),
        ("token_balance", certificate.token_balance, question.token_balance),
        ("counts", certificate.counts, counts),
    ):
        _require(
            claimed == wanted, f"its certificate is for {name} {claimed!r}, asked was {wanted!r}"
        )


def _check_kept(
    triplets: Sequence[Triplet],
    certificate: TripletCertificate,
    after: ReviewedTriplets,
    rules: Sequence[LinearRule],
    chosen: Collection[int],
) -> None:
    """Check how many stay by counting, and the bound on it by recomputing."""
    _check_prices(certificate.kept_prices, rules)
    bound = after.proved(len(triplets), rules, dict(certificate.kept_prices))
    for name, claimed, counted in (
        ("reviewed", certificate.reviewed, after.reviewed),
        ("rejected", certificate.rejected, after.rejected),
        ("kept", certificate.kept, sum(place in chosen for place in after.places)),
        ("kept_price_bound", certificate.kept_price_bound, bound),
    ):
        _require(claimed == counted, f"its certificate says {name} {claimed}, counted {counted}")
    _require(
        certificate.kept <= certificate.kept_bound <= bound,
        f"the bound {certificate.kept_bound} on those that stay is below {certificate.kept}, or "
        f"looser than {bound}",
    )


def _check_prices(prices: Iterable[tuple[str, float]], rules: Iterable[LinearRule]) -> None:
    unknown = sorted(dict(prices).keys() - {rule.name for rule in rules})
    _require(not unknown, f"its prices are of other rules: {', '.join(unknown)}")


def _check_worth(
    triplets: Sequence[Triplet],
    selection: TripletSelection,
    question: TripletQuestion,
    rules: Sequence[LinearRule],
) -> None:
    certificate, objective = selection.certificate, question.objective
    # Controversiality is maximised, so that bounds are above it; rank sums the other way round.
    sign = 1 if objective == "controversiality" else -1
    value = set_value(triplets, selection.triplets, objective)
    claimed = certificate.objective
    _require(_same(claimed, value), f"it is worth {value}, not {claimed}")
    _check_prices(certificate.prices, rules)
    prices = dict(certificate.prices)
    costs = triplet_costs(triplets, question).tolist()
    by_prices = as_bound(priced_bound(costs, rules, prices), objective)
    claimed, bound = certificate.price_bound, certificate.bound
    _require(_same(claimed, by_prices), f"its prices prove the bound {by_prices}, not {claimed}")
    # The set is worth no more than the bound, and the bound is no looser than what prices prove.
    _require(
        sign * (value - bound) <= EXACT and sign * (bound - claimed) <= 0,
        f"the bound {bound} is beyond the objective {value}, or looser than {claimed}",
    )
    _require(
        (certificate.status == "optimal")
        == (
            abs(bound - certificate.objective) <= 2 * EXACT
            and certificate.kept == certificate.kept_bound
        ),
        f"status {certificate.status!r} with objective {value} and bound {bound}",
    )


def _same(claimed: float, computed: float) -> bool:
    return claimed == computed or abs(claimed - computed) <= 1e-9 * max(1.0, abs(computed))
