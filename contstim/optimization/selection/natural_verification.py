"""The check of a finished natural selection: every constraint, the objective and the bound."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, groupby, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VerificationError
from contstim.optimization.selection.demand import usable_rows
from contstim.optimization.selection.duals import sentence_prices

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.arrays import BoolArray, IntArray
    from contstim.optimization.selection.certificate import Certificate, NaturalSelection
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

    Raises:
        VerificationError: says what is wrong, and with which pair.
    """
    pairs, certificate = selection.pairs, selection.certificate
    asked = dict.fromkeys(combinations(table.models, 2), per_pair) | dict(counts or {})
    banned = frozenset(sentence.words for sentence in excluded)
    _check_question(table, certificate, per_pair, repeatable, asked, len(banned))
    # As many pairs as asked for each model pair, and none of any other.
    counts_of = Counter((pair.model_1, pair.model_2) for pair in pairs)
    for model_pair in {**counts_of, **asked}:
        has, needs = counts_of[model_pair], asked.get(model_pair, 0)
        _require(has == needs, f"{'-'.join(model_pair)} has {has} pairs, not {needs}")
    doubled = np.ascontiguousarray(table.doubled_ranks().T)  # (n_models, n_sentences)
    usable = usable_rows(table, repeatable, banned)
    _check_sentences(table, doubled, usable, pairs)
    _check_matching(table, pairs)
    _check_optimality(table, doubled, usable, selection)


def _require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(f"The selection fails its check, do not use it: {failure}.")


def _check_question(
    table: ScoreTable,
    certificate: Certificate,
    per_pair: int,
    repeatable: frozenset[str] | None,
    asked: Mapping[tuple[str, str], int],
    excluded: int,
) -> None:
    counts = tuple((*pair, count) for pair, count in asked.items())
    rule = None if repeatable is None else tuple(sorted(repeatable))
    for name, claimed, wanted in (
        ("models", certificate.models, table.models),
        ("n_sentences", certificate.n_sentences, len(table.log_probs)),
        ("per_pair", certificate.per_pair, per_pair),
        ("counts", certificate.counts, counts),
        ("excluded", certificate.excluded, excluded),
        ("repeatable", certificate.repeatable, rule),
    ):
        _require(claimed == wanted, f"its certificate is for {name} {claimed}, asked was {wanted}")


def _check_sentences(
    table: ScoreTable, doubled: IntArray, usable: BoolArray, pairs: Sequence[Pair]
) -> None:
    """Every sentence is the table's, has its ranks, is accepted by one model, and serves once."""
    scale = 2 * len(table.log_probs)
    for pair in pairs:
        # Sentence 1 is rejected by model 1 and accepted by model 2, sentence 2 the other way round.
        for row, sentence, ranks, reject in (
            (pair.row_1, pair.sentence_1, (pair.rank_1_model_1, pair.rank_1_model_2), 0),
            (pair.row_2, pair.sentence_2, (pair.rank_2_model_1, pair.rank_2_model_2), 1),
        ):
            where = f"{pair.trial_id} ({pair.model_1}-{pair.model_2}), row {row}"
            _require(0 <= row < len(table.log_probs), f"{where}: there is no such row")
            of_row = None if table.sentences is None else table.sentences[row]
            _require(sentence == of_row, f"{where}: the sentence is '{of_row}', not '{sentence}'")
            for model, rank in zip((pair.model_1, pair.model_2), ranks, strict=True):
                true = int(doubled[table.models.index(model), row]) / scale
                _require(rank == true, f"{where}: the rank under {model} is {true}, not {rank}")
            accepted = ranks[1 - reject] >= 0.5
            _require(accepted, f"{where}: ranks below 0.5 where it must be accepted")
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
    table: ScoreTable, doubled: IntArray, usable: BoolArray, selection: NaturalSelection
) -> None:
    """The objective is what the pairs are worth, the bound what the prices prove: one number."""
    certificate, n_sentences = selection.certificate, len(table.log_probs)
    # Eq. 5 in whole numbers: each sentence's doubled rank under the model that rejects it.
    total = sum(
        int(doubled[table.models.index(model), row])
        for pair in selection.pairs
        for model, row in ((pair.model_1, pair.row_1), (pair.model_2, pair.row_2))
    )
    claimed = certificate.objective_numerator
    _require(claimed == total, f"the doubled ranks sum to {total}, not {claimed}")
    _require(
        certificate.objective == total / (2 * n_sentences),
        f"the objective is {total / (2 * n_sentences)}, not {certificate.objective}",
    )
    # Prices of other sources, or so large that sums overflow, would prove nothing.
    sources = [(reject, accept) for reject, accept, _ in certificate.prices]
    _require(
        sources == list(permutations(table.models, 2)),
        "its prices are not one for every ordered model pair, in the models' order",
    )
    values = [price for _, _, price in certificate.prices]
    _require(
        all(isinstance(price, int) and abs(price) < 2**62 // n_sentences for price in values),
        "a price is not an integer, or is too large to compute with",
    )
    # sum of d_k · u_k, less what the sentences earn: recomputed from the stated prices alone.
    demand = {frozenset((first, second)): count for first, second, count in certificate.counts}
    paid = sum(demand[frozenset((r, a))] * price for r, a, price in certificate.prices)
    bound = paid - int(sentence_prices(doubled, np.array(values))[usable].sum())
    claimed = certificate.bound_numerator
    _require(claimed == bound, f"its prices prove the bound {bound}, not {claimed}")
    _require(
        certificate.bound == bound / (2 * n_sentences),
        f"the bound is {bound / (2 * n_sentences)}, not {certificate.bound}",
    )
    _require(
        certificate.status == "optimal" and bound == certificate.objective_numerator,
        f"status {certificate.status!r} with objective {certificate.objective_numerator} and "
        f"bound {bound}: only equal ones are optimal",
    )
