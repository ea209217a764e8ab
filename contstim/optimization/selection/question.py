"""Questions to a selection, and its answers: stimuli with a certificate of their value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from contstim.errors import InputError
from contstim.files.documents import FORMAT, write_json
from contstim.files.tables import ShownAsTable, columns_of, frame_of
from contstim.items.matching import ENOUGH
from contstim.items.stimuli import ControversialMinimalPair, Pair, Triplet
from contstim.optimization.selection.solver import EXACT, SOLVER, solver_version
from contstim.options import Help, Reads, check_ranges
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandas import DataFrame

    from contstim.optimization.selection.reviewed import ChangedItem

ModelPair = tuple[str, str]
PairCounts = tuple[tuple[str, str, int], ...]
Objective = Literal["readable", "controversiality", "worst-rank"]
MinimalPairObjective = Literal["margin", "evidence", "rank"]


@dataclass(frozen=True, kw_only=True)
class NaturalRules:
    """Number of controversial natural pairs, and their rules."""

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
            "Allow pairs in which both models prefer the same sentence, as in the 2023 study: a "
            "sentence need not rank below the median of the model that rejects it."
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class NaturalQuestion(NaturalRules):
    """The rules, with counts and word lists loaded from their files.

    Attributes:
        counts: (model_1, model_2, pairs) for model pairs, in the order of the scores, that need
            another number than `per_pair`; 0 leaves a pair out.
        repeatable: words that `no_repeats` exempts; case does not count.

    Raises:
        InputError: if a number is out of range.
    """

    counts: PairCounts = ()
    repeatable: frozenset[str] = REPEATABLE_ENGLISH

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class TripletRules:
    """Number of triplets, their objective and their rules.

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
            "With readable: minimum difference in nats between the natural sentence and the one "
            "that a model rejects. By default 5; in a study, that of the searches.",
            at_least=0.0,
            kind="enough nats",
        ),
    ] = None
    tags: Annotated[
        Path | None,
        Help(
            "Parts of speech of another language than English.",
            content="tags",
            kind="tags of triplets",
        ),
    ] = None
    quantiles: Annotated[
        int,
        Help(
            "Spread natural sentences evenly over this many quantiles of each model's "
            "probability; 0: do not.",
            at_least=0,
        ),
    ] = 10
    natural_once: Annotated[
        bool,
        Help(
            "Use a natural sentence only once; the default in a study with `twins`.", kind="twins"
        ),
    ] = False
    word_cap: Annotated[int | None, Help("Maximum number of uses of a word.", at_least=1)] = None
    token_balance: Annotated[
        float | None,
        Help(
            "By how many tokens, on average, the sentences that a model rejects may be longer "
            "or shorter than those it accepts; needs --tokens.",
            at_least=0.0,
        ),
    ] = None
    seconds: Annotated[float, Help("Time limit of the search for the optimum.", at_least=0.0)] = (
        60.0
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.objective != "readable" and self.enough is not None:
            raise InputError(f"`enough` belongs to the objective readable, not {self.objective}.")

    @property
    def floor(self) -> float:
        """Minimum of nats on each side of a triplet; -inf if the objective is about nats."""
        if self.objective != "readable":
            return -inf
        return ENOUGH if self.enough is None else self.enough


@dataclass(frozen=True, kw_only=True)
class TripletQuestion(TripletRules):
    """The rules, with counts and word lists loaded from their files.

    Attributes:
        counts: (model_1, model_2, triplets) for model pairs, in the order of the triplets, that
            need another number than `per_pair`; 0 leaves a pair out.
        uncapped: words for which `word_cap` does not count.

    Raises:
        InputError: if a number is out of range.
    """

    counts: PairCounts = ()
    uncapped: frozenset[str] = REPEATABLE_ENGLISH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token_balance is not None and not isfinite(self.token_balance):
            raise InputError("token_balance must be a finite number of tokens.")


def demand(
    question: NaturalQuestion | TripletQuestion, pairs: Iterable[ModelPair]
) -> dict[ModelPair, int]:
    """Return the number of stimuli for each model pair.

    Raises:
        InputError: if a count is negative or for other models, or no pair needs any.
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
class MinimalPairQuestion:
    """Number of controversial minimal pairs, their objective and their rules.

    Attributes:
        objective: with d the log-probability of the acceptable sentence less that of the other,
            `margin` is the smaller `|d|` of the two models, nats; `rank` the smaller fractional
            rank of `|d|` among all pairs; `evidence` the expected log Bayes factor (nats) of an
            answer between people who follow one model and people who follow the other, with
            probabilities logistic(.055 d), level beyond 27 nats, which Golan et al. (2023) found
            roughly.
        floor: of both sentences under both models.

    Raises:
        InputError: if a number is out of range, or `per_pair` is odd.
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
        float | None, Help("Least log-probability a word, nats, of both sentences.", at_most=0)
    ] = None
    word_cap: Annotated[
        int | None, Help("Minimal pairs that a content word (lemma) may be in.", at_least=1)
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
class Certificate:
    """Question, value of the selection, and the proven bound on every other selection.

    Attributes:
        question: rules of the selection.
        objective: value of the selection. Natural pairs: Eq. 5 of the 2023 study, the summed
            fractional ranks of all sentences under the models that reject them. Triplets: all new
            words of another part of speech and, behind the decimal point, all new words (2.034: 2
            and 34); summed Eq. 4 (nats); or summed ranks. Minimal pairs: summed objective.
        bound: proven bound: no selection that keeps as many reviewed items is better.
        status: `optimal` if objective and bound are equal (within 2e-6) and all earlier goals of
            the program are proven; `gap` if the time limit was reached before.
        solver: program that found the selection.
        version: version of the solver.
        tie_rule: rule that decides between selections of equal value.
        candidates: number of candidates.
        seconds: time from loaded input to the checked selection.
        format: version of the file format.
    """

    question: NaturalQuestion | TripletQuestion | MinimalPairQuestion
    objective: float
    bound: float
    status: str
    solver: str
    version: str
    tie_rule: str
    candidates: int
    seconds: float = 0.0
    format: int = FORMAT

    @classmethod
    def of(
        cls,
        question: NaturalQuestion | TripletQuestion | MinimalPairQuestion,
        values: tuple[float, float],
        candidates: int,
        tie_rule: str,
        exact: bool,
    ) -> Self:
        """Make the certificate of a solved program.

        Args:
            question: rules of the selection.
            values: objective and bound.
            candidates: number of candidates.
            tie_rule: see the class.
            exact: whether the values of all earlier goals are proven.
        """
        objective, bound = values
        return cls(
            question=question,
            objective=objective,
            bound=bound,
            status="optimal" if exact and abs(objective - bound) <= 2 * EXACT else "gap",
            solver=SOLVER,
            version=solver_version(),
            tie_rule=tie_rule,
            candidates=candidates,
        )

    @property
    def gap(self) -> float:
        """Difference between objective and bound."""
        return abs(self.objective - self.bound)

    @property
    def text(self) -> str:
        """Objective and bound, in words."""
        return f"{self.status}: objective {self.objective:g}, bound {self.bound:g}"

    def save(self, path: Path | str) -> None:
        """Write the certificate as JSON.

        Raises:
            InputError: if the file cannot be written.
        """

        def in_json(value: Path | frozenset[str]) -> str | list[str]:
            return str(value) if isinstance(value, Path) else sorted(value)

        write_json(path, {**asdict(self), "gap": self.gap}, default=in_json)


@dataclass(frozen=True, repr=False)
class NaturalSelection(ShownAsTable):
    """Controversial natural pairs, as many as asked for each model pair.

    Attributes:
        pairs: by models in the order of the scores, then by `row_1`.
        certificate: their value and its bound.
        changed: reviewed pairs that were not rejected and are not selected again.
    """

    pairs: tuple[Pair, ...]
    certificate: Certificate
    changed: tuple[ChangedItem, ...] = ()

    def __repr__(self) -> str:
        return f"<NaturalSelection: {len(self.pairs):,} pairs, {self.certificate.text}>"

    def to_frame(self) -> DataFrame:
        """Return the pairs as a pandas table, with the columns of pairs.csv."""
        return frame_of(columns_of(Pair, self.pairs))


@dataclass(frozen=True, repr=False)
class TripletSelection(ShownAsTable):
    """The chosen triplets.

    Attributes:
        triplets: in the order of the candidates.
        certificate: their value and its bound.
        changed: reviewed triplets that were not rejected and are not selected again.
    """

    triplets: tuple[Triplet, ...]
    certificate: Certificate
    changed: tuple[ChangedItem, ...] = ()

    def __repr__(self) -> str:
        return f"<TripletSelection: {len(self.triplets):,} triplets, {self.certificate.text}>"

    def to_frame(self) -> DataFrame:
        """Return the triplets as a pandas table, with the columns of triplets.csv."""
        return frame_of(columns_of(Triplet, self.triplets))


@dataclass(frozen=True, repr=False)
class MinimalPairSelection(ShownAsTable):
    """Controversial minimal pairs.

    Attributes:
        pairs: by models, then in the order of the scores.
        verdicts: a row for each paradigm and two models: numbers of its minimal pairs in which
            both, one, the other and neither is right (a tie is not), and of chosen ones.
        certificate: their value and its bound.
        changed: reviewed pairs that were not rejected and are not selected again.
    """

    pairs: tuple[ControversialMinimalPair, ...]
    verdicts: dict[str, list[object]]
    certificate: Certificate
    changed: tuple[ChangedItem, ...] = ()

    def __repr__(self) -> str:
        return f"<MinimalPairSelection: {len(self.pairs):,} pairs, {self.certificate.text}>"

    def to_frame(self) -> DataFrame:
        """Return the pairs as a pandas table."""
        return frame_of(columns_of(ControversialMinimalPair, self.pairs))
