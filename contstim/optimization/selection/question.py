"""Questions that a selection answers, and its answers: stimuli, and the proof of their worth."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from contstim.errors import InputError
from contstim.files.documents import FORMAT, read_json_object, refuse_other_format, write_json
from contstim.files.tables import ShownAsTable, columns_of, frame_of
from contstim.items.matching import ENOUGH
from contstim.items.stimuli import ControversialMinimalPair, Pair, Triplet
from contstim.options import Help, Reads, check_ranges
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandas import DataFrame

ModelPair = tuple[str, str]
PairCounts = tuple[tuple[str, str, int], ...]
Objective = Literal["readable", "controversiality", "worst-rank"]
MinimalPairObjective = Literal["margin", "evidence", "rank"]


@dataclass(frozen=True, kw_only=True)
class NaturalRules:
    """Controversial pairs of natural sentences: how many, and the rules that they keep."""

    per_pair: Annotated[int, Help("Sentence pairs for each pair of models.", at_least=0)] = 10
    no_repeats: Annotated[bool, Help("Leave out sentences in which a word repeats.")] = False
    same_length: Annotated[
        bool,
        Help(
            "Give both sentences of a pair the same number of words, with ranks among "
            "sentences of that length; each length gets its share of every model pair's pairs."
        ),
    ] = False
    agreeing: Annotated[
        bool,
        Help(
            "Allow pairs of which both models prefer the same sentence, as in the 2023 study: a "
            "sentence need not rank below the median of the model that rejects it."
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class NaturalQuestion(NaturalRules):
    """The same with the files that say more read.

    Attributes:
        counts: (model_1, model_2, pairs) for model pairs, in the order of the scores, that need
            another number than `per_pair`; 0 leaves one out.
        repeatable: words that `no_repeats` exempts; case does not count.

    Raises:
        InputError: a number is out of range.
    """

    counts: PairCounts = ()
    repeatable: frozenset[str] = REPEATABLE_ENGLISH

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class TripletRules:
    """Triplets: how many, what they are worth, and the rules that they keep.

    Attributes:
        objective: `readable` requires enough nats on each side, and minimises the new words of
            another part of speech (see `contstim.items.matching`), then all new words; further nats
            do not count. `controversiality` maximises the summed Eq. 4 of the 2023 study;
            `worst-rank` minimises summed ranks as its authors' code does (see `worst_ranks`).
        quantiles: groups of p(n|m1), and of p(n|m2), over which natural sentences are spread.
        word_cap: of occurrences in the chosen sentences, compared in lower case.
        token_balance: a bound on the difference of mean lengths, in each model pair, under the
            model.
    """

    per_pair: Annotated[int, Help("Triplets for each pair of models.", at_least=0)] = 10
    objective: Annotated[
        Objective,
        Help(
            "readable: enough nats, then the words that fit best; controversiality: most nats; "
            "worst-rank: best ranks by nats, as the code of 2023."
        ),
    ] = "readable"
    enough: Annotated[
        float | None,
        Help(
            "With readable: the least nats that either model takes from the sentence that it "
            "rejects. By default 5; in a study, what its searches look for.",
            at_least=0.0,
        ),
    ] = None
    tags: Annotated[
        Path | None, Reads("Parts of speech of another language than English.", content="tags")
    ] = None
    quantiles: Annotated[
        int,
        Help(
            "Spread natural sentences evenly over this many quantiles of either model's "
            "probability; 0: no matter which.",
            at_least=0,
        ),
    ] = 10
    natural_once: Annotated[bool, Help("No natural sentence serves two model pairs.")] = False
    word_cap: Annotated[int | None, Help("How often a word may stand in all.", at_least=1)] = None
    token_balance: Annotated[
        float | None,
        Help(
            "By how many tokens, on average, the sentences that a model rejects may be longer "
            "or shorter than those it accepts; needs --tokens.",
            at_least=0.0,
        ),
    ] = None
    seconds: Annotated[
        float, Help("How long a search may take; the rest is in the bound.", at_least=0.0)
    ] = 60.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.objective != "readable" and self.enough is not None:
            raise InputError(f"`enough` belongs to the objective readable, not {self.objective}.")

    @property
    def floor(self) -> float:
        """Nats that each side of a triplet must have; -inf where nats are what is chosen by."""
        if self.objective != "readable":
            return -inf
        return ENOUGH if self.enough is None else self.enough


@dataclass(frozen=True, kw_only=True)
class TripletQuestion(TripletRules):
    """The same with the files that say more read.

    Attributes:
        counts: (model_1, model_2, triplets) for model pairs, as they stand in the triplets, that
            need another number than `per_pair`; 0 leaves one out.
        uncapped: words for which `word_cap` does not count.
        edges: (model_1, model_2, model, edges) of quantile groups, nats, as they were in an earlier
            selection; others are those of the triplets that have enough nats.

    Raises:
        InputError: a number is out of range.
    """

    counts: PairCounts = ()
    uncapped: frozenset[str] = REPEATABLE_ENGLISH
    edges: tuple[tuple[str, str, str, tuple[float, ...]], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token_balance is not None and not isfinite(self.token_balance):
            raise InputError("token_balance must be a finite number of tokens.")


def demand(
    question: NaturalQuestion | TripletQuestion, pairs: Iterable[ModelPair]
) -> dict[ModelPair, int]:
    """Number of stimuli that each model pair needs.

    Raises:
        InputError: a count is negative or of other models, or no pair needs any.
    """
    needed = dict.fromkeys(pairs, question.per_pair)
    for first, second, count in question.counts:
        if (first, second) not in needed:
            raise InputError(
                f"A count is asked for {first}, {second}, which are not a pair in this order; "
                f"there are {'; '.join(', '.join(pair) for pair in needed)}."
            )
        if count < 0:
            raise InputError(f"The count for {first}, {second} must be 0 or more, not {count}.")
        needed[first, second] = count
    if not any(needed.values()):
        raise InputError(
            "No model pair needs any stimuli: per_pair or one count must be 1 or more."
        )
    return needed


@dataclass(frozen=True, kw_only=True)
class SelectionCertificate:
    """Statements common to all certificates, and how these are written and read.

    Attributes:
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
        format: of the file.
    """

    objective: float
    bound: float
    status: str
    solver: str
    version: str
    tie_rule: str
    candidates: int
    seconds: float = 0.0
    reviewed: int = 0
    rejected: int = 0
    kept: int = 0
    kept_bound: int = 0
    against: tuple[tuple[str, int], ...] = ()
    shared: bool = False
    format: int = FORMAT

    @property
    def text(self) -> str:
        """Objective and bound, in words."""
        return f"{self.status}: objective {self.objective:g}, bound {self.bound:g}"

    def save(self, path: Path | str) -> None:
        """Write the certificate as JSON.

        Raises:
            InputError: the file cannot be written.
        """

        def in_json(value: Path | frozenset[str]) -> str | list[str]:
            return str(value) if isinstance(value, Path) else sorted(value)

        content = {**asdict(self), "gap": abs(self.objective - self.bound)}
        write_json(path, content, default=in_json)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a certificate of this kind back.

        Raises:
            InputError: the file cannot be read or is not such a certificate.
        """
        from pydantic import TypeAdapter, ValidationError

        try:
            content = read_json_object(path)
            refuse_other_format(path, content)
            content.pop("gap", None)  # follows from objective and bound
            text = json.dumps(content)
            return TypeAdapter(cls).validate_json(text, strict=True, extra="forbid")
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise InputError(f"{path} is not a {cls.__name__}: {where}: {first['msg']}.") from None


@dataclass(frozen=True, kw_only=True)
class NaturalCertificate(SelectionCertificate):
    """The answer to a question about natural pairs, and a bound that anybody can recompute.

    `objective` is Eq. 5 of the 2023 study: the fractional ranks of all chosen sentences under the
    models that reject them, summed. `bound` is what no selection can fall below. Ranks are among
    the sentences of a stratum: of all, or where `question.same_length`, of those of one length.

    Attributes:
        status: `optimal`: objective and bound are the same integers.
        candidates: usable sentences on which two models disagree: below the median rank of one, at
            or above that of another.
        models: of the scores.
        n_sentences: of the scores.
        excluded: how many distinct sentences were not to be chosen.
        strata: (words, sentences, objective, bound) of each stratum; words are 0 where lengths do
            not count, objective and bound are numerators over twice the number of sentences.
        prices: (words, reject model, accept model, dual price), in doubled ranks, for every ordered
            pair of each stratum.
        admissible: (reject model, accept model, usable sentences that this pair may use).
    """

    question: NaturalQuestion
    models: tuple[str, ...]
    n_sentences: int
    excluded: int
    strata: tuple[tuple[int, int, int, int], ...]
    prices: tuple[tuple[int, str, str, int], ...]
    admissible: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, repr=False)
class NaturalSelection(ShownAsTable):
    """Controversial natural pairs, as many as asked for each model pair, and their certificate.

    Model pairs stand in the order of the score table's columns, pairs within by `row_1`.
    """

    pairs: tuple[Pair, ...]
    certificate: NaturalCertificate

    def __repr__(self) -> str:
        return f"<NaturalSelection: {len(self.pairs):,} pairs, {self.certificate.text}>"

    def to_frame(self) -> DataFrame:
        """The pairs as a table of pandas, in the columns of pairs.csv."""
        return frame_of(columns_of(Pair, self.pairs))


@dataclass(frozen=True, kw_only=True)
class TripletCertificate(SelectionCertificate):
    """The answer to a question about triplets, and a bound on every other answer.

    Anybody can recompute `price_bound` from `prices`; where `bound` is tighter, branch and bound
    was needed, and `bound` is its own account.

    Attributes:
        objective: of the chosen triplets all new words of another part of speech and, behind the
            decimal point, all new words (2.034: 2 and 34); summed Eq. 4 (nats); or summed ranks.
        bound: what no set can exceed (controversiality) or fall below (all others): the tighter of
            `price_bound` and the solver's own account.
        status: `optimal`: objective and bound differ by at most 2e-6; `gap`: the time ended before.
        price_bound: what `prices` prove (`contstim.optimization.selection.programs`).
        prices: (rule, price), zeros left out.
        kept_price_bound: what `kept_prices` prove of `kept`; `kept_bound` may be the solver's own.
        kept_prices: (rule, price), zeros left out, of the search for as many kept as possible.
        edges: (model_1, model_2, model, edges) of the quantile groups of p(n|model), nats.
    """

    question: TripletQuestion
    price_bound: float
    prices: tuple[tuple[str, float], ...]
    kept_price_bound: int = 0
    kept_prices: tuple[tuple[str, float], ...] = ()
    edges: tuple[tuple[str, str, str, tuple[float, ...]], ...] = ()


@dataclass(frozen=True, repr=False)
class TripletSelection(ShownAsTable):
    """The chosen triplets, in the order in which they were given, and their certificate."""

    triplets: tuple[Triplet, ...]
    certificate: TripletCertificate

    def __repr__(self) -> str:
        return f"<TripletSelection: {len(self.triplets):,} triplets, {self.certificate.text}>"

    def to_frame(self) -> DataFrame:
        """The triplets as a table of pandas, in the columns of triplets.csv."""
        return frame_of(columns_of(Triplet, self.triplets))


@dataclass(frozen=True, kw_only=True)
class MinimalPairQuestion:
    """Controversial minimal pairs: how many, what they are worth, and the rules that they keep.

    Attributes:
        objective: with d the log-probability of the acceptable sentence less that of the other,
            `margin` is the smaller `|d|` of the two models, nats; `rank` the smaller fractional
            rank of `|d|` among all pairs; `evidence` the expected log Bayes factor (nats) of an
            answer between people who follow one model and people who follow the other, with
            probabilities logistic(.055 d), level beyond 27 nats, which Golan et al. (2023) found
            roughly.
        floor: of both sentences under both models.

    Raises:
        InputError: a number is out of range, or `per_pair` is odd.
    """

    per_pair: Annotated[
        int,
        Help("Minimal pairs for two models; in half only the one prefers the first.", at_least=2),
    ] = 20
    objective: Annotated[
        MinimalPairObjective,
        Help("margin: nats of the less certain model; rank: its rank; evidence: of an answer."),
    ] = "margin"
    per_paradigm: Annotated[
        int | None, Help("Largest number of pairs of a paradigm in each half.", at_least=1)
    ] = None
    floor: Annotated[
        float | None,
        Help("Least log-probability a word, nats, of both sentences.", at_most=0),
    ] = None
    word_cap: Annotated[
        int | None, Help("Minimal pairs in which a content word (lemma) may stand.", at_least=1)
    ] = None
    tags: Annotated[
        Path | None, Reads("Lemmas of another language than English.", content="tags")
    ] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.per_pair % 2:
            raise InputError(
                f"per_pair must be even, not {self.per_pair}: either model alone prefers the first "
                "sentence in half of the minimal pairs."
            )


@dataclass(frozen=True, kw_only=True)
class MinimalPairCertificate(SelectionCertificate):
    """The answer to a question about minimal pairs, and a bound on every other answer.

    Attributes:
        objective: summed worth of the chosen pairs.
        bound: what no set can exceed.
        models: of the scores.
        n_pairs: of the scores.
        status: `optimal`: no shares are more even, and objective and bound differ by at most 2e-6;
            `gap`: the time ended before one of these was proven.
        shares: how many shares are 1 or more, 2 or more, and so on. A share is the number of chosen
            pairs of one paradigm in one half, in which one model of two is right.
        price_bound: what `prices` prove.
        prices: (rule, price), zeros left out.
    """

    question: MinimalPairQuestion
    models: tuple[str, ...]
    n_pairs: int
    shares: tuple[int, ...]
    price_bound: float
    prices: tuple[tuple[str, float], ...]


@dataclass(frozen=True, repr=False)
class MinimalPairSelection(ShownAsTable):
    """Controversial minimal pairs, and their certificate.

    Attributes:
        pairs: by models, then in the order of the scores.
        verdicts: a row for each paradigm and two models: of its minimal pairs, those in which both,
            one, the other and neither is right (a tie is not), and how many were chosen.
        certificate: the proof of their worth.
    """

    pairs: tuple[ControversialMinimalPair, ...]
    verdicts: dict[str, list[object]]
    certificate: MinimalPairCertificate

    def __repr__(self) -> str:
        return f"<MinimalPairSelection: {len(self.pairs):,} pairs, {self.certificate.text}>"

    def to_frame(self) -> DataFrame:
        """The pairs as a table of pandas."""
        return frame_of(columns_of(ControversialMinimalPair, self.pairs))
