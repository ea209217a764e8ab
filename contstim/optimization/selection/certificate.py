"""Stimuli that a selection hands over, and the proof of how good they are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from contstim.documents import dataclass_of, read_json_object
from contstim.files import write_text
from contstim.stimuli import Pair, Triplet
from contstim.tables import ShownAsTable, columns_of, frame_of

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame


@dataclass(frozen=True)
class SelectionCertificate:
    """Statements common to all certificates, and how these are written and read.

    Attributes:
        kind: what messages call it.
        objective: what the chosen set is worth.
        bound: what no other set can exceed or fall below.
        status: how far apart these are.
        solver: the method that found the set.
        version: of the solver.
        tie_rule: what decides between sets that are worth the same.
        candidates: how many stimuli there were to choose from.
        seconds: from loaded input to the verified selection.
        reviewed: how many stimuli of this kind stood before, all 0 where there was no review.
        rejected: how many of these were rejected.
        kept: how many of these stay; the objective is the best that is possible with so many.
        kept_bound: more than so many cannot stay.
        against: (rule, by how much) that the nearest set breaks in which all stay that may; none
            where they do.
        shared: whether new stimuli may show sentences of trials that stay, since there is no set
            without any.
    """

    kind: ClassVar[str]

    objective: float
    bound: float
    status: str
    solver: str
    version: str
    tie_rule: str
    candidates: int
    seconds: float
    # With defaults, as all that certificates of earlier versions lack
    reviewed: int = field(default=0, kw_only=True)
    rejected: int = field(default=0, kw_only=True)
    kept: int = field(default=0, kw_only=True)
    kept_bound: int = field(default=0, kw_only=True)
    against: tuple[tuple[str, int], ...] = field(default=(), kw_only=True)
    shared: bool = field(default=False, kw_only=True)

    def save(self, path: Path | str) -> None:
        """Write the certificate as JSON.

        Raises:
            InputError: the file cannot be written.
        """
        write_text(path, json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a certificate of this kind back.

        Raises:
            InputError: the file cannot be read or is not such a certificate.
        """
        return dataclass_of(cls, read_json_object(path), f"{path} ({cls.kind})")


@dataclass(frozen=True)
class Certificate(SelectionCertificate):
    """The answer to one question, and a bound that anybody can recompute from `prices`.

    `objective` is Eq. 5 of the 2023 study: the fractional ranks of all chosen sentences under the
    models that reject them, summed. `bound` is what no selection can fall below. Both are their
    integer numerators over 2 · `n_sentences`.

    Where both sentences of a pair have the same number of words, ranks are among the sentences of
    one length, and every length has a bound of its own. `objective` and `bound` are then sums over
    `lengths`, and the numerators sums of numerators over different denominators.

    Attributes:
        status: `optimal`: objective and bound are the same integer.
        candidates: usable sentences on which two models disagree: below the median rank of one, at
            or above that of another.
        seconds: from loaded scores to the verified selection.
        counts: (model_1, model_2, pairs) for every model pair.
        excluded: how many distinct sentences were not to be chosen.
        repeatable: words exempt from the word-repetition rule; None where the rule is off.
        prices: (reject model, accept model, dual price), in doubled ranks, for every ordered pair;
            none where `length_prices` are.
        agreeing: whether a sentence need not rank below the median of the model that rejects it, so
            that both models may prefer the same sentence of a pair.
        admissible: (reject model, accept model, usable sentences that this pair may use).
        lengths: (words, sentences, objective's numerator, bound's numerator) of each length.
        length_counts: (words, model_1, model_2, pairs) for every model pair at each length.
        length_prices: (words, reject model, accept model, dual price) at each length.
    """

    kind = "a certificate of a selection"

    objective_numerator: int
    bound_numerator: int
    per_pair: int
    counts: tuple[tuple[str, str, int], ...]
    models: tuple[str, ...]
    n_sentences: int
    repeatable: tuple[str, ...] | None
    excluded: int
    prices: tuple[tuple[str, str, int], ...]
    lengths: tuple[tuple[int, int, int, int], ...] = ()
    length_counts: tuple[tuple[int, str, str, int], ...] = ()
    length_prices: tuple[tuple[int, str, str, int], ...] = ()
    # What certificates prove that do not say it
    agreeing: bool = True
    admissible: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class NaturalSelection(ShownAsTable):
    """Controversial natural pairs, as many as asked for each model pair, and their certificate.

    Model pairs stand in the order of the score table's columns, pairs within by `row_1`.
    """

    pairs: tuple[Pair, ...]
    certificate: Certificate

    def to_frame(self) -> DataFrame:
        """The pairs as a table of pandas, in the columns of pairs.csv."""
        return frame_of(columns_of(Pair, self.pairs))


@dataclass(frozen=True)
class TripletCertificate(SelectionCertificate):
    """The answer to one question about triplets, and a bound on every other answer.

    Anybody can recompute `price_bound` from `prices`; where `bound` is tighter, branch and bound
    was needed, and `bound` is its own account.

    Attributes:
        objective: summed Eq. 4 (nats) or summed ranks of the chosen triplets, by `objective_name`.
        bound: what no set can exceed (controversiality) or fall below (worst-rank): the tighter of
            `price_bound` and the solver's own account.
        price_bound: what `prices` prove (`contstim.optimization.selection.programs`).
        status: `optimal`: objective and bound differ by at most 2e-6 (nats or ranks); `gap`: the
            time ended before.
        candidates: how many triplets there were.
        seconds: from read triplets to the verified selection.
        counts: (model_1, model_2, triplets) for every model pair.
        prices: (rule, price), zeros left out.
        kept_price_bound: what `kept_prices` prove of `kept`; `kept_bound` may be the solver's own.
        kept_prices: (rule, price), zeros left out, of the search for as many kept as possible.
        edges: (model_1, model_2, model, edges) of the quantile groups of p(n|model), nats.
    """

    kind = "a certificate of triplets"

    objective_name: str
    price_bound: float
    quantiles: int | None
    natural_once: bool
    word_cap: int | None
    uncapped: tuple[str, ...]
    token_balance: float | None
    counts: tuple[tuple[str, str, int], ...]
    prices: tuple[tuple[str, float], ...]
    kept_price_bound: int = 0
    kept_prices: tuple[tuple[str, float], ...] = ()
    edges: tuple[tuple[str, str, str, tuple[float, ...]], ...] = ()


@dataclass(frozen=True)
class TripletSelection(ShownAsTable):
    """The chosen triplets, in the order in which they were given, and their certificate."""

    triplets: tuple[Triplet, ...]
    certificate: TripletCertificate

    def to_frame(self) -> DataFrame:
        """The triplets as a table of pandas, in the columns of triplets.csv."""
        return frame_of(columns_of(Triplet, self.triplets))
