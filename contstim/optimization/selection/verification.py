"""Checks of finished selections: every rule, and the bound by the certificate's own prices.

It does not matter how a selection came about: it is held against the question that its certificate
says it answers.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from contstim.english.tags import tag_table
from contstim.errors import VerificationError
from contstim.items.stimuli import repeated_item
from contstim.optimization.selection.programs import priced_bound
from contstim.optimization.selection.question import demand
from contstim.optimization.selection.reviewed import ReviewedTriplets, reviewed_pairs, unfree_words
from contstim.optimization.selection.strata import rank_sums, strata
from contstim.optimization.selection.triplet_rules import (
    EXACT,
    as_bound,
    build_rules,
    by_model_pair,
    edges_of,
    triplet_costs,
    usable_triplets,
)
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contstim.items.minimal_pair_scores import MinimalPairScores
    from contstim.items.reviews import Review
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Triplet
    from contstim.optimization.selection.question import (
        MinimalPairSelection,
        NaturalSelection,
        TripletSelection,
    )
    from contstim.words.sentence import Sentence

_SIDES = ("good", "bad")


def verify_natural(
    table: ScoreTable,
    selection: NaturalSelection,
    *,
    excluded: Collection[Sentence] = (),
    review: Review | None = None,
) -> None:
    """Check natural pairs against the scores, and their optimality against the dual prices.

    Args:
        table: the scores that the selection was made from.
        selection: what `select_natural` returned, or what was read back from files.
        excluded: as in `select_natural`.
        review: as in `select_natural`.

    Raises:
        VerificationError: says what is wrong, and with which pair.
    """
    certificate, pairs = selection.certificate, selection.pairs
    sources = list(permutations(table.models, 2))
    parts = strata(table, certificate.question, excluded)
    named = [(part.words, *source) for part in parts for source in sources]
    _require(certificate.models == table.models, "its certificate is of other models")
    _require([row[:3] for row in certificate.prices] == named, "its prices are of other models")
    prices = np.array([row[3] for row in certificate.prices], dtype=object)
    # Larger ones would overflow the sum over all sentences
    small = all(abs(price) < 2**62 // len(table.log_probs) for price in prices)
    _require(small, "a price is too large to compute with")
    by_part = prices.astype(np.int64).reshape(len(parts), len(sources))

    reviewed = {} if review is None else reviewed_pairs(review, table)
    rejected = frozenset[str]() if review is None else review.rejected
    banned = frozenset() if review is None else unfree_words(review, shared=certificate.shared)
    by_name = {pair.trial_id: pair for pair in pairs}
    able = kept = 0
    totals, left = [], list(pairs)
    for stratum, of_sources in zip(parts, by_part, strict=True):
        usable = {*stratum.rows[stratum.usable].tolist()}
        own = [pair for pair in left if {pair.row_1, pair.row_2} <= usable]
        left = [pair for pair in left if pair not in own]
        standing = stratum.standing(reviewed, rejected)
        stay = [pair for pair in standing if by_name.get(pair.trial_id) == pair]
        able, kept = able + len(standing), kept + len(stay)
        new = [pair for pair in own if pair not in stay]
        for pair in own:
            named_by = pair.trial_id if pair in stay else ""
            true = stratum.pair((pair.model_1, pair.model_2), (pair.row_1, pair.row_2), named_by)
            _require(pair == true, f"{pair.trial_id} should be {true}")
            accepted = min(pair.rank_1_model_2, pair.rank_2_model_1) >= 0.5
            below = stratum.agreeing or max(pair.rank_1_model_1, pair.rank_2_model_2) < 0.5
            _require(accepted and below, f"{pair.trial_id} is inadmissible")
        taken = banned | {s.words for pair in stay for s in (pair.sentence_1, pair.sentence_2) if s}
        shown = {s.words for pair in new for s in (pair.sentence_1, pair.sentence_2) if s}
        _require(shown.isdisjoint(taken), "sentences of rejected or other items are chosen again")
        counts = Counter((pair.model_1, pair.model_2) for pair in own)
        wanted = Counter({models: count for models, count in stratum.counts.items() if count})
        _require(counts == wanted, f"it has {dict(counts)} pairs, not {dict(wanted)}")
        totals.append(stratum.totals(own, stay, banned, of_sources))
    _require(not left, f"rows are not usable, or of two lengths: {left[:1]}")
    rows = Counter(row for pair in pairs for row in (pair.row_1, pair.row_2))
    _require(not any(n > 1 for n in rows.values()), "a sentence is used more than once")
    claimed = (certificate.objective, certificate.bound)
    _require(
        certificate.strata == tuple(totals) and claimed == rank_sums(totals),
        f"its strata are {certificate.strata}, counted {totals}",
    )
    optimal = all(objective == bound for _, _, objective, bound in totals)
    _require(optimal and certificate.status == "optimal", "objective and bound differ")
    _require(
        certificate.reviewed == len(reviewed)
        and certificate.kept == kept <= certificate.kept_bound <= able
        and (kept == able or bool(certificate.against)),
        f"of {len(reviewed)} reviewed pairs {kept} stay of {able} that can",
    )


def verify_triplets(
    triplets: Sequence[Triplet],
    selection: TripletSelection,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    review: Review | None = None,
) -> None:
    """Check triplets against the rules that they keep, and their bound against its own prices.

    What was chosen is counted against every rule, its worth is summed anew, and the bound is
    computed from the prices without rounding. Where `bound` is tighter than `price_bound` it is the
    solver's account, which cannot be checked.

    Args:
        triplets: what was chosen from.
        selection: what `select_triplets` returned, or what was read back from files.
        tokens: as in `select_triplets`.
        review: as in `select_triplets`.

    Raises:
        VerificationError: says what is wrong.
    """
    certificate, chosen = selection.certificate, selection.triplets
    question, objective = certificate.question, certificate.question.objective
    triplets = usable_triplets(triplets)
    needs = demand(question, by_model_pair(triplets))
    index = {triplet.triplet_id: number for number, triplet in enumerate(triplets)}
    for triplet in chosen:
        given = triplets[index.get(triplet.triplet_id, 0)]
        _require(given == triplet, f"{triplet.triplet_id} was not given, or has changed")
    names = {index[triplet.triplet_id] for triplet in chosen}
    _require(len(names) == len(chosen), "a triplet is used more than once")
    edges = tuple((*names, each) for names, each in edges_of(triplets, question).items())
    _require(certificate.edges == edges, "its certificate is for other edges of quantiles")

    rules = build_rules(triplets, question, needs, tokens or {})
    counts = [0, 0, 0, 0]
    if review is not None:
        after = ReviewedTriplets.of(review, triplets)
        rules += after.rules(shared=certificate.shared)
        proved = after.proved(rules, dict(certificate.kept_prices))
        kept = sum(number in names for number in after.able)
        counts = [after.reviewed, after.rejected, kept, proved]
        _require(kept <= certificate.kept_bound <= proved, f"{proved} or fewer can stay")
        rules.append(after.keeping(kept))
    claimed = [certificate.reviewed, certificate.rejected, certificate.kept]
    claimed.append(certificate.kept_price_bound)
    _require(claimed == counts, f"its certificate says reviewed {claimed}, counted {counts}")
    for rule in rules:
        weights = zip(rule.members, rule.weights, strict=True)
        has = sum(weight for member, weight in weights if member in names)
        allowed = f"{rule.lower} to {rule.upper}" if rule.lower < rule.upper else f"{rule.upper}"
        _require(
            rule.lower <= has <= rule.upper, f"{rule.name}: {has} in all, allowed is {allowed}"
        )

    costs, values = triplet_costs(triplets, question, sum(needs.values()))
    value, bound = fsum(values[[*names]]), certificate.bound
    _require(_same(certificate.objective, value), f"it is worth {value}")
    prices = dict(certificate.prices)
    unknown = sorted({*prices, *dict(certificate.kept_prices)} - {rule.name for rule in rules})
    _require(not unknown, f"its prices are of other rules: {', '.join(unknown)}")
    by_prices = as_bound(priced_bound(costs.tolist(), rules, prices), objective)
    _require(_same(certificate.price_bound, by_prices), f"its prices prove the bound {by_prices}")
    # The set is worth no more than the bound, and the bound is no looser than what prices prove.
    sign = 1 if objective == "controversiality" else -1
    _require(
        sign * (value - bound) <= EXACT and sign * (bound - certificate.price_bound) <= 0,
        f"the bound {bound} is beyond the objective {value}, or looser than {by_prices}",
    )
    optimal = abs(bound - value) <= 2 * EXACT and certificate.kept == certificate.kept_bound
    _require((certificate.status == "optimal") == optimal, f"its status is {certificate.status!r}")


def verify_minimal_pairs(
    scores: MinimalPairScores,
    selection: MinimalPairSelection,
    *,
    excluded: Collection[tuple[str, ...]] = (),
) -> None:
    """Count chosen minimal pairs against the scores and every rule, one by one.

    Args:
        scores: the scores that the selection was made from.
        selection: what `select_minimal_pairs` returned, or what was read back from files.
        excluded: as in `select_minimal_pairs`.

    Raises:
        VerificationError: says what is wrong, and with which pair.
    """
    certificate, pairs = selection.certificate, selection.pairs
    question, models = certificate.question, scores.models
    _require(certificate.models == models, "its certificate is of other models")
    twice = repeated_item(pairs)
    _require(not twice, f"the item {twice} is chosen twice")
    rows = {(pair.paradigm, pair.pair_id): row for row, pair in enumerate(scores.pairs)}
    lemma = tag_table(question.tags).lemma
    words: Counter[str] = Counter()
    for pair in pairs:
        row, both = rows.get((pair.paradigm, pair.pair_id), 0), (pair.good, pair.bad)
        source, columns = scores.pairs[row], [*map(models.index, (pair.model_1, pair.model_2))]
        same = (source.paradigm, source.pair_id) == (pair.paradigm, pair.pair_id)
        same &= (source.good, source.bad) == both
        stated = [[getattr(pair, f"log_prob_{side}_model_{m}") for m in (1, 2)] for side in _SIDES]
        same &= bool((scores.log_probs[row][:, columns] == stated).all())
        _require(same, f"{pair.trial_id} was not given, or has changed")
        wrong, right = scores.margins[row, columns]
        _require(wrong < 0 < right, f"the models of {pair.trial_id} prefer the same sentence")
        a_word = scores.log_probs[row][:, columns] / np.array([[len(each)] for each in both])
        above = question.floor is None or bool((a_word >= question.floor).all())
        _require(above, f"{pair.trial_id} has a sentence below the floor")
        shown = {sentence.words for sentence in both}
        _require(shown.isdisjoint(excluded), f"{pair.trial_id} shows a rejected sentence")
        own = {word.lower() for sentence in both for word in sentence.words}
        words.update({*map(lemma, own - REPEATABLE_ENGLISH)})
    halves = Counter((pair.model_1, pair.model_2) for pair in pairs)
    wanted = dict.fromkeys(permutations(models, 2), question.per_pair // 2)
    _require(halves == wanted, f"its halves have {dict(halves)} pairs, not {wanted}")
    texts = Counter(s.bare.lower() for pair in pairs for s in (pair.good, pair.bad))
    _require(max(texts.values()) == 1, "a sentence is used more than once")
    capped = question.word_cap is None or max(words.values(), default=0) <= question.word_cap
    _require(capped, "a word is in more pairs than word_cap allows")
    sizes = Counter((pair.model_1, pair.model_2, pair.paradigm) for pair in pairs).values()
    shares = tuple(sum(n >= k for n in sizes) for k in range(1, max(sizes) + 1))
    _require(certificate.shares == shares, f"its shares are {certificate.shares}, counted {shares}")
    largest = question.per_paradigm or len(pairs)
    _require(len(shares) <= largest, f"a share has {len(shares)} pairs, per_paradigm is {largest}")


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(f"The selection fails its check, do not use it: {failure}.")


def _same(claimed: float, computed: float) -> bool:
    return claimed == computed or abs(claimed - computed) <= 1e-9 * max(1.0, abs(computed))
