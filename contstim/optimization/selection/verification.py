"""Independent checks of finished selections.

A question has the settings of a selection: numbers, objective and rules. The checks implement the
definitions of these rules. They do not call the functions that select stimuli.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, permutations
from math import fsum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from contstim.english.words import tag_table
from contstim.errors import VerificationError
from contstim.items.matching import match
from contstim.items.reviews import ItemKind, Review, changed_positions
from contstim.items.stimuli import Pair, repeated_item
from contstim.optimization.selection.question import (
    MinimalPairQuestion,
    NaturalQuestion,
    TripletQuestion,
)
from contstim.wording import grouped
from contstim.words.sentence import all_but_one, repeats
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.items.minimal_pair_scores import MinimalPairScores
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Triplet
    from contstim.optimization.selection.question import (
        Certificate,
        MinimalPairSelection,
        NaturalSelection,
        TripletSelection,
    )
    from contstim.words.sentence import Sentence

_QuestionT = TypeVar("_QuestionT", NaturalQuestion, TripletQuestion, MinimalPairQuestion)

_ROUNDING = 1e-6  # tolerance of sums and bounds
_SIDES = ("good", "bad")


def verify_natural(
    table: ScoreTable,
    selection: NaturalSelection,
    *,
    excluded: Collection[Sentence] = (),
    review: Review | None = None,
) -> None:
    """Check natural pairs against the scores and every rule.

    For the arguments, see `select_natural`.

    Raises:
        VerificationError: if a pair or the certificate is wrong.
    """
    question, pairs = _question(selection.certificate, NaturalQuestion), selection.pairs
    _require(len({pair.trial_id for pair in pairs}) == len(pairs), "a pair is used twice")
    numbers = Counter((pair.model_1, pair.model_2) for pair in pairs)
    expected = _counts(question, combinations(table.models, 2))
    _require(numbers == expected, f"it has {dict(numbers)} pairs, not {dict(expected)}")
    rows = [row for pair in pairs for row in (pair.row_1, pair.row_2)]
    are_inside = all(0 <= row < len(table.log_probs) for row in rows)
    _require(are_inside and len({*rows}) == len(rows), "a sentence is used more than once")
    ranks = _ranks(table, same_length=question.same_length)
    total = []
    for pair in pairs:
        models = [table.models.index(pair.model_1), table.models.index(pair.model_2)]
        pair_ranks = ranks[np.ix_([pair.row_1, pair.row_2], models)]
        stated = [[getattr(pair, f"rank_{s}_model_{m}") for m in (1, 2)] for s in (1, 2)]
        is_same = np.allclose(pair_ranks, stated, rtol=0, atol=1e-12)
        _require(is_same, f"the ranks of {pair.trial_id} differ from the ranks in the scores")
        accepted = min(pair_ranks[0, 1], pair_ranks[1, 0]) >= 0.5
        below = question.agreeing or max(pair_ranks[0, 0], pair_ranks[1, 1]) < 0.5
        _require(accepted and below, f"{pair.trial_id} is inadmissible")
        total += [pair_ranks[0, 0], pair_ranks[1, 1]]
    if table.sentences is not None:
        _check_texts(table.sentences, pairs, question, excluded)
    words = {p.trial_id: {s.words for s in (p.sentence_1, p.sentence_2) if s} for p in pairs}
    _check_review(review, ItemKind.PAIR, words)
    _check_value(selection.certificate, fsum(total), 1)


def _ranks(table: ScoreTable, *, same_length: bool) -> FloatArray:
    """Compute fractional ranks of all sentences, (n_sentences, n_models).

    If `same_length` is set, a sentence is ranked among the sentences with the same number of words.
    Otherwise, it is ranked among all sentences. Tied sentences have their mean rank.
    """
    from scipy.stats import rankdata

    sentences = table.sentences if same_length and table.sentences is not None else None
    lengths = np.array([len(s) for s in sentences]) if sentences else np.zeros(len(table.log_probs))
    ranks = np.empty(table.log_probs.shape)
    for length in np.unique(lengths):
        rows = lengths == length
        ranks[rows] = rankdata(table.log_probs[rows], axis=0) / rows.sum()
    return ranks


def _check_texts(
    sentences: Sequence[Sentence],
    pairs: Sequence[Pair],
    question: NaturalQuestion,
    excluded: Collection[Sentence],
) -> None:
    banned = {sentence.words for sentence in excluded}
    exempt = frozenset(map(str.lower, question.repeatable))
    for pair in pairs:
        texts = sentences[pair.row_1], sentences[pair.row_2]
        _require((pair.sentence_1, pair.sentence_2) == texts, f"{pair.trial_id} has changed")
        for sentence in texts:
            _require(sentence.words not in banned, f"{pair.trial_id} has an excluded sentence")
            repeated = question.no_repeats and repeats(sentence.words, exempt)
            _require(not repeated, f"{pair.trial_id} has a word that repeats")
        one_length = not question.same_length or len(texts[0]) == len(texts[1])
        _require(one_length, f"{pair.trial_id} has sentences of two lengths")
    words = Counter(s.words for pair in pairs for s in (pair.sentence_1, pair.sentence_2) if s)
    _require(max(words.values(), default=0) <= 1, "two sentences differ in end marks only")


def verify_triplets(
    triplets: Sequence[Triplet],
    selection: TripletSelection,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    review: Review | None = None,
) -> None:
    """Check triplets against the candidates and every rule.

    For the arguments, see `select_triplets`.

    Raises:
        VerificationError: if a triplet or the certificate is wrong.
    """
    question, chosen = _question(selection.certificate, TripletQuestion), selection.triplets
    candidate_of_id = {triplet.triplet_id: triplet for triplet in triplets}
    for triplet in chosen:
        source = candidate_of_id.get(triplet.triplet_id)
        fields = (triplet.sentences, triplet.drops)
        is_same = source is not None and (source.sentences, source.drops) == fields
        is_same &= abs(triplet.controversiality - sum(triplet.drops)) <= _ROUNDING
        _require(is_same, f"{triplet.triplet_id} is not among the candidates, or has changed")
        _require(
            min(triplet.drops) >= question.least_drop(triplet),
            f"{triplet.triplet_id} has a drop of too few {triplet.drop_unit}",
        )
    _require(not repeated_item(chosen), "a triplet is used more than once")
    candidates = grouped(((t.model_1, t.model_2), t) for t in triplets)
    numbers = Counter((triplet.model_1, triplet.model_2) for triplet in chosen)
    expected = _counts(question, candidates)
    _require(numbers == expected, f"it has {dict(numbers)} triplets, not {dict(expected)}")
    for pair, of_pair in candidates.items():
        triplets_of_pair = [t for t in chosen if (t.model_1, t.model_2) == pair]
        _check_spread(of_pair, triplets_of_pair, question)
        if question.token_balance is not None and tokens is not None:
            limit = question.token_balance * len(triplets_of_pair) + 1e-9
            for model in pair:
                surplus = [
                    tokens[t.synthetic_1.text, model] - tokens[t.synthetic_2.text, model]
                    for t in triplets_of_pair
                ]
                _require(abs(sum(surplus)) <= limit, f"{model}'s tokens are not balanced")
    _check_words(chosen, question)
    _check_review(review, ItemKind.TRIPLET, {t.triplet_id: set() for t in chosen})
    sign = -1 if question.objective == "controversiality" else 1
    _check_value(selection.certificate, _value(candidates, chosen, question), sign)


def _check_spread(
    candidates: Sequence[Triplet], chosen: Sequence[Triplet], question: TripletQuestion
) -> None:
    """Check that each quantile group of natural sentences has the same number of triplets."""
    number = question.quantiles
    if not number or not chosen:
        return
    enough = [t for t in candidates if min(t.drops) >= question.least_drop(t)]
    for name in ("log_prob_natural_model_1", "log_prob_natural_model_2"):
        ordered = np.sort([getattr(triplet, name) for triplet in enough])
        # A value belongs to the first quantile group whose upper edge is not below the value
        tops = ordered[[(len(ordered) - 1) * k // number for k in range(1, number + 1)]]
        groups = Counter(np.searchsorted(tops, [getattr(t, name) for t in chosen]).tolist())
        even = {*groups.values()} == {len(chosen) // number} and len(groups) == number
        _require(even, f"the quantile groups of {name} have unequal numbers: {dict(groups)}")


def _check_words(chosen: Sequence[Triplet], question: TripletQuestion) -> None:
    naturals = Counter(triplet.natural.bare for triplet in chosen)
    once = not question.natural_once or max(naturals.values(), default=0) <= 1
    _require(once, "a natural sentence is used more than once")
    if question.word_cap is not None:
        exempt = frozenset(map(str.lower, question.uncapped))
        lemma = tag_table(question.tags).lemma
        words_of_text = (w.lower() for t in chosen for s in t.sentences for w in s.words)
        words = Counter(lemma(word) for word in words_of_text if word not in exempt)
        _require(max(words.values(), default=0) <= question.word_cap, "a word is used too often")
    similar: dict[Any, set[tuple[int, bool]]] = defaultdict(set)
    for index, triplet in enumerate(chosen):
        for number, sentence in enumerate(triplet.sentences):
            for entry in all_but_one(tuple(map(str.lower, sentence.words))):
                similar[entry].add((index, number > 0))
    for users in similar.values():
        synthetic_users = {index for index, is_synthetic in users if is_synthetic}
        alone = not synthetic_users or len({index for index, _ in users}) == 1
        _require(alone, "sentences of two triplets differ by fewer than two words")


def _value(
    candidates: Mapping[tuple[str, str], Sequence[Triplet]],
    chosen: Sequence[Triplet],
    question: TripletQuestion,
) -> float:
    """Compute the objective of triplets from its definition."""
    from scipy.stats import rankdata

    if question.objective == "controversiality":
        return fsum(sum(triplet.drops) for triplet in chosen)
    if question.objective == "worst-rank":
        ranks: dict[str, float] = {}
        for of_pair in candidates.values():
            worse = rankdata([[-drop for drop in t.drops] for t in of_pair], axis=0).max(axis=1)
            names = [triplet.triplet_id for triplet in of_pair]
            ranks |= zip(names, rankdata(worse, method="ordinal").tolist(), strict=True)
        return fsum(ranks[triplet.triplet_id] for triplet in chosen)
    table = tag_table(question.tags)
    pairs = [(t.natural, synthetic) for t in chosen for synthetic in t.sentences[1:]]
    matches = [match(natural, synthetic, table) for natural, synthetic in pairs]
    largest = max(
        sum(len(changed_positions(synthetic, t.natural)) for synthetic in t.sentences[1:])
        for of_pair in candidates.values()
        for t in of_pair
    )
    unit: float = 10.0 ** -len(str(len(chosen) * largest))
    return fsum(len(m.misfits) + unit * len(m.changed) for m in matches)


def verify_minimal_pairs(
    scores: MinimalPairScores, selection: MinimalPairSelection, *, review: Review | None = None
) -> None:
    """Check minimal pairs against the scores and every rule.

    For the arguments, see `select_minimal_pairs`.

    Raises:
        VerificationError: if a pair or the certificate is wrong.
    """
    question, pairs = _question(selection.certificate, MinimalPairQuestion), selection.pairs
    models = scores.models
    twice = repeated_item(pairs)
    _require(not twice, f"the item {twice} is chosen twice")
    rows = {(pair.paradigm, pair.pair_id): row for row, pair in enumerate(scores.pairs)}
    lemma = tag_table(question.tags).lemma
    words: Counter[str] = Counter()
    for pair in pairs:
        row, both = rows.get((pair.paradigm, pair.pair_id), 0), (pair.good, pair.bad)
        source, columns = scores.pairs[row], [*map(models.index, (pair.model_1, pair.model_2))]
        is_same = (source.paradigm, source.pair_id) == (pair.paradigm, pair.pair_id)
        is_same &= (source.good, source.bad) == both
        stated = [[getattr(pair, f"log_prob_{side}_model_{m}") for m in (1, 2)] for side in _SIDES]
        is_same &= bool((scores.log_probs[row][:, columns] == stated).all())
        _require(is_same, f"{pair.trial_id} is not among the candidates, or has changed")
        wrong, right = scores.margins[row, columns]
        _require(wrong < 0 < right, f"the models of {pair.trial_id} prefer the same sentence")
        lengths = np.array([[len(sentence)] for sentence in both])
        log_probs_per_word = scores.log_probs[row][:, columns] / lengths
        above = question.floor is None or bool((log_probs_per_word >= question.floor).all())
        _require(above, f"{pair.trial_id} has a sentence below the floor")
        words_of_pair = {word.lower() for sentence in both for word in sentence.words}
        words.update({*map(lemma, words_of_pair - REPEATABLE_ENGLISH)})
    texts = {pair.trial_id: {pair.good.words, pair.bad.words} for pair in pairs}
    _check_review(review, ItemKind.MINIMAL_PAIR, texts)
    halves = Counter((pair.model_1, pair.model_2) for pair in pairs)
    expected = dict.fromkeys(permutations(models, 2), question.per_pair // 2)
    failure = f"by (wrong model, right model), it has {dict(halves)} pairs, not {expected}"
    _require(halves == expected, failure)
    sentence_counts = Counter(s.bare.lower() for pair in pairs for s in (pair.good, pair.bad))
    _require(max(sentence_counts.values()) == 1, "a sentence is used more than once")
    capped = question.word_cap is None or max(words.values(), default=0) <= question.word_cap
    _require(capped, "a word is in more pairs than word_cap allows")
    shares = Counter((pair.model_1, pair.model_2, pair.paradigm) for pair in pairs).values()
    largest = question.per_paradigm or len(pairs)
    failure = f"a paradigm has {max(shares)} pairs for one right model, per_paradigm is {largest}"
    _require(max(shares) <= largest, failure)
    certificate = selection.certificate
    worse = certificate.objective > certificate.bound + _ROUNDING
    _require(not worse, f"its objective {certificate.objective} is beyond its bound")


def _question(certificate: Certificate, kind: type[_QuestionT]) -> _QuestionT:
    question = certificate.question
    _require(isinstance(question, kind), "its certificate is for another kind of stimuli")
    assert isinstance(question, kind)
    return question


def _counts(
    question: NaturalQuestion | TripletQuestion, pairs: Iterable[tuple[str, str]]
) -> Counter[tuple[str, str]]:
    counts = dict.fromkeys(pairs, question.per_pair)
    counts |= {(first, second): number for first, second, number in question.counts}
    return Counter({pair: number for pair, number in counts.items() if number})


def _check_review(
    review: Review | None, kind: ItemKind, words: Mapping[str, set[tuple[str, ...]]]
) -> None:
    """Check that no item is rejected, and no new item contains a rejected sentence.

    `words` maps the identifier of an item to the words of its sentences.
    """
    if review is None:
        return
    kept_items = {item_id for items in review.kept_items(kind) for item_id in items}
    for item_id, sentences in words.items():
        _require(item_id not in review.rejected, f"{item_id} was rejected")
        shows = item_id not in kept_items and not sentences.isdisjoint(review.rejected_words)
        _require(not shows, f"{item_id} contains a rejected sentence")


def _check_value(certificate: Certificate, value: float, sign: int) -> None:
    """Check that the objective of a certificate equals `value`, and is not beyond the bound.

    `sign` is 1 if the objective was minimised, -1 if it was maximised.
    """
    tolerance = _ROUNDING + 1e-9 * abs(value)
    _require(
        abs(certificate.objective - value) <= tolerance,
        f"its value is {value}, not {certificate.objective}",
    )
    beyond = sign * (certificate.bound - certificate.objective) > tolerance
    _require(not beyond, f"its bound {certificate.bound} is beyond its objective")


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(f"The selection fails its check; do not use it: {failure}.")
