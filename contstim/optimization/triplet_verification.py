"""An independent check of a selection of triplets: counts everything anew, believes nothing."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from contstim.errors import VerificationError
from contstim.optimization.programs import priced_bound
from contstim.optimization.quantiles import quantile_edges
from contstim.optimization.triplet_objective import EXACT, as_bound, set_value, triplet_costs
from contstim.optimization.triplet_question import (
    build_rules,
    by_model_pair,
    natural_log_probs,
    shown_words,
    surplus_tokens,
)
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.optimization.certificate import TripletSelection
    from contstim.optimization.triplet_question import TripletQuestion
    from contstim.stimuli import Triplet


def verify_triplets(
    triplets: Sequence[Triplet],
    selection: TripletSelection,
    question: TripletQuestion,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
) -> None:
    """Check a selection against its question, and its bound against its own prices.

    Args:
        triplets: what was chosen from.
        selection: what `select_triplets` returned.
        question: what was asked.
        tokens: as in `select_triplets`.

    Raises:
        VerificationError: says what is wrong.
    """
    chosen = selection.triplets
    given = {triplet.triplet_id: triplet for triplet in triplets}
    for triplet in chosen:
        _require(given.get(triplet.triplet_id) == triplet, f"{triplet.triplet_id} was not given")
    _check_counted(Counter(t.triplet_id for t in chosen), 1, "triplet")
    _check_spread(triplets, chosen, question)
    if question.natural_once:
        _check_counted(Counter(Sentence.parse(t.natural).bare for t in chosen), 1, "sentence")
    if question.word_cap is not None:
        exempt = frozenset(map(str.lower, question.uncapped))
        words = Counter(w for t in chosen for w in shown_words(t) if w not in exempt)
        _check_counted(words, question.word_cap, "word")
    if question.token_balance is not None:
        _check_balance(triplets, chosen, question, tokens or {})
    _check_certificate(triplets, selection, question, tokens or {})


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(f"The selection fails its check, do not use it: {failure}.")


def _check_counted(counter: Counter[str], most: int, what: str) -> None:
    for name, times in counter.items():
        _require(times <= most, f"{what} {name!r} is used {times} times, at most {most} is allowed")


def _check_spread(
    triplets: Sequence[Triplet], chosen: Sequence[Triplet], question: TripletQuestion
) -> None:
    mine = by_model_pair(chosen)
    for pair, places in by_model_pair(triplets).items():
        has, needs = len(mine.get(pair, [])), question.count(pair)
        _require(has == needs, f"{'-'.join(pair)} has {has} triplets, not {needs}")
        if question.quantiles is None or not needs:
            continue
        everybody = natural_log_probs([triplets[place] for place in places])
        picked = natural_log_probs([chosen[place] for place in mine[pair]])
        for model, values, column in zip(pair, everybody, picked, strict=True):
            edges = quantile_edges(values, question.quantiles)
            for group, (low, high) in enumerate(pairwise(edges), start=1):
                inside = (column <= high) & ((column > low) | ((group == 1) & (column == low)))
                _require(
                    int(inside.sum()) == needs // question.quantiles,
                    f"{'-'.join(pair)} has {inside.sum()} triplets in group {group} of "
                    f"{question.quantiles} of p(n|{model})",
                )


def _check_balance(
    triplets: Sequence[Triplet],
    chosen: Sequence[Triplet],
    question: TripletQuestion,
    tokens: Mapping[tuple[str, str], int],
) -> None:
    mine = by_model_pair(chosen)
    for pair in by_model_pair(triplets):
        own = [chosen[place] for place in mine.get(pair, [])]
        for model in pair:
            total = sum(surplus_tokens(triplet, model, tokens) for triplet in own)
            _require(
                abs(total) <= (question.token_balance or 0) * len(own) + 1e-9,
                f"{'-'.join(pair)}: rejected sentences have {total} tokens more than accepted "
                f"ones under {model}, in {len(own)} triplets",
            )


def _check_certificate(
    triplets: Sequence[Triplet],
    selection: TripletSelection,
    question: TripletQuestion,
    tokens: Mapping[tuple[str, str], int],
) -> None:
    certificate, objective = selection.certificate, question.objective
    _require(
        certificate.objective_name == objective
        and {pair[:2]: pair[2] for pair in certificate.counts}
        == {pair: question.count(pair) for pair in by_model_pair(triplets)},
        "its certificate is for another question",
    )
    value = set_value(triplets, selection.triplets, objective)
    _require(certificate.objective == value, f"it is worth {value}, not {certificate.objective}")
    rules = build_rules(triplets, question, tokens)
    costs = triplet_costs(triplets, question).tolist()
    bound = as_bound(priced_bound(costs, rules, dict(certificate.prices)), objective)
    claimed = certificate.price_bound
    _require(claimed == bound, f"its prices prove the bound {bound}, not {claimed}")
    sign = 1 if objective == "controversiality" else -1
    _require(
        sign * (value - certificate.bound) <= EXACT and sign * (certificate.bound - bound) <= 0,
        f"the bound {certificate.bound} is beyond the objective {value}, or looser than {bound}",
    )
    _require(
        (certificate.status == "optimal") == (abs(certificate.bound - value) <= 2 * EXACT),
        f"status {certificate.status!r} with objective {value} and bound {certificate.bound}",
    )
