"""Questions and selections.

A question has the settings of a selection. A selection has stimuli, and a certificate that proves
how good these stimuli are. "2023" is the study of Golan et al. (2023).

Each model accepts one sentence of a pair and rejects the other sentence. Unless the option
`agreeing` is set, the sentence that a model rejects is the less likely one under this model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from contstim.errors import InputError
from contstim.files.documents import FORMAT, write_json
from contstim.files.tables import ShownAsTable, columns_of, frame_of
from contstim.items.matching import ENOUGH, ENOUGH_SDS
from contstim.items.stimuli import ControversialMinimalPair, Pair, Triplet, triplet_columns
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
    """Number of controversial natural pairs, and rules about these pairs."""

    per_pair: Annotated[int, Help("Sentence pairs for each pair of models.", at_least=0)] = 10
    no_repeats: Annotated[bool, Help("Leave out sentences in which a word repeats.")] = False
    same_length: Annotated[
        bool,
        Help(
            "Both sentences of a pair have the same number of words, and are ranked among "
            "sentences of this length. The number of pairs of a length is proportional to the "
            "number of sentences of this length."
        ),
    ] = False
    agreeing: Annotated[
        bool,
        Help(
            "Also use sentences at or above the median of the model that rejects them, as in the "
            "2023 study. Both models may then prefer the same sentence of a pair."
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class NaturalQuestion(NaturalRules):
    """The rules, with counts and word lists loaded from their files.

    Attributes:
        counts: (model_1, model_2, number of sentence pairs) for pairs of models that need another
            number than `per_pair`. Models are in the order of the scores. The number may be 0.
        repeatable: words that may repeat despite `no_repeats`; case is ignored.

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
        objective: `readable` requires that both drops of a triplet are at least `enough`. A drop is
            log p(natural) - log p(synthetic) under the model that rejects the synthetic sentence.
            `readable` minimises the number of misfits (new words of another part of speech, see
            `contstim.items.matching`), then the number of new words. `controversiality` maximises
            the sum of Eq. 4 of the 2023 study. `worst-rank` minimises the sum of
            `triplets.worst_ranks`.
        quantiles: number of quantile groups. Natural sentences n are grouped by p(n|m1), and again
            by p(n|m2), where m1 and m2 are the two models. The same number of triplets is selected
            from each group.
        word_cap: maximum number of occurrences of a lemma in the selected sentences.
        token_balance: maximum difference between two mean numbers of tokens under a model: the mean
            of the synthetic sentences that the model rejects, and the mean of the synthetic
            sentences that it accepts.
    """

    per_pair: Annotated[int, Help("Triplets for each pair of models.", at_least=0)] = 10
    objective: Annotated[
        Objective,
        Help(
            "readable: fewest new words of another part of speech, then fewest new words, with "
            "enough nats. controversiality: largest sum of nats. worst-rank: lowest sum of ranks, "
            "as in the code of 2023. A triplet has the worse of its ranks under the two models."
        ),
    ] = "readable"
    enough: Annotated[
        float | None,
        Help(
            "With readable: minimum difference in nats between the natural sentence and the one "
            "that a model rejects. By default 5; in a study, the value of the searches.",
            at_least=0.0,
            kind="enough nats",
        ),
    ] = None
    tags: Annotated[
        Path | None,
        Help(
            "Table of parts of speech for another language than English.",
            content="tags",
            kind="tags of triplets",
        ),
    ] = None
    quantiles: Annotated[
        int,
        Help(
            "Number of groups of natural sentences by their probability under each model. The same "
            "number of triplets is selected from each group. 0 means no such rule.",
            at_least=0,
        ),
    ] = 10
    natural_once: Annotated[
        bool,
        Help(
            "Use a natural sentence only once. This is the default in a study with `twins` (trials "
            "of a natural and a synthetic sentence).",
            kind="twins",
        ),
    ] = False
    word_cap: Annotated[int | None, Help("Maximum number of uses of a word.", at_least=1)] = None
    token_balance: Annotated[
        float | None,
        Help(
            "Maximum difference between two means under a model: the mean number of tokens of the "
            "sentences that it rejects, and that of the sentences that it accepts. Needs --tokens.",
            at_least=0.0,
        ),
    ] = None
    seconds: Annotated[float, Help("Time limit of the solver, seconds.", at_least=0.0)] = 60.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.objective != "readable" and self.enough is not None:
            raise InputError(f"`enough` needs the objective readable, got {self.objective}.")

    def least_drop(self, triplet: Triplet) -> float:
        """Return the minimum for each drop of a triplet, in the unit of its drops.

        If the objective is not `readable`, there is no minimum, and the result is -inf.
        """
        if self.objective != "readable":
            return -inf
        default = ENOUGH if triplet.in_nats else ENOUGH_SDS
        return default if self.enough is None else self.enough


@dataclass(frozen=True, kw_only=True)
class TripletQuestion(TripletRules):
    """The rules, with counts and word lists loaded from their files.

    Attributes:
        counts: (model_1, model_2, number of triplets) for pairs of models that need another number
            than `per_pair`. Models are in the order of the triplets. The number may be 0.
        uncapped: words that `word_cap` does not limit.

    Raises:
        InputError: if a number is out of range, or `enough` is set for another objective than
            `readable`.
    """

    counts: PairCounts = ()
    uncapped: frozenset[str] = REPEATABLE_ENGLISH


def demand(
    question: NaturalQuestion | TripletQuestion, pairs: Iterable[ModelPair]
) -> dict[ModelPair, int]:
    """Return the number of stimuli for each pair of models.

    Raises:
        InputError: if a count is negative, or for models that are not in `pairs`. Also if no pair
            of models needs stimuli.
    """
    needed = dict.fromkeys(pairs, question.per_pair)
    for first, second, count in question.counts:
        if (first, second) not in needed:
            raise InputError(
                f"There is a count for {first}, {second}, which is not a pair of models in this "
                f"order; the pairs are {'; '.join(', '.join(pair) for pair in needed)}."
            )
        if count < 0:
            raise InputError(f"The count for {first}, {second} must be at least 0, got {count}.")
        needed[first, second] = count
    if not any(needed.values()):
        raise InputError("No pair of models needs stimuli. Set `per_pair` or a count above 0.")
    return needed


@dataclass(frozen=True, kw_only=True)
class MinimalPairQuestion:
    """Number of controversial minimal pairs, their objective and their rules.

    Attributes:
        objective: value of a minimal pair for two models; the sum is maximised. Let d be
            log p(acceptable sentence) - log p(other sentence) under a model.

            * `margin`: the smaller `|d|` of the two models, nats.
            * `rank`: the smaller of two fractional ranks. Under each of the two models, `|d|` has
              a fractional rank among all pairs.
            * `evidence`: the expected log Bayes factor of one answer, nats. The Bayes
              factor compares two hypotheses: participants choose according to one model, or
              according to the other. The probability of the acceptable sentence is logistic(.055
              d), where d is clipped to ±27 nats. This approximates the choices in the study of
              2023.
        floor: minimum log-probability per word of both sentences under both models, nats.

    Raises:
        InputError: if a number is out of range, or `per_pair` is odd.
    """

    per_pair: Annotated[
        int,
        Help(
            "Minimal pairs for every two models. In half of them, only the first model is right; "
            "in the other half, only the second.",
            at_least=2,
        ),
    ] = 20
    objective: Annotated[
        MinimalPairObjective,
        Help(
            "Maximise the sum over the pairs. A margin is the difference between the two sentences "
            "under a model, nats. margin: the smaller margin of the two models. rank: the smaller "
            "rank of their margins. evidence: the expected evidence of an answer."
        ),
    ] = "margin"
    per_paradigm: Annotated[
        int | None, Help("Maximum number of pairs of a paradigm in each half.", at_least=1)
    ] = None
    floor: Annotated[
        float | None, Help("Minimum log-probability per word of both sentences, nats.", at_most=0)
    ] = None
    word_cap: Annotated[
        int | None, Help("Maximum number of minimal pairs with a content word (lemma).", at_least=1)
    ] = None
    tags: Annotated[
        Path | None, Reads("Table of lemmas for another language than English.", content="tags")
    ] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.per_pair % 2:
            raise InputError(
                f"`per_pair` must be even, got {self.per_pair}. Only the first model is right in "
                "half of the minimal pairs, and only the second model in the other half."
            )


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Question, value of the selection, and proven bound on the value of all other selections.

    Attributes:
        objective: value of the selection:

            * Natural pairs: Eq. 5 of the 2023 study, the sum of the fractional ranks of all
              sentences under the models that reject them.
            * Triplets: the sum of Eq. 4 (nats), or the sum of ranks. With the objective `readable`,
              the number of misfits and, after the decimal point, the number of new words. For
              example, 2.034 means 2 misfits and 34 new words.
            * Minimal pairs: the sum of the values that `MinimalPairQuestion.objective` defines.
        bound: proven bound on the value of other selections. Some goals, for example to keep
            reviewed items, have priority over the value. The bound is for all selections that reach
            these earlier goals equally well.
        status: `optimal` if objective and bound are equal (within 2e-6) and the earlier goals are
            proven optimal; `gap` if the time limit prevented this.
        tie_rule: rule that decides between selections of equal value.
        seconds: duration of the selection, including its check.
    """

    question: NaturalQuestion | TripletQuestion | MinimalPairQuestion
    objective: float
    bound: float
    status: str
    solver: str = SOLVER
    version: str = field(default_factory=solver_version)
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

        `values` are objective and bound. For `exact`, see `Solution`.
        """
        objective, bound = values
        return cls(
            question=question,
            objective=objective,
            bound=bound,
            status="optimal" if exact and abs(objective - bound) <= 2 * EXACT else "gap",
            tie_rule=tie_rule,
            candidates=candidates,
        )

    @property
    def gap(self) -> float:
        """Difference between objective and bound."""
        return abs(self.objective - self.bound)

    @property
    def text(self) -> str:
        """Status, objective and bound in one line."""
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
    """The selected controversial natural pairs.

    Attributes:
        pairs: pairs, sorted by models in the order of the scores, then by `row_1`.
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
    """The selected triplets.

    Attributes:
        triplets: triplets in the order of the candidates.
        changed: reviewed triplets that were not rejected and are not selected again.
    """

    triplets: tuple[Triplet, ...]
    certificate: Certificate
    changed: tuple[ChangedItem, ...] = ()

    def __repr__(self) -> str:
        return f"<TripletSelection: {len(self.triplets):,} triplets, {self.certificate.text}>"

    def to_frame(self) -> DataFrame:
        """Return the triplets as a pandas table, with the columns of triplets.csv."""
        return frame_of(triplet_columns(self.triplets))


@dataclass(frozen=True, repr=False)
class MinimalPairSelection(ShownAsTable):
    """The selected controversial minimal pairs.

    Attributes:
        pairs: pairs, sorted by models, then in the order of the scores.
        verdicts: columns of a table with a row for each paradigm and two models. Four columns count
            minimal pairs: both models are right, only the first, only the second, or neither. A
            model is right if it prefers the acceptable sentence; a tie is not right. The last
            column is the number of selected pairs.
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
